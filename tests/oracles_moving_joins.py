"""Reference answers about moving boxes, in exact fractions: when two meet, which pairs meet, and what changes next.

A box is a tuple (lows, highs, low speeds, high speeds, time); each but the last is a sequence of numbers, one for each
dimension.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

INFINITY = float("inf")


def gaps(one, other):
    """Linear functions of time, (value at 0, slope), that are all at least zero just while both are and intersect."""
    boxes = []
    for lows, highs, low_speeds, high_speeds, time in (one, other):
        time = Fraction(time)
        low = [(Fraction(x) - Fraction(v) * time, Fraction(v)) for x, v in zip(lows, low_speeds, strict=True)]
        high = [(Fraction(x) - Fraction(v) * time, Fraction(v)) for x, v in zip(highs, high_speeds, strict=True)]
        boxes.append((low, high))
    (low, high), (other_low, other_high) = boxes
    for d in range(len(low)):
        for upper, lower in product((high[d], other_high[d]), (low[d], other_low[d])):
            yield upper[0] - lower[0], upper[1] - lower[1]


def meeting(one, other, start, end):
    """The closed interval within [start, end] in which two boxes intersect, or None; the end may be infinite."""
    first, last = Fraction(start), end if end == INFINITY else Fraction(end)
    for value, slope in gaps(one, other):
        if slope > 0:
            first = max(first, -value / slope)
        elif slope < 0:
            last = min(last, -value / slope)
        elif value < 0:
            return None
    return (first, last) if first <= last else None


def meet_at(one, other, time):
    return all(value + slope * Fraction(time) >= 0 for value, slope in gaps(one, other))


def pairs_at(a, b, time):
    """The pairs of two dicts of boxes that intersect at a time."""
    return {(i, j) for i, j in product(a, b) if meet_at(a[i], b[j], time)}


def pairs_within(a, b, start, end):
    """The pairs of two dicts of boxes that meet, with their intervals. `end` may be a function of the pair."""
    found = {}
    for i, j in product(a, b):
        interval = meeting(a[i], b[j], start, end(i, j) if callable(end) else end)
        if interval:
            found[i, j] = interval
    return found


def next_change(a, b, moment):
    """The next (time, is after) at which the pairs change, and which change then; (infinity, True) if none do.

    A moment is at a time, where pairs that begin then are in, or right after it, where pairs that ended then are not.
    """
    best, changed = (INFINITY, True), set()
    for (i, j), (first, last) in pairs_within(a, b, -(10**9), INFINITY).items():
        for when in ((first, False), (last, True)):
            if when > moment and when[0] != INFINITY:
                if when < best:
                    best, changed = when, set()
                if when == best:
                    changed.add((i, j))
    return best, changed
