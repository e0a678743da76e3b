"""The plan of join queries: selections of each stream, and links that connect rows of two streams.

Each disjunct of a query in disjunctive normal form is a *branch*: a *selection* of each stream, links between streams,
and conditions that are checked last. Branches with the same links form a group, which is probed together. Between two
streams, all equalities become one code, and one more link, preferably a difference, is the order within a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import OPEN, UNBOUNDED, BoxBlock, Ranges
from vedette.language import CompiledTexts, Residual
from vedette.language.links import DIFFERENCE, DISTANCE, SIGN, Link
from vedette.native.ordering import GREATEST, LEAST, keys_of_doubles
from vedette.operators.window_join.branches import EVERY_ROW, Branches, Edge, Signature


@dataclass(frozen=True)
class Windows:
    """The windows of queries by stream: (streams, queries)."""

    counts: NDArray[np.bool_]
    is_duration: NDArray[np.bool_]
    units: NDArray[np.int64]  # rows, microseconds, or the whole part of a number
    numbers: NDArray[np.float64]

    def take(self, queries: NDArray[Any]) -> Windows:
        return Windows(
            self.counts[:, queries], self.is_duration[:, queries], self.units[:, queries], self.numbers[:, queries]
        )


@dataclass
class Selections:
    """The selections of one stream: their boxes and residuals. Selections are numbered from 0."""

    n: int
    blocks: list[BoxBlock]
    residuals: list[Residual]


@dataclass(frozen=True)
class JoinPlan:
    selections: list[Selections]
    groups: dict[Signature, list[Branches]]
    residuals: list[Residual]  # of several streams, by query


def plan_joins(compiled: CompiledTexts, streams: Sequence[str], windows: Windows) -> JoinPlan:
    """Plan compiled texts over a schema of several streams."""
    selections = [Selections(0, [], []) for _ in streams]
    alone, together = _split_residuals(compiled.residuals, streams)
    groups: dict[Signature, list[Branches]] = {}
    for block in (_copy_equal_ranges(block, compiled.links) for block in compiled.blocks):
        entries, values = _split_ranges(block, compiled.links)
        queries = block.queries[entries]
        chosen = np.stack(
            [
                _select(selections[number], _own_ranges(block, stream, compiled.links), entries, queries, alone[number])
                for number, stream in enumerate(streams)
            ]
        )
        for same, equal in _group_alike(queries, values, windows):
            edges, linked, conditions = _choose_edges([link for link, *_ in values], equal, streams)
            of_query = windows.take(queries[same])
            signature = Signature(
                edges,
                tuple(values[place][0] for place in conditions),
                tuple(map(bool, of_query.counts[:, 0])),
                tuple(map(bool, of_query.is_duration[:, 0])),
            )
            groups.setdefault(signature, []).append(
                Branches(
                    queries[same].astype(np.int32),
                    chosen[:, same],
                    _stack([_ends(values, place, same, 1, LEAST) for place in linked], len(same)),
                    _stack([_ends(values, place, same, 2, GREATEST) for place in linked], len(same)),
                    _stack([values[place][1][same] for place in conditions], len(same)),
                    _stack([values[place][2][same] for place in conditions], len(same)),
                    of_query.units,
                    of_query.numbers,
                )
            )
    return JoinPlan(selections, groups, together)


def _ends(values: list[Any], place: int | None, same: NDArray[Any], side: int, none: int) -> NDArray[np.int64]:
    return np.full(len(same), none, np.int64) if place is None else values[place][side][same]


def _stack(rows: list[NDArray[np.int64]], n: int) -> NDArray[np.int64]:
    return np.stack(rows) if rows else np.empty((0, n), np.int64)


def _split_residuals(
    residuals: Sequence[Residual], streams: Sequence[str]
) -> tuple[list[list[Residual]], list[Residual]]:
    """Residuals that use one stream, by stream, and the others."""
    alone: list[list[Residual]] = [[] for _ in streams]
    together = []
    for residual in residuals:
        about = {name.partition(".")[0] for name in residual.fields}
        if len(about) == 1:
            alone[list(streams).index(about.pop())].append(residual)
        else:
            together.append(residual)
    return alone, together


# Links.


def _copy_equal_ranges(block: BoxBlock, links: dict[str, Link]) -> BoxBlock:
    """The block with the ranges of a field copied to the fields that are equal to it: fewer rows are selected."""
    ranges = dict(block.ranges)
    equal = [
        [side.name for side in links[name].sides]
        for name, each in block.ranges.items()
        if name in links and _is_equality(links[name], each)
    ]
    for _ in equal:  # the length of the longest chain
        for first, second in equal:
            for said, unsaid in ((first, second), (second, first)):
                if isinstance(ranges.get(said), Ranges) and unsaid not in ranges:
                    ranges[unsaid] = ranges[said]
    return BoxBlock(block.queries, ranges)


def _is_equality(link: Link, ranges: Any) -> bool:
    """Whether all branches of a block equate two plain fields."""
    is_plain = link.kind == SIGN and all(side.op == "field" for side in link.sides)
    return is_plain and isinstance(ranges, Ranges) and not ranges.lows.any() and not ranges.highs.any()


def _split_ranges(
    block: BoxBlock, links: dict[str, Link]
) -> tuple[NDArray[np.int64], list[tuple[Link, NDArray[np.int64], NDArray[np.int64]]]]:
    """The branches of a block, as places in it, and by link the range of keys of its value.

    A distance of at least some value is a difference above it, or one below its negative: two branches.
    """
    entries = np.arange(len(block), dtype=np.int64)
    values: list[tuple[Link, NDArray[np.int64], NDArray[np.int64]]] = []
    for name, ranges in block.ranges.items():
        if name not in links:
            continue
        link = links[name]
        assert isinstance(ranges, Ranges)
        lows, highs = (ends[entries] for ends in _to_keys(ranges, link))
        if link.kind == DISTANCE:
            link = link.difference
            lows, highs = np.maximum(lows, 0), np.maximum(highs, -1)  # no distance is below 0
            below = (~highs, ~lows) if link.type.name == "double" else (-highs, -lows)  # the keys of minus the values
            is_apart = np.flatnonzero(lows > 0)
            again = np.concatenate([np.arange(len(entries)), is_apart])
            entries = entries[again]
            values = [(other, a[again], b[again]) for other, a, b in values]
            lows = np.concatenate([np.where(lows > 0, lows, below[0]), below[0][is_apart]])
            highs = np.concatenate([highs, below[1][is_apart]])
        values.append((link, lows, highs))
    return entries, values


def _to_keys(ranges: Ranges, link: Link) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The closed range of keys of the link's values."""
    lows, highs = ranges.lows, ranges.highs
    if link.kind != SIGN and link.type.name == "double":
        lows, highs = keys_of_doubles(lows.astype(np.float64)), keys_of_doubles(highs.astype(np.float64))
    lows, highs = lows.astype(np.int64), highs.astype(np.int64)
    is_empty = (ranges.low_ends == OPEN) & (lows == GREATEST) | (ranges.high_ends == OPEN) & (highs == LEAST)
    lows, highs = lows + (ranges.low_ends == OPEN), highs - (ranges.high_ends == OPEN)
    lows = np.where(ranges.low_ends == UNBOUNDED, LEAST, lows)
    highs = np.where(ranges.high_ends == UNBOUNDED, GREATEST, highs)
    return np.where(is_empty, GREATEST, lows), np.where(is_empty, LEAST, highs)


