"""Settings: read once from a TOML file and the environment.

The file is the one that VEDETTE_SETTINGS names, else `vedette.toml` in the working directory if it exists. A variable
`VEDETTE_<NAME>` overrides the file.

Settings named `max_...` are limits. Limits on queries apply when a user adds a query, never when a saved set or a
registry is read. docs/operations.md lists them all.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vedette.errors import FileError, QueryError, nearest, shown

_PREFIX = "VEDETTE_"
_FILE_VARIABLE = "VEDETTE_SETTINGS"
# Kubernetes sets such variables for a service named vedette.
_OF_KUBERNETES = re.compile(r"VEDETTE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")
_Positive = Annotated[int, Field(ge=1)]
_RULES = {
    "string_type": "it must be a string",
    "dict_type": "it must be a table of the settings file: [serve], with one limit a line",
}
_log = logging.getLogger(__name__)


def _mode_reader(least: int, most: int, example: str) -> BeforeValidator:
    """Permissions as chmod takes them: "0640" in the environment, "0640" or 0o640 in TOML."""

    def read(value: Any) -> int:
        try:
            mode = int(value, 8) if isinstance(value, str) else int(value)
        except (TypeError, ValueError):
            mode = 0
        if mode & least != least or mode & ~most:
            raise ValueError(
                f'it must be a mode as for chmod, such as "{example}", and the owner must be able to read and write'
            )
        return mode

    return BeforeValidator(read)


def _limit(default: int, counts: str, *, at_most: int | None = None) -> Any:
    """A limit. `counts` says what it counts, with {} for the number; `at_most` bounds the setting itself."""
    return Field(default, ge=1, le=at_most, json_schema_extra={"counts": counts})


class Settings(BaseModel):
    """All settings. `Settings(...)` uses defaults for what is not given; `read` reads the file and the environment.

    >>> Settings(inline_bytes=1000).inline_bytes
    1000
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot_dir: str = ""  # for large query sets that Spark's workers read; empty: a directory of this account
    registry: str = ""  # the address of the registry for commands that do not name one
    # Permissions of databases, snapshots and saved sets that are created, and of directories for them.
    file_mode: Annotated[int, _mode_reader(0o600, 0o666, "0640")] = 0o600
    directory_mode: Annotated[int, _mode_reader(0o700, 0o3777, "0750")] = 0o700
    inline_bytes: _Positive = 4_000_000  # query sets up to this size are sent inside the task, others as a file
    arrow_batch_rows: _Positive = 262_144  # rows of an Arrow batch between Spark and Python, in our sessions
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None  # of an answer outside Spark; None: all cores

    monitor_cache_bytes: _Positive = 2 << 30  # of the state that the workers of a host keep in memory, approximately
    answer_batch_bytes: Annotated[_Positive, Field(le=1 << 30)] = 64 << 20  # of a piece of an answer, approximately
    max_answer_bytes: _Positive = 1 << 30  # of an answer that is returned as a whole

    max_text_length: int = _limit(10_000_000, "the text has {} characters")
    max_terms: int = _limit(50_000, "the condition has {} terms (comparisons, function calls, arithmetic)")
    max_list_values: int = _limit(100_000, "the IN lists have {} values")
    max_nesting: int = _limit(100, "the condition nests {} levels deep", at_most=100)
    max_boxes: int = _limit(200_000, "the condition makes {} boxes")
    max_polygon_vertices: int = _limit(100_000, "the polygons have {} vertices")
    max_residual_cost: int = _limit(500_000, "the part of the condition that no index answers has {} operations")
    max_queries: int = _limit(100_000_000, "the set would have {} queries", at_most=2_000_000_000)

    # Limits of `vedette serve`, checked there. A table of the file; the environment cannot give it.
    serve: dict[str, Any] = {}

    @classmethod
    def read(cls, file: Path | None = None) -> Settings:
        """The settings of a file, overridden by the environment."""
        values = {} if file is None else _read_file(file)
        names = list(cls.model_fields)
        for name in values:
            if name not in names:
                raise FileError(
                    f"{file}: unknown setting {shown(name)}; settings are: {', '.join(names)}{nearest(name, names)}"
                )
        _warn_of_unknown(os.environ)
        values |= {name: os.environ[_variable(name)] for name in names if _variable(name) in os.environ}
        try:
            return cls(**values)
        except ValidationError as error:
            raise FileError(_describe(error)) from None

    def check(self, name: str, got: int, *, at_least: bool = False) -> None:
        """Raise QueryError if `got` exceeds the limit `name`. With `at_least`, counting stopped early.

        >>> Settings(max_terms=2).check("max_terms", 3)
        Traceback (most recent call last):
        vedette.errors.QueryError: the condition has 3 terms (comparisons, function calls, arithmetic); the limit is 2
        (setting max_terms)
        """
        limit = getattr(self, name)
        if got > limit:
            more: Any = type(self).model_fields[name].json_schema_extra
            count = f"at least {got:,}" if at_least else f"{got:,}"
            raise QueryError(f"{more['counts'].format(count)}; the limit is {limit:,} (setting {name})")


@cache
def settings() -> Settings:
    """The settings of this process."""
    named = os.environ.get(_FILE_VARIABLE)
    file = Path(named or "vedette.toml")
    return Settings.read(file if named or file.exists() else None)


def _variable(name: str) -> str:
    return f"{_PREFIX}{name.upper()}"


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise FileError(f"cannot read the settings file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{file} is not valid TOML: {error}") from None


def _warn_of_unknown(variables: Iterable[str]) -> None:
    """Log a warning for each variable with the prefix that is not a setting, such as a misspelling."""
    known = [_FILE_VARIABLE, *map(_variable, Settings.model_fields)]
    for name in variables:
        is_ours = name.startswith(_PREFIX) and name not in known and not _OF_KUBERNETES.fullmatch(name)
        if is_ours:
            _log.warning("the variable %s is not a setting%s", shown(name), nearest(name, known))


def _describe(error: ValidationError) -> str:
    """A message about the first invalid value."""
    first = error.errors(include_url=False)[0]
    name, context = str(first["loc"][0]), first.get("ctx", {})
    if first["type"] == "less_than_equal":
        rule = f"it must be at most {context['le']:,}"
    elif first["type"] == "value_error":
        rule = str(context["error"])
    else:
        rule = _RULES.get(first["type"], "it must be an integer of at least 1")
    return f"setting {name!r} is {shown(first['input'])}; {rule}"
