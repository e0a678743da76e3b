"""IBS-JS: join conditions first, each for all queries that have it; then selections by interval binary search trees.

What Lim et al. compare SJ-Join with (sections 3 and 7.1, table 1): query plan sharing, then predicate indexing. A new
row is joined with the whole window of the other stream under each join condition that there is. Every pair that joins
walks down a tree for each attribute of both streams, and counts tell which queries it fulfils. Bands, which each query
has for itself, are no condition to share: the value of the link is one more attribute of the pair. Costs a walk for
every pair of the window that joins, however few queries it fulfils. A change of the queries makes all trees anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.axes import Axis, build_axis, to_cells
from vedette.buffers import empty_int32
from vedette.columns import Column
from vedette.indexes.ibs_tree import IBS
from vedette.kernels import kernel
from vedette.language import Residual
from vedette.operators.join_group import JoinGroup
from vedette.operators.probes import DOUBLES, holds
from vedette.operators.window_join import WindowJoin
from vedette.operators.window_joins.link_ranges import doubles_of_keys, to_ranges
from vedette.operators.window_joins.refinement import WindowBounds, find_in_window, find_linked, find_selected
from vedette.operators.window_joins.row_cells import Attribute, RowCells
from vedette.operators.window_joins.standing_boxes import BoxesOf, StandingBoxes
from vedette.schema import Type

SHARED = 8  # so many join conditions of one link are evaluated one after the other; more are an attribute
PAIRS_AT_ONCE = 1 << 16  # that are joined
MATCHES_AT_ONCE = 1 << 21  # pairs and branches, about

Found = tuple[JoinGroup, NDArray[np.int32], list[NDArray[np.int32]]]


@dataclass(frozen=True)
class SharedJoin:
    """A join condition, as a range of a link's values, and the branches that have it; or, with an axis, one within."""

    group: JoinGroup
    branches: NDArray[np.int32]
    low: int
    high: int
    link_axis: Axis | None  # of the values of the link, the last axis of the index
    attributes: list[list[int]]  # by stream: which are axes of the index
    index: IBS  # of places in `branches`
    bounds: list[WindowBounds]  # by stream of the row that arrives

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + sum(each.nbytes for each in self.bounds)


