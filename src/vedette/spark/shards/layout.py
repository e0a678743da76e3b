"""Which rows of a stateful operator are in which shard, as the facts of a checkpoint describe it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.errors import SnapshotError
from vedette.operators.band_join.stored_state import StoredBands
from vedette.operators.border.stored_state import StoredBorder
from vedette.operators.moving_join.stored_state import StoredMoving
from vedette.operators.stored_state import StoredState
from vedette.operators.window_join.stored_state import StoredJoin
from vedette.spark.shards import packing


@dataclass(frozen=True)
class Layout:
    """The shards of a stream. On a grid, rows of the first part are copied along rows of it, others along columns."""

    n_shards: int
    is_grid: bool

    @classmethod
    def of(cls, facts: Mapping[str, Any], n_shards: int | None = None) -> Layout:
        """The layout that facts of a checkpoint describe, or the same with another number of shards."""
        is_grid = facts["operator"] in ("band join", "moving join") or facts.get("layout") == "grid"
        return cls(facts["shards"] if n_shards is None else n_shards, is_grid)

    @property
    def labels(self) -> list[int]:
        """The labels of the shards that get rows."""
        return list(_lines(self, 0))

    def n_lines(self, place: int) -> int:
        """The number of lines that rows of a part are grouped into: the first part, or another."""
        return len(self._lines(place))

    def is_owner(self, label: int, place: int) -> bool:
        """Whether the shard has rows of a part, and is the first of those that have the same rows."""
        return any(line[0] == label for line in self._lines(place))

    def line_of(self, label: int, place: int) -> int:
        """The line whose rows of a part are in the shard."""
        return _lines(self, place)[label]

    def _lines(self, place: int) -> list[list[int]]:
        return packing.by_grid(self.n_shards, min(place, 1)) if self.is_grid else packing.by_key(self.n_shards)


@functools.lru_cache(maxsize=8)
def _lines(layout: Layout, place: int) -> dict[int, int]:
    """The line of each shard that gets rows, by label."""
    return {label: number for number, line in enumerate(layout._lines(place)) for label in line}


class Division:
    """The rows of one shard by the shards of another layout."""

    def __init__(self, label: int, parts: list[str], old: Layout, new: Layout) -> None:
        self._new = new
        self._places = {name: place for place, name in enumerate(parts)}
        self._owned = {name for name, place in self._places.items() if old.is_owner(label, place)}
        self._lines: dict[int, tuple[Any, NDArray[np.int32]]] = {}  # of values, by the id of their object

    def choose(self, target: int, part: str, values: Any) -> NDArray[np.int64]:
        """The positions of the rows of a part that the shard sends to a shard of the new layout."""
        if part not in self._owned or not len(values):
            return np.empty(0, np.int64)
        place = self._places[part]
        if id(values) not in self._lines:
            self._lines[id(values)] = values, packing.lines_of(values, self._new.n_lines(place))
        return np.flatnonzero(self._lines[id(values)][1] == self._new.line_of(target, place))


def stored_state(facts: Mapping[str, Any]) -> StoredState:
    """How the states of a stream are read, without its queries."""
    operator = facts["operator"]
    if operator == "border monitor":
        return StoredBorder()
    if operator == "band join":
        return StoredBands()
    if operator == "moving join":
        return StoredMoving()
    if operator == "window join":
        return StoredJoin(dict(each.split(".", 1) for each in facts["on"].split(" = ") if each))
    raise SnapshotError(f"the checkpoint is of a {operator!r}, which this version of vedette does not know")
