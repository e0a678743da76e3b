"""Settings: what may be set from outside, read once from a TOML file and the environment.

The file is the one VEDETTE_SETTINGS names, else `vedette.toml` in the working directory, else none. A variable
`VEDETTE_<NAME>` goes before the file.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from vedette.errors import FileError, nearest


@dataclass(frozen=True)
class Settings:
    """What may be set.

    >>> Settings.read(environment={"VEDETTE_INLINE_BYTES": "1000"}).inline_bytes
    1000
    """

    snapshot_dir: str = (
        ""  # where large query sets are put for Spark's workers; empty: the system's temporary directory
    )
    registry: str = ""  # the address of the registry that commands are about, unless they name one
    inline_bytes: int = 4_000_000  # query sets up to this size travel inside the task, larger ones as a file
    arrow_batch_rows: int = 262_144  # rows in an Arrow batch between Spark and Python, in sessions that we build

    @classmethod
    def read(cls, environment: Mapping[str, str], file: Path | None = None) -> Settings:
        """The settings of a file, under those of the environment."""
        values: dict[str, Any] = {} if file is None else _read_file(file)
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise FileError(
                    f"{file}: unknown setting {name!r}; settings are: {', '.join(names)}{nearest(name, names)}"
                )
        for name in names:
            variable = f"VEDETTE_{name.upper()}"
            if variable in environment:
                values[name] = environment[variable]
        return cls(**{name: _convert(name, value) for name, value in values.items()})

    @property
    def snapshot_path(self) -> Path:
        return Path(self.snapshot_dir or tempfile.gettempdir())


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
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise FileError(f"setting {name!r} is {value!r}; it takes a whole number above 0")
    return number
