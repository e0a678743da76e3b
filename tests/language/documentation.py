"""The examples of docs/language.md: its schema, its rows and its tables."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.data.schema import Schema

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
_READ: dict[str, Any] = {
    "string": lambda cell: "" if cell == "''" else cell,
    "double": float,
    "bigint": int,
    "decimal": Decimal,
    "boolean": lambda cell: cell == "true",
    "date": dt.date.fromisoformat,
    "timestamp": lambda cell: dt.datetime.fromisoformat(cell).replace(tzinfo=dt.UTC),
}


def sample() -> tuple[Schema, dict[str, list[Any]]]:
    """The page's schema and rows, as columns."""
    return _read_sample(PAGE.read_text(), "row")


def fence_sample() -> tuple[Schema, dict[str, list[Any]]]:
    """The schema and points of the examples of geofences."""
    return _read_sample(_section("Geofences"), "point")


def array_sample() -> tuple[Schema, pa.Table]:
    """The schema and rows of the examples of arrays and structs."""
    text = _section("Arrays and structs")
    found = re.search(r"```\n(.*?)\n```", text, re.DOTALL)
    assert found
    cells = [[_read_item(cell) for cell in line[1:]] for line in tables(text)["item"]]
    rows = [
        {
            "tags": tags,
            "sizes": sizes,
            "m": None if m is None else list(m.items()),
            "o": {"a": a, "c": {"e": e, "f": f}},
        }
        for tags, sizes, m, a, e, f in cells
    ]
    schema = Schema.parse(found.group(1))
    return schema, pa.Table.from_pylist(rows, schema=schema.to_arrow())


def array_conditions() -> list[tuple[str, set[int]]]:
    """Conditions on arrays and structs, and the numbers of the rows they keep."""
    return [(_code(line[0]), _rows(line[1])) for line in tables(PAGE.read_text())["array condition"]]


def _read_item(cell: str) -> Any:
    if cell == "":
        return None
    return cell if cell.isalpha() else json.loads(cell)


def fences() -> list[tuple[str, set[int]]]:
    """Geofences, and the numbers of the points they keep."""
    return [(_code(line[0]), _rows(line[1])) for line in tables(PAGE.read_text())["geofence"]]


def fence_refusals() -> list[tuple[str, str]]:
    """Geofences that are refused, and words of the error."""
    return [(_code(line[0]), line[1]) for line in tables(PAGE.read_text())["bad geofence"]]


def fence_program() -> str:
    """The program that reads geofences from a file."""
    found = re.search(r"```python\n(.*?)\n```", _section("Geofences"), re.DOTALL)
    assert found
    return found.group(1)


def _section(title: str) -> str:
    return PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def _read_sample(text: str, head: str) -> tuple[Schema, dict[str, list[Any]]]:
    found = re.search(r"```\n(.*?)\n```", text, re.DOTALL)
    assert found
    schema = Schema.parse(found.group(1))
    lines = tables(text)[head]
    columns = {
        field.name: [None if line[k + 1] == "" else _READ[field.type.name](line[k + 1]) for line in lines]
        for k, field in enumerate(schema)
    }
    return schema, columns


def tables(text: str) -> dict[str, list[list[str]]]:
    """The lines of all tables, by the first word of their heads."""
    found: dict[str, list[list[str]]] = {}
    head = ""
    for line in text.splitlines():
        if not line.startswith("|"):
            head = ""
            continue
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not head:
            head = cells[0]
        elif not cells[0].startswith("---"):
            found.setdefault(head, []).append(cells)
    return found


def conditions() -> list[tuple[str, set[int], str]]:
    """Condition, the numbers of the rows it keeps, and its spelling in Spark."""
    lines = tables(PAGE.read_text())["condition"]
    return [(_code(line[0]), _rows(line[1]), _code(line[2] if len(line) > 2 else line[0])) for line in lines]


def refusals() -> list[tuple[str, str]]:
    """Text, and words of the error it gets."""
    return [(_code(line[0]), line[1]) for line in tables(PAGE.read_text())["text"]]


def _code(cell: str) -> str:
    return cell.strip("`").strip() if cell.startswith("``") else cell[1:-1]


def _rows(cell: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", cell)}
