"""Bands in stabbing groups, with insertions and deletions: each group has a point that all its bands contain.

Lemma 3 with groups that can change, which the paper leaves to its technical report. A group lists its bands by lower
end, ascending, and by upper end, descending. The bands that hold a number left of the point are the first ones of the
one list; right of the point, of the other. A new band joins a group whose point it contains, or becomes a group of its
own; a removed band leaves its lists. The partition is rebuilt when there are more points than twice the witnesses that
are left (see `partition`), plus 64. So there are never more points than twice the minimum, plus 64, and between two
rebuilds there are at least half as many changes as there were points, plus 32. About 60 bytes per band.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.native.damage import check, check_fields, check_shape, check_type, check_within
from vedette.native.kernels import plain_tuple
from vedette.operators.band_join.index.by_points import build_tree
from vedette.operators.band_join.index.group_arrays import BandLists, BandsByName, GroupTable, PointOrder
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
MANY = 8  # the groups are rebuilt if one in so many bands changes at once,
MANY_GROUPS = 1024  # or fewer bands: a new group moves those behind it, this many in the time to place one band


def _no_bands() -> BandsByName:
    return BandsByName(np.zeros(0), np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.bool_))


def _no_groups() -> GroupTable:
    points, lows, highs = np.zeros(0), np.zeros(0), np.zeros(0)
    singles, starts, sizes, rooms = (np.zeros(0, np.int32) for _ in range(4))
    return GroupTable(points, lows, highs, singles, starts, sizes, rooms)


def _no_order() -> PointOrder:
    return PointOrder(np.zeros(0), np.zeros(0, np.int32))


def _no_lists(n: int = 0) -> BandLists:
    return BandLists(np.zeros(n), np.zeros(n, np.int32), np.zeros(n), np.zeros(n, np.int32))


@dataclass
class Groups:
    """Bands by name, a small integer. Group `g` lists its bands from `table.starts[g]` on."""

    bands: BandsByName = field(default_factory=_no_bands)
    table: GroupTable = field(default_factory=_no_groups)
    order: PointOrder = field(default_factory=_no_order)
    lists: BandLists = field(default_factory=_no_lists)
    tree: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 0)))  # empty until it is needed
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))
    n: int = 0
    n_made: int = 0  # bands that were put in place by rebuilding the groups, in total
    stamp: object = field(default_factory=object, init=False)  # a new object after every change

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
        """A lower bound on the points of any stabbing set: the witnesses that are left."""
        return max(int(self.counts[N_WITNESSES]), min(1, self.n))

    @property
    def nbytes(self) -> int:
        arrays = (*self.bands, *self.table, *self.order, *self.lists, self.tree, self.counts)
        return sum(array.nbytes for array in arrays)

    @property
    def has_tree(self) -> bool:
        return self.tree.size > 0

    def make_tree(self) -> NDArray[np.float64]:
        """The tree for look-ups by points; it is built when it is needed for the first time after a change."""
        if not self.has_tree:
            _, table, order, lists = self._plain_tuples()
            self.tree = build_tree(order, self.n_groups, table, lists)
        return self.tree

    # What a file holds.

    def to_parts(self) -> list[Any]:
        arrays = (*self.bands, *self.table, *self.order, *self.lists, self.tree, self.counts)
        return [*arrays, self.n, self.n_made]

    @classmethod
    def from_parts(cls, parts: list[Any]) -> Groups:
        """The groups of a file, which are still to be validated."""
        check(len(parts) == 21, "the groups are incomplete")
        table, order, lists = GroupTable(*parts[4:11]), PointOrder(*parts[11:13]), BandLists(*parts[13:17])
        return cls(BandsByName(*parts[:4]), table, order, lists, *parts[17:])

    @classmethod
    def build(cls, lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Groups:
        """The bands [lows[q], highs[q]], named by their position."""
        groups = cls()
        groups.add(np.arange(len(lows), dtype=np.int32), lows, highs)
        return groups

    def add(self, names: NDArray[np.int32], lows: NDArray[np.float64], highs: NDArray[np.float64]) -> None:
        """Add bands with distinct new names, no low above its high, and none NaN."""
        self.change(np.empty(0, np.int32), names, lows, highs)

    def remove(self, names: NDArray[np.int32]) -> None:
        """Remove bands that are here."""
        self.change(names, np.empty(0, np.int32), np.empty(0), np.empty(0))

    def among(self, names: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of some names whose bands are here."""
        known = names[names < len(self.bands.group_of)]
        return known[self.bands.group_of[known] >= 0]

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
            self.bands.group_of[gone] = -1
        elif len(gone):
            bands, table, order, lists = self._plain_tuples()
            remove_from_groups(gone, bands, table, order, lists, self.counts)
        self.bands.lows[names], self.bands.highs[names] = lows, highs
        if is_large:
            self.bands.group_of[names] = 0
            self._make()
            return
        done = 0
        while done < len(names):
            self._reserve(len(names) - done)
            bands, table, order, lists = self._plain_tuples()
            done = add_to_groups(names, done, bands, table, order, lists, self.counts)
        self._settle()

    def _plain_tuples(self) -> tuple[BandsByName, GroupTable, PointOrder, BandLists]:
        """The arrays as kernels take them."""
        return plain_tuple(self.bands), plain_tuple(self.table), plain_tuple(self.order), plain_tuple(self.lists)

    def validate(self, lows: NDArray[np.float64], highs: NDArray[np.float64], exists: NDArray[np.bool_]) -> None:
        """Raise DamageError unless groups from a file list the bands that exist, by name, each where it belongs."""
        check_fields(self)
        for arrays in (self.bands, self.table, self.order, self.lists):
            for name, hint in get_type_hints(type(arrays)).items():
                check_type(getattr(arrays, name), hint, f"{type(arrays).__name__}.{name}")
        self._check_shapes()
        bands, names = self.bands, np.flatnonzero(exists)
        check(self.n == len(names) and self.n_made >= 0, "groups have the wrong number of bands")
        check(np.array_equal(np.flatnonzero(bands.group_of >= 0), names), "groups have other bands than the set")
        for own, given in ((bands.lows, lows), (bands.highs, highs)):
            check(np.array_equal(own[names], given[names]), "groups have other bands than the set")
        check(int(bands.is_witness.sum()) == self.counts[N_WITNESSES], "groups have the wrong number of witnesses")
        self._check_order()
        self._check_lists()

    def _check_shapes(self) -> None:
        n_names, n_rooms, n_listed = len(self.bands.group_of), len(self.table.points), len(self.lists.lows)
        check_shape(self.counts, (4,), "the counts of groups")
        n_groups, n_points, n_witnesses, used = self.counts.tolist()
        check(0 <= n_groups <= n_rooms, "groups are missing")
        check(0 <= used <= n_listed - PAD * (n_listed > 0) < 1 << 31, "lists of groups are missing")
        check(0 <= n_witnesses <= n_points <= n_groups, "groups have fewer points than witnesses")
        for array in self.bands:
            check_shape(array, (n_names,), "the bands of groups")
        for array in (*self.table, *self.order):
            check_shape(array, (n_rooms,), "an array by group")
        for array in self.lists:
            check_shape(array, (n_listed,), "the lists of groups")
        check_within(self.bands.group_of, -1, n_groups - 1, "the groups of bands")

    def _check_order(self) -> None:
        n = self.n_groups
        points, groups, ordered = self.table.points[:n], self.order.groups[:n], self.order.points[:n]
        check(not np.isnan(points).any(), "a group has no point")
        check(np.array_equal(np.sort(groups), np.arange(n)), "the order of groups is invalid")
        check(np.array_equal(ordered, points[groups]), "groups are not in the order of their points")
        rises = np.diff(ordered)
        check((rises >= 0).all() and np.count_nonzero(rises) + (n > 0) == self.n_points, "points are not in order")
        check(self.tree.ndim == 2 and len(self.tree) == 2, "the tree of groups is invalid")
        if self.has_tree:
            _, table, order, lists = self._plain_tuples()
            tree = build_tree(order, n, table, lists)
            check(np.array_equal(tree, self.tree), "the tree of groups is invalid")

    def _check_lists(self) -> None:
        table, lists, group_of, n = self.table, self.lists, self.bands.group_of, self.n_groups
        starts, sizes, rooms = (each[:n].astype(np.int64) for each in (table.starts, table.sizes, table.rooms))
        by_start = np.argsort(starts, kind="stable")
        ends = (starts + rooms)[by_start]
        check((starts >= 0).all() and (ends <= self.counts[USED]).all(), "a list of bands is cut off")
        check((ends[:-1] <= starts[by_start][1:]).all(), "lists of bands overlap")
        check((sizes >= 1).all() and (sizes <= np.minimum(rooms, CAP)).all(), "a list of bands is cut off")
        check(int(sizes.sum()) == self.n, "lists have the wrong number of bands")
        groups = np.repeat(np.arange(n), sizes)
        places = np.arange(self.n) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        is_next = groups[1:] == groups[:-1]
        for names, values, own, sign in (
            (lists.low_names[places], lists.lows[places], self.bands.lows, 1),
            (lists.high_names[places], lists.highs[places], self.bands.highs, -1),
        ):
            check_within(names, 0, len(group_of) - 1, "the lists of bands")
            check((np.bincount(names, minlength=1) <= 1).all(), "a band is listed twice")
            check((group_of[names] == groups).all() and (own[names] == values).all(), "a list has other bands")
            falls = values[1:] * sign < values[:-1] * sign
            check(not (falls & is_next).any(), "a list of bands is not in order")
        points = table.points[groups]
        held = (lists.lows[places] <= points) & (points <= lists.highs[places])
        check(held.all(), "a group has bands without its point")
        self._check_covers(starts, sizes)

    def _check_covers(self, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        table, lists, n = self.table, self.lists, self.n_groups
        for covers, outer, beyond in (
            (table.cover_lows, lists.lows[starts], -np.inf),
            (table.cover_highs, lists.highs[starts], np.inf),
        ):
            expected = np.where(outer == beyond, np.nan, np.nextafter(outer, beyond))
            check(np.array_equal(covers[:n], expected, equal_nan=True), "the cover of a group is wrong")
        singles = np.where(sizes == 1, lists.low_names[starts], -1)
        check(np.array_equal(table.singles[:n], singles), "the only band of a group is wrong")

    def _settle(self) -> None:
        """Rebuild the groups if there are too many, or if their lists waste too much memory."""
        wasted = int(self.counts[USED]) > 4 * self.n + 4 * CAP
        if wasted or self.n_points > 2 * self.least_points + SLACK:
            self._make()

    def _make(self) -> None:
        """Rebuild the groups as the smallest partition of the bands."""
        bands = self.bands
        names = np.flatnonzero(bands.group_of >= 0).astype(np.int32)
        highs = bands.highs[names]
        partition = find_partition(bands.lows[names], highs)
        self.n_made += len(names)
        bands.is_witness[:] = False
        bands.is_witness[names[partition.witnesses]] = True
        firsts, of_point = _cut(partition.starts)
        n_groups = len(firsts) - 1
        sizes = np.diff(firsts).astype(np.int32)
        rooms = sizes + (sizes >> 2) + 1
        ends = np.cumsum(rooms, dtype=np.int64)
        used = int(ends[-1]) if n_groups else 0
        points, covers = partition.points[of_point], (np.zeros(n_groups), np.zeros(n_groups))
        singles, starts = np.zeros(n_groups, np.int32), (ends - rooms).astype(np.int32)
        self.table = GroupTable(points, *covers, singles, starts, sizes, rooms)
        self.order = PointOrder(points.copy(), np.arange(n_groups, dtype=np.int32))
        self.lists = _no_lists(used + PAD)
        by_high = np.argsort(-highs, kind="stable")
        by_name, table, _, lists = self._plain_tuples()
        list_bands(names, partition.order, by_high, firsts, by_name, table, lists)
        self.counts[:] = n_groups, len(partition), len(partition), used

    def _reserve_names(self, n: int) -> None:
        old = self.bands
        n_before = len(old.group_of)
        if n <= n_before:
            return
        group_of = grown(old.group_of, n_before, n)
        group_of[n_before:] = -1
        n = len(group_of)
        lows, highs = grown(old.lows, n_before, n), grown(old.highs, n_before, n)
        self.bands = BandsByName(lows, highs, group_of, grown(old.is_witness, n_before, n))

    def _reserve(self, n_more: int) -> None:
        """Room for the next additions, or for some of them."""
        n, used = self.n_groups, int(self.counts[USED])
        most, end = n + min(n_more, CAP) + 2, used + 4 * CAP + PAD
        if most > len(self.table.points):
            self.table = GroupTable(*(grown(array, n, most) for array in self.table))
            self.order = PointOrder(*(grown(array, n, most) for array in self.order))
        if end > len(self.lists.lows):
            self.lists = BandLists(*(grown(array, used, end) for array in self.lists))


def _cut(starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where groups of at most CAP bands start, and the number of the point of each."""
    sizes = np.diff(starts)
    n_pieces = -(-sizes // CAP)
    of_point = np.repeat(np.arange(len(sizes)), n_pieces)
    piece = np.arange(len(of_point)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    return np.append(starts[:-1][of_point] + piece * CAP, starts[-1]), of_point
