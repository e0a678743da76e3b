"""Bands in stabbing groups, that come and go: each group has a point that all its bands hold.

Lemma 3 with the groups kept up to date, which the paper leaves to its technical report. A group lists its bands by
lower end, upwards, and by upper end, downwards: of a number left of the point exactly a beginning of the one list
holds it, right of the point one of the other. A band that comes joins a group whose point it holds, else it is a group
of its own; one that goes leaves its lists. The partition is made anew when there are more points than twice the
witnesses that still stand (see `partition`), plus 64: so there are never more than twice the least possible, plus 64,
and each time at least half as many changes have gone by as there were points, plus 32. About 60 bytes a band.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.buffers import grown
from vedette.indexes.bands.by_points import build_tree
from vedette.indexes.bands.group_changes import (
    CAP,
    N_GROUPS,
    N_POINTS,
    N_WITNESSES,
    PAD,
    USED,
    add_to_groups,
    list_bands,
    remove_from_groups,
)
from vedette.indexes.bands.partition import find_partition

SLACK = 64
MANY = 8  # so many-th part of the bands, changed at once, is a reason to make the groups anew,
MANY_GROUPS = 1024  # or a smaller one: a new group moves those behind it, so many in the time that one band is made


def _floats() -> NDArray[np.float64]:
    return np.zeros(0)


def _numbers() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


_BY_GROUP = "points", "cover_lows", "cover_highs", "singles", "starts", "sizes", "rooms"


@dataclass
class Groups:
    """Bands are known by small whole numbers, their names. Group `g` lists its bands from `starts[g]` on."""

    # By name; a band that is not here has group -1.
    lows: NDArray[np.float64] = field(default_factory=_floats)
    highs: NDArray[np.float64] = field(default_factory=_floats)
    group_of: NDArray[np.int32] = field(default_factory=_numbers)
    is_witness: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # By group. The cover is the union of its bands, wider by one double at both ends; NaN where an end is infinite.
    points: NDArray[np.float64] = field(default_factory=_floats)
    cover_lows: NDArray[np.float64] = field(default_factory=_floats)
    cover_highs: NDArray[np.float64] = field(default_factory=_floats)
    singles: NDArray[np.int32] = field(default_factory=_numbers)  # the name of the only band, or -1
    starts: NDArray[np.int32] = field(default_factory=_numbers)
    sizes: NDArray[np.int32] = field(default_factory=_numbers)
    rooms: NDArray[np.int32] = field(default_factory=_numbers)
    # Groups in the order of their points.
    ordered_points: NDArray[np.float64] = field(default_factory=_floats)
    ordered: NDArray[np.int32] = field(default_factory=_numbers)
    # The lists of all groups.
    list_lows: NDArray[np.float64] = field(default_factory=_floats)
    low_names: NDArray[np.int32] = field(default_factory=_numbers)
    list_highs: NDArray[np.float64] = field(default_factory=_floats)
    high_names: NDArray[np.int32] = field(default_factory=_numbers)
    tree: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 0)))  # empty until it is needed
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))
    stamp: object = field(default_factory=object, init=False)  # another one after every change
    n: int = 0
    n_made: int = 0  # bands put into place by making groups anew, ever

    def __len__(self) -> int:
        return self.n

    @property
    def n_groups(self) -> int:
        return int(self.counts[N_GROUPS])

    @property
    def n_points(self) -> int:
        return int(self.counts[N_POINTS])

    @property
    def least_points(self) -> int:
        """No stabbing set has fewer points than so many: the witnesses that stand."""
        return max(int(self.counts[N_WITNESSES]), min(1, self.n))

    @property
    def nbytes(self) -> int:
        arrays = (getattr(self, each.name) for each in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels of look-ups take."""
        return (
            self.points, self.cover_lows, self.cover_highs, self.singles, self.starts, self.sizes, self.list_lows,
            self.low_names, self.list_highs, self.high_names, self.n_groups,
        )  # fmt: skip

    @property
    def has_tree(self) -> bool:
        return self.tree.size > 0

    @property
    def tree_arrays(self) -> tuple[Any, ...]:
        """What the kernels of look-ups by points take."""
        if not self.has_tree:
            self.tree = build_tree(self.ordered, self.n_groups, self.starts, self.list_lows, self.list_highs)
        return (
            self.starts, self.sizes, self.list_lows, self.low_names, self.list_highs, self.high_names, self.n_groups,
            self.ordered_points, self.ordered, self.tree,
        )  # fmt: skip

    @classmethod
    def build(cls, lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Groups:
        """The bands [lows[q], highs[q]], named by their place."""
        groups = cls()
        groups.add(np.arange(len(lows), dtype=np.int32), lows, highs)
        return groups

    def add(self, names: NDArray[np.int32], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> None:
        """Bands whose names are not here yet, the names distinct, no low above its high and none NaN."""
        self.change(np.empty(0, np.int32), names, lows, highs)

    def remove(self, names: NDArray[np.int32]) -> None:
        """Bands that are here."""
        self.change(names, np.empty(0, np.int32), np.empty(0), np.empty(0))

    def among(self, names: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of some names whose bands are here."""
        known = names[names < len(self.group_of)]
        return known[self.group_of[known] >= 0]

    def change(
        self,
        gone: NDArray[np.int32],
        names: NDArray[np.int32],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
    ) -> None:
        """Remove some bands, then add some."""
        n_changed = len(gone) + len(names)
        if n_changed == 0:
            return
        self.tree, self.stamp = self.tree[:, :0].copy(), object()
        self._reserve_names(int(names.max()) + 1 if len(names) else 0)
        self.n += len(names) - len(gone)
        is_large = n_changed * max(MANY, self.n_groups // MANY_GROUPS) > self.n
        if is_large:
            self.group_of[gone] = -1
        elif len(gone):
            remove_from_groups(
                gone, self.group_of, self.is_witness, self.points, self.cover_lows, self.cover_highs, self.singles,
                self.starts, self.sizes, self.rooms, self.ordered_points, self.ordered, self.list_lows, self.low_names,
                self.list_highs, self.high_names, self.counts,
            )  # fmt: skip
        self.lows[names], self.highs[names] = lows, highs
        if is_large:
            self.group_of[names] = 0
            self._make()
            return
        done = 0
        while done < len(names):
            self._reserve(len(names) - done)
            done = add_to_groups(
                names, done, self.lows, self.highs, self.group_of, self.points, self.cover_lows, self.cover_highs,
                self.singles, self.starts, self.sizes, self.rooms, self.ordered_points, self.ordered, self.list_lows,
                self.low_names, self.list_highs, self.high_names, self.counts,
            )  # fmt: skip
        self._settle()

    def _settle(self) -> None:
        """Make the groups anew where they have become too many, or their lists lie about."""
        wasted = int(self.counts[USED]) > 4 * self.n + 4 * CAP
        if wasted or self.n_points > 2 * self.least_points + SLACK:
            self._make()

    def _make(self) -> None:
        names = np.flatnonzero(self.group_of >= 0).astype(np.int32)
        lows, highs = self.lows[names], self.highs[names]
        partition = find_partition(lows, highs)
        self.n_made += len(names)
        self.is_witness[:] = False
        self.is_witness[names[partition.witnesses]] = True
        firsts, of_point = _cut(partition.starts)
        n_groups = len(firsts) - 1
        self.sizes = np.diff(firsts).astype(np.int32)
        self.rooms = self.sizes + (self.sizes >> 2) + 1
        ends = np.cumsum(self.rooms, dtype=np.int64)
        used = int(ends[-1]) if n_groups else 0
        self.starts = (ends - self.rooms).astype(np.int32)
        self.points = partition.points[of_point]
        self.ordered_points, self.ordered = self.points.copy(), np.arange(n_groups, dtype=np.int32)
        self.cover_lows, self.cover_highs = np.zeros(n_groups), np.zeros(n_groups)
        self.singles = np.zeros(n_groups, np.int32)
        self.list_lows, self.low_names = np.zeros(used + PAD), np.zeros(used + PAD, np.int32)
        self.list_highs, self.high_names = np.zeros(used + PAD), np.zeros(used + PAD, np.int32)
        by_high = np.argsort(-highs, kind="stable")
        list_bands(
            names, lows, highs, partition.order, by_high, firsts, self.starts, self.sizes, self.group_of,
            self.cover_lows, self.cover_highs, self.singles, self.list_lows, self.low_names, self.list_highs,
            self.high_names,
        )  # fmt: skip
        self.counts[:] = n_groups, len(partition), len(partition), used

    def _reserve_names(self, n: int) -> None:
        n_before = len(self.group_of)
        if n <= n_before:
            return
        self.group_of = grown(self.group_of, n_before, n)
        self.group_of[n_before:] = -1
        n = len(self.group_of)
        self.lows, self.highs = grown(self.lows, n_before, n), grown(self.highs, n_before, n)
        self.is_witness = grown(self.is_witness, n_before, n)

    def _reserve(self, n_more: int) -> None:
        """Room for the next additions, or for some of them."""
        n_groups, used = self.n_groups, int(self.counts[USED])
        most = n_groups + min(n_more, CAP) + 2
        for name in (*_BY_GROUP, "ordered_points", "ordered"):
            setattr(self, name, grown(getattr(self, name), n_groups, most))
        for name in ("list_lows", "low_names", "list_highs", "high_names"):
            setattr(self, name, grown(getattr(self, name), used, used + 4 * CAP + PAD))


def _cut(starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where groups of at most CAP bands start, and the number of the point of each."""
    sizes = np.diff(starts)
    n_pieces = -(-sizes // CAP)
    of_point = np.repeat(np.arange(len(sizes)), n_pieces)
    piece = np.arange(len(of_point)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    return np.append(starts[:-1][of_point] + piece * CAP, starts[-1]), of_point
