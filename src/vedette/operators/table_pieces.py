"""Rows of an Arrow table that grows at its end and shrinks at its front, for columns of any type.

New rows are one more piece. Pieces of similar size are combined, so a row is copied a logarithmic number of times. A
take reads only the pieces that it needs; Arrow itself combines all chunks of strings and nested values for each take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.errors import RowError

_MANY = 4  # a take of a fourth of all rows, or more, combines the pieces
_CAST_ERRORS = (pa.ArrowException, TypeError, ValueError)


def as_schema(table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, pa.Schema]:
    """The table with the types so far, and the types from now on. A column of nulls has no type yet."""
    fields = [now if pa.types.is_null(known.type) else known for known, now in zip(schema, table.schema, strict=True)]
    schema = pa.schema(fields)
    if table.schema == schema:
        return table, schema
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        try:
            columns.append(column.cast(field.type))
        except _CAST_ERRORS:
            raise RowError(f"column {field.name!r} was {field.type} so far; it is now {column.type}") from None
    return pa.Table.from_arrays(columns, schema=schema), schema


class TablePieces:
    """Rows in order. Pieces are never changed, so `mark` and `go_back` cost nothing per row."""

    def __init__(self, names: Sequence[str]) -> None:
        self.schema = pa.schema([(name, pa.null()) for name in names])
        self._pieces: tuple[pa.Table, ...] = ()

    def __len__(self) -> int:
        return sum(piece.num_rows for piece in self._pieces)

    @property
    def nbytes(self) -> int:
        return sum(int(piece.nbytes) for piece in self._pieces)

    def read(self, table: pa.Table) -> pa.Table:
        """A table in the types that the columns have had so far."""
        table, self.schema = as_schema(table, self.schema)
        return table

    def fit(self, table: pa.Table) -> pa.Table:
        """The same, and the types do not change."""
        return as_schema(table, self.schema)[0]

    def copy(self) -> TablePieces:
        """The same rows, to which others can be appended."""
        made = TablePieces(self.schema.names)
        made.go_back(self.mark())
        return made

    def append(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        pieces = [*self._pieces, self.read(table)]
        while len(pieces) > 1 and pieces[-2].num_rows <= 2 * pieces[-1].num_rows:
            last = pieces.pop()
            pieces[-1] = pa.concat_tables([self.read(pieces[-1]), last]).combine_chunks()
        self._pieces = tuple(pieces)

    def drop(self, n: int) -> None:
        """Drop the first rows."""
        pieces = list(self._pieces)
        while n and pieces:
            if n < pieces[0].num_rows:
                pieces[0] = pieces[0].slice(n)
                n = 0
            else:
                n -= pieces.pop(0).num_rows
        self._pieces = tuple(pieces)

    def whole(self) -> pa.Table:
        """All rows."""
        pieces = [self.read(piece) for piece in self._pieces]
        return pa.concat_tables(pieces) if pieces else self.schema.empty_table()

    def take(self, places: NDArray[np.int64]) -> pa.Table:
        """The rows at these places. The row at -1 is null."""
        is_null = places < 0
        mask = is_null if is_null.any() else None
        if len(self._pieces) < 2 or _MANY * len(places) > len(self):
            return self.whole().take(pa.array(places, mask=mask))
        ends = np.cumsum([piece.num_rows for piece in self._pieces])
        of = np.searchsorted(ends, places, side="right")
        of[is_null] = len(ends)
        taken, at, n = [], np.zeros(len(places), np.int64), 0
        for number, piece in enumerate(self._pieces):
            chosen = np.flatnonzero(of == number)
            if len(chosen):
                taken.append(self.read(piece).take(pa.array(places[chosen] - ends[number] + piece.num_rows)))
                at[chosen] = np.arange(n, n + len(chosen))
                n += len(chosen)
        table = pa.concat_tables(taken) if taken else self.schema.empty_table()
        return table.combine_chunks().take(pa.array(at, mask=mask))

    def mark(self) -> Any:
        return self.schema, self._pieces

    def go_back(self, mark: Any) -> None:
        """Restore the rows of the time of the mark."""
        self.schema, self._pieces = mark
