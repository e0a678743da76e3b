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
from vedette.indexes.bands.partition import find_middle, find_partition
from vedette.kernels import kernel

CAP = 1024  # bands in a group; points of more have several groups, so that changes move little
SLACK = 64
MANY = 8  # so many-th part of the bands, changed at once, is a reason to make the groups anew
PAD = 8  # entries behind the lists, which are copied eight at a time

# Places in `counts`.
N_GROUPS, N_POINTS, N_WITNESSES, USED = 0, 1, 2, 3


def _floats() -> NDArray[np.float64]:
    return np.zeros(0)


def _numbers() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass
class Groups:
    """Bands are known by small whole numbers, their names. Group `g` lists its bands from `starts[g]` on."""

    # By name; a band that is not here has group -1.
    lows: NDArray[np.float64] = field(default_factory=_floats)
    highs: NDArray[np.float64] = field(default_factory=_floats)
    group_of: NDArray[np.int32] = field(default_factory=_numbers)
    is_witness: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # By group. The cover is the union of its bands, wider by one double at both ends.
    points: NDArray[np.float64] = field(default_factory=_floats)
    cover_lows: NDArray[np.float64] = field(default_factory=_floats)
    cover_highs: NDArray[np.float64] = field(default_factory=_floats)
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
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))
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
            self.points, self.cover_lows, self.cover_highs, self.starts, self.sizes, self.list_lows, self.low_names,
            self.list_highs, self.high_names, self.n_groups,
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
        self._reserve_names(int(names.max()) + 1 if len(names) else 0)
        self.n += len(names) - len(gone)
        is_large = n_changed * MANY > self.n
        if is_large:
            self.group_of[gone] = -1
        elif len(gone):
            _remove(
                gone, self.group_of, self.is_witness, self.points, self.cover_lows, self.cover_highs, self.starts,
                self.sizes, self.rooms, self.ordered_points, self.ordered, self.list_lows, self.low_names,
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
            done = _add(
                names, done, self.lows, self.highs, self.group_of, self.points, self.cover_lows, self.cover_highs,
                self.starts, self.sizes, self.rooms, self.ordered_points, self.ordered, self.list_lows, self.low_names,
                self.list_highs, self.high_names, self.counts,
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
        self.list_lows, self.low_names = np.zeros(used + PAD), np.zeros(used + PAD, np.int32)
        self.list_highs, self.high_names = np.zeros(used + PAD), np.zeros(used + PAD, np.int32)
        by_high = np.argsort(-highs, kind="stable")
        _list_bands(
            names, lows, highs, partition.order, by_high, firsts, self.starts, self.group_of, self.cover_lows,
            self.cover_highs, self.list_lows, self.low_names, self.list_highs, self.high_names,
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
        for name in ("points", "cover_lows", "cover_highs", "starts", "sizes", "rooms", "ordered_points", "ordered"):
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


@kernel
def _list_bands(
    names: NDArray[np.int32],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    by_low: NDArray[np.int32],
    by_high: NDArray[np.int64],
    firsts: NDArray[np.int64],
    starts: NDArray[np.int32],
    group_of: NDArray[np.int32],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
) -> None:
    """Write the lists of all groups; group `g` is of the bands `by_low[firsts[g]:firsts[g + 1]]`."""
    for group in range(len(starts)):
        for i in range(firsts[group], firsts[group + 1]):
            place = starts[group] + i - firsts[group]
            list_lows[place], low_names[place] = lows[by_low[i]], names[by_low[i]]
            group_of[names[by_low[i]]] = group
    ends = starts.copy()
    for i in range(len(by_high)):
        name = names[by_high[i]]
        place = ends[group_of[name]]
        list_highs[place], high_names[place] = highs[by_high[i]], name
        ends[group_of[name]] += 1
    for group in range(len(starts)):
        _set_cover(group, starts, cover_lows, cover_highs, list_lows, list_highs)


@kernel
def _set_cover(
    group: int,
    starts: NDArray[np.int32],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    list_lows: NDArray[np.float64],
    list_highs: NDArray[np.float64],
) -> None:
    cover_lows[group] = np.nextafter(list_lows[starts[group]], -np.inf)
    cover_highs[group] = np.nextafter(list_highs[starts[group]], np.inf)


@kernel
def _add(
    names: NDArray[np.int32],
    done: int,
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    group_of: NDArray[np.int32],
    points: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Add bands from `done` on while there is room; how many are done then."""
    for i in range(done, len(names)):
        if counts[N_GROUPS] + 2 > len(points) or counts[USED] + 4 * CAP + PAD > len(list_lows):
            return i
        low, high = lows[names[i]], highs[names[i]]
        place = np.searchsorted(ordered_points[: counts[N_GROUPS]], low)
        if place == counts[N_GROUPS] or ordered_points[place] > high:
            _open_group(place, find_middle(low, high), 2, points, starts, sizes, rooms, ordered_points, ordered, counts)
            counts[N_POINTS] += 1
        else:  # of the groups of this point the last that begins no higher
            point = ordered_points[place]
            while (
                place + 1 < counts[N_GROUPS]
                and ordered_points[place + 1] == point
                and list_lows[starts[ordered[place + 1]]] <= low
            ):
                place += 1
        group = ordered[place]
        if sizes[group] == CAP:
            upper = _halve(
                place, highs, group_of, points, starts, sizes, rooms, ordered_points, ordered, list_lows,
                low_names, list_highs, high_names, counts,
            )  # fmt: skip
            _set_cover(upper, starts, cover_lows, cover_highs, list_lows, list_highs)
            if list_lows[starts[upper]] <= low:
                _set_cover(group, starts, cover_lows, cover_highs, list_lows, list_highs)
                group = upper
        if sizes[group] == rooms[group]:
            _move_list(group, starts, sizes, rooms, list_lows, low_names, list_highs, high_names, counts)
        _put(group, names[i], low, high, starts, sizes, list_lows, low_names, list_highs, high_names)
        group_of[names[i]] = group
        _set_cover(group, starts, cover_lows, cover_highs, list_lows, list_highs)
    return len(names)


@kernel
def _open_group(
    place: int,
    point: float,
    room: int,
    points: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """An empty group, at this place in the order of points."""
    group = counts[N_GROUPS]
    for i in range(group, place, -1):
        ordered_points[i], ordered[i] = ordered_points[i - 1], ordered[i - 1]
    ordered_points[place], ordered[place] = point, group
    points[group], starts[group], sizes[group], rooms[group] = point, counts[USED], 0, room
    counts[USED] += room
    counts[N_GROUPS] += 1
    return group  # type: ignore[no-any-return]


@kernel
def _halve(
    place: int,
    highs: NDArray[np.float64],
    group_of: NDArray[np.int32],
    points: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Give the upper half of a full group, by lower ends, to a new group of the same point; that group."""
    group = ordered[place]
    upper = _open_group(
        place + 1, points[group], CAP, points, starts, sizes, rooms, ordered_points, ordered, counts
    )  # fmt: skip
    old, new, half = starts[group], starts[upper], CAP // 2
    for i in range(half, CAP):
        list_lows[new + i - half], low_names[new + i - half] = list_lows[old + i], low_names[old + i]
        group_of[low_names[old + i]] = upper
    n_kept = n_moved = 0
    for i in range(CAP):
        name = high_names[old + i]
        if group_of[name] == upper:
            list_highs[new + n_moved], high_names[new + n_moved] = highs[name], name
            n_moved += 1
        else:
            list_highs[old + n_kept], high_names[old + n_kept] = highs[name], name
            n_kept += 1
    sizes[group], sizes[upper] = half, CAP - half
    return upper


@kernel
def _move_list(
    group: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Move the lists of a group to where there is twice the room."""
    old, new = starts[group], counts[USED]
    for i in range(sizes[group]):
        list_lows[new + i], low_names[new + i] = list_lows[old + i], low_names[old + i]
        list_highs[new + i], high_names[new + i] = list_highs[old + i], high_names[old + i]
    starts[group] = new
    rooms[group] = min(CAP, 2 * rooms[group] + 2)
    counts[USED] += rooms[group]


@kernel
def _put(
    group: int,
    name: int,
    low: float,
    high: float,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
) -> None:
    start = starts[group]
    i = start + sizes[group]
    while i > start and list_lows[i - 1] > low:
        list_lows[i], low_names[i] = list_lows[i - 1], low_names[i - 1]
        i -= 1
    list_lows[i], low_names[i] = low, name
    i = start + sizes[group]
    while i > start and list_highs[i - 1] < high:
        list_highs[i], high_names[i] = list_highs[i - 1], high_names[i - 1]
        i -= 1
    list_highs[i], high_names[i] = high, name
    sizes[group] += 1


@kernel
def _remove(
    names: NDArray[np.int32],
    group_of: NDArray[np.int32],
    is_witness: NDArray[np.bool_],
    points: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
    high_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    for name in names:
        group = group_of[name]
        group_of[name] = -1
        if is_witness[name]:
            is_witness[name] = False
            counts[N_WITNESSES] -= 1
        start, end = starts[group], starts[group] + sizes[group]
        _take_out(name, start, end, list_lows, low_names)
        _take_out(name, start, end, list_highs, high_names)
        sizes[group] -= 1
        if sizes[group] == 0:
            _close_group(
                group, group_of, points, cover_lows, cover_highs, starts, sizes, rooms, ordered_points, ordered,
                low_names, counts,
            )  # fmt: skip
        else:
            _set_cover(group, starts, cover_lows, cover_highs, list_lows, list_highs)


@kernel
def _take_out(name: int, start: int, end: int, ends: NDArray[np.float64], names: NDArray[np.int32]) -> None:
    place = start
    while names[place] != name:
        place += 1
    for i in range(place, end - 1):
        ends[i], names[i] = ends[i + 1], names[i + 1]


@kernel
def _close_group(
    group: int,
    group_of: NDArray[np.int32],
    points: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    rooms: NDArray[np.int32],
    ordered_points: NDArray[np.float64],
    ordered: NDArray[np.int32],
    low_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Drop an empty group; the last group takes its number."""
    counts[N_GROUPS] -= 1
    last = counts[N_GROUPS]
    point = points[group]
    place = np.searchsorted(ordered_points[: last + 1], point)
    is_shared = place < last and ordered_points[place + 1] == point
    counts[N_POINTS] -= not is_shared
    while ordered[place] != group:
        place += 1
    for i in range(place, last):
        ordered_points[i], ordered[i] = ordered_points[i + 1], ordered[i + 1]
    if group == last:
        return
    place = np.searchsorted(ordered_points[:last], points[last])
    while ordered[place] != last:
        place += 1
    ordered[place] = group
    points[group], cover_lows[group], cover_highs[group] = points[last], cover_lows[last], cover_highs[last]
    starts[group], sizes[group], rooms[group] = starts[last], sizes[last], rooms[last]
    for i in range(starts[group], starts[group] + sizes[group]):
        group_of[low_names[i]] = group
