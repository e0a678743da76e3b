"""Kernels that add bands to stabbing groups and remove them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.group_arrays import BandLists, BandsByName, GroupTable, PointOrder
from vedette.operators.band_join.index.group_lists import count_below
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
    lows, highs, group_of, _ = bands
    _, _, _, _, starts, _, _ = table
    list_lows, low_names, list_highs, high_names = lists
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
    _, cover_lows, cover_highs, singles, starts, sizes, _ = table
    lows, low_names, highs, _ = lists
    start = starts[group]
    low, high = lows[start], highs[start]
    cover_lows[group] = np.nextafter(low, -np.inf) if low > -np.inf else np.nan
    cover_highs[group] = np.nextafter(high, np.inf) if high < np.inf else np.nan
    singles[group] = low_names[start] if sizes[group] == 1 else -1


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
    band_lows, band_highs, group_of, _ = bands
    _, _, _, _, starts, sizes, rooms = table
    points, groups = order
    lows, _, _, _ = lists
    for i in range(done, len(names)):
        if counts[N_GROUPS] + 2 > len(starts) or counts[USED] + 4 * CAP + PAD > len(lows):
            return i
        low, high = band_lows[names[i]], band_highs[names[i]]
        place = count_below(low, points, counts[N_GROUPS])
        if place == counts[N_GROUPS] or points[place] > high:
            _open_group(place, find_middle(low, high), 2, table, order, counts)
            counts[N_POINTS] += 1
        else:  # of the groups of this point the last that begins no higher
            point = points[place]
            while (
                place + 1 < counts[N_GROUPS] and points[place + 1] == point and lows[starts[groups[place + 1]]] <= low
            ):
                place += 1
        group = groups[place]
        if sizes[group] == CAP:
            upper = _halve(place, bands, table, order, lists, counts)
            _set_cover(upper, table, lists)
            if lows[starts[upper]] <= low:
                _set_cover(group, table, lists)
                group = upper
        if sizes[group] == rooms[group]:
            _move_list(group, table, lists, counts)
        _put(group, names[i], low, high, starts, sizes, lists)
        group_of[names[i]] = group
        _set_cover(group, table, lists)
    return len(names)


@kernel
def _open_group(
    place: int, point: float, room: int, table: GroupTable, order: PointOrder, counts: NDArray[np.int64]
) -> int:
    """An empty group, at this place in the order of points."""
    group_points, _, _, _, starts, sizes, rooms = table
    points, groups = order
    group = counts[N_GROUPS]
    for i in range(group, place, -1):
        points[i], groups[i] = points[i - 1], groups[i - 1]
    points[place], groups[place] = point, group
    group_points[group], starts[group], sizes[group], rooms[group] = point, counts[USED], 0, room
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
    _, band_highs, group_of, _ = bands
    group_points, _, _, _, starts, sizes, _ = table
    lows, low_names, highs, high_names = lists
    group = order[1][place]
    upper = _open_group(place + 1, group_points[group], CAP, table, order, counts)
    old, new, half = starts[group], starts[upper], CAP // 2
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
    sizes[group], sizes[upper] = half, CAP - half
    return upper


@kernel
def _move_list(group: int, table: GroupTable, lists: BandLists, counts: NDArray[np.int64]) -> None:
    """Move the lists of a group to where there is twice the room."""
    _, _, _, _, starts, sizes, rooms = table
    lows, low_names, highs, high_names = lists
    old, new = starts[group], counts[USED]
    for i in range(sizes[group]):
        lows[new + i], low_names[new + i] = lows[old + i], low_names[old + i]
        highs[new + i], high_names[new + i] = highs[old + i], high_names[old + i]
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
    lists: BandLists,
) -> None:
    """Insert a band into the lists of a group, where there is room."""
    lows, low_names, highs, high_names = lists
    start = starts[group]
    i = start + sizes[group]
    while i > start and lows[i - 1] > low:
        lows[i], low_names[i] = lows[i - 1], low_names[i - 1]
        i -= 1
    lows[i], low_names[i] = low, name
    i = start + sizes[group]
    while i > start and highs[i - 1] < high:
        highs[i], high_names[i] = highs[i - 1], high_names[i - 1]
        i -= 1
    highs[i], high_names[i] = high, name
    sizes[group] += 1


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
    _, _, group_of, is_witness = bands
    _, _, _, _, starts, sizes, _ = table
    lows, low_names, highs, high_names = lists
    for name in names:
        group = group_of[name]
        group_of[name] = -1
        if is_witness[name]:
            is_witness[name] = False
            counts[N_WITNESSES] -= 1
        start, end = starts[group], starts[group] + sizes[group]
        _take_out(name, start, end, lows, low_names)
        _take_out(name, start, end, highs, high_names)
        sizes[group] -= 1
        if sizes[group] == 0:
            _close_group(group, group_of, table, order, low_names, counts)
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
    group_points, cover_lows, cover_highs, singles, starts, sizes, rooms = table
    points, groups = order
    counts[N_GROUPS] -= 1
    last = counts[N_GROUPS]
    point = group_points[group]
    place = count_below(point, points, last + 1)
    is_shared = place < last and points[place + 1] == point
    counts[N_POINTS] -= not is_shared
    while groups[place] != group:
        place += 1
    for i in range(place, last):
        points[i], groups[i] = points[i + 1], groups[i + 1]
    if group == last:
        return
    place = count_below(group_points[last], points, last)
    while groups[place] != last:
        place += 1
    groups[place] = group
    group_points[group], singles[group] = group_points[last], singles[last]
    cover_lows[group], cover_highs[group] = cover_lows[last], cover_highs[last]
    starts[group], sizes[group], rooms[group] = starts[last], sizes[last], rooms[last]
    for i in range(starts[group], starts[group] + sizes[group]):
        group_of[low_names[i]] = group
