"""The window joins of Lim et al., by name, for comparison with ordered lists. They are loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vedette.lazy_table import LazyTable
from vedette.operators.window_join.branches import Branches, Edge
from vedette.operators.window_join.join import PairFinder
from vedette.operators.window_join.stream_selections import BoxesOf


class JoinAlgorithm(Protocol):
    """Makes a pair finder from the boxes of each stream, and describes it."""

    summary: str

    def __call__(self, boxes_of: BoxesOf) -> PairFinder: ...

    def describe(self, edge: Edge, branches: Branches) -> str:
        """A text that says how a join condition is evaluated."""


_HOME = "vedette.papers.duality.window_joins"
ALGORITHMS: Mapping[str, JoinAlgorithm] = LazyTable(
    {"SJ-Join": (f"{_HOME}.spatial_join_windows", "SJJoin"), "IBS-JS": (f"{_HOME}.shared_joins", "IBSJS")}
)
