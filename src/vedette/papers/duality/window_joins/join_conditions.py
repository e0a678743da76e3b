"""Join conditions that queries share, each with the trees of its queries (see `shared_joins`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Axis, build_axis, to_cells
from vedette.data.schema import Type
from vedette.language import Link
from vedette.language.links import SIGN
from vedette.native.buffers import empty_int32
from vedette.native.kernels import kernel
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.probes import DOUBLES, RowKeyArrays, is_in_range
from vedette.papers.duality.ibs_tree import IBS
from vedette.papers.duality.window_joins.link_ranges import to_ranges
from vedette.papers.duality.window_joins.refinement import KeptRows, NewRows, WindowBounds
from vedette.papers.duality.window_joins.selection_boxes import SelectionBoxes, find_branches

SHARED = 8  # up to this many join conditions of one link are evaluated one by one; more become an attribute
PAIRS_AT_ONCE = 1 << 16  # that are joined


@dataclass(frozen=True)
class SharedJoin:
    """A join condition, as a range of a link's values, and its branches; or, with an axis, conditions within it."""

    group: JoinGroup
    branches: NDArray[np.int32]
    low: int
    high: int
    link_axis: Axis | None  # of the values of the link, the last axis of the index
    attributes: list[list[int]]  # by stream: which are axes of the index
    index: IBS  # of positions in `branches`
    bounds: list[WindowBounds]  # by stream of the new row

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + sum(each.nbytes for each in self.bounds)


def are_shared(n_conditions: int, link: Link | None) -> bool:
    """Whether the join conditions of a link are evaluated one by one; conditions on signs are always few."""
    return link is None or link.kind == SIGN or n_conditions <= SHARED


def share(group: JoinGroup, boxes: Sequence[SelectionBoxes]) -> Iterator[SharedJoin]:
    """The joins of a group: one per join condition, or one for all conditions of a link if these are many."""
    assert group.branches is not None
    branches = find_branches(group, boxes)
    if not len(branches):
        return
    conditions = np.stack([group.branches.lows[0][branches], group.branches.highs[0][branches]])
    distinct, number = np.unique(conditions, axis=1, return_inverse=True)
    if not are_shared(distinct.shape[1], group.signature.edges[0].link):
        low, high = int(distinct[0].min()), int(distinct[1].max())
        yield _plant(group, branches, low, high, boxes, is_attribute=True)
        return
    for place, (low, high) in enumerate(distinct.T.tolist()):
        yield _plant(group, branches[number.reshape(-1) == place], low, high, boxes, is_attribute=False)


def _plant(
    group: JoinGroup,
    branches: NDArray[np.int32],
    low: int,
    high: int,
    boxes: Sequence[SelectionBoxes],
    *,
    is_attribute: bool,
) -> SharedJoin:
    """The trees of branches that share a join."""
    assert group.branches is not None
    attributes, n_cells = [], []
    none = np.empty((0, len(branches)), np.int32)
    ranges = [(none, none)]
    for stream, each in enumerate(boxes):
        own = group.branches.selections[stream][branches]
        firsts, lasts = each.firsts[:, own], each.lasts[:, own]
        sizes = np.array([axis.n_cells for axis in each.axes.values()], np.int64).reshape(-1, 1)
        used = np.flatnonzero(((firsts > 0) | (lasts < sizes - 1)).any(axis=1))
        ranges.append((firsts[used], lasts[used]))
        attributes.append(used.tolist())
        n_cells += sizes[used, 0].tolist()
    link_axis = None
    if is_attribute:
        lows, highs = group.branches.lows[0][branches], group.branches.highs[0][branches]
        is_double = group.kinds[0] == DOUBLES
        link_ranges = to_ranges(lows, highs, is_double=is_double)
        link_axis = build_axis(Type("double" if is_double else "bigint"), [link_ranges])
        firsts, lasts = to_cells(link_axis, link_ranges)
        ranges.append((firsts[None], lasts[None]))
        n_cells.append(link_axis.n_cells)
    if not n_cells:  # a tree without a node, by which all branches are met
        ranges.append((np.zeros((1, len(branches)), np.int32),) * 2)
        n_cells.append(1)
    index = IBS.build(
        np.concatenate([firsts for firsts, _ in ranges]),
        np.concatenate([lasts for _, lasts in ranges]),
        np.arange(len(branches), dtype=np.int32),
        n_cells,
    )
    bounds = [WindowBounds.of(group, origin, branches) for origin in range(2)]
    return SharedJoin(group, branches, low, high, link_axis, attributes, index, bounds)


def join_window(
    join: WindowJoin, shared: SharedJoin, origin: int, first: int, limits: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """New rows, numbered from `first` on, with each row of the other window that they join with, in batches."""
    own, other = join.streams[origin], join.streams[1 - origin]
    ports = {port.stream: port for port in shared.group.ports[0]}
    bounds = shared.bounds[origin].arrays
    window = Window(bounds.most.max(), bounds.longest.max(), bounds.own.max())
    is_first = shared.group.ports[0][0].stream == origin
    has_codes = bool(shared.group.signature.edges[0].equalities)
    condition = Condition(shared.group.kinds[0], has_codes, is_first, shared.low, shared.high)
    codes, keys = ports[origin].keys.arrays
    own_keys = RowKeyArrays(codes[first - own.first :], keys[first - own.first :])
    new, kept = NewRows(own.times.values[first - own.first :], limits), KeptRows(other.times.values, other.first)
    room = max(PAIRS_AT_ONCE, len(other))
    arrival, n_arrivals = 0, own.end - first
    while arrival < n_arrivals:
        arrivals, rows = empty_int32(room), empty_int32(room)
        other_keys = ports[1 - origin].keys.arrays
        arrival, n = join_rows(condition, own_keys, other_keys, new, kept, window, arrival, arrivals, rows)
        yield arrivals[:n], rows[:n]


class Condition(NamedTuple):
    """The condition on two rows: equal codes if there are codes, and a link in a range."""

    kind: int
    has_codes: bool
    is_first: bool  # the new row has the first side of the link
    low: int
    high: int


class Window(NamedTuple):
    """The largest window of the branches that share a join."""

    most: np.int64
    longest: Any
    own: Any


@kernel
def join_rows(
    condition: Condition,
    own_rows: RowKeyArrays,
    other_rows: RowKeyArrays,
    new: NewRows,
    kept: KeptRows,
    window: Window,
    arrival: int,
    arrivals: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> tuple[int, int]:
    """Write joined pairs from a new row on while there is room for a window; the row it stopped at, and how many."""
    kind, has_codes, is_first, low, high = condition
    codes, keys = own_rows
    other_codes, other_keys = other_rows
    times, limits = new
    other_times, shift = kept
    most, longest, own = window
    n = 0
    for place in range(arrival, len(codes)):
        limit = limits[place]
        least = max(limit - most, shift)
        if len(rows) - n < limit - least:
            return place, n
        code, key, time = codes[place], keys[place], times[place]
        if code < 0:
            continue
        for row in range(least, limit):
            at = row - shift
            other = other_codes[at]
            if other < 0 or (has_codes and other != code) or not -own <= time - other_times[at] <= longest:
                continue
            first, second = (key, other_keys[at]) if is_first else (other_keys[at], key)
            arrivals[n], rows[n] = place, row
            n += is_in_range(kind, first, second, low, high)
    return len(codes), n
