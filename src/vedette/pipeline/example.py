"""The pipeline that `vedette init` writes: generated ticks, alerts in a SQLite registry, and two sinks."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE, DATABASE, SET = "pipeline.toml", "alerts.db", "alerts"
SCHEMA = "symbol string, price double, ts timestamp"
ALERTS = {
    "cheap-ibm": "symbol = 'IBM' AND price < 90",
    "dear-ibm": "symbol = 'IBM' AND price > 115",
    "sap-around-100": "symbol = 'SAP' AND price BETWEEN 98 AND 102",
    "any-very-dear": "price > 122",
}


def add_command(database: Path) -> str:
    """The command that adds an alert to the example."""
    where = shlex.quote(f"sqlite:///{database}")
    return f"""vedette query add dear-sap "symbol = 'SAP' AND price > 120" --registry {where}"""


def write_example(folder: Path) -> Sequence[Path]:
    """Write the file and its registry into a folder, which is created if it is missing. Nothing is overwritten."""
    from vedette import Registry

    paths = [folder / FILE, folder / DATABASE]
    for path in paths:
        if path.exists():
            raise FileError(f"{path} already exists; use another folder: vedette init FOLDER")
    text = resources.files(__package__).joinpath("example.toml").read_text(encoding="utf-8")
    text = text.replace("COMMAND", add_command(paths[1].absolute()))  # absolute, so that it works in any folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths[0].write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write {paths[0]}: {error.strerror}") from None
    registry = Registry(f"sqlite:///{paths[1].absolute()}")
    registry.create(SET, kind="border", schema=SCHEMA)
    registry.add_many(SET, list(ALERTS), list(ALERTS.values()))
    return paths