class IBSJS:
    """Trees for each join condition, and the cells of the rows of both windows."""

    def __init__(self, boxes_of: BoxesOf) -> None:
        self._boxes_of = boxes_of
        self._joins: list[SharedJoin] | None = None
        self._cells: list[RowCells] = []
        self._residuals: list[list[Residual]] = []

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self._cells, *(self._joins or [])]
        return sum(each.nbytes for each in parts)

    def follow(self) -> None:
        self._joins = None

    def find(
        self, join: WindowJoin, firsts: Sequence[int], limits: Sequence[Sequence[NDArray[np.int64]]]
    ) -> Iterator[Found]:
        if self._joins is None:
            self._joins = self._build(join)
        for cells in self._cells:
            cells.update()
        for origin, other in ((0, 1), (1, 0)):
            if firsts[origin] < join.streams[origin].end and len(join.streams[other]):
                for shared in self._joins:
                    before = limits[origin][other]
                    for arrivals, rows in _join_rows(join, shared, origin, firsts[origin], before):
                        yield from self._match(join, shared, origin, firsts[origin], before, arrivals, rows)

    def _match(
        self,
        join: WindowJoin,
        shared: SharedJoin,
        origin: int,
        first: int,
        limits: NDArray[np.int64],
        arrivals: NDArray[np.int32],
        rows: NDArray[np.int32],
    ) -> Iterator[Found]:
        """The branches that pairs fulfil, in slices of pairs."""
        start, n_next = 0, max(1, MATCHES_AT_ONCE // len(shared.branches))
        while start < len(rows):
            end = min(start + n_next, len(rows))
            pair = _by_stream(origin, arrivals[start:end] + np.int32(first), rows[start:end])
            matches = shared.index.match(self._locate(join, shared, pair))
            which = matches.rows
            found = matches.positions, arrivals[start:end][which], rows[start:end][which]
            yield from self._refine(join, shared, origin, first, limits, *found)
            fitting = MATCHES_AT_ONCE // 2 * (end - start) // max(1, len(which))
            start, n_next = end, max(1, min(fitting, 16 * n_next))

    def _refine(
        self,
        join: WindowJoin,
        shared: SharedJoin,
        origin: int,
        first: int,
        limits: NDArray[np.int64],
        places: NDArray[np.int32],
        arrivals: NDArray[np.int32],
        rows: NDArray[np.int32],
    ) -> Iterator[Found]:
        """The branches at some places of the shared join, as far as rows fulfil what no tree has told."""
        group, bounds = shared.group, shared.bounds[origin]
        assert group.branches is not None
        if not bounds.are_one:
            own, other = join.streams[origin], join.streams[1 - origin]
            times = own.times.values[first - own.first :], other.times.values
            kept = find_in_window(places, arrivals, rows, other.first, limits, *times, *bounds.arrays)
            places, arrivals, rows = places[kept], arrivals[kept], rows[kept]
        branches = shared.branches[places]
        pair = _by_stream(origin, arrivals + np.int32(first), rows)
        if shared.link_axis is not None:
            kept = find_linked(join, group, branches, pair)
            branches, pair = branches[kept], [each[kept] for each in pair]
        for stream, residuals in enumerate(self._residuals):
            if residuals:
                selections = group.branches.selections[stream][branches]
                keep, failed = find_selected(residuals, join.streams[stream], selections, pair[stream])
                join.n_failed += failed
                branches, pair = branches[keep], [each[keep] for each in pair]
        if len(branches):
            yield group, branches, pair

    def _locate(self, join: WindowJoin, shared: SharedJoin, pair: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        """The cells of pairs on the axes of a join's trees."""
        cells = np.zeros((len(shared.index.n_cells), len(pair[0])), np.int32)
        places = [rows - np.int32(stream.first) for rows, stream in zip(pair, join.streams, strict=True)]
        axis = 0
        for stream, chosen in enumerate(shared.attributes):
            for attribute in chosen:
                np.take(self._cells[stream][attribute], places[stream], out=cells[axis], mode="clip")
                axis += 1
        if shared.link_axis is not None:
            first, second = shared.group.ports[0]
            keys = first.keys.keys.values[places[first.stream]], second.keys.keys.values[places[second.stream]]
            cells[axis] = shared.link_axis.locate(_link_values(shared.group.kinds[0], *keys))
        return cells

    def _build(self, join: WindowJoin) -> list[SharedJoin]:
        groups = [group for group in join.groups.values() if group.branches is not None and not group.is_gone.all()]
        boxes, self._cells, self._residuals = [], [], []
        for number, stream in enumerate(join.streams):
            told = self._boxes_of(number)
            boxes.append(StandingBoxes.of(told, _count_selections(groups, number)))
            attributes = [Attribute(axis, name) for name, axis in boxes[-1].axes.items()]
            self._cells.append(RowCells(attributes, join.time_zone, stream))
            self._residuals.append(told.residuals)
        return [shared for group in groups for shared in _share(group, boxes)]


def _share(group: JoinGroup, boxes: Sequence[StandingBoxes]) -> Iterator[SharedJoin]:
    """The joins of a group: one for each join condition, or for a link of many conditions one for all."""
    assert group.branches is not None
    there = [each.is_there[own] for each, own in zip(boxes, group.branches.selections, strict=True)]
    branches = np.flatnonzero(~group.is_gone & there[0] & there[1]).astype(np.int32)
    if not len(branches):
        return
    conditions = np.stack([group.branches.lows[0][branches], group.branches.highs[0][branches]])
    distinct, number = np.unique(conditions, axis=1, return_inverse=True)
    if distinct.shape[1] > SHARED:
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
    boxes: Sequence[StandingBoxes],
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


def _count_selections(groups: Sequence[JoinGroup], stream: int) -> int:
    return max(
        (int(each.branches.selections[stream].max()) + 1 for each in groups if each.branches is not None), default=0
    )


def _by_stream(origin: int, own: NDArray[np.int32], other: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    return [own, other] if origin == 0 else [other, own]


def _link_values(kind: int, firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> Column:
    """Differences; one beyond 64 bits is none."""
    if kind == DOUBLES:
        with np.errstate(invalid="ignore", over="ignore"):
            return Column(doubles_of_keys(firsts) - doubles_of_keys(seconds))
    differences = firsts - seconds
    return Column(differences, (firsts ^ seconds) & (firsts ^ differences) >= 0)


def _join_rows(
    join: WindowJoin, shared: SharedJoin, origin: int, first: int, limits: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """New rows, counted from `first` on, with each row of the other window that they join with, some at a time."""
    own, other = join.streams[origin], join.streams[1 - origin]
    ports = {port.stream: port for port in shared.group.ports[0]}
    bounds = shared.bounds[origin]
    room = max(PAIRS_AT_ONCE, len(other))
    arrival, n_arrivals = 0, own.end - first
    while arrival < n_arrivals:
        arrivals, rows = empty_int32(room), empty_int32(room)
        arrival, n = join_rows(
            shared.group.kinds[0],
            bool(shared.group.signature.edges[0].equalities),
            shared.group.ports[0][0].stream == origin,
            shared.low,
            shared.high,
            ports[origin].keys.codes.values[first - own.first :],
            ports[origin].keys.keys.values[first - own.first :],
            ports[1 - origin].keys.codes.values,
            ports[1 - origin].keys.keys.values,
            own.times.values[first - own.first :],
            other.times.values,
            other.first,
            limits,
            bounds.most.max(),
            bounds.longest.max(),
            bounds.own.max(),
            arrival,
            arrivals,
            rows,
        )
        yield arrivals[:n], rows[:n]


@kernel
def join_rows(
    kind: int,
    has_codes: bool,
    is_first: bool,
    low: int,
    high: int,
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    other_codes: NDArray[np.int32],
    other_keys: NDArray[np.int64],
    times: NDArray[np.int64],
    other_times: NDArray[np.int64],
    shift: int,
    limits: NDArray[np.int64],
    most: int,
    longest: int,
    own: int,
    arrival: int,
    arrivals: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> tuple[int, int]:
    """Write what joins from an arrival on while there is room for a window; the arrival it stopped at, and how many."""
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
            n += holds(kind, first, second, low, high)
    return len(codes), n
