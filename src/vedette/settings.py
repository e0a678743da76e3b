"""Settings: what may be set from outside, read once from a TOML file and the environment.

The file is the one VEDETTE_SETTINGS names, else `vedette.toml` in the working directory, else none. A variable
`VEDETTE_<NAME>` goes before the file.

Settings named `max_...` are limits. Limits on queries apply when a user adds a query, never when a saved set or a
registry is read. docs/operations.md lists them all.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from vedette.errors import FileError, QueryError, nearest, shown


def _limit(default: int, counts: str, *, at_most: int | None = None) -> int:
    """A limit. `counts` says what it counts, with {} for the number; `at_most` bounds the setting itself."""
    made: int = field(default=default, metadata={"counts": counts, "at_most": at_most})
    return made


@dataclass(frozen=True)
class Settings:
    """What may be set.

    >>> Settings.read(environment={"VEDETTE_INLINE_BYTES": "1000"}).inline_bytes
    1000
    """

    snapshot_dir: str = ""  # where large query sets are put for Spark's workers; empty: a directory of this account
    registry: str = ""  # the address of the registry that commands are about, unless they name one
    file_mode: int = 0o600  # of databases, snapshots and saved sets that are created
    directory_mode: int = 0o700  # of directories that are created for them
    inline_bytes: int = 4_000_000  # query sets up to this size travel inside the task, larger ones as a file
    arrow_batch_rows: int = 262_144  # rows in an Arrow batch between Spark and Python, in sessions that we build

    answer_batch_bytes: int = field(default=64 << 20, metadata={"at_most": 1 << 30})  # in a piece of an answer, about
    max_answer_bytes: int = 1 << 30  # in an answer that is returned as a whole

    max_text_length: int = _limit(10_000_000, "the text has {} characters")
    max_terms: int = _limit(50_000, "the condition has {} terms (comparisons, function calls, arithmetic)")
    max_list_values: int = _limit(100_000, "the IN lists have {} values")
    max_nesting: int = _limit(100, "the condition nests {} levels deep", at_most=100)
    max_boxes: int = _limit(200_000, "the condition makes {} boxes")
    max_polygon_vertices: int = _limit(100_000, "the polygons have {} vertices")
    max_queries: int = _limit(100_000_000, "the set would have {} queries", at_most=2_000_000_000)

    @classmethod
    def read(cls, environment: Mapping[str, str], file: Path | None = None) -> Settings:
        """The settings of a file, under those of the environment."""
        values: dict[str, Any] = {} if file is None else _read_file(file)
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise FileError(
                    f"{file}: unknown setting {shown(name)}; settings are: {', '.join(names)}{nearest(name, names)}"
                )
        for name in names:
            variable = f"VEDETTE_{name.upper()}"
            if variable in environment:
                values[name] = environment[variable]
        return cls(**{name: _convert(name, value) for name, value in values.items()})

    def check(self, name: str, got: int, *, at_least: bool = False) -> None:
        """Raise QueryError where `got` exceeds the limit `name`. With `at_least`, the count was stopped early.

        >>> Settings(max_terms=2).check("max_terms", 3)
        Traceback (most recent call last):
        vedette.errors.QueryError: the condition has 3 terms (comparisons, function calls, arithmetic); the limit is 2
        (setting max_terms)
        """
        limit = getattr(self, name)
        if got > limit:
            counts = next(each.metadata["counts"] for each in fields(self) if each.name == name)
            count = f"at least {got:,}" if at_least else f"{got:,}"
            raise QueryError(f"{counts.format(count)}; the limit is {limit:,} (setting {name})")


@cache
def settings() -> Settings:
    """The settings of this process."""
    named = os.environ.get("VEDETTE_SETTINGS")
    file = Path(named or "vedette.toml")
    return Settings.read(os.environ, file if named or file.exists() else None)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read the settings file {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{file} is no TOML: {error}") from None


def _convert(name: str, value: Any) -> Any:
    if name in ("snapshot_dir", "registry"):
        return str(value)
    if name.endswith("_mode"):
        return _read_mode(name, value)
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise FileError(f"setting {name!r} is {shown(value)}; it takes a whole number above 0")
    most = next(each.metadata.get("at_most") for each in fields(Settings) if each.name == name)
    if most is not None and number > most:
        raise FileError(f"setting {name!r} is {shown(value)}; it takes at most {most:,}")
    return number


def _read_mode(name: str, value: Any) -> int:
    """Permissions as chmod takes them: "0640" in the environment, "0640" or 0o640 in TOML."""
    least, most, example = (0o600, 0o666, "0640") if name == "file_mode" else (0o700, 0o3777, "0750")
    try:
        mode = int(value, 8) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        mode = 0
    if mode & least != least or mode & ~most:
        raise FileError(
            f'setting {name!r} is {shown(value)}; it takes permissions as chmod does, such as "{example}", and the '
            f"owner must be able to read and write"
        )
    return mode