def _group_alike(
    queries: NDArray[Any], values: list[Any], windows: Windows
) -> list[tuple[NDArray[Any], tuple[bool, ...]]]:
    """Branches grouped by the kinds of their windows and by the links that are equalities; and these links."""
    marks = [(link.kind == SIGN) & (lows == 0) & (highs == 0) for link, lows, highs in values]
    kinds = [*windows.counts[:, queries], *windows.is_duration[:, queries]]
    if not len(queries):
        return []
    table = np.stack([*marks, *kinds])
    patterns, number = np.unique(table, axis=1, return_inverse=True)
    number = number.reshape(-1)
    return [
        (np.flatnonzero(number == place), tuple(map(bool, pattern[: len(marks)])))
        for place, pattern in enumerate(patterns.T)
    ]


def _choose_edges(
    links: list[Link], equal: tuple[bool, ...], streams: Sequence[str]
) -> tuple[tuple[Edge, ...], list[int | None], list[int]]:
    """A tree over the streams with the strongest links first: the link of each edge, and the remaining links."""
    by_pair: dict[frozenset[str], list[int]] = {}
    for place, link in enumerate(links):
        by_pair.setdefault(frozenset(link.streams), []).append(place)

    def weakness(places: list[int]) -> int:
        if any(equal[place] for place in places):
            return 0
        return 1 if any(links[place].kind == DIFFERENCE for place in places) else 2

    root = {stream: stream for stream in streams}

    def find(stream: str) -> str:
        return stream if root[stream] == stream else find(root[stream])

    edges: list[Edge] = []
    linked: list[int | None] = []
    used: set[int] = set()
    for pair, places in sorted(by_pair.items(), key=lambda item: weakness(item[1])):
        first, second = sorted(pair, key=list(streams).index)
        if find(first) == find(second):
            continue
        root[find(first)] = find(second)
        equalities = [place for place in places if equal[place]]
        rest = sorted(
            (place for place in places if not equal[place]), key=lambda place: links[place].kind != DIFFERENCE
        )
        used.update(equalities + rest[:1])
        linked.append(rest[0] if rest else None)
        ends = links[rest[0]].streams if rest else (first, second)
        edges.append(
            Edge(
                (list(streams).index(ends[0]), list(streams).index(ends[1])),
                tuple(links[place] for place in equalities),
                links[rest[0]] if rest else None,
            )
        )
    for stream in streams[1:]:  # no link: a cross join
        if find(stream) != find(streams[0]):
            root[find(stream)] = find(streams[0])
            edges.append(Edge((0, list(streams).index(stream)), (), None))
            linked.append(None)
    return tuple(edges), linked, [place for place in range(len(links)) if place not in used]


