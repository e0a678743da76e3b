"""The errors Vedette raises. A message says what is wrong, what it got and what would work.

VedetteError
├── QueryError       a query's text, box or id is invalid, or an option of an operator
│   ├── UnknownQueryError    no query has this id
│   └── ExistingQueryError   another query has this id
├── SchemaError      a schema is invalid, or names an unknown type
├── RowError         rows lack a field, or have it in a type that does not fit the schema
├── AnswerError      an answer would exceed the setting max_answer_bytes; nothing has changed
├── SnapshotError    a saved query set is damaged, or has another format
├── FileError        a file of queries or rows cannot be read or written
├── PipelineError    Spark cannot run the transform: no Java, another time zone, a worker without Vedette
├── MissingPackageError    an optional package is not installed; also an ImportError
└── RegistryError    a registry or its database refuses: unknown set, locked, read-only, unreachable, too new
    ├── ConflictError    another writer changed the set first
    ├── UnknownSetError  no set has this name
    └── ExistingSetError another set has this name
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from typing import Any, Self

MOST_SHOWN = 2000  # characters of a message; the middle of a longer one is omitted
_LONGEST_NAME = 200  # a longer name is not a misspelling of a field or setting


class VedetteError(Exception):
    """Base class of all errors that Vedette raises. A message never repeats long input in full.

    `option` is the option with the invalid value, as the Python API names it; the message begins with its name.
    `field` is a field or column, `query` the id of a query, and `position` a character of the query's text.
    Each is None if the error is not about one.
    """

    def __init__(
        self,
        statement: str = "",
        *,
        option: str | None = None,
        field: str | None = None,
        query: str | int | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(shortened(statement, MOST_SHOWN))
        self.option = option
        self.field = field
        self.query = query
        self.position = position
        self._place = ""
        self._option_name = option

    def __str__(self) -> str:
        return shortened(self.reason, MOST_SHOWN)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)

    @property
    def reason(self) -> str:
        """The message in one sentence, without the excerpt of a query's text."""
        statement = self.args[0]
        return self._place + (f"{self._option_name} {statement}" if self._option_name else statement)

    def within(self, place: object) -> Self:
        """The same error. Its message begins with the place where it happened: a file, a line, a stream."""
        placed = copy.copy(self)
        placed._place = f"{place}: {self._place}"
        return placed

    def with_option(self, name: str) -> Self:
        """The same error. Its message calls the option by this name: --null-key, operator.null_key."""
        named = copy.copy(self)
        named._option_name = name if self.option else None
        return named

    def in_query(self, query_id: Any) -> Self:
        """The same error, about this query."""
        placed = self.within(f"query {shown(query_id)}")
        placed.query = query_id
        return placed


def _restore(kind: type[VedetteError], args: tuple[Any, ...], state: dict[str, Any]) -> VedetteError:
    """Restore an error that was pickled or copied."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class QueryError(VedetteError, ValueError):
    """A query or an option is invalid. `text` is the query's text; the fault is at text[position:end]."""

    def __init__(
        self,
        statement: str = "",
        text: str | None = None,
        position: int | None = None,
        end: int | None = None,
        *,
        option: str | None = None,
        field: str | None = None,
        query: str | int | None = None,
    ) -> None:
        statement = shortened(statement, MOST_SHOWN // 2)
        super().__init__(statement, option=option, field=field, query=query, position=position)
        self.text = text
        self.end = end

    def in_text(self, text: str, position: int | None = None, end: int | None = None) -> Self:
        """The same error, about this place of a text."""
        placed = copy.copy(self)
        placed.text, placed.position, placed.end = text, position, end
        return placed

    def __str__(self) -> str:
        if self.text is None:
            return super().__str__()
        return shortened(f"{self.reason}\n{_underline(self.text, self.position, self.end)}", MOST_SHOWN)


class UnknownQueryError(QueryError):
    """No query of the set has this id."""


class ExistingQueryError(QueryError):
    """A query of the set already has this id."""


class SchemaError(VedetteError, ValueError):
    """A schema is invalid."""


class RowError(VedetteError, ValueError):
    """Rows do not fit the schema."""


class AnswerError(VedetteError, ValueError):
    """An answer would be too large. Nothing has changed; ask again with fewer rows."""


class SnapshotError(VedetteError, ValueError):
    """A saved query set cannot be loaded."""


class FileError(VedetteError, OSError):
    """A file of queries or rows cannot be read or written."""


class PipelineError(VedetteError, RuntimeError):
    """Spark cannot run the transform. `is_retryable`: a retry may succeed (a full disk, a lost network)."""

    def __init__(self, statement: str = "", *, is_retryable: bool = False, **about: Any) -> None:
        super().__init__(statement, **about)
        self.is_retryable = is_retryable


class MissingPackageError(VedetteError, ModuleNotFoundError):
    """An optional package is not installed. The message names the extra to install: `pip install 'vedette[spark]'`."""


class RegistryError(VedetteError, RuntimeError):
    """A registry or its database refuses an operation.

    `broken` lists (id, error) of invalid queries. `is_retryable`: the database is unreachable or locked; a retry may
    succeed.
    """

    def __init__(
        self,
        statement: str = "",
        broken: Iterable[tuple[str | int, QueryError]] = (),
        *,
        is_retryable: bool = False,
        **about: Any,
    ) -> None:
        super().__init__(statement, **about)
        self.broken = list(broken)
        self.is_retryable = is_retryable


class ConflictError(RegistryError):
    """The set is not at the version that a change expects."""


class UnknownSetError(RegistryError):
    """No set of the registry has this name."""


class ExistingSetError(RegistryError):
    """A set of the registry already has this name."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A clause that suggests the most similar of `names`; empty if none is similar.

    >>> nearest("tmp", ["humidity", "room", "temp"])
    "; did you mean 'temp'?"
    """
    close = closest(name, names)
    return f"; did you mean {close!r}?" if close else ""


def closest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of `names`, of which `name` may be a misspelling."""
    if len(name) > _LONGEST_NAME:
        return None
    by_folded = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def shown(value: object, longest: int = 80) -> str:
    """A value as messages show it: its repr, or the first and last part of a long repr.

    >>> shown("IBM"), shown("a" * 500, 20)
    ("'IBM'", "'aaaaaaaa ... aaaaa'")
    """
    if isinstance(value, str) and len(value) > 2 * longest:
        value = value[:longest] + value[-longest:]  # the repr of the whole string may take long
    if isinstance(value, int) and value.bit_length() > 10_000:  # Python raises ValueError for so many digits
        return f"an integer of {value.bit_length():,} bits"
    return shortened(repr(value), longest)


def shortened(text: str, longest: int) -> str:
    """A text of at most `longest` characters: the middle of a longer text is omitted."""
    if len(text) <= longest:
        return text
    tail = (longest - 5) * 2 // 5
    return f"{text[: longest - 5 - tail]} ... {text[len(text) - tail :]}"


def count(n: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(1, "query", "queries"), count(2000, "row")
    ('1 query', '2,000 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _underline(text: str, start: int | None, end: int | None) -> str:
    """The line of `text` around `start`, indented, with carets under the place."""
    if start is None:
        return "\n".join(f"  {shortened(line, 120)}" for line in text[:1000].splitlines()[:5])
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    width = max(1, min((end or start + 1), line_start + len(line)) - start)
    column = start - line_start
    first = max(0, column - 60)
    shown = line[first : first + 120]
    return f"  {shown}\n  {' ' * (column - first)}{'^' * min(width, max(1, len(shown) - (column - first)))}"
