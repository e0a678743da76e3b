"""Axes: the cells of one field, and the lookup from a value to its cell.

The cuts of an axis are the sorted distinct constants that queries compare the field with. Cell `2i + 1` is cut `i`,
cell `2i` the gap below it, cell `2m` the gap above the last of `m` cuts, and cell `2m + 1` is null. After this step
everything is an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, Nulls, Ranges
from vedette.data.columns import (
    INT64_DECIMAL_PRECISION,
    Column,
    check_strings,
    large_strings,
    string_buffers,
    strings_over,
)
from vedette.data.schema import Type
from vedette.native.damage import check, check_fields
from vedette.native.hashing import check_slots, empty_slots, find_strings, insert_strings, leads_to_strings
from vedette.native.inline_strings import InlineStrings
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

Cells = NDArray[np.int32]
FAR, NEAR = 24, 12  # how many values ahead the table and the cuts are prefetched
MANY_STRINGS, MOST_INLINE = 1 << 12, 1 << 17  # of a batch, and of the cuts, for a table with strings in its entries
MANY_CUTS = 1 << 16  # from here on, less memory is more important than the last nanosecond


@dataclass(frozen=True)
class NumberAxis:
    """Cuts that are int64 or float64.

    A table over equal steps of value gives a first guess, and a short search finds the cut. Takes 10 to 12 bytes per
    cut. For very skewed cuts, the table does not help and the search is a binary search.
    """

    cuts: NDArray[Any]
    table: NDArray[np.int32]  # step t has the cuts [table[t], table[t + 1])
    base: float
    scale: float

    @classmethod
    def build(cls, ends: NDArray[Any]) -> NumberAxis:
        cuts = _distinct(np.sort(ends))
        finite = cuts[np.isfinite(cuts)] if cuts.dtype == np.float64 else cuts
        n_steps = max(1, len(cuts) if len(cuts) < MANY_CUTS else len(cuts) // 2)
        base = float(finite[0]) if len(finite) else 0.0
        with np.errstate(over="ignore"):
            span = float(finite[-1]) - base if len(finite) else 0.0
            scale = n_steps / span if 0 < span < np.inf and n_steps / span < np.inf else 0.0
        return cls(cuts, _tabulate_steps(cuts, base, scale, n_steps), base, scale)

    @property
    def n_cells(self) -> int:
        return 2 * len(self.cuts) + 2

    @property
    def nbytes(self) -> int:
        return self.cuts.nbytes + self.table.nbytes

    def locate(self, column: Column) -> Cells:
        values = column.values
        if values.dtype != self.cuts.dtype:
            values = values.astype(self.cuts.dtype)
        cells = _locate_numbers(values, self.cuts, self.table, self.base, self.scale)
        return _mark_nulls(cells, column, self.n_cells)

    def validate(self) -> None:
        check_fields(self)
        check(self.cuts.ndim == self.table.ndim == 1 and len(self.table) > 1, "an axis has arrays of a wrong shape")
        check(self.cuts.dtype in (np.int64, np.float64), "the cuts of an axis of numbers are not numbers")
        check(np.isfinite([self.base, self.scale]).all() and self.scale >= 0.0, "the steps of an axis are not finite")
        rises = self.cuts[1:] > self.cuts[:-1]
        if len(rises) and np.isnan(self.cuts[-1]):
            rises[-1] = not np.isnan(self.cuts[-2])
        check(rises.all(), "the cuts of an axis do not rise")
        table = _tabulate_steps(self.cuts, self.base, self.scale, len(self.table) - 1)
        check(np.array_equal(table, self.table), "the table of an axis is not that of its cuts")


@dataclass(frozen=True)
class StringAxis:
    """Cuts that are strings, in the order of their UTF-8 bytes.

    A hash table finds equal strings; for others, a binary search finds the gap. The first large batch makes a second
    table, which has the strings in its entries and answers in a third of the time, unless there are too many cuts: it
    takes 32 to 64 bytes per cut.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    slots: NDArray[np.int32]  # open addressing: a cut, or -1

    @classmethod
    def build(cls, ends: NDArray[Any]) -> StringAxis:
        distinct = pc.unique(large_strings(ends))
        offsets, data = string_buffers(distinct.take(pc.sort_indices(distinct)))
        slots = empty_slots(len(distinct))
        insert_strings(offsets, data, 0, len(distinct), slots)
        return cls(offsets, data, slots)

    @property
    def n_cells(self) -> int:
        return 2 * (len(self.offsets) - 1) + 2

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.data.nbytes + self.slots.nbytes

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def cuts(self) -> NDArray[Any]:
        strings = strings_over(self.offsets, self.data, len(self.offsets) - 1)
        return strings.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def locate(self, column: Column) -> Cells:
        offsets, data = string_buffers(column.values)
        cells = _search_strings(offsets, data, self.offsets, self.data, self._find(offsets, data))
        return _mark_nulls(cells, column, self.n_cells)

    def locate_cuts(self, column: Column) -> Cells:
        """As `locate`, for an axis whose gaps do not matter: a string that equals no cut has the first one."""
        offsets, data = string_buffers(column.values)
        cells = self._find(offsets, data)
        cells *= 2
        cells += 1
        return _mark_nulls(np.maximum(cells, 0, out=cells), column, self.n_cells)

    def _find(self, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The cut that equals each string, or -1."""
        if len(offsets) > MANY_STRINGS and len(self.offsets) <= MOST_INLINE:
            return self._inline.find(offsets, data)
        return find_strings(offsets, data, self.offsets, self.data, self.slots)

    @cached_property
    def _inline(self) -> InlineStrings:
        return InlineStrings.of(self.offsets, self.data)

    def validate(self) -> None:
        check_fields(self)
        n = len(self.offsets) - 1
        check_strings(self.offsets, self.data, n)
        check(_is_ascending(self.offsets, self.data), "the cuts of an axis do not rise")
        check_slots(self.slots, n)
        leads = leads_to_strings(self.offsets, self.data, self.slots, np.ones(n, np.bool_))
        check(leads, "the table of an axis is not that of its cuts")


@dataclass(frozen=True)
class WideAxis:
    """Cuts that are integers beyond 64 bits (decimals of more than 18 digits), searched in Python: exact, but slow."""

    high_halves: NDArray[np.int64]
    low_halves: NDArray[np.uint64]

    @classmethod
    def build(cls, ends: NDArray[Any]) -> WideAxis:
        cuts = np.array(sorted(set(ends.tolist())), dtype=object)
        return cls((cuts >> 64).astype(np.int64), (cuts & ((1 << 64) - 1)).astype(np.uint64))

    @property
    def n_cells(self) -> int:
        return 2 * len(self.high_halves) + 2

    @property
    def nbytes(self) -> int:
        return self.high_halves.nbytes + self.low_halves.nbytes

    @property
    def cuts(self) -> NDArray[Any]:
        return np.asarray((self.high_halves.astype(object) << 64) + self.low_halves.astype(object))

    def locate(self, column: Column) -> Cells:
        cuts = self.cuts
        below = np.searchsorted(cuts, column.values)
        at = np.minimum(below, max(0, len(cuts) - 1))
        hit = cuts[at] == column.values if len(cuts) else np.zeros(len(column), np.bool_)
        cells = (2 * below + (hit & (below < len(cuts)))).astype(np.int32)
        return _mark_nulls(cells, column, self.n_cells)

    def validate(self) -> None:
        check_fields(self)
        check(self.high_halves.shape == self.low_halves.shape == (len(self.low_halves),), "halves of cuts are missing")
        cuts = self.cuts
        check((cuts[1:] > cuts[:-1]).all(), "the cuts of an axis do not rise")


Axis = NumberAxis | StringAxis | WideAxis


def validate_axis(axis: Axis, type_: Type) -> None:
    """Raise DamageError unless an axis from a file is one that a field of this type may have."""
    check(isinstance(axis, Axis), "an axis has a wrong class")
    axis.validate()
    if type_.is_text or (type_.name == "decimal" and type_.precision > INT64_DECIMAL_PRECISION):
        fits = isinstance(axis, StringAxis if type_.is_text else WideAxis)
    else:
        dtype = np.float64 if type_.is_floating else np.int64
        fits = isinstance(axis, NumberAxis) and axis.cuts.dtype == dtype
    check(fits, f"the axis of a {type_.name} field has a wrong type")
    check(axis.n_cells < 1 << 31, "an axis has too many cells")


def build_axis(type_: Type, ranges: Sequence[Ranges | Nulls]) -> Axis:
    """The axis whose cuts are the ends of `ranges`, all of a field of that type."""
    ends = [
        values[how != UNBOUNDED]
        for each in ranges
        if isinstance(each, Ranges)
        for values, how in ((each.lows, each.low_ends), (each.highs, each.high_ends))
    ]
    if type_.is_text:
        return StringAxis.build(np.concatenate([np.empty(0, object), *ends]))
    if type_.name == "decimal" and type_.precision > INT64_DECIMAL_PRECISION:
        return WideAxis.build(np.concatenate([np.empty(0, object), *ends]))
    dtype = np.float64 if type_.is_floating else np.int64
    return NumberAxis.build(np.concatenate([np.empty(0, dtype), *ends]).astype(dtype, copy=False))


def to_cells(axis: Axis, ranges: Ranges | Nulls) -> tuple[Cells, Cells]:
    """The closed cell ranges [firsts, lasts] of value ranges whose ends are all cuts of the axis."""
    null = axis.n_cells - 1
    if isinstance(ranges, Nulls):
        cells = np.full(len(ranges), null, np.int32)
        return cells, cells
    firsts = np.zeros(len(ranges), np.int32)
    lasts = np.full(len(ranges), null - 1, np.int32)
    for cells, values, ends, step in (
        (firsts, ranges.lows, ranges.low_ends, 1),
        (lasts, ranges.highs, ranges.high_ends, -1),
    ):
        bounded = ends != UNBOUNDED
        whole = bool(bounded.all())
        at = axis.locate(_as_column(axis, values if whole else values[bounded]))
        opens = (ends if whole else ends[bounded]) == OPEN
        cells[bounded] = at + np.where(opens, step, 0).astype(np.int32) if opens.any() else at
    return firsts, lasts


def to_values(axis: Axis, firsts: Cells, lasts: Cells) -> Ranges:
    """The value ranges of cell ranges: the inverse of `to_cells`, except for ranges of null."""
    cuts = axis.cuts
    n_cuts = len(cuts)
    values = cuts if n_cuts else np.zeros(1, cuts.dtype)
    low_ends = np.where(firsts == 0, UNBOUNDED, np.where(firsts % 2 == 1, CLOSED, OPEN)).astype(np.int8)
    high_ends = np.where(lasts >= 2 * n_cuts, UNBOUNDED, np.where(lasts % 2 == 1, CLOSED, OPEN)).astype(np.int8)
    low_cuts = np.clip((firsts - 1) // 2, 0, max(0, n_cuts - 1))
    high_cuts = np.clip(lasts // 2, 0, max(0, n_cuts - 1))
    return Ranges(values[low_cuts], values[high_cuts], low_ends, high_ends)


def _as_column(axis: Axis, values: NDArray[Any]) -> Column:
    return Column(large_strings(values) if isinstance(axis, StringAxis) else np.ascontiguousarray(values))


def _mark_nulls(cells: Cells, column: Column, n_cells: int) -> Cells:
    if column.valid is not None:
        cells[~column.valid] = n_cells - 1
    return cells


def _distinct(ordered: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of a sorted array. -0.0 equals 0.0; all NaN are equal and come last."""
    if len(ordered) == 0:
        return ordered
    keep = np.ones(len(ordered), np.bool_)
    keep[1:] = ordered[1:] != ordered[:-1]
    if ordered.dtype == np.float64:
        keep[1:] &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    return ordered[keep]


@kernel
def _tabulate_steps(cuts: NDArray[Any], base: float, scale: float, n_steps: int) -> NDArray[np.int32]:
    table = np.zeros(n_steps + 1, np.int32)
    for i in range(len(cuts)):
        table[step_of(cuts[i], base, scale, n_steps) + 1] += 1
    for step in range(n_steps):
        table[step + 1] += table[step]
    return table


@kernel
def step_of(value: Any, base: float, scale: float, n_steps: int) -> int:
    """The step of a value. It is monotone in the value in spite of rounding; NaN has the last step."""
    if scale == 0.0:
        return 0
    place = (np.float64(value) - base) * scale
    if place <= 0.0:
        return 0
    if place < n_steps:
        return int(place)
    return n_steps - 1


@kernel
def _locate_numbers(
    values: NDArray[Any], cuts: NDArray[Any], table: NDArray[np.int32], base: float, scale: float
) -> Cells:
    n_values, n_cuts, n_steps = len(values), len(cuts), len(table) - 1
    cells = np.empty(n_values, np.int32)
    for i in range(n_values):
        cells[i] = step_of(values[i], base, scale, n_steps)
    for i in range(n_values):
        if i + FAR < n_values:
            prefetch(table, cells[i + FAR])
            prefetch(cuts, table[cells[i + NEAR]])
        value = values[i]
        low, high = table[cells[i]], table[cells[i] + 1]
        while high - low > 4:
            middle = (low + high) >> 1
            if cuts[middle] < value:
                low = middle + 1
            else:
                high = middle
        at = low
        for cut in range(low, high):  # without a branch that depends on the value
            at += cuts[cut] < value
        if value != value:  # NaN, the greatest double
            at_nan = n_cuts > 0 and cuts[n_cuts - 1] != cuts[n_cuts - 1]
            cells[i] = 2 * n_cuts - 1 if at_nan else 2 * n_cuts
        else:
            cells[i] = 2 * at + (at < n_cuts and cuts[at] == value)
    return cells


@kernel
def _compare_bytes(
    left: NDArray[np.uint8], left_start: int, left_end: int, right: NDArray[np.uint8], right_start: int, right_end: int
) -> int:
    """Negative, zero or positive if the left string is below, equal to or above the right one."""
    left_length, right_length = left_end - left_start, right_end - right_start
    for i in range(min(left_length, right_length)):
        difference = np.int64(left[left_start + i]) - np.int64(right[right_start + i])
        if difference != 0:
            return difference  # type: ignore[return-value]
    return left_length - right_length


@kernel
def _is_ascending(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> bool:
    for i in range(2, len(offsets)):
        if _compare_bytes(data, offsets[i - 2], offsets[i - 1], data, offsets[i - 1], offsets[i]) >= 0:
            return False
    return True


@kernel
def _search_strings(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    cut_offsets: NDArray[np.int64],
    cut_data: NDArray[np.uint8],
    found: NDArray[np.int32],
) -> Cells:
    """The cells of strings. `found` has the cut that equals each string, or -1: then the gap is searched for."""
    cells = np.empty(len(found), np.int32)
    for i in range(len(found)):
        if found[i] >= 0:
            cells[i] = 2 * found[i] + 1
            continue
        low, high = 0, len(cut_offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            if (
                _compare_bytes(data, offsets[i], offsets[i + 1], cut_data, cut_offsets[middle], cut_offsets[middle + 1])
                > 0
            ):
                low = middle + 1
            else:
                high = middle
        cells[i] = 2 * low
    return cells
