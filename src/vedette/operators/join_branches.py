"""Branches: the disjuncts of standing joins, in groups of those that link the streams in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.language import Link

EVERY_ROW = -1  # the selection of a stream that a query says nothing about


@dataclass(frozen=True)
class Edge:
    """How a row of one of two streams finds those of the other; `streams` are in the order of the link's sides."""

    streams: tuple[int, int]
    equalities: tuple[Link, ...]
    link: Link | None


@dataclass(frozen=True)
class Signature:
    """What the branches of a group have in common."""

    edges: tuple[Edge, ...]  # a tree over the streams
    conditions: tuple[Link, ...]
    counts: tuple[bool, ...]  # by stream: its window counts rows
    is_duration: tuple[bool, ...]  # by stream: its window is a length of time, not a number

    def to_parts(self) -> list[Any]:
        """What a file keeps."""
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
    """Branches of one group as columns; the first axis of the others is by stream, edge or condition."""

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
        return cls(*(np.concatenate([getattr(each, name) for each in many], axis=-1) for name in names))

    def take(self, chosen: NDArray[Any]) -> Branches:
        return Branches(*(getattr(self, name)[..., chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Hop:
    """A step of a probe: from a stream whose row is known to one whose rows are looked for."""

    edge: int
    from_stream: int
    to_stream: int
    is_first: bool  # the known row has the first side of the link


def hops_from(edges: Sequence[Edge], stream: int) -> list[Hop]:
    """The way of a probe from one stream to all others, along the edges."""
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
