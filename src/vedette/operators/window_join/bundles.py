"""Bundles: branches that select the same rows of both streams and differ only in the range of their link.

Probing costs one search per branch and row, though most find nothing. A bundle works the other way round: for each pair
of rows that its branches may join, it finds the ranges that contain the value of the link, with an index of ranges.
Which way is cheaper depends on the number of pairs, so it is decided per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, UNBOUNDED, Ranges
from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.native.kernels import kernel
from vedette.native.ordering import GREATEST, GREATEST_INFINITE, LEAST, LEAST_INFINITE, NAN_KEY, double_of_key
from vedette.operators.window_join.probes import DOUBLES, INTEGERS, link_value

MIN_BUNDLE = 64  # fewer branches are probed one by one
PAIR_COST, PROBE_COST = 25, 80  # approximate nanoseconds to match a pair and to probe a branch


class RangeIndex(Protocol):
    """An index that finds the ranges that contain each value."""

    @property
    def nbytes(self) -> int: ...

    def match(self, values: Column) -> Matches: ...


IndexMaker = Callable[[Ranges], RangeIndex]  # of doubles or of whole numbers


class Bundle:
    """Many branches of one group with the same list on either side."""

    def __init__(self, kind: int, branches: NDArray[np.int32], windows: list[NDArray[Any]]) -> None:
        self.kind = kind
        self.branches = branches
        self.windows = windows  # by stream, of each branch
        self.longest = [each.max() for each in windows]
        self.is_even = all((each == each[0]).all() for each in windows)  # all branches have the same windows
        self.index: RangeIndex | None = None  # built on first use

    @property
    def nbytes(self) -> int:
        return 0 if self.index is None else self.index.nbytes

    def __len__(self) -> int:
        return len(self.branches)

    def is_cheaper(self, n_rows: int, n_pairs: int) -> bool:
        """Whether matching this many pairs costs less than probing for each branch and row."""
        return n_pairs * PAIR_COST < n_rows * len(self) * PROBE_COST

    def match(
        self,
        firsts: NDArray[np.int64],
        seconds: NDArray[np.int64],
        lows: NDArray[np.int64],
        highs: NDArray[np.int64],
        make: IndexMaker,
    ) -> Matches:
        """For pairs of keys, the branches whose ranges contain their value, as places in `branches`."""
        if self.index is None:
            self.index = make(_to_ranges(self.kind, lows[self.branches], highs[self.branches]))
        if self.kind == DOUBLES:
            return self.index.match(Column(_subtract_doubles(firsts, seconds)))
        values, valid = _subtract(self.kind, firsts, seconds)
        return self.index.match(Column(values, valid))


def find_bundles(
    kind: int,
    lists: tuple[NDArray[np.int32], NDArray[np.int32]],
    is_active: NDArray[np.bool_],
    windows: list[NDArray[Any]],
) -> list[Bundle]:
    """Active branches with the same lists on both sides, if there are many of them."""
    active = np.flatnonzero(is_active).astype(np.int32)
    pairs = lists[0][active].astype(np.int64) << 32 | lists[1][active]
    order = np.argsort(pairs, kind="stable")
    cuts = np.flatnonzero(np.diff(pairs[order])) + 1
    return [
        Bundle(kind, same, [each[same] for each in windows])
        for same in np.split(active[order], cuts)
        if len(same) >= MIN_BUNDLE
    ]


def _to_ranges(kind: int, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> Ranges:
    """Closed ranges of keys as ranges of values."""
    least, greatest = (LEAST, GREATEST) if kind != DOUBLES else (LEAST_INFINITE, NAN_KEY)
    if kind == DOUBLES:  # no double has the key -1, next to the key of both zeros, or a key between infinity and NaN
        lows, highs = np.where(lows == -1, 0, lows), np.where(highs == -1, -2, highs)
        highs = np.where((highs > GREATEST_INFINITE) & (highs < NAN_KEY), GREATEST_INFINITE, highs)
    is_empty = (lows > highs) | (lows > greatest) | (highs < least)
    lows, highs = np.where(is_empty, 1, lows), np.where(is_empty, 0, highs)
    low_ends = np.where(lows <= least, UNBOUNDED, CLOSED).astype(np.int8)
    high_ends = np.where(highs >= greatest, UNBOUNDED, CLOSED).astype(np.int8)
    if kind == DOUBLES:
        return Ranges(_doubles_of_keys(lows), _doubles_of_keys(highs), low_ends, high_ends)
    return Ranges(lows, highs, low_ends, high_ends)


@kernel
def _doubles_of_keys(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The doubles of keys; 0 if a key is out of range."""
    doubles = np.zeros(len(keys))
    for i in range(len(keys)):
        if LEAST < keys[i] < GREATEST:
            doubles[i] = double_of_key(keys[i])
    return doubles


@kernel
def _subtract_doubles(firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> NDArray[np.float64]:
    values = np.empty(len(firsts))
    for i in range(len(firsts)):
        values[i] = double_of_key(firsts[i]) - double_of_key(seconds[i])
    return values


@kernel
def _subtract(
    kind: int, firsts: NDArray[np.int64], seconds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values of a link that is not a difference of doubles, and whether they fit into 64 bits."""
    values, valid = np.empty(len(firsts), np.int64), np.ones(len(firsts), np.bool_)
    for i in range(len(firsts)):
        values[i] = link_value(kind, firsts[i], seconds[i])
        if kind == INTEGERS:
            difference = firsts[i] - seconds[i]
            valid[i] = (firsts[i] ^ seconds[i]) & (firsts[i] ^ difference) >= 0
    return values, valid
