"""A structure whose size depends on the number of stabbing points, which is small where bands are clustered.

Lemmas 3 to 6 of the paper. Bands are divided into groups that share a point; tau is the least number of groups (see
`partition`). Lemma 3: the bands of a group that contain a number left of its point are the first ones of its list by
lower end; right of it, of its list by upper end. Lemma 5: for (Q1), an interval tree over the covers of groups minus
values finds which value is in which cover; for (Q2), one over the (i, j)-intervals of Lemma 4, under which the values
next to point i are j and j + 1. O(m tau + n) size, O(log(m tau) + k) time for m values, n bands and k answers. Lemma 6
is this structure over the bands that contain a point of a given set (see `mixed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes
from vedette.native.kernels import kernel
from vedette.operators.band_join.index.partition import find_partition
from vedette.papers.bands.index import Pairs
from vedette.papers.bands.interval_tree import IntervalTree
from vedette.papers.bands.rounding import greatest_shift, least_shift, spans_of_shifts


class GroupedBands(NamedTuple):
    """Lemma 3: the bands of group `g` are `by_low[starts[g]:starts[g + 1]]`, ascending by lower end.

    `by_high` has the same bands, descending by upper end.
    """

    points: NDArray[np.float64]
    starts: NDArray[np.int64]
    by_low: NDArray[np.int32]
    lows: NDArray[np.float64]
    by_high: NDArray[np.int32]
    highs: NDArray[np.float64]
    high_lows: NDArray[np.float64]  # the lower ends of bands in the order of `by_high`


@dataclass(frozen=True)
class StabbedBands:
    """Bands in as few groups as possible, each with a point that all its bands contain."""

    grouped: GroupedBands

    def __len__(self) -> int:
        """The number of bands."""
        return len(self.grouped.lows)

    @classmethod
    def build(cls, lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        partition = find_partition(lows, highs)
        groups = np.repeat(np.arange(len(partition)), np.diff(partition.starts))
        by_high = partition.order[np.lexsort((-highs[partition.order], groups))]
        by_low = partition.order
        points, starts = partition.points, partition.starts
        return cls(GroupedBands(points, starts, by_low, lows[by_low], by_high, highs[by_high], lows[by_high]))

    @property
    def covers(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By group, where its bands begin and end."""
        firsts = self.grouped.starts[:-1]
        return self.grouped.lows[firsts], self.grouped.highs[firsts]

    def stab(self, tree: IntervalTree, number: float) -> NDArray[np.int32]:
        """The bands that contain a number; the tree is over the covers: O(log tau + k)."""
        groups = tree.stab(number)
        _, bands = self.list_pairs(np.zeros(len(groups), np.int32), np.full(len(groups), number), groups)
        return bands

    def list_pairs(self, names: NDArray[np.int32], numbers: NDArray[np.float64], groups: NDArray[np.int32]) -> Pairs:
        """For pairs of a number and a group: the name of the number, and each band of the group that contains it."""
        none = np.empty(0, np.int32)
        n = _list_pairs(names, numbers, groups, self.grouped, none, none)
        numbered, bands = np.empty(n, np.int32), np.empty(n, np.int32)
        _list_pairs(names, numbers, groups, self.grouped, numbered, bands)
        return numbered, bands


class Gaps(NamedTuple):
    """The (i, j)-intervals of Lemma 4: their shifts, the group i, and the value j."""

    firsts: NDArray[np.float64]
    lasts: NDArray[np.float64]
    groups: NDArray[np.int32]
    befores: NDArray[np.int32]


