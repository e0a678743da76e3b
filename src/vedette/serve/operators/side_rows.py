"""Rows of several sides in one request: {"left": [...], "right": [...]}, or the rows of one side that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from vedette.errors import RowError, nearest, shown
from vedette.serve.bodies import ARROW, JSON, check_number
from vedette.serve.row_log import Body


class Reader(Protocol):
    """Reads the rows of one side."""

    @property
    def is_exact(self) -> bool:
        """Whether `load` keeps decimal numbers as texts."""

    def read(self, form: int, body: bytes) -> Any: ...

    def load(self, text: bytes) -> Any:
        """JSON, with numbers as the side needs them. Raises ValueError."""

    def check(self, read: Any) -> Any:
        """Records of JSON, after a check that they are rows."""

    def to_table(self, read: Any) -> pa.Table: ...


@dataclass(frozen=True)
class SideRows:
    """Rows by side. A side that the request does not have is missing."""

    tables: dict[str, pa.Table]

    @property
    def num_rows(self) -> int:
        return sum(table.num_rows for table in self.tables.values())


def read_sides(body: Body, readers: Mapping[str, Reader], max_rows: int) -> SideRows:
    """The rows of a request. Raises RowError, or a problem if there are too many."""
    if body.side:
        _check_side(body.side, readers)
        reader = readers[body.side]
        return SideRows({body.side: reader.to_table(reader.read(body.form, body.data))})
    if body.form == ARROW:
        first = next(iter(readers))
        raise RowError(f"an Arrow stream has rows of one side; name it in the request, such as ?side={first}")
    objects = {exact: _read_objects(body, readers, exact) for exact in {each.is_exact for each in readers.values()}}
    for side in {side for each in next(iter(objects.values())) for side in each}:
        _check_side(side, readers)
    records = {side: _rows_of(side, objects[reader.is_exact]) for side, reader in readers.items()}
    records = {side: rows for side, rows in records.items() if rows is not None}
    check_number(sum(len(rows) for rows in records.values() if rows), max_rows)
    tables = {}
    for side, rows in records.items():
        try:
            tables[side] = readers[side].to_table(readers[side].check(rows))
        except RowError as error:
            raise error.within(f"{side} rows") from None
    return SideRows(tables)


def _rows_of(side: str, objects: list[dict[str, Any]]) -> list[Any] | None:
    """The rows of a side; None if no object has it."""
    given = [each[side] for each in objects if side in each]
    return [row for rows in given for row in (rows if type(rows) is list else [rows])] if given else None


def _read_objects(body: Body, readers: Mapping[str, Reader], exact: bool) -> list[dict[str, Any]]:
    """The objects of a body, each with rows by side: one or a list as JSON, or one per line."""
    load = next(reader.load for reader in readers.values() if reader.is_exact == exact)
    texts = [body.data] if body.form == JSON else [line for line in body.data.splitlines() if line.strip()]
    try:
        found = [load(text) for text in texts]
    except ValueError as error:
        raise RowError(f"the body is not valid JSON: {error}") from None
    if body.form == JSON and type(found[0]) is list:
        found = found[0]
    for each in found:
        if type(each) is not dict:
            sides = ", ".join(f'"{side}": [...]' for side in readers)
            raise RowError(f"rows of a join are a JSON object such as {{{sides}}}; got {shown(each)}")
    return found


def _check_side(side: str, readers: Mapping[str, Any]) -> None:
    if side not in readers:
        raise RowError(f"unknown side {shown(side)}; the sides are: {', '.join(readers)}{nearest(side, readers)}")
