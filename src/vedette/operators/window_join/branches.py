"""Branches: the disjuncts of join queries, in groups that link the streams in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import Schema
from vedette.language import Link
from vedette.language.links import SIGN
from vedette.native.damage import check, check_fields, check_shape, check_within

EVERY_ROW = -1  # the selection of a stream that a query does not constrain


@dataclass(frozen=True)
class Edge:
    """How a row of one of two streams finds rows of the other. `streams` are in the order of the link's sides."""

    streams: tuple[int, int]
    equalities: tuple[Link, ...]
    link: Link | None


@dataclass(frozen=True)
class Signature:
    """The common properties of the branches of a group."""

    edges: tuple[Edge, ...]  # a tree over the streams
    conditions: tuple[Link, ...]
    counts: tuple[bool, ...]  # by stream: its window counts rows
    is_duration: tuple[bool, ...]  # by stream: its window is a length of time, not a number

    def validate(self, streams: Sequence[str], schema: Schema) -> None:
        """Raise DamageError unless a signature from a file links all of these streams, each once."""
        check_fields(self)
        check(len(self.counts) == len(self.is_duration) == len(streams), "the windows do not belong to the streams")
        check(len(self.edges) == len(streams) - 1, "the links do not connect the streams")
        known = {0}
        for _ in self.edges:
            known |= {each for edge in self.edges if known & {*edge.streams} for each in edge.streams}
        check(known == set(range(len(streams))), "the links do not connect the streams")
        for edge in self.edges:
            check_fields(edge)
            for link in (*edge.equalities, *([] if edge.link is None else [edge.link])):
                link.validate(schema)
                own = {streams[each] for each in edge.streams}
                check(set(link.streams) == own, "a link has other streams than its edge")
            check(all(link.kind == SIGN for link in edge.equalities), "an equality is not an equality of two values")
            check(edge.link is None or not edge.link.type.is_text, "strings have no order here")
            if edge.link is not None:
                own_order = tuple(streams[each] for each in edge.streams)
                check(edge.link.streams == own_order, "the streams of a link are in the wrong order")
        for link in self.conditions:
            link.validate(schema)

    def to_parts(self) -> list[Any]:
        """The content for a file."""
        edges = [
            [list(e.streams), [x.to_json() for x in e.equalities], e.link and e.link.to_json()] for e in self.edges
        ]
        return [edges, [link.to_json() for link in self.conditions], list(self.counts), list(self.is_duration)]

    @staticmethod
    def from_parts(edges: list[Any], conditions: list[Any], counts: list[bool], durations: list[bool]) -> Signature:
        made = []
        for (first, second), equalities, link in edges:
            equal = tuple(map(Link.from_json, equalities))
            made.append(Edge((first, second), equal, link and Link.from_json(link)))
        return Signature(tuple(made), tuple(map(Link.from_json, conditions)), tuple(counts), tuple(durations))


@dataclass(frozen=True)
class Branches:
    """Branches of one group as columns. The first axis of two-dimensional ones is by stream, edge or condition."""

    queries: NDArray[np.int32]
    selections: NDArray[np.int32]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    condition_lows: NDArray[np.int64]
    condition_highs: NDArray[np.int64]
    units: NDArray[np.int64]
    numbers: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.queries)

    @classmethod
    def concat(cls, many: Sequence[Branches]) -> Branches:
        names = cls.__dataclass_fields__
        return cls._of([np.concatenate([getattr(each, name) for each in many], axis=-1) for name in names])

    @classmethod
    def _of(cls, arrays: Sequence[NDArray[Any]]) -> Branches:
        """Branches whose arrays are contiguous: kernels are compiled for one layout only."""
        return cls(*map(np.ascontiguousarray, arrays))

    def validate(self, signature: Signature, n_queries: int, n_selections: Sequence[int]) -> None:
        """Raise DamageError unless branches from a file are of these queries and selections."""
        check_fields(self)
        check_shape(self.queries, (len(self),), "the queries of branches")
        check_within(self.queries, 0, n_queries - 1, "the queries of branches")
        for rows, arrays in (
            (len(n_selections), (self.selections, self.units, self.numbers)),
            (len(signature.edges), (self.lows, self.highs)),
            (len(signature.conditions), (self.condition_lows, self.condition_highs)),
        ):
            for array in arrays:
                check_shape(array, (rows, len(self)), "an array of branches")
        for chosen, n in zip(self.selections, n_selections, strict=True):
            check_within(chosen, 0, n - 1, "the selections of branches")
        check((self.units >= 0).all() and (self.numbers >= 0).all(), "a window is below 0")

    def take(self, chosen: NDArray[Any]) -> Branches:
        return self._of([getattr(self, name)[..., chosen] for name in self.__dataclass_fields__])


@dataclass(frozen=True)
class Hop:
    """A step of a probe: from a stream whose row is known to a stream that is searched."""

    edge: int
    from_stream: int
    to_stream: int
    is_first: bool  # the known row has the first side of the link


def hops_from(edges: Sequence[Edge], stream: int) -> list[Hop]:
    """The steps of a probe from one stream to all others, along the edges."""
    known, hops = {stream}, []
    waiting = set(range(len(edges)))
    while waiting:
        edge = next(each for each in sorted(waiting) if known & set(edges[each].streams))
        waiting.remove(edge)
        first, second = edges[edge].streams
        is_first = first in known
        hop = Hop(edge, first, second, True) if is_first else Hop(edge, second, first, False)
        known.add(hop.to_stream)
        hops.append(hop)
    return hops
