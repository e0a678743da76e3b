"""Other ways to join two windows than by ordered lists, by name: those of Lim et al., loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vedette.lazy_table import LazyTable
from vedette.operators.window_join.branches import Branches, Edge
from vedette.operators.window_join.join import PairFinder
from vedette.operators.window_join.stream_selections import BoxesOf


class JoinAlgorithm(Protocol):
    """What makes a pair finder from the boxes of each stream, and describes it."""

    summary: str

    def __call__(self, boxes_of: BoxesOf) -> PairFinder: ...

    def describe(self, edge: Edge, branches: Branches) -> str:
        """How a join condition is answered, in words."""


_HOME = "vedette.papers.duality.window_joins"
ALGORITHMS: Mapping[str, JoinAlgorithm] = LazyTable(
    {"SJ-Join": (f"{_HOME}.spatial_join_windows", "SJJoin"), "IBS-JS": (f"{_HOME}.shared_joins", "IBSJS")}
)
