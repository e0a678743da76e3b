"""Records that a command prints: as a table for people, or as CSV or JSON for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from vedette.errors import PipelineError

Record = Mapping[str, Any]
_WIDTH = 200  # of a table that is not on a terminal


@dataclass(frozen=True)
class Answer:
    """The format of a command's output: options that exclude each other; and --quiet."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON", rich_help_panel="Output")] = False
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV; the default without a terminal", rich_help_panel="Output")
    ] = False
    as_table: Annotated[
        bool, typer.Option("--table", help="Print a table; the default on a terminal", rich_help_panel="Output")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary line", rich_help_panel="Output")] = (
        False
    )

    def __post_init__(self) -> None:
        if len(self._asked) > 1:
            raise PipelineError(f"--{self._asked[0]} and --{self._asked[1]} exclude each other; give one of them")

    @property
    def is_asked(self) -> bool:
        """Whether a format is given."""
        return bool(self._asked)

    @property
    def form(self) -> str:
        """json, csv or table: the given format, or the default for standard output."""
        return self._asked[0] if self._asked else ("table" if sys.stdout.isatty() else "csv")

    @property
    def _asked(self) -> list[str]:
        wanted = {"json": self.as_json, "csv": self.as_csv, "table": self.as_table}
        return [form for form, is_wanted in wanted.items() if is_wanted]


def print_records(records: Sequence[Record], columns: Sequence[str], form: str) -> None:
    """Print these columns of records."""
    if form == "json":
        print(json.dumps([dict(record) for record in records], indent=2, ensure_ascii=False, default=_as_text))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_cell(record.get(name)) for name in columns] for record in records])
    else:
        _print_table(records, columns)


def print_record(record: Record, form: str) -> None:
    """Print one record: JSON as one object, a table with one line per column."""
    if form == "json":
        print(json.dumps(dict(record), indent=2, ensure_ascii=False, default=_as_text))
    elif form == "csv":
        print_records([record], list(record), "csv")
    else:
        _print_table([{"name": name, "value": value} for name, value in record.items()], ("name", "value"))


def _print_table(records: Sequence[Record], columns: Sequence[str]) -> None:
    table = Table(*columns)
    for record in records:
        table.add_row(*(_cell(record.get(name)) for name in columns))
    console = Console(markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_as_text)
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds" if value.microsecond == 0 else "microseconds")
    return str(value)
