"""Axes of views that have several values per row, such as the elements of an array.

A row has a list of cells on such an axis. To match rows, each row is repeated for each of its cells; the repeated rows
have one cell on every axis, so every index can answer for them. What they match, taken together, is what the row
matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.axes import Axis, Cells, StringAxis, build_axis
from vedette.data.boxes import CLOSED, Nulls, Ranges
from vedette.data.columns import Column, writable
from vedette.data.schema import Type
from vedette.data.wrapped_axis import WrappedAxis
from vedette.native.kernels import kernel


@dataclass(frozen=True)
class ListCells:
    """The cells of rows on one axis: row `i` has `cells[starts[i] : starts[i + 1]]`, each once, in any order."""

    starts: NDArray[np.int64]
    cells: Cells

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> ListCells:
        if isinstance(rows, slice):
            start, end, _ = rows.indices(len(self))
            starts = self.starts[start : max(start, end) + 1]
            return ListCells(starts - starts[0], self.cells[starts[0] : starts[-1]])
        return ListCells(*_take_lists(self.starts, self.cells, rows))

    def spread(self, by_row: NDArray[np.int32], out: NDArray[np.int32]) -> None:
        """Write for each cell what its row has."""
        _spread(self.starts, by_row, out)


SHORT = 16  # cells of a row that are compared with each other; more are sorted


@dataclass(frozen=True)
class ElementAxis(WrappedAxis):
    """The axis of an array's elements: that of their type. Null elements have no cell.

    With `only_cuts`, all boxes are single values, and an element that equals none of them has no cell either.
    """

    inner: Axis
    only_cuts: bool

    @classmethod
    def build(cls, element: Type, ranges: Sequence[Ranges | Nulls]) -> ElementAxis:
        """The axis whose cuts are the ends of `ranges`, for elements of that type."""
        return cls(build_axis(element, ranges), all(map(_are_single, ranges)))

    def locate(self, column: Column) -> ListCells:
        starts, elements = flatten(column)
        valid = None if elements.null_count == 0 else pc.is_valid(elements).to_numpy(zero_copy_only=False)
        column = Column(element_values(elements), valid)
        if self.only_cuts and isinstance(self.inner, StringAxis):
            cells = self.inner.locate_cuts(column)
        else:
            cells = self.inner.locate(column)
        return distinct_cells(starts, cells, self.n_cells, self.only_cuts)


def _are_single(ranges: Ranges | Nulls) -> bool:
    if isinstance(ranges, Nulls):
        return False
    are_closed = (ranges.low_ends == CLOSED) & (ranges.high_ends == CLOSED)
    return bool((are_closed & (ranges.lows == ranges.highs)).all())


def flatten(column: Column) -> tuple[NDArray[np.int64], pa.Array]:
    """The elements of all lists of a column, and where each list begins, and the last ends. Null lists are empty."""
    lists = column.values
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if column.valid is not None and lengths[~column.valid].any():
        lists = pc.if_else(pa.array(column.valid), lists, pa.scalar(None, lists.type))
        lengths = np.where(column.valid, lengths, 0)
    return np.concatenate([[0], np.cumsum(lengths)]), lists.flatten()


def element_values(elements: pa.Array) -> Any:
    """Elements in the physical form of their type; those of nulls are arbitrary."""
    if pa.types.is_large_string(elements.type):
        return elements
    return writable(elements.fill_null(pa.scalar(0).cast(elements.type)).to_numpy(zero_copy_only=False))


def distinct_cells(starts: NDArray[np.int64], cells: Cells, n_cells: int, only_cuts: bool) -> ListCells:
    """Each row's cells, each once, without null; with `only_cuts`, without gaps."""
    kept_starts, kept = _distinct(starts, cells, n_cells - 1, only_cuts)
    return ListCells(kept_starts, kept[: kept_starts[-1]])


@kernel
def _distinct(starts: NDArray[np.int64], cells: Cells, null: int, only_cuts: bool) -> tuple[NDArray[np.int64], Cells]:
    kept_starts, kept = np.zeros(len(starts), np.int64), np.empty(len(cells), np.int32)
    end = 0
    for row in range(len(starts) - 1):
        first = end
        is_short = starts[row + 1] - starts[row] <= SHORT
        for i in range(starts[row], starts[row + 1]):  # without a branch that depends on a cell
            cell = cells[i]
            is_kept = (cell != null) & ((cell % 2 == 1) | (not only_cuts))
            for j in range(first, end if is_short else first):
                is_kept &= kept[j] != cell
            kept[end] = cell
            end += is_kept
        if not is_short:
            end = _sort_distinct(kept, first, end)
        kept_starts[row + 1] = end
    return kept_starts, kept


@kernel
def _sort_distinct(cells: Cells, first: int, end: int) -> int:
    """Sort some cells, and drop repeated ones. Returns the new end."""
    cells[first:end] = np.sort(cells[first:end])
    at = first
    for i in range(first, end):
        if i == first or cells[i] != cells[at - 1]:
            cells[at] = cells[i]
            at += 1
    return at


@kernel
def _take_lists(starts: NDArray[np.int64], cells: Cells, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Cells]:
    taken_starts = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        taken_starts[i + 1] = taken_starts[i] + starts[rows[i] + 1] - starts[rows[i]]
    taken = np.empty(taken_starts[-1], np.int32)
    for i in range(len(rows)):
        taken[taken_starts[i] : taken_starts[i + 1]] = cells[starts[rows[i]] : starts[rows[i] + 1]]
    return taken_starts, taken


@kernel
def _spread(starts: NDArray[np.int64], by_row: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            out[i] = by_row[row]
