"""Many lists of integers that grow and shrink, in one array.

List `i` is `listed[starts[i]:starts[i] + sizes[i]]`. Lists that are built together have no gaps between them. A list
that grows moves to the end, where it gets room up to the next power of two, so its room follows from its size: 8 bytes
per list and 4 per entry, and up to twice as much for lists that have grown. Lists that have not changed may be closed:
then list `i` ends where the next one starts, `sizes` is empty, and a list takes 4 bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

# In `ends`: lists that start below this have no room; entries up to this are used; changes since lists were packed.
TIGHT, USED, CHANGES = 0, 1, 2
LEAST_ROOM = 4
LISTS_PER_CHANGE = 64  # lists that may be read per change, so that one change among many lists stays cheap
SLACK = 8  # readers may copy eight entries without checking whether there are so many
MAX_ENTRIES = 1 << 31


class GrowingLists(NamedTuple):
    """Lists that may grow, for kernels: list `l` is `listed[starts[l]:starts[l] + sizes[l]]`."""

    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    listed: NDArray[np.int32]
    ends: NDArray[np.int64]


def make_lists(
    sizes: NDArray[Any],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Lists of these sizes, still to fill: `starts`, `sizes`, `listed` and `ends`."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    n = int(starts[-1])
    ends = np.array([n + 1, n + 1, 0], np.int64)
    return starts[:-1].astype(np.int32), sizes.astype(np.int32), np.zeros(n + 1 + SLACK, np.int32), ends


def close_lists(starts: NDArray[np.int32], sizes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """`starts` and `sizes` of closed lists, for lists that have not changed."""
    return np.append(starts, starts[-1] + sizes[-1]).astype(np.int32), np.empty(0, np.int32)


def open_lists(starts: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """`starts` and `sizes` of open lists, for closed lists that will change."""
    return starts[:-1].copy(), np.diff(starts)


def pack_lists(
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    ends: NDArray[np.int64],
    n_changes: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """`starts`, `listed` and `ends` without the gaps that moved lists have left; the old ones if the gaps are small.

    Measuring the gaps reads all lists. If the number of changes is given, that is done only after many changes.
    """
    if n_changes is not None:
        ends[CHANGES] += n_changes
        if LISTS_PER_CHANGE * ends[CHANGES] < len(sizes):
            return starts, listed, ends
        ends[CHANGES] = 0
    n = int(sizes.sum(dtype=np.int64))
    if ends[USED] <= 3 * n + 1024:
        return starts, listed, ends
    new_starts, _, new_listed, new_ends = make_lists(sizes)
    _copy_lists(starts, sizes, listed, new_starts, new_listed)
    return new_starts, new_listed, new_ends


@kernel
def count_listed(number: int, starts: NDArray[np.int32], sizes: NDArray[np.int32]) -> Any:
    """The length of a list, closed or open."""
    return sizes[number] if len(sizes) > 0 else starts[number + 1] - starts[number]


@kernel
def append_to_list(
    number: int,
    value: int,
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    ends: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Append the value to the list; `listed`, or a larger copy of it."""
    size = sizes[number]
    if starts[number] < ends[TIGHT] or (size >= LEAST_ROOM and size & (size - 1) == 0):
        room = LEAST_ROOM
        while room <= size:
            room *= 2
        if ends[USED] + room + SLACK > len(listed):
            if ends[USED] + room + SLACK > MAX_ENTRIES:
                raise ValueError("lists would have more than 2^31 entries")
            larger = np.zeros(ends[USED] + room + SLACK + len(listed) // 2, np.int32)
            larger[: len(listed)] = listed
            listed = larger
        start = ends[USED]
        for i in range(size):
            listed[start + i] = listed[starts[number] + i]
        starts[number] = start
        ends[USED] += room
    listed[starts[number] + size] = value
    sizes[number] += 1
    return listed


@kernel
def remove_from_list(
    number: int, value: int, starts: NDArray[np.int32], sizes: NDArray[np.int32], listed: NDArray[np.int32]
) -> None:
    """Remove the value from the list once; the last value takes its place."""
    start, last = starts[number], starts[number] + sizes[number] - 1
    for place in range(start, last + 1):
        if listed[place] == value:
            listed[place] = listed[last]
            sizes[number] -= 1
            return


@kernel
def _copy_lists(
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    listed: NDArray[np.int32],
    new_starts: NDArray[np.int32],
    new_listed: NDArray[np.int32],
) -> None:
    for number in range(len(starts)):
        for i in range(sizes[number]):
            new_listed[new_starts[number] + i] = listed[starts[number] + i]
