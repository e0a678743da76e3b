"""Kernels that add bands to stabbing groups and remove them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_arrays import BandLists, BandsByName, GroupTable, PointOrder
from vedette.operators.band_join.index.partition import find_middle

CAP = 1024  # bands in a group; a point of more bands has several groups, so that a change moves little
PAD = 8  # entries behind the lists, which are copied eight at a time

# Positions in `counts`.
N_GROUPS, N_POINTS, N_WITNESSES, USED = 0, 1, 2, 3


@kernel
def list_bands(
    names: NDArray[np.int32],
    by_low: NDArray[np.int32],
    by_high: NDArray[np.int64],
    firsts: NDArray[np.int64],
    bands: BandsByName,
    table: GroupTable,
    lists: BandLists,
) -> None:
    """Write the lists of all groups; group `g` has the bands `names[by_low[firsts[g]:firsts[g + 1]]]`."""
    lows, highs, group_of, starts = bands.lows, bands.highs, bands.group_of, table.starts
    list_lows, low_names, list_highs, high_names = lists.lows, lists.low_names, lists.highs, lists.high_names
    for group in range(len(starts)):
        for i in range(firsts[group], firsts[group + 1]):
            place, name = starts[group] + i - firsts[group], names[by_low[i]]
            list_lows[place], low_names[place] = lows[name], name
            group_of[name] = group
    ends = starts.copy()
    for i in range(len(by_high)):
        name = names[by_high[i]]
        place = ends[group_of[name]]
        list_highs[place], high_names[place] = highs[name], name
        ends[group_of[name]] += 1
    for group in range(len(starts)):
        _set_cover(group, table, lists)


@kernel
def _set_cover(group: int, table: GroupTable, lists: BandLists) -> None:
    """Write what a look-up sees of a group first, after its lists have changed."""
    start = table.starts[group]
    low, high = lists.lows[start], lists.highs[start]
    table.cover_lows[group] = np.nextafter(low, -np.inf) if low > -np.inf else np.nan
    table.cover_highs[group] = np.nextafter(high, np.inf) if high < np.inf else np.nan
    table.singles[group] = lists.low_names[start] if table.sizes[group] == 1 else -1


@kernel
def add_to_groups(
    names: NDArray[np.int32],
    done: int,
    bands: BandsByName,
    table: GroupTable,
    order: PointOrder,
    lists: BandLists,
    counts: NDArray[np.int64],
) -> int:
    """Add bands from `done` on while there is room; how many are done then."""
    points, groups, starts, sizes = order.points, order.groups, table.starts, table.sizes
    for i in range(done, len(names)):
        if counts[N_GROUPS] + 2 > len(starts) or counts[USED] + 4 * CAP + PAD > len(lists.lows):
            return i
        low, high = bands.lows[names[i]], bands.highs[names[i]]
        place = np.searchsorted(points[: counts[N_GROUPS]], low)
        if place == counts[N_GROUPS] or points[place] > high:
            _open_group(place, find_middle(low, high), 2, table, order, counts)
            counts[N_POINTS] += 1
        else:  # of the groups of this point the last that begins no higher
            point = points[place]
            while (
                place + 1 < counts[N_GROUPS]
                and points[place + 1] == point
                and lists.lows[starts[groups[place + 1]]] <= low
            ):
                place += 1
        group = groups[place]
        if sizes[group] == CAP:
            upper = _halve(place, bands, table, order, lists, counts)
            _set_cover(upper, table, lists)
            if lists.lows[starts[upper]] <= low:
                _set_cover(group, table, lists)
                group = upper
        if sizes[group] == table.rooms[group]:
            _move_list(group, table, lists, counts)
        _put(group, names[i], low, high, table, lists)
        bands.group_of[names[i]] = group
        _set_cover(group, table, lists)
    return len(names)


@kernel
def _open_group(
    place: int, point: float, room: int, table: GroupTable, order: PointOrder, counts: NDArray[np.int64]
) -> int:
    """An empty group, at this place in the order of points."""
    points, groups = order.points, order.groups
    group = counts[N_GROUPS]
    for i in range(group, place, -1):
        points[i], groups[i] = points[i - 1], groups[i - 1]
    points[place], groups[place] = point, group
    table.points[group], table.starts[group] = point, counts[USED]
    table.sizes[group], table.rooms[group] = 0, room
    counts[USED] += room
    counts[N_GROUPS] += 1
    return group  # type: ignore[no-any-return]


@kernel
def _halve(
    place: int,
    bands: BandsByName,
    table: GroupTable,
    order: PointOrder,
    lists: BandLists,
    counts: NDArray[np.int64],
) -> int:
    """Move the upper half of a full group, by lower ends, to a new group of the same point; the new group."""
    lows, low_names, highs, high_names = lists.lows, lists.low_names, lists.highs, lists.high_names
    band_highs, group_of = bands.highs, bands.group_of
    group = order.groups[place]
    upper = _open_group(place + 1, table.points[group], CAP, table, order, counts)
    old, new, half = table.starts[group], table.starts[upper], CAP // 2
    for i in range(half, CAP):
        lows[new + i - half], low_names[new + i - half] = lows[old + i], low_names[old + i]
        group_of[low_names[old + i]] = upper
    n_kept = n_moved = 0
    for i in range(CAP):
        name = high_names[old + i]
        if group_of[name] == upper:
            highs[new + n_moved], high_names[new + n_moved] = band_highs[name], name
            n_moved += 1
        else:
            highs[old + n_kept], high_names[old + n_kept] = band_highs[name], name
            n_kept += 1
    table.sizes[group], table.sizes[upper] = half, CAP - half
    return upper


@kernel
def _move_list(group: int, table: GroupTable, lists: BandLists, counts: NDArray[np.int64]) -> None:
    """Move the lists of a group to where there is twice the room."""
    lows, low_names, highs, high_names = lists.lows, lists.low_names, lists.highs, lists.high_names
    old, new = table.starts[group], counts[USED]
    for i in range(table.sizes[group]):
        lows[new + i], low_names[new + i] = lows[old + i], low_names[old + i]
        highs[new + i], high_names[new + i] = highs[old + i], high_names[old + i]
    table.starts[group] = new
    table.rooms[group] = min(CAP, 2 * table.rooms[group] + 2)
    counts[USED] += table.rooms[group]


@kernel
def _put(group: int, name: int, low: float, high: float, table: GroupTable, lists: BandLists) -> None:
    """Insert a band into the lists of a group, where there is room."""
    lows, low_names, highs, high_names = lists.lows, lists.low_names, lists.highs, lists.high_names
    start = table.starts[group]
    i = start + table.sizes[group]
    while i > start and lows[i - 1] > low:
        lows[i], low_names[i] = lows[i - 1], low_names[i - 1]
        i -= 1
    lows[i], low_names[i] = low, name
    i = start + table.sizes[group]
    while i > start and highs[i - 1] < high:
        highs[i], high_names[i] = highs[i - 1], high_names[i - 1]
        i -= 1
    highs[i], high_names[i] = high, name
    table.sizes[group] += 1


@kernel
def remove_from_groups(
    names: NDArray[np.int32],
    bands: BandsByName,
    table: GroupTable,
    order: PointOrder,
    lists: BandLists,
    counts: NDArray[np.int64],
) -> None:
    """Remove bands from their groups."""
    group_of, is_witness, starts, sizes = bands.group_of, bands.is_witness, table.starts, table.sizes
    for name in names:
        group = group_of[name]
        group_of[name] = -1
        if is_witness[name]:
            is_witness[name] = False
            counts[N_WITNESSES] -= 1
        start, end = starts[group], starts[group] + sizes[group]
        _take_out(name, start, end, lists.lows, lists.low_names)
        _take_out(name, start, end, lists.highs, lists.high_names)
        sizes[group] -= 1
        if sizes[group] == 0:
            _close_group(group, group_of, table, order, lists.low_names, counts)
        else:
            _set_cover(group, table, lists)


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
    table: GroupTable,
    order: PointOrder,
    low_names: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Drop an empty group; the last group takes its number."""
    points, groups, starts, sizes = order.points, order.groups, table.starts, table.sizes
    counts[N_GROUPS] -= 1
    last = counts[N_GROUPS]
    point = table.points[group]
    place = np.searchsorted(points[: last + 1], point)
    is_shared = place < last and points[place + 1] == point
    counts[N_POINTS] -= not is_shared
    while groups[place] != group:
        place += 1
    for i in range(place, last):
        points[i], groups[i] = points[i + 1], groups[i + 1]
    if group == last:
        return
    place = np.searchsorted(points[:last], table.points[last])
    while groups[place] != last:
        place += 1
    groups[place] = group
    table.points[group], table.singles[group] = table.points[last], table.singles[last]
    table.cover_lows[group], table.cover_highs[group] = table.cover_lows[last], table.cover_highs[last]
    starts[group], sizes[group], table.rooms[group] = starts[last], sizes[last], table.rooms[last]
    for i in range(starts[group], starts[group] + sizes[group]):
        group_of[low_names[i]] = group
