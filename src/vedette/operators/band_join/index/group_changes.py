"""Bands coming into stabbing groups and leaving them, as kernels over the arrays of `groups`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.band_join.index.partition import find_middle

CAP = 1024  # bands in a group; points of more have several groups, so that changes move little
PAD = 8  # entries behind the lists, which are copied eight at a time

# Places in `counts`.
N_GROUPS, N_POINTS, N_WITNESSES, USED = 0, 1, 2, 3


@kernel
def list_bands(
    names: NDArray[np.int32],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    by_low: NDArray[np.int32],
    by_high: NDArray[np.int64],
    firsts: NDArray[np.int64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    group_of: NDArray[np.int32],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    singles: NDArray[np.int32],
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
        _set_cover(group, starts, sizes, cover_lows, cover_highs, singles, list_lows, low_names, list_highs)


@kernel
def _set_cover(
    group: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    singles: NDArray[np.int32],
    list_lows: NDArray[np.float64],
    low_names: NDArray[np.int32],
    list_highs: NDArray[np.float64],
) -> None:
    """Write what a look-up sees of a group first, after its lists have changed."""
    low, high = list_lows[starts[group]], list_highs[starts[group]]
    cover_lows[group] = np.nextafter(low, -np.inf) if low > -np.inf else np.nan
    cover_highs[group] = np.nextafter(high, np.inf) if high < np.inf else np.nan
    singles[group] = low_names[starts[group]] if sizes[group] == 1 else -1


@kernel
def add_to_groups(
    names: NDArray[np.int32],
    done: int,
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    group_of: NDArray[np.int32],
    points: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    singles: NDArray[np.int32],
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
            _set_cover(upper, starts, sizes, cover_lows, cover_highs, singles, list_lows, low_names, list_highs)
            if list_lows[starts[upper]] <= low:
                _set_cover(group, starts, sizes, cover_lows, cover_highs, singles, list_lows, low_names, list_highs)
                group = upper
        if sizes[group] == rooms[group]:
            _move_list(group, starts, sizes, rooms, list_lows, low_names, list_highs, high_names, counts)
        _put(group, names[i], low, high, starts, sizes, list_lows, low_names, list_highs, high_names)
        group_of[names[i]] = group
        _set_cover(group, starts, sizes, cover_lows, cover_highs, singles, list_lows, low_names, list_highs)
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
def remove_from_groups(
    names: NDArray[np.int32],
    group_of: NDArray[np.int32],
    is_witness: NDArray[np.bool_],
    points: NDArray[np.float64],
    cover_lows: NDArray[np.float64],
    cover_highs: NDArray[np.float64],
    singles: NDArray[np.int32],
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
                group, group_of, points, cover_lows, cover_highs, singles, starts, sizes, rooms, ordered_points,
                ordered, low_names, counts,
            )  # fmt: skip
        else:
            _set_cover(group, starts, sizes, cover_lows, cover_highs, singles, list_lows, low_names, list_highs)


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
    singles: NDArray[np.int32],
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
    starts[group], sizes[group], rooms[group], singles[group] = starts[last], sizes[last], rooms[last], singles[last]
    for i in range(starts[group], starts[group] + sizes[group]):
        group_of[low_names[i]] = group