# Selections.


def _own_ranges(block: BoxBlock, stream: str, links: dict[str, Link]) -> dict[str, Any]:
    return {name: each for name, each in block.ranges.items() if name not in links and name.partition(".")[0] == stream}


def _select(
    selections: Selections,
    ranges: dict[str, Any],
    entries: NDArray[np.int64],
    queries: NDArray[np.int64],
    residuals: Sequence[Residual],
) -> NDArray[np.int32]:
    """The selection of each branch. Equal constraints on the stream are one selection."""
    with_residual = [np.isin(queries, residual.queries) for residual in residuals]
    has_residual = np.logical_or.reduce(with_residual) if with_residual else np.zeros(len(queries), np.bool_)
    if not ranges and not has_residual.any():
        return np.full(len(entries), EVERY_ROW, np.int32)
    number = _number_alike(ranges, entries)
    if has_residual.any():
        number = _combine(number, np.where(has_residual, queries + 1, 0))
    distinct, first, back = np.unique(number, return_index=True, return_inverse=True)
    chosen = (back.reshape(-1) + selections.n).astype(np.int32)
    own = np.arange(selections.n, selections.n + len(distinct), dtype=np.int64)
    selections.blocks.append(BoxBlock(own, {name: each.take(entries[first]) for name, each in ranges.items()}))
    for residual, has in zip(residuals, with_residual, strict=True):
        members = np.flatnonzero(has[first])
        if len(members):
            order = np.argsort(residual.queries, kind="stable")
            places = order[np.searchsorted(residual.queries[order], queries[first[members]])]
            taken = residual.take(places)
            selections.residuals.append(Residual(own[members], taken.expression, taken.constants, taken.time_zone))
    selections.n += len(distinct)
    return chosen


def _number_alike(ranges: dict[str, Any], entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each branch; branches with the same ranges have the same number."""
    number = np.zeros(len(entries), np.int64)
    for each in ranges.values():
        if isinstance(each, Ranges):
            for values, ends in ((each.lows, each.low_ends), (each.highs, each.high_ends)):
                bounded = np.where(ends == UNBOUNDED, values[:1], values)
                number = _combine(number, np.unique(bounded, return_inverse=True)[1].reshape(-1)[entries])
                number = _combine(number, ends[entries].astype(np.int64))
    return number


def _combine(number: NDArray[np.int64], more: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(number):
        return number
    joined = number * (int(more.max()) + 1) + more
    return np.asarray(np.unique(joined, return_inverse=True)[1]).reshape(-1)