@dataclass(frozen=True)
class StabbingSet:
    """Lemma 5. The intervals of `pairs_tree` are of value `i // tau` and group `i % tau`."""

    bands: StabbedBands
    values: NDArray[np.float64]  # in order
    value_names: NDArray[np.int32]
    pairs_tree: IntervalTree
    gaps_tree: IntervalTree  # over the (i, j)-intervals
    gap_groups: NDArray[np.int32]  # their i
    gap_values: NDArray[np.int32]  # their j, from -1 on: the position of the last value up to the point

    @classmethod
    def build(cls, values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Self:
        bands = StabbedBands.build(lows, highs)
        order = np.argsort(values).astype(np.int32)
        values = values[order]
        cover_lows, cover_highs = bands.covers
        firsts, lasts = spans_of_shifts(values, cover_lows, cover_highs)
        n_most = 2 * (len(values) + 1) * len(bands.grouped.points)
        gaps = Gaps(np.empty(n_most), np.empty(n_most), np.empty(n_most, np.int32), np.empty(n_most, np.int32))
        n = _find_gaps(values, bands.grouped.points, firsts, lasts, gaps)
        return cls(
            bands,
            values,
            order,
            IntervalTree.build(firsts.reshape(-1), lasts.reshape(-1)),
            IntervalTree.build(gaps.firsts[:n], gaps.lasts[:n]),
            gaps.groups[:n].copy(),
            gaps.befores[:n].copy(),
        )

    def pairs(self, shift: float) -> Pairs:
        found = self.pairs_tree.stab(shift)
        places, groups = np.divmod(found, np.int32(max(1, len(self.bands.grouped.points))))
        with np.errstate(over="ignore"):  # then it is infinite
            shifted = self.values[places] + shift
        return self.bands.list_pairs(self.value_names[places], shifted, groups)

    def affected(self, shift: float) -> NDArray[np.int32]:
        found = self.gaps_tree.stab(shift)
        out = np.empty(len(self.bands), np.int32)
        groups, befores = self.gap_groups[found], self.gap_values[found]
        return out[: _list_affected(shift, groups, befores, self.values, self.bands.grouped, out)].copy()

    @property
    def n_entries(self) -> int:
        return len(self.pairs_tree) + len(self.gaps_tree) + 2 * len(self.bands)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@kernel
def _list_pairs(
    names: NDArray[np.int32],
    numbers: NDArray[np.float64],
    groups: NDArray[np.int32],
    grouped: GroupedBands,
    numbered: NDArray[np.int32],
    bands: NDArray[np.int32],
) -> int:
    """Write as many pairs as there is room for; how many there are."""
    points, starts, lows, highs = grouped.points, grouped.starts, grouped.lows, grouped.highs
    by_low, by_high = grouped.by_low, grouped.by_high
    n = 0
    for i in range(len(numbers)):
        is_left = numbers[i] <= points[groups[i]]
        for place in range(starts[groups[i]], starts[groups[i] + 1]):
            if lows[place] > numbers[i] if is_left else highs[place] < numbers[i]:
                break
            if n < len(bands):
                numbered[n], bands[n] = names[i], by_low[place] if is_left else by_high[place]
            n += 1
    return n


@kernel
def _find_gaps(
    values: NDArray[np.float64],
    points: NDArray[np.float64],
    cover_firsts: NDArray[np.float64],
    cover_lasts: NDArray[np.float64],
    gaps: Gaps,
) -> int:
    """Find the shifts under which value j is the last up to point i, and j or j + 1 is in the cover of group i.

    The shifts under which a value is in a cover are given. Definition 1; at most two intervals for each i and j.
    """
    firsts, lasts, groups, befores = gaps.firsts, gaps.lasts, gaps.groups, gaps.befores
    n = 0
    for group in range(len(points)):
        above = np.nextafter(points[group], np.inf)
        for j in range(-1, len(values)):
            first, last = -np.inf, np.inf
            if j + 1 < len(values):  # that value is beyond the point
                if points[group] == np.inf:
                    continue
                first = least_shift(values[j + 1], above)
            if j >= 0:
                last = greatest_shift(values[j], points[group])
            low = max(first, cover_firsts[j, group]) if j >= 0 else np.nan  # from here on j is in the cover
            high = min(last, cover_lasts[j + 1, group]) if j + 1 < len(values) else np.nan  # up to here j + 1 is
            if first > last:
                continue
            if low <= high:  # both, all the way
                low, high = first, np.nan
            if low <= last:
                firsts[n], lasts[n], groups[n], befores[n] = low, last, group, j
                n += 1
            if first <= high:
                firsts[n], lasts[n], groups[n], befores[n] = first, high, group, j
                n += 1
    return n


@kernel
def _list_affected(
    shift: float,
    groups: NDArray[np.int32],
    befores: NDArray[np.int32],
    values: NDArray[np.float64],
    grouped: GroupedBands,
    out: NDArray[np.int32],
) -> int:
    """Write the bands of each group that contain the last value up to its point, or the first above it."""
    starts, lows, highs, high_lows = grouped.starts, grouped.lows, grouped.highs, grouped.high_lows
    by_low, by_high = grouped.by_low, grouped.by_high
    n = 0
    for i in range(len(groups)):
        start, end = starts[groups[i]], starts[groups[i] + 1]
        left = values[befores[i]] + shift if befores[i] >= 0 else np.nan
        place = start
        while place < end and lows[place] <= left:
            out[n] = by_low[place]
            n, place = n + 1, place + 1
        if befores[i] + 1 == len(values):
            continue
        right = values[befores[i] + 1] + shift
        place = start
        while place < end and highs[place] >= right:
            if not high_lows[place] <= left:  # otherwise it is listed already
                out[n] = by_high[place]
                n += 1
            place += 1
    return n
