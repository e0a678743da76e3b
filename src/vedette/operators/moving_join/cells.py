"""The cells of a grid of swept boxes, as kernels: counted, filled, changed and looked up.

Consecutive objects are anywhere in memory, so rows and cells are prefetched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.operators.moving_join.motion_rows import TIME, UNTIL, meet_rows

FAR = 1e30  # the largest distance and time in a grid
MOST, LEAST = 1e18, 1e-18  # products of two numbers in this range fit single precision
DOUBLE, SINGLE = 1e-15, 2e-7  # bounds on relative rounding errors
SOON, NEXT = 6, 3  # rows and cells, and the entries of cells, are prefetched this many objects ahead
FEW = 16  # at most this many cells of an object, and cache lines of a cell, are prefetched
DOUBLES, SINGLES = 8, 16  # numbers in a cache line

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Doubles = NDArray[np.float64]
Singles = NDArray[np.float32]


class Cells(NamedTuple):
    """Entries of boxes by cell. Those of cell `c` begin at place `bounds[c, 0]`, those of kind `k` at `bounds[c, k]`.

    Kinds: 0 begins here along the first axis only, 1 along both, 2 along the second only, 3 along neither.
    """

    geometry: Doubles  # where the grid begins along each axis, cells per unit along each axis, and the time
    shape: Int64s  # cells along each axis, and the column of each axis in the rows
    bounds: Int32s  # (cells, 5)
    limits: Int32s  # where the room of a cell ends
    entries: Int32s  # by place: the slot of an object
    boxes: Singles  # by place: low and high along each axis, and the end, relative to the grid's origin and time
    spans: Int32s  # by object: the first and last cell along each axis; -1 if it is not in the grid


# Room for pairs, as columns of `Meetings`: slots, others, starts and ends.
Found = tuple[Int32s, Int32s, Doubles, Doubles]


@kernel
def measure(
    rows: Doubles, slots: Int32s, since: float, geometry: Doubles, shape: Int64s, spans: Int32s, bounds: Int32s
) -> int:
    """Find the cells of each box, and count the entries of each kind in `bounds[c, 1:]`; how many in all."""
    n = 0
    for i in range(len(slots)):
        slot = slots[i]
        _, _, x0, x1 = _sweep(rows, slot, shape[2], since, geometry[0], geometry[2], shape[0])
        _, _, y0, y1 = _sweep(rows, slot, shape[3], since, geometry[1], geometry[3], shape[1])
        spans[slot, 0], spans[slot, 1], spans[slot, 2], spans[slot, 3] = x0, x1, y0, y1
        n += (x1 - x0 + 1) * (y1 - y0 + 1)
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                bounds[y * shape[0] + x, _kind(x == x0, y == y0) + 1] += 1
    return n


@kernel
def leave_room(bounds: Int32s, limits: Int32s) -> int:
    """Turn counts into bounds, with free room after each cell; the number of places."""
    n = 0
    for c in range(len(bounds)):
        bounds[c, 0] = n
        for k in range(1, 5):
            bounds[c, k] += bounds[c, k - 1]
        n_entries = bounds[c, 4] - n
        n += n_entries + n_entries // 4 + 2
        limits[c] = n
    return n


@kernel
def fill(
    rows: Doubles, slots: Int32s, since: float, geometry: Doubles, shape: Int64s, bounds: Int32s, entries: Int32s,
    boxes: Singles,
) -> None:  # fmt: skip
    """Write the entries of all boxes; their cells were counted before."""
    pens = bounds[:, :4].copy()
    width = rows.shape[1]
    for i in range(len(slots)):
        if i + SOON < len(slots):
            _prefetch_row(rows, slots[i + SOON] * width, width)
        slot = slots[i]
        x_low, x_high, x0, x1 = _sweep(rows, slot, shape[2], since, geometry[0], geometry[2], shape[0])
        y_low, y_high, y0, y1 = _sweep(rows, slot, shape[3], since, geometry[1], geometry[3], shape[1])
        end = _end_of(rows, slot, geometry[4])
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                c, kind = y * shape[0] + x, _kind(x == x0, y == y0)
                place = pens[c, kind]
                pens[c, kind] += 1
                entries[place] = slot
                boxes[place, 0], boxes[place, 1], boxes[place, 2], boxes[place, 3] = x_low, x_high, y_low, y_high
                boxes[place, 4] = end


@kernel
def find_cells(rows: Doubles, slots: Int32s, since: float, geometry: Doubles, shape: Int64s) -> Int32s:
    """The first and the last cell of each box along each axis."""
    found = np.empty((len(slots), 4), np.int32)
    width = rows.shape[1]
    for i in range(len(slots)):
        if i + SOON < len(slots):
            _prefetch_row(rows, slots[i + SOON] * width, width)
        _, _, x0, x1 = _sweep(rows, slots[i], shape[2], since, geometry[0], geometry[2], shape[0])
        _, _, y0, y1 = _sweep(rows, slots[i], shape[3], since, geometry[1], geometry[3], shape[1])
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = x0, x1, y0, y1
    return found


@kernel
def order_by_cell(found: Int32s, shape: Int64s) -> Int32s:
    """The order of boxes by the cell in which they begin."""
    starts = np.zeros(shape[0] * shape[1] + 1, np.int32)
    for i in range(len(found)):
        starts[found[i, 2] * shape[0] + found[i, 0] + 1] += 1
    for c in range(len(starts) - 1):
        starts[c + 1] += starts[c]
    order = np.empty(len(found), np.int32)
    for i in range(len(found)):
        c = found[i, 2] * shape[0] + found[i, 0]
        order[starts[c]] = i
        starts[c] += 1
    return order


@kernel
def insert(rows: Doubles, slots: Int32s, since: float, cells: Cells, n_used: int, done: int) -> tuple[int, int]:
    """Add the boxes of `slots[done:]` while there is room: the places in use then, and how many slots are done.

    An entry goes to the end of its kind; the first entry of each later kind moves to the end of that kind.
    """
    geometry, shape, bounds, limits, entries, boxes, spans = cells
    found = find_cells(rows, slots, since, geometry, shape)
    for i in range(done, len(slots)):
        _prefetch_cells(found, i + SOON, i + NEXT, shape, bounds, entries, boxes)
        slot = slots[i]
        x_low, x_high, x0, x1 = _sweep(rows, slot, shape[2], since, geometry[0], geometry[2], shape[0])
        y_low, y_high, y0, y1 = _sweep(rows, slot, shape[3], since, geometry[1], geometry[3], shape[1])
        n_needed = n_used
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                c = y * shape[0] + x
                if bounds[c, 4] == limits[c]:
                    n_needed += _room_of(c, bounds)
        if n_needed > len(entries):
            return n_used, i
        spans[slot, 0], spans[slot, 1], spans[slot, 2], spans[slot, 3] = x0, x1, y0, y1
        end = _end_of(rows, slot, geometry[4])
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                c, kind = y * shape[0] + x, _kind(x == x0, y == y0)
                if bounds[c, 4] == limits[c]:
                    n_used = _move_cell(c, bounds, limits, entries, boxes, n_used)
                hole = bounds[c, 4]
                bounds[c, 4] += 1
                for k in range(3, kind, -1):
                    _copy(bounds[c, k], hole, entries, boxes)
                    hole = bounds[c, k]
                    bounds[c, k] += 1
                entries[hole] = slot
                boxes[hole, 0], boxes[hole, 1], boxes[hole, 2], boxes[hole, 3] = x_low, x_high, y_low, y_high
                boxes[hole, 4] = end
    return n_used, len(slots)


@kernel
def copy_entries(old: Cells, bounds: Int32s, entries: Int32s, boxes: Singles) -> None:
    """Copy the entries of all cells to new places, which begin at `bounds[c, 0]`."""
    _, _, old_bounds, _, old_entries, old_boxes, _ = old
    for c in range(len(bounds)):
        shift = bounds[c, 0] - old_bounds[c, 0]
        for place in range(old_bounds[c, 0], old_bounds[c, 4]):
            entries[place + shift] = old_entries[place]
            for k in range(5):
                boxes[place + shift, k] = old_boxes[place, k]


@kernel
def remove(slots: Int32s, cells: Cells) -> None:
    """Remove boxes; the last entry of the kind takes the place, and so on for each later kind."""
    _, shape, bounds, _, entries, boxes, spans = cells
    found = spans[slots]
    for i in range(len(slots)):
        _prefetch_cells(found, i + SOON, i + NEXT, shape, bounds, entries, boxes)
        slot = slots[i]
        x0, x1, y0, y1 = spans[slot, 0], spans[slot, 1], spans[slot, 2], spans[slot, 3]
        if x0 < 0:
            continue
        spans[slot, 0] = -1
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                c, kind = y * shape[0] + x, _kind(x == x0, y == y0)
                hole = bounds[c, kind]
                while entries[hole] != slot:
                    hole += 1
                for k in range(kind + 1, 5):
                    bounds[c, k] -= 1
                    _copy(bounds[c, k], hole, entries, boxes)
                    hole = bounds[c, k]


@kernel
def find(
    rows: Doubles, slots: Int32s, found: Int32s, at: int, others: Doubles, is_left_out: NDArray[np.bool_], since: float,
    cells: Cells, candidates: Int32s, out: Found,
) -> tuple[int, int]:  # fmt: skip
    """Write the pairs of the rows at `slots[at:]`, whose cells are `found`; how many, and at which slot room ran out.

    In the first cell along an axis every entry counts, in later ones only entries that begin there. Candidates are
    objects whose box is touched before it ends.
    """
    geometry, shape, bounds, _, entries, boxes, _ = cells
    out_slots, out_others, starts, ends = out
    n, width = 0, rows.shape[1]
    for i in range(at, len(slots)):
        if i + SOON < len(slots):
            _prefetch_row(rows, slots[i + SOON] * width, width)
        _prefetch_cells(found, i + SOON, i + NEXT, shape, bounds, entries, boxes)
        slot = slots[i]
        x0, x1, y0, y1 = found[i, 0], found[i, 1], found[i, 2], found[i, 3]
        x_low, x_high, x_low_speed, x_high_speed = _begin(rows, slot, shape[2], since, geometry[0], geometry[4])
        y_low, y_high, y_low_speed, y_high_speed = _begin(rows, slot, shape[3], since, geometry[1], geometry[4])
        own_end = _end_of(rows, slot, geometry[4])
        now = np.float32(min((since - geometry[4]) * (1 - SINGLE), FAR))
        n_candidates = 0
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                c = y * shape[0] + x
                first = bounds[c, 0] if y == y0 else bounds[c, 1]
                last = (bounds[c, 4] if y == y0 else bounds[c, 3]) if x == x0 else bounds[c, 2]
                for place in range(first, last):
                    candidates[n_candidates] = entries[place]
                    passes = min(own_end, boxes[place, 4]) - now
                    n_candidates += (
                        (boxes[place, 0] <= x_high + x_high_speed * passes)
                        & (boxes[place, 1] >= x_low + x_low_speed * passes)
                        & (boxes[place, 2] <= y_high + y_high_speed * passes)
                        & (boxes[place, 3] >= y_low + y_low_speed * passes)
                    )
        if n + n_candidates > len(starts):
            return n, i
        for k in range(n_candidates):
            _prefetch_row(others, candidates[k] * width, width)
        for k in range(n_candidates):
            other = candidates[k]
            start, end = meet_rows(rows, slot, others, other)
            out_slots[n], out_others[n], starts[n], ends[n] = slot, other, start, end
            n += (end >= since) & (not is_left_out[other])
    return n, len(slots)


@kernel
def _prefetch_row(rows: Doubles, place: int, width: int) -> None:
    """Prefetch a row."""
    for at in range(place, place + width, DOUBLES):
        prefetch(rows, at)


@kernel
def _prefetch_cells(
    found: Int32s, soon: int, next_: int, shape: Int64s, bounds: Int32s, entries: Int32s, boxes: Singles
) -> None:
    """Prefetch the cells of the box at `soon`, and the entries of the cells of the box at `next_`."""
    if soon < len(found):
        x0, x1, y0, y1 = found[soon, 0], found[soon, 1], found[soon, 2], found[soon, 3]
        if x0 >= 0 and (x1 - x0 + 1) * (y1 - y0 + 1) <= FEW:
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    prefetch(bounds, (y * shape[0] + x) * 5)
    if next_ < len(found):
        x0, x1, y0, y1 = found[next_, 0], found[next_, 1], found[next_, 2], found[next_, 3]
        if x0 >= 0 and (x1 - x0 + 1) * (y1 - y0 + 1) <= FEW:
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    first, last = bounds[y * shape[0] + x, 0], bounds[y * shape[0] + x, 4]
                    prefetch(entries, first)
                    for at in range(5 * first, min(5 * last, 5 * first + FEW * SINGLES), SINGLES):
                        prefetch(boxes, at)


@kernel
def _sweep(
    rows: Doubles, slot: int, column: int, since: float, origin: float, scale: float, n_cells: int
) -> tuple[np.float32, np.float32, int, int]:
    """The range that an object sweeps along one axis from `since` on, and its first and last cell."""
    passed, left = since - rows[slot, TIME], rows[slot, UNTIL] - rows[slot, TIME]
    low, high, low_speed, high_speed = (
        rows[slot, column], rows[slot, column + 1], rows[slot, column + 2], rows[slot, column + 3]
    )  # fmt: skip
    size = max(abs(low), abs(high)) + max(abs(low_speed), abs(high_speed)) * abs(
        since
    )  # rounding errors are relative to this
    if low_speed != 0.0:  # an object that does not move may have no end
        size += max(abs(low_speed * passed), abs(low_speed * left))
        low += min(low_speed * passed, low_speed * left)
    if high_speed != 0.0:
        size += max(abs(high_speed * passed), abs(high_speed * left))
        high += max(high_speed * passed, high_speed * left)
    low, high = min(max(low - origin, -FAR), FAR), min(max(high - origin, -FAR), FAR)
    below = np.float32(low - DOUBLE * size - SINGLE * abs(low))
    above = np.float32(high + DOUBLE * size + SINGLE * abs(high))
    first, last = min(max(below * scale, 0.0), n_cells - 1.0), min(max(above * scale, 0.0), n_cells - 1.0)
    return below, above, int(first), int(last)  # type: ignore[arg-type]


@kernel
def _begin(
    rows: Doubles, slot: int, column: int, since: float, origin: float, began: float
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """The sides of an object along one axis at `since`, a little wider, and how fast they spread from there.

    If that does not fit single precision, the range that it sweeps until its end, and no speeds.
    """
    passed, left = since - rows[slot, TIME], rows[slot, UNTIL] - since
    low, high, low_speed, high_speed = (
        rows[slot, column], rows[slot, column + 1], rows[slot, column + 2], rows[slot, column + 3]
    )  # fmt: skip
    fastest = max(abs(low_speed), abs(high_speed))
    size = max(abs(low), abs(high)) + fastest * (abs(passed) + abs(since))
    low, high = low + low_speed * passed - origin, high + high_speed * passed - origin
    low_speed, high_speed = min(low_speed, 0.0), max(high_speed, 0.0)
    spread, far = high_speed - low_speed, 0.0
    if spread != 0.0:  # an object that does not move may have no end
        far = min(spread * left, FAR)
        if not (LEAST <= spread <= MOST and LEAST <= left <= MOST and rows[slot, UNTIL] - began <= FAR):
            size += spread * abs(left)
            low, high = low + low_speed * left, high + high_speed * left
            low_speed = high_speed = 0.0
    low, high = min(max(low, -FAR), FAR), min(max(high, -FAR), FAR)
    far += abs(low) + abs(high)
    slack = DOUBLE * size + 3 * SINGLE * far
    return np.float32(low - slack), np.float32(high + slack), np.float32(low_speed), np.float32(high_speed)


@kernel
def _end_of(rows: Doubles, slot: int, origin: float) -> np.float32:
    """The end of a row relative to the time of the grid, or a little later."""
    return np.float32(min((rows[slot, UNTIL] - origin) * (1 + SINGLE), FAR))


@kernel
def _kind(begins_x: bool, begins_y: bool) -> int:
    if begins_x:
        return 1 if begins_y else 0
    return 2 if begins_y else 3


@kernel
def _copy(place: int, to: int, entries: Int32s, boxes: Singles) -> None:
    entries[to] = entries[place]
    for k in range(5):
        boxes[to, k] = boxes[place, k]


@kernel
def _room_of(c: int, bounds: Int32s) -> int:
    """The places that a cell gets when it is moved."""
    return 2 * (bounds[c, 4] - bounds[c, 0]) + 8  # type: ignore[no-any-return]


@kernel
def _move_cell(c: int, bounds: Int32s, limits: Int32s, entries: Int32s, boxes: Singles, n_used: int) -> int:
    """Move a cell to where it has room for twice its entries; the number of places in use then."""
    room = _room_of(c, bounds)
    shift = n_used - bounds[c, 0]
    for place in range(bounds[c, 0], bounds[c, 4]):
        _copy(place, place + shift, entries, boxes)
    for k in range(5):
        bounds[c, k] += shift
    limits[c] = n_used + room
    return n_used + room
