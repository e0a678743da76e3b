"""The rows of one stream's windows, kept until no query can join with them.

Rows are numbered in the order of arrival, and expire in that order. Columns grow at the end and are dropped from the
front. Old values are never overwritten, so a mark, at no cost per row, is enough to go back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column, null_column
from vedette.data.schema import Type
from vedette.native.buffers import grown
from vedette.operators.table_pieces import TablePieces

MANY_PIECES = 16  # of strings; more are combined


class GrowingArray:
    """Values that are appended at the end and dropped from the front."""

    def __init__(self, dtype: Any) -> None:
        self._values = np.empty(0, dtype)
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def values(self) -> NDArray[Any]:
        return self._values[self._start : self._end]

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def append(self, more: NDArray[Any]) -> None:
        n = self._end + len(more)
        if n > len(self._values) and self._start > len(self):
            packed = np.empty_like(self._values)
            packed[: len(self)] = self.values
            self._values, self._start, self._end = packed, 0, len(self)
            n = self._end + len(more)
        self._values = grown(self._values, self._end, n)
        self._values[self._end : n] = more
        self._end = n

    def drop(self, n: int) -> None:
        self._start += n

    def mark(self) -> tuple[Any, ...]:
        return self._values, self._start, self._end

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """Restore the values at the time of the mark."""
        self._values, self._start, self._end = mark


class GrowingColumn:
    """A column of one type that grows and shrinks in the same way."""

    def __init__(self, type_: Type, n_nulls: int = 0) -> None:
        self.type = type_
        self._none = null_column(type_, 0).values
        self._values = GrowingArray(self._none.dtype) if isinstance(self._none, np.ndarray) else None
        self._pieces: list[pa.Array] = []  # of strings or arrays
        self._valid = GrowingArray(np.bool_)
        if n_nulls:
            self.append(null_column(type_, n_nulls))

    def __len__(self) -> int:
        return len(self._valid)

    @property
    def nbytes(self) -> int:
        values = sum(piece.nbytes for piece in self._pieces) if self._values is None else self._values.nbytes
        return values + self._valid.nbytes

    def append(self, column: Column) -> None:
        if self._values is not None:
            self._values.append(column.values)
        elif len(column):
            self._pieces.append(column.values)
            if len(self._pieces) > MANY_PIECES:
                self._pieces = [pa.concat_arrays(self._pieces)]
        self._valid.append(np.ones(len(column), np.bool_) if column.valid is None else column.valid)

    def drop(self, n: int) -> None:
        self._valid.drop(n)
        if self._values is not None:
            self._values.drop(n)
            return
        while n and self._pieces:
            if n < len(self._pieces[0]):
                self._pieces[0] = self._pieces[0].slice(n)
                n = 0
            else:
                n -= len(self._pieces.pop(0))

    def mark(self) -> tuple[Any, ...]:
        return None if self._values is None else self._values.mark(), self._pieces[:], self._valid.mark()

    def go_back(self, mark: tuple[Any, ...]) -> None:
        values, self._pieces, valid = mark
        if self._values is not None:
            self._values.go_back(values)
        self._valid.go_back(valid)

    def whole(self) -> Column:
        """All values. Do not keep them: later calls of `append` may overwrite them."""
        if self._values is None and len(self._pieces) != 1:
            self._pieces = [pa.concat_arrays([self._none, *self._pieces])]
        values = self._pieces[0] if self._values is None else self._values.values
        valid = self._valid.values
        return Column(values, None if valid.all() else valid)

    def last(self, n: int) -> Column:
        """The last `n` values. Do not keep them."""
        valid = self._valid.values[len(self) - n :]
        values: Any
        if self._values is not None:
            values = self._values.values[len(self) - n :]
        else:
            pieces, n_missing = [pa.array([], pa.large_string())], n
            for piece in reversed(self._pieces):
                pieces.append(piece.slice(max(0, len(piece) - n_missing)))
                n_missing -= len(pieces[-1])
                if not n_missing:
                    break
            values = pa.concat_arrays(pieces[::-1])
        return Column(values, None if valid.all() else valid)

    def take(self, places: NDArray[Any]) -> Column:
        return self.whole().take(places)


class StreamRows:
    """The kept rows of one stream: those with numbers from `first` on."""

    def __init__(self, time_dtype: Any, columns: Sequence[str] = ()) -> None:
        self.first = 0
        self.times = GrowingArray(time_dtype)
        self.ids: GrowingColumn | None = None
        self.columns: dict[str, GrowingColumn] = {}
        self.carried = TablePieces(columns) if columns else None  # columns that answers carry

    def __len__(self) -> int:
        return len(self.times)

    @property
    def end(self) -> int:
        """The number of the next row, which is the number of all rows so far."""
        return self.first + len(self)

    @property
    def nbytes(self) -> int:
        ids = 0 if self.ids is None else self.ids.nbytes
        carried = 0 if self.carried is None else self.carried.nbytes
        return self.times.nbytes + ids + sum(column.nbytes for column in self.columns.values()) + carried

    def use_fields(self, types: dict[str, Type]) -> bool:
        """Keep these fields of every row from now on; before, they are null. Returns whether fields are dropped."""
        kept = {name: column for name, column in self.columns.items() if name in types}
        has_dropped = len(kept) < len(self.columns)
        for name, type_ in types.items():
            if name not in kept:
                kept[name] = GrowingColumn(type_, len(self))
        self.columns = kept
        return has_dropped

    def append(
        self,
        times: NDArray[Any],
        ids: Column,
        id_type: Type,
        columns: dict[str, Column],
        carried: pa.Table | None = None,
    ) -> None:
        if self.ids is None:
            self.ids = GrowingColumn(id_type)
        self.times.append(times)
        self.ids.append(ids)
        for name, column in self.columns.items():
            column.append(columns[name])
        if self.carried is not None and carried is not None:
            self.carried.append(carried)

    def drop(self, n: int) -> None:
        """Drop the first rows."""
        self.first += n
        self.times.drop(n)
        if self.ids is not None:
            self.ids.drop(n)
        for column in self.columns.values():
            column.drop(n)
        if self.carried is not None:
            self.carried.drop(n)

    def mark(self) -> tuple[Any, ...]:
        columns = [(column, column.mark()) for column in self.columns.values()]
        ids = None if self.ids is None else self.ids.mark()
        carried = None if self.carried is None else self.carried.mark()
        return self.first, self.times.mark(), self.ids, ids, self.columns, columns, carried

    def go_back(self, mark: tuple[Any, ...]) -> None:
        """Restore the rows and fields of the time of the mark."""
        self.first, times, self.ids, ids, self.columns, columns, carried = mark
        if self.carried is not None:
            self.carried.go_back(carried)
        self.times.go_back(times)
        if self.ids is not None:
            self.ids.go_back(ids)
        for column, before in columns:
            column.go_back(before)

    def read(self) -> dict[str, Column]:
        """All rows, as columns."""
        return {name: column.whole() for name, column in self.columns.items()}
