"""Columns of rows that answers carry: read from any rows, kept by slot, and saved as an Arrow stream.

They may have any Arrow type. New rows are appended to one table, and a slot refers to its last row there. Rows that no
slot refers to are dropped when they are the majority. So a put costs what its rows cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.arrow_values import to_arrow
from vedette.data.frames import as_frame
from vedette.errors import QueryError, RowError, nearest, shown
from vedette.native.buffers import grown
from vedette.native.damage import check
from vedette.operators.table_pieces import TablePieces, as_schema

_FEW = 4096  # rows without a slot that are always kept


def check_columns(columns: Any, taken: Sequence[str], option: str = "columns") -> tuple[str, ...]:
    """The names of columns to carry. Raises QueryError unless they are distinct names, other than those taken."""
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, (list, tuple)):
        raise QueryError(f"must be a list of names, such as ['lon', 'lat']; got {shown(columns)}", option=option)
    used = {name.lower() for name in taken}
    for name in columns:
        if not isinstance(name, str) or not name:
            raise QueryError(f"must be a list of names; it contains {shown(name)}", option=option)
        if name.lower() in used:
            what = "asked for twice" if name not in taken else "a column of the answer itself"
            raise QueryError(f"names {name!r}, which is {what}; rename it, or omit it", option=option)
        used.add(name.lower())
    return tuple(columns)


def read_columns(rows: Any, columns: Sequence[str], names: Sequence[str] | None = None) -> pa.Table:
    """Columns of rows as a table; `names` are their names in it. Dictionaries are decoded."""
    frame = as_frame(rows)
    arrays = []
    for column in columns:
        values = frame.find(column)
        if values is None:
            known = sorted(frame.names)
            raise RowError(
                f"names {column!r}, which is not a column of the rows; they have: {', '.join(known)}"
                f"{nearest(column, known)}",
                option="columns",
                field=column,
            )
        arrays.append(_plain(to_arrow(values, f"column {column!r}"), column))
        if len(arrays[-1]) != len(arrays[0]):
            raise RowError(f"columns {columns[0]!r} and {column!r} have {len(arrays[0])} and {len(arrays[-1])} values")
    return pa.Table.from_arrays(arrays, names=list(names or columns))


def _plain(values: Any, column: str) -> pa.ChunkedArray:
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    type_ = chunked.type
    if pa.types.is_union(type_):
        raise RowError(f"column {column!r} is {type_}; columns of unions cannot be carried", option="columns")
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_run_end_encoded(type_):
        chunked, type_ = pa.chunked_array([pc.run_end_decode(each) for each in chunked.chunks]), type_.value_type
    if pa.types.is_string(type_) or pa.types.is_string_view(type_):
        type_ = pa.large_string()
    elif pa.types.is_binary(type_) or pa.types.is_binary_view(type_):
        type_ = pa.large_binary()  # offsets of 64 bits, so that the last rows of many keys fit
    return chunked if chunked.type == type_ else chunked.cast(type_)


class CarriedRows:
    """Columns of one row per slot. A slot without a row has nulls."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._rows = TablePieces(names)
        self._places = np.zeros(0, np.int64)  # by slot: 1 + the place of its row, or 0

    def __bool__(self) -> bool:
        """Whether any column is carried."""
        return bool(self.names)

    @property
    def n_rows(self) -> int:
        """The number of rows, including those without a slot."""
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._places.nbytes

    def read(self, rows: Any) -> pa.Table:
        """The columns of new rows, in the types that they have had so far."""
        return self._rows.read(read_columns(rows, self.names))

    def fit(self, table: pa.Table) -> pa.Table:
        """A table in the types so far, which do not change."""
        return self._rows.fit(table)

    def at(self, slots: NDArray[Any]) -> pa.Table:
        """The rows of these slots."""
        return self.at_places(self.places(slots))

    def put(self, slots: NDArray[Any], table: pa.Table) -> None:
        """Set the rows of slots, each of which occurs once."""
        if self.names and len(slots):
            self.append(slots, table)
            self.tidy()

    def free(self, slots: NDArray[Any]) -> None:
        if self.names:
            self._reach(slots)
            self._places[slots] = 0

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        """Slots have new numbers; -1 is none."""
        if self.names:
            places = self._places[: len(moved)]
            moved = moved[: len(places)]
            stays = moved >= 0
            self._places = np.zeros(int(moved.max(initial=-1)) + 1, np.int64)
            self._places[moved[stays]] = places[stays]

    # Places: rows keep them until `tidy`, also after their slots got other rows.

    def places(self, slots: NDArray[Any]) -> NDArray[np.int64]:
        """The places of the rows of these slots, or -1."""
        self._reach(slots)
        places: NDArray[np.int64] = self._places[slots] - 1
        return places

    def at_places(self, places: NDArray[np.int64]) -> pa.Table:
        return self._rows.take(places)

    def append(self, slots: NDArray[Any], table: pa.Table) -> None:
        """Set the rows of slots, each of which occurs once."""
        self._reach(slots)
        n = len(self._rows)
        self._rows.append(table)
        self._places[slots] = np.arange(n + 1, n + table.num_rows + 1)

    def tidy(self) -> None:
        """Drop rows without a slot if they are the majority."""
        if len(self._rows) > 2 * np.count_nonzero(self._places) + _FEW:
            used = np.flatnonzero(self._places)
            rows = TablePieces(self.names)
            rows.schema = self._rows.schema
            rows.append(self._rows.take(self._places[used] - 1).combine_chunks())
            self._rows, self._places[used] = rows, np.arange(1, len(used) + 1)

    def mark(self) -> Any:
        """The rows now, for `go_back`; slots are restored one by one."""
        return self._rows.mark()

    def go_back(self, mark: Any) -> None:
        self._rows.go_back(mark)

    def set_places(self, slots: NDArray[Any], places: NDArray[np.int64]) -> None:
        """Restore what `places` returned."""
        self._reach(slots)
        self._places[slots] = places + 1

    def _reach(self, slots: NDArray[Any]) -> None:
        self._places = grown(self._places, len(self._places), int(slots.max(initial=-1)) + 1)


# Saving.


def to_stream(table: pa.Table) -> NDArray[np.uint8]:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return np.frombuffer(sink.getvalue(), np.uint8)


def from_stream(stream: Any, n: int | None = None) -> pa.Table:
    """The table of an Arrow stream from a file. Raises DamageError unless it is valid and has `n` rows."""
    is_bytes = isinstance(stream, np.ndarray) and stream.dtype == np.uint8 and stream.ndim == 1
    check(is_bytes, "carried columns have the wrong type")
    table: pa.Table = pa.ipc.open_stream(pa.py_buffer(np.ascontiguousarray(stream))).read_all()
    table.validate(full=True)
    check(n is None or table.num_rows == n, "carried columns are incomplete")
    check(len(set(table.column_names)) == table.num_columns, "carried columns have the same name")
    return table


def concat_carried(tables: Sequence[pa.Table], lengths: Sequence[int]) -> pa.Table:
    """Tables of these lengths as one. Columns that a table does not have are null."""
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    blank = pa.schema([(name, pa.null()) for name in names])
    whole = [
        pa.table({name: table[name] if name in table.column_names else pa.nulls(n) for name in names}, schema=None)
        for table, n in zip(tables, lengths, strict=True)
    ]
    for table in whole:
        _, blank = as_schema(table, blank)
    return pa.concat_tables([as_schema(table, blank)[0] for table in whole])
