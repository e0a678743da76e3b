"""Which moving rectangles of two lists meet: by comparing all, or by a sweep along one dimension.

Section 5.4 of Zhang et al. Within a finite time a rectangle covers a range of each dimension, and rectangles with
disjoint ranges need no comparison. The dimension with the least sum of speeds has the shortest ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.meet import meet
from vedette.papers.moving.nodes import Slots, find_slack
from vedette.papers.moving.swept_region import HIGH, HIGH_SPEED, LOW, LOW_SPEED
from vedette.papers.moving.tally import COMPARISONS


class Techniques(NamedTuple):
    """Which of the paper's improvements an algorithm uses; all require a finite time."""

    plane_sweep: bool = False  # section 5.4.1
    dimension_selection: bool = False  # section 5.4.2; no effect without a sweep
    intersection_check: bool = False  # section 5.4.3
    improved_order: bool = False  # section 6.1; no effect without the intersection check
    group_updates: bool = False  # section 6.2


NO_TECHNIQUES = Techniques()
ALL_TECHNIQUES = Techniques(True, True, True, True, True)


class Found(NamedTuple):
    """Room for pairs: the slots of both, and the first and the last moment at which they meet."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


@kernel
def make_found(n: int) -> Found:
    return Found(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n))


@kernel
def with_room(found: Found, used: int, needed: int) -> Found:
    """The same pairs with room for `needed` pairs."""
    if needed <= len(found.a):
        return found
    larger = make_found(max(needed, 2 * used))
    larger.a[:used], larger.b[:used] = found.a[:used], found.b[:used]
    larger.starts[:used], larger.ends[:used] = found.starts[:used], found.ends[:used]
    return larger


@kernel
def find_meetings(
    a: Slots,
    a_slots: NDArray[np.int64],
    b: Slots,
    b_slots: NDArray[np.int64],
    limits: tuple[float, float],
    span: tuple[float, float],
    techniques: Techniques,
    found: Found,
    tally: NDArray[np.int64],
) -> int:
    """Write the pairs of two lists that meet within the span; how many. There is room for all pairs of the lists.

    They do not meet outside of `limits`, a part of the span, which makes a sweep shorter.
    """
    n = 0
    if techniques.plane_sweep:
        d = choose_dimension(a, a_slots, b, b_slots) if techniques.dimension_selection else 0
        n = _sweep(a, a_slots, b, b_slots, d, limits, found)
    else:
        for i in a_slots:
            for j in b_slots:
                found.a[n], found.b[n] = i, j
                n += 1
    tally[COMPARISONS] += n
    return _keep_meetings(a, b, span, found, n)


@kernel
def _keep_meetings(a: Slots, b: Slots, span: tuple[float, float], found: Found, n_candidates: int) -> int:
    """Keep the written pairs that meet, and write when; how many."""
    (a_sides, a_times), (b_sides, b_times) = a, b
    found_a, found_b, starts, ends = found
    n = 0
    for k in range(n_candidates):
        i, j = found_a[k], found_b[k]
        start, end = meet(a_sides, a_times, i, b_sides, b_times, j, span[0], span[1])
        if start <= end:
            found_a[n], found_b[n], starts[n], ends[n] = i, j, start, end
            n += 1
    return n


@kernel
def choose_dimension(a: Slots, a_slots: NDArray[np.int64], b: Slots, b_slots: NDArray[np.int64]) -> int:
    """The dimension with the least sum of speeds."""
    best, least = 0, np.inf
    for d in range(a.sides.shape[1]):
        total = 0.0
        for i in a_slots:
            total += abs(a.sides[LOW_SPEED, d, i]) + abs(a.sides[HIGH_SPEED, d, i])
        for j in b_slots:
            total += abs(b.sides[LOW_SPEED, d, j]) + abs(b.sides[HIGH_SPEED, d, j])
        if total < least:
            best, least = d, total
    return best


@kernel
def _sweep(
    a: Slots,
    a_slots: NDArray[np.int64],
    b: Slots,
    b_slots: NDArray[np.int64],
    d: int,
    limits: tuple[float, float],
    found: Found,
) -> int:
    """Write the pairs whose ranges of dimension `d` overlap; how many.

    PSIntersection. As printed (Figure 11), the inner loops move the cursor of the outer loop, so entries that were
    passed once are never compared again; here the inner loops have their own cursor.
    """
    a_order, a_lows, a_highs = _order_by_range(a, a_slots, d, limits)
    b_order, b_lows, b_highs = _order_by_range(b, b_slots, d, limits)
    n, i, j = 0, 0, 0
    while i < len(a_order) and j < len(b_order):
        if a_lows[i] < b_lows[j]:
            k = j
            while k < len(b_order) and b_lows[k] <= a_highs[i]:
                found.a[n], found.b[n] = a_order[i], b_order[k]
                n, k = n + 1, k + 1
            i += 1
        else:
            k = i
            while k < len(a_order) and a_lows[k] <= b_highs[j]:
                found.a[n], found.b[n] = a_order[k], b_order[j]
                n, k = n + 1, k + 1
            j += 1
    return n


@kernel
def _order_by_range(
    slots: Slots, chosen: NDArray[np.int64], d: int, limits: tuple[float, float]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Slots in the order of the starts of the ranges that they cover within the limits, and the ranges."""
    n = len(chosen)
    lows, highs = np.empty(n), np.empty(n)
    for k in range(n):
        lows[k], highs[k] = find_range(slots, chosen[k], d, limits)
    order = np.argsort(lows, kind="mergesort")
    return chosen[order], lows[order], highs[order]


@kernel
def find_range(slots: Slots, s: int, d: int, limits: tuple[float, float]) -> tuple[float, float]:
    """The range of a dimension that a slot covers within the limits, widened by more than the rounding error."""
    time, start, end = slots.times[s], limits[0], limits[1]
    side, speed = slots.sides[LOW, d, s], slots.sides[LOW_SPEED, d, s]
    slack = find_slack(side, speed, time, start) + find_slack(side, speed, time, end)
    low = min(side + speed * (start - time), side + speed * (end - time)) - slack
    side, speed = slots.sides[HIGH, d, s], slots.sides[HIGH_SPEED, d, s]
    slack = find_slack(side, speed, time, start) + find_slack(side, speed, time, end)
    high = max(side + speed * (start - time), side + speed * (end - time)) + slack
    return low, high


@kernel
def keep_meeting(
    slots: Slots,
    chosen: NDArray[np.int64],
    other: Slots,
    j: int,
    limits: tuple[float, float],
    tally: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The intersection check: the slots that meet one slot of the other node within the limits."""
    (sides, times), (other_sides, other_times) = slots, other
    kept, n = np.empty_like(chosen), 0
    for i in chosen:
        start, end = meet(sides, times, i, other_sides, other_times, j, limits[0], limits[1])
        if start <= end:
            kept[n] = i
            n += 1
    tally[COMPARISONS] += len(chosen)
    return kept[:n]
