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

from vedette.native.buffers import grown
from vedette.native.damage import check, check_fields, check_shape, check_within
from vedette.operators.band_join.index.by_points import build_tree
from vedette.operators.band_join.index.group_changes import (
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
from vedette.operators.band_join.index.partition import find_partition

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

    def validate(self, lows: NDArray[np.float64], highs: NDArray[np.float64], stands: NDArray[np.bool_]) -> None:
        """Raise DamageError unless groups from a file list the bands that stand, by name, each where it belongs."""
        check_fields(self)
        self._check_shapes()
        names = np.flatnonzero(stands)
        check(self.n == len(names) and self.n_made >= 0, "groups have not as many bands as there are")
        check(np.array_equal(np.flatnonzero(self.group_of >= 0), names), "groups have other bands than there are")
        for own, given in ((self.lows, lows), (self.highs, highs)):
            check(np.array_equal(own[names], given[names]), "groups have other bands than there are")
        check(int(self.is_witness.sum()) == self.counts[N_WITNESSES], "groups have other witnesses than there are")
        self._check_order()
        self._check_lists()

    def _check_shapes(self) -> None:
        n_names, n_rooms, n_listed = len(self.group_of), len(self.points), len(self.list_lows)
        check_shape(self.counts, (4,), "the counts of groups")
        n_groups, n_points, n_witnesses, used = self.counts.tolist()
        check(0 <= n_groups <= n_rooms and 0 <= used <= n_listed - PAD * (n_listed > 0) < 1 << 31, "groups are missing")
        check(0 <= n_witnesses <= n_points <= n_groups, "groups have fewer points than witnesses")
        for name in ("lows", "highs", "group_of", "is_witness"):
            check_shape(getattr(self, name), (n_names,), "the bands of groups")
        for name in (*_BY_GROUP, "ordered_points", "ordered"):
            check_shape(getattr(self, name), (n_rooms,), "an array by group")
        for name in ("list_lows", "low_names", "list_highs", "high_names"):
            check_shape(getattr(self, name), (n_listed,), "the lists of groups")
        check_within(self.group_of, -1, n_groups - 1, "the groups of bands")

    def _check_order(self) -> None:
        n = self.n_groups
        points, ordered = self.points[:n], self.ordered[:n]
        check(not np.isnan(points).any(), "a group has no point")
        check(np.array_equal(np.sort(ordered), np.arange(n)), "groups are in no order")
        check(np.array_equal(self.ordered_points[:n], points[ordered]), "groups are not in the order of points")
        rises = np.diff(self.ordered_points[:n])
        check((rises >= 0).all() and np.count_nonzero(rises) + (n > 0) == self.n_points, "points are not in order")
        check(self.tree.ndim == 2 and len(self.tree) == 2, "the tree of groups is none")
        if self.has_tree:
            tree = build_tree(self.ordered, n, self.starts, self.list_lows, self.list_highs)
            check(np.array_equal(tree, self.tree), "the tree of groups is not theirs")

    def _check_lists(self) -> None:
        n = self.n_groups
        starts, sizes, rooms = (each[:n].astype(np.int64) for each in (self.starts, self.sizes, self.rooms))
        by_start = np.argsort(starts, kind="stable")
        ends = (starts + rooms)[by_start]
        check((starts >= 0).all() and (ends <= self.counts[USED]).all(), "a list of bands is cut")
        check((ends[:-1] <= starts[by_start][1:]).all(), "lists of bands overlap")
        check((sizes >= 1).all() and (sizes <= np.minimum(rooms, CAP)).all(), "a list of bands is cut")
        check(int(sizes.sum()) == self.n, "lists have not as many bands as there are")
        groups = np.repeat(np.arange(n), sizes)
        places = np.arange(self.n) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        is_next = groups[1:] == groups[:-1]
        for names, values, own, sign in (
            (self.low_names[places], self.list_lows[places], self.lows, 1),
            (self.high_names[places], self.list_highs[places], self.highs, -1),
        ):
            check_within(names, 0, len(self.group_of) - 1, "the lists of bands")
            check((np.bincount(names, minlength=1) <= 1).all(), "a band is listed twice")
            check((self.group_of[names] == groups).all() and (own[names] == values).all(), "a list has other bands")
            falls = values[1:] * sign < values[:-1] * sign
            check(not (falls & is_next).any(), "a list of bands is in no order")
        points = self.points[groups]
        held = (self.list_lows[places] <= points) & (points <= self.list_highs[places])
        check(held.all(), "a group has bands without its point")
        for covers, outer, beyond in (
            (self.cover_lows, self.list_lows[starts], -np.inf),
            (self.cover_highs, self.list_highs[starts], np.inf),
        ):
            expected = np.where(outer == beyond, np.nan, np.nextafter(outer, beyond))
            check(np.array_equal(covers[:n], expected, equal_nan=True), "a group covers other bands")
        singles = np.where(sizes == 1, self.low_names[starts], -1)
        check(np.array_equal(self.singles[:n], singles), "a group has another single band")

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
