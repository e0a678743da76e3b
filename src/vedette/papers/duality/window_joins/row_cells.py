"""The cells of the stored rows of a stream, on the axes of its fields and of its sides of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Axis, Cells
from vedette.data.columns import Column
from vedette.language import Typed
from vedette.language.evaluation import evaluate_rows
from vedette.operators.window_join.window_rows import GrowingArray, StreamRows


@dataclass(frozen=True)
class Attribute:
    """An axis, and the value of a row that it is for: a field, or an expression over the fields of its stream."""

    axis: Axis
    of: str | Typed
    nan_is_least: bool = False  # instead of the greatest

    def locate(self, columns: dict[str, Column], n_rows: int, time_zone: str) -> Cells:
        if isinstance(self.of, str):
            return self.axis.locate(columns[self.of])
        parts = [self._locate(column) for column, _ in evaluate_rows(self.of, time_zone, columns, n_rows)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _locate(self, column: Column) -> Cells:
        if self.nan_is_least and column.values.dtype == np.float64:
            column = Column(np.where(np.isnan(column.values), -np.inf, column.values), column.valid)
        return self.axis.locate(column)


class RowCells:
    """One array per attribute, by row minus `first`; `update` adds new rows of the stream and drops expired ones."""

    def __init__(self, attributes: Sequence[Attribute], time_zone: str, rows: StreamRows) -> None:
        self.attributes = attributes
        self.first = rows.first
        self.n = 0
        self._time_zone = time_zone
        self._rows = rows
        self._cells = [GrowingArray(np.int32) for _ in attributes]
        self.update()

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._cells)

    @property
    def n_cells(self) -> list[int]:
        """The number of cells of each attribute."""
        return [each.axis.n_cells for each in self.attributes]

    def __getitem__(self, attribute: int) -> NDArray[np.int32]:
        return self._cells[attribute].values

    def stack(self, places: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int32]:
        """The cells of some rows on all attributes."""
        taken = [each.values[places] for each in self._cells]
        n = len(range(self.n)[places]) if isinstance(places, slice) else len(places)
        return np.stack(taken) if taken else np.empty((0, n), np.int32)

    def update(self) -> int:
        """Follow the changes of the stream; the number of new rows, which are the last."""
        n_gone = min(self._rows.first - self.first, self.n)
        for each in self._cells:
            each.drop(n_gone)
        self.first, self.n = self._rows.first, self.n - n_gone
        n_new = len(self._rows) - self.n
        columns = {name: _last(column, n_new) for name, column in self._rows.read().items()} if n_new else {}
        for each, attribute in zip(self._cells, self.attributes, strict=True):
            if n_new:
                each.append(attribute.locate(columns, n_new, self._time_zone))
        self.n += n_new
        return n_new


def _last(column: Column, n: int) -> Column:
    start = len(column) - n
    return Column(column.values[start:], None if column.valid is None else column.valid[start:])
