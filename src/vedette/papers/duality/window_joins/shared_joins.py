"""IBS-JS: join conditions first, each for all queries that have it; then selections by interval binary search trees.

Lim et al. compare SJ-Join with it (sections 3 and 7.1, table 1): query plan sharing, then predicate indexing. A new row
is joined with the whole window of the other stream under each join condition. Every joined pair walks down a tree for
each attribute of both streams, and counting finds the queries that it matches. Bands differ from query to query and
cannot be shared: there the value of the link is one more attribute of the pair. Costs a walk for every joined pair of
the window, even if it matches few queries. A change of the queries rebuilds all trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.errors import count
from vedette.language import Residual
from vedette.operators.window_join.branches import Branches, Edge
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.probes import DOUBLES
from vedette.operators.window_join.stream_selections import BoxesOf
from vedette.papers.duality.window_joins.join_conditions import SharedJoin, are_shared, join_window, share
from vedette.papers.duality.window_joins.link_ranges import doubles_of_keys
from vedette.papers.duality.window_joins.refinement import KeptRows, NewRows, find_in_window, find_linked, keep_selected
from vedette.papers.duality.window_joins.row_cells import Attribute, RowCells
from vedette.papers.duality.window_joins.selection_boxes import SelectionBoxes, active_groups

MATCHES_AT_ONCE = 1 << 21  # about this many pairs and branches

Found = tuple[JoinGroup, NDArray[np.int32], list[NDArray[np.int32]]]


class IBSJS:
    """Trees for each join condition, and the cells of the rows of both windows."""

    summary = (
        "a new row is joined with the whole other window, once for each join condition; every pair that joins walks "
        "down an interval binary search tree for each attribute that branches with that condition select by"
    )

    @staticmethod
    def describe(edge: Edge, branches: Branches) -> str:
        """What becomes of a join condition, in words."""
        names = [link.name.replace(" with ", " = ") for link in edge.equalities]
        names += [] if edge.link is None else [edge.link.name]
        distinct = np.unique(np.stack([branches.lows[0], branches.highs[0]]), axis=1).shape[1]
        shared = count(distinct, "join condition")
        if not are_shared(distinct, edge.link):
            shared += f", too many to share: the value of {names.pop()} is one more attribute"
        return f"{', '.join(names)}: {shared}" if names else shared

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
                    for arrivals, rows in join_window(join, shared, origin, firsts[origin], before):
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
        """The branches that pairs match, in slices of pairs."""
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
        """The branches at some positions of the shared join whose remaining conditions are true."""
        group, bounds = shared.group, shared.bounds[origin]
        if not bounds.are_one:
            own, other = join.streams[origin], join.streams[1 - origin]
            new = NewRows(own.times.values[first - own.first :], limits)
            in_window = KeptRows(other.times.values, other.first)
            kept = find_in_window(places, arrivals, rows, new, in_window, bounds.arrays)
            places, arrivals, rows = places[kept], arrivals[kept], rows[kept]
        branches = shared.branches[places]
        pair = _by_stream(origin, arrivals + np.int32(first), rows)
        if shared.link_axis is not None:
            kept = find_linked(join, group, branches, pair)
            branches, pair = branches[kept], [each[kept] for each in pair]
        branches, pair = keep_selected(join, group, self._residuals, branches, pair)
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
        groups = active_groups(join)
        boxes, self._cells, self._residuals = [], [], []
        for number, stream in enumerate(join.streams):
            selected = self._boxes_of(number)
            boxes.append(SelectionBoxes.of(selected))
            attributes = [Attribute(axis, name) for name, axis in boxes[-1].axes.items()]
            self._cells.append(RowCells(attributes, join.time_zone, stream))
            self._residuals.append(selected.residuals)
        return [shared for group in groups for shared in share(group, boxes)]


def _by_stream(origin: int, own: NDArray[np.int32], other: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    return [own, other] if origin == 0 else [other, own]


def _link_values(kind: int, firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> Column:
    """Differences; invalid where they exceed 64 bits."""
    if kind == DOUBLES:
        with np.errstate(invalid="ignore", over="ignore"):
            return Column(doubles_of_keys(firsts) - doubles_of_keys(seconds))
    differences = firsts - seconds
    return Column(differences, (firsts ^ seconds) & (firsts ^ differences) >= 0)
