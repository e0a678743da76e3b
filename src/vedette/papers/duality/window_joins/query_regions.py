"""Continuous joins as regions of the space of pairs: selections of both streams, join conditions, windows.

Lim et al., section 6. The axes are the attributes of the first stream, those of the second stream, and the windows: by
how much the first row is later than the second one, and the number of rows of each stream since its row, inclusive. So
one index holds queries with windows of different sizes and kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Axis, Cells, build_axis, to_cells
from vedette.data.boxes import CLOSED, UNBOUNDED, Ranges
from vedette.data.schema import Type
from vedette.language import Link
from vedette.language.evaluation import evaluate_rows
from vedette.language.links import DIFFERENCE
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.probes import SIGN
from vedette.operators.window_join.stream_selections import StreamBoxes
from vedette.papers.duality.window_joins.join_pieces import choose_cuts, decompose
from vedette.papers.duality.window_joins.refinement import WindowBounds
from vedette.papers.duality.window_joins.row_cells import Attribute
from vedette.papers.duality.window_joins.selection_boxes import SelectionBoxes, active_groups, find_branches

LAG, AGES = "lag", ("age of the first row", "age of the second row")  # the axes of windows, in this order
WINDOWS = (LAG, *AGES)


@dataclass(frozen=True)
class QueryRegions:
    """Region `r` is a piece of the branch `branches[r]` of a group, from `firsts[axis, r]` to `lasts[axis, r]`.

    The axes are `attributes`, stream after stream, followed by those of the windows that are used.
    """

    groups: list[JoinGroup]
    group_of: NDArray[np.int32]  # by region
    branches: NDArray[np.int32]
    attributes: list[list[Attribute]]  # by stream
    windows: dict[str, Axis]
    firsts: Cells  # (axes, regions)
    lasts: Cells
    bounds: list[WindowBounds]  # by stream of the row that arrives, of each region

    def __len__(self) -> int:
        return len(self.branches)

    @property
    def n_cells(self) -> list[int]:
        axes = [each.axis for many in self.attributes for each in many] + list(self.windows.values())
        return [axis.n_cells for axis in axes]

    @property
    def nbytes(self) -> int:
        own: list[Any] = [self.group_of, self.branches, self.firsts, self.lasts, *self.bounds]
        return sum(each.nbytes for each in own)

    def axes_of(self, stream: int) -> slice:
        """The axes of a stream's attributes."""
        start = len(self.attributes[0]) if stream else 0
        return slice(start, start + len(self.attributes[stream]))


@dataclass(frozen=True)
class _Pieces:
    """The pieces of a group's branches, and the ranges of each: by link and side, or by axis of windows."""

    group: JoinGroup
    branches: NDArray[np.int32]
    ranges: dict[Any, Ranges]


def find_regions(join: WindowJoin, selected: Sequence[StreamBoxes], n_pieces: int) -> QueryRegions:
    """The regions of all active branches, in `n_pieces` each."""
    groups = active_groups(join)
    boxes = list(map(SelectionBoxes.of, selected))
    pieces = [_find_pieces(join, group, boxes, n_pieces) for group in groups]
    asked: dict[Any, list[Ranges]] = {}
    for each in pieces:
        for key, ranges in each.ranges.items():
            asked.setdefault(key, []).append(ranges)
    axes = {key: build_axis(_type_of(key, join), many) for key, many in asked.items()}
    sides = [[key for key in axes if key not in WINDOWS and _stream_of(key, join) == stream] for stream in range(2)]
    windows = {key: axes[key] for key in WINDOWS if key in axes}
    keys = [*sides[0], *sides[1], *windows]
    firsts: list[Cells] = []
    lasts: list[Cells] = []
    for each in pieces:
        assert each.group.branches is not None
        found = {key: _to_cells(axes[key], each.ranges.get(key), len(each.branches)) for key in keys}
        for ends, place, of_boxes in ((firsts, 0, [b.firsts for b in boxes]), (lasts, 1, [b.lasts for b in boxes])):
            rows: list[Any] = []
            for stream, own in enumerate(of_boxes):
                rows += [own[:, each.group.branches.selections[stream][each.branches]]]
                rows += [found[key][place][None] for key in sides[stream]]
            ends.append(np.concatenate([*rows, *(found[key][place][None] for key in windows)]))
    return QueryRegions(
        groups,
        np.repeat(np.arange(len(groups), dtype=np.int32), [len(each.branches) for each in pieces]),
        np.concatenate([each.branches for each in pieces]),
        [
            [
                *(Attribute(axis, name) for name, axis in boxes[stream].axes.items()),
                *(_attribute_of(key, axes[key]) for key in sides[stream]),
            ]
            for stream in range(2)
        ],
        windows,
        np.concatenate(firsts, axis=1),
        np.concatenate(lasts, axis=1),
        [
            WindowBounds.concat([WindowBounds.of(each.group, origin, each.branches) for each in pieces])
            for origin in range(2)
        ],
    )


def _find_pieces(join: WindowJoin, group: JoinGroup, boxes: Sequence[SelectionBoxes], n_pieces: int) -> _Pieces:
    """The pieces of a group. A join condition is cut along one link: an equality, if there is one."""
    assert group.branches is not None
    branches = find_branches(group, boxes)
    edge = group.signature.edges[0]
    link = edge.equalities[0] if edge.equalities else edge.link
    ranges: dict[Any, Ranges] = {}
    if link is not None:
        zeros = np.zeros(len(branches), np.int64)
        lows, highs = group.branches.lows[0][branches], group.branches.highs[0][branches]
        kind, lows, highs = (SIGN, zeros, zeros) if edge.equalities else (group.kinds[0], lows, highs)
        stream = join.streams[join.names.index(link.streams[0])]
        # One part is enough: the cuts affect the cost of a join, not its answer.
        values, _ = next(evaluate_rows(link.sides[0], join.time_zone, stream.read(), len(stream)))
        cuts = choose_cuts(values, n_pieces)
        ranges[link, 0], ranges[link, 1] = decompose(kind, lows, highs, cuts)
        branches = np.tile(branches, len(cuts) + 1)
    first, second = (windows[branches] for windows in group.windows)
    first_counts, second_counts = group.signature.counts
    if not (first_counts and second_counts):
        ranges[LAG] = Ranges(-first, second, _ends(first_counts, first), _ends(second_counts, second))
    for stream_, counts in enumerate(group.signature.counts):
        if counts:
            most = group.branches.units[stream_][branches]
            ranges[AGES[stream_]] = Ranges(np.ones_like(most), most, _ends(False, most), _ends(False, most))
    return _Pieces(group, branches, ranges)


def _to_cells(axis: Axis, ranges: Ranges | None, n: int) -> tuple[Cells, Cells]:
    if ranges is None:
        return np.zeros(n, np.int32), np.full(n, axis.n_cells - 1, np.int32)
    return to_cells(axis, ranges)


def _ends(is_unbounded: bool, values: NDArray[Any]) -> NDArray[np.int8]:
    return np.full(len(values), UNBOUNDED if is_unbounded else CLOSED, np.int8)


def _type_of(key: Any, join: WindowJoin) -> Type:
    if key in WINDOWS:
        return Type("double" if key == LAG and join.time_dtype == np.float64 else "bigint")
    link: Link = key[0]
    return link.type


def _stream_of(key: Any, join: WindowJoin) -> int:
    link, side = key
    return join.names.index(link.streams[side])


def _attribute_of(key: Any, axis: Axis) -> Attribute:
    link, side = key
    return Attribute(axis, link.sides[side], nan_is_least=side == 1 and link.kind == DIFFERENCE)
