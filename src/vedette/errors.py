"""The errors Vedette raises. A message says what is wrong, what it got and what would work.

VedetteError
├── QueryError       a query's text, box or id cannot be taken
├── SchemaError      a schema cannot be read, or names a type there is none of
├── RowError         rows lack a field, or carry it in a type that cannot be read as the schema's
├── AnswerError      an answer would exceed the setting max_answer_bytes; nothing has changed
├── SnapshotError    a saved query set is damaged, or of another format
├── FileError        a file of queries or rows cannot be read or written
├── PipelineError    Spark cannot run the transform as things stand: no Java, another time zone, a worker without us
└── RegistryError    a registry or its database refuses: no such set, locked, read-only, out of reach, too new
    └── ConflictError    another writer has changed the set first
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_SHOWN = 2000  # characters of a message; the middle of a longer one is left out
_LONGEST_NAME = 200  # a longer one is no misspelling of a field or setting


class VedetteError(Exception):
    """Whatever Vedette refuses to do. A message never repeats long input in full."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(each, MOST_SHOWN) if isinstance(each, str) else each for each in args))


class QueryError(VedetteError, ValueError):
    """A query cannot be taken. `text` and `start`, `end` tell the place in it, where there is one."""

    def __init__(self, reason: str, text: str | None = None, start: int | None = None, end: int | None = None) -> None:
        self.reason = reason = shortened(reason, MOST_SHOWN // 2)
        self.text = text
        self.start = start
        self.end = end
        super().__init__(reason if text is None else f"{reason}\n{_underline(text, start, end)}")

    def in_query(self, query_id: object) -> QueryError:
        """The same error, naming the query it is about."""
        return QueryError(f"query {shown(query_id)}: {self.reason}", self.text, self.start, self.end)


class SchemaError(VedetteError, ValueError):
    """A schema cannot be read."""


class RowError(VedetteError, ValueError):
    """Rows do not fit the schema."""


class AnswerError(VedetteError, ValueError):
    """An answer would be too large. What was asked has changed nothing, and may be asked again about fewer rows."""


class SnapshotError(VedetteError, ValueError):
    """A saved query set cannot be loaded."""


class FileError(VedetteError, OSError):
    """A file of queries or rows cannot be read or written."""


class PipelineError(VedetteError, RuntimeError):
    """Spark cannot run the transform as things stand. `is_retryable`: a full disk, a lost network: a retry may help."""

    def __init__(self, reason: str, *, is_retryable: bool = False) -> None:
        super().__init__(reason)
        self.is_retryable = is_retryable


class RegistryError(VedetteError, RuntimeError):
    """A registry, or the database it is in, refuses.

    `broken` lists (id, error) where it is about queries. `is_retryable`: out of reach or locked; a retry may succeed.
    """

    def __init__(
        self, reason: str, broken: Iterable[tuple[str | int, QueryError]] = (), *, is_retryable: bool = False
    ) -> None:
        super().__init__(reason)
        self.broken = list(broken)
        self.is_retryable = is_retryable


class ConflictError(RegistryError):
    """A change expected another version of the set than there is."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A half sentence that offers the nearest of `names`, or nothing where none is near.

    >>> nearest("tmp", ["humidity", "room", "temp"])
    "; did you mean 'temp'?"
    """
    close = closest(name, names)
    return f"; did you mean {close!r}?" if close else ""


def closest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that `name` may be a misspelling of."""
    if len(name) > _LONGEST_NAME:
        return None
    by_folded = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def shown(value: object, longest: int = 80) -> str:
    """A value as messages show it: its repr, or the first and last part of a long one.

    >>> shown("IBM"), shown("a" * 500, 20)
    ("'IBM'", "'aaaaaaaa ... aaaaa'")
    """
    if isinstance(value, str) and len(value) > 2 * longest:
        value = value[:longest] + value[-longest:]  # the repr of the whole may be long to make, too
    if isinstance(value, int) and value.bit_length() > 10_000:  # Python refuses to write it in digits
        return f"an integer of {value.bit_length():,} bits"
    return shortened(repr(value), longest)


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters: the middle of a longer one is left out."""
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
