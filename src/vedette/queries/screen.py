"""A screen: one lookup in one field skips rows that cannot match a part.

Recently added queries are few and mostly narrow, and most rows are far from them. The screen marks, over equal steps of
value, where their boxes are. A row elsewhere needs no cell and no index. Takes 64 KB per part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells, NumberAxis, step_of
from vedette.data.columns import Column
from vedette.data.view_axes import AnyAxis
from vedette.data.views import is_computed
from vedette.native.damage import check, check_fields, check_shape
from vedette.native.kernels import kernel

N_STEPS = 1 << 16
MAX_SHARE = 0.25  # of the steps; a screen that lets more rows pass is not worth its cost


@dataclass(frozen=True)
class Screen:
    field: str
    base: float
    scale: float
    marks: NDArray[np.bool_]  # by step: some box overlaps it

    @classmethod
    def of(cls, boxes: Sequence[tuple[tuple[str, ...], Cells, Cells]], axes: dict[str, AnyAxis]) -> Screen | None:
        """The sharpest screen on a numeric field that all boxes constrain, or None if none is sharp enough.

        Boxes come in groups: their fields, and their first and last cells on each.
        """
        shared = set(axes).intersection(*(fields for fields, _, _ in boxes)) if boxes else set()
        screens = [_mark(name, axis, boxes) for name, axis in axes.items() if name in shared]
        sharp = [each for each in screens if each is not None and each.marks.mean() <= MAX_SHARE]
        return min(sharp, key=lambda each: int(each.marks.sum()), default=None)

    def pass_rows(self, column: Column) -> NDArray[np.int64]:
        """The rows that may match. Null is in none of the boxes."""
        values = column.values.astype(np.int64) if column.values.dtype == np.bool_ else column.values
        valid = np.empty(0, np.bool_) if column.valid is None else column.valid
        return _pass_rows(values, valid, self.base, self.scale, self.marks)

    def validate(self, boxes: Sequence[tuple[tuple[str, ...], Cells, Cells]], axes: dict[str, AnyAxis]) -> None:
        """Raise DamageError unless a screen from a file lets the rows of these boxes pass."""
        check_fields(self)
        check_shape(self.marks, (N_STEPS,), "the marks of a screen")
        check(
            self.field in axes and all(self.field in fields for fields, _, _ in boxes), "a screen has an unknown field"
        )
        made = _mark(self.field, axes[self.field], boxes)
        is_same = made is not None and (made.base, made.scale) == (self.base, self.scale)
        check(
            is_same and made is not None and np.array_equal(made.marks, self.marks), "a screen does not have its boxes"
        )


def _mark(name: str, axis: AnyAxis, boxes: Sequence[tuple[tuple[str, ...], Cells, Cells]]) -> Screen | None:
    if is_computed(name) or not isinstance(axis, NumberAxis) or len(axis.cuts) < 2 or axis.scale == 0.0:
        return None
    scale = axis.scale * N_STEPS / (len(axis.table) - 1)
    marks = np.zeros(N_STEPS, np.bool_)
    for fields, firsts, lasts in boxes:
        number = fields.index(name)
        if (lasts[number] >= axis.n_cells - 1).any():  # some box contains null
            return None
        first, last = np.ascontiguousarray(firsts[number]), np.ascontiguousarray(lasts[number])  # one type for kernels
        _mark_steps(first, last, axis.cuts, axis.base, scale, marks)
    return Screen(name, axis.base, scale, marks)


@kernel
def _mark_steps(
    firsts: Cells, lasts: Cells, cuts: NDArray[Any], base: float, scale: float, marks: NDArray[np.bool_]
) -> None:
    n_steps = len(marks)
    for box in range(len(firsts)):
        low, high = (firsts[box] - 1) // 2, lasts[box] // 2  # the cuts that bound the box, if there are such
        start = step_of(cuts[low], base, scale, n_steps) if low >= 0 else 0
        end = step_of(cuts[high], base, scale, n_steps) if high < len(cuts) else n_steps - 1
        marks[start : end + 1] = True


@kernel
def _pass_rows(
    values: NDArray[Any], valid: NDArray[np.bool_], base: float, scale: float, marks: NDArray[np.bool_]
) -> NDArray[np.int64]:
    rows = np.empty(len(values) + 1, np.int64)
    n = 0
    for row in range(len(values)):
        rows[n] = row
        n += marks[step_of(values[row], base, scale, len(marks))]
    if len(valid):
        n_valid = 0
        for i in range(n):
            rows[n_valid] = rows[i]
            n_valid += valid[rows[i]]
        n = n_valid
    return rows[:n]
