"""Chooses the index for a group of boxes.

Every index that can answer for the boxes estimates the cost of a row (see `indexes/estimates.py`), and the cheapest one
is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells
from vedette.indexes.dual import Dual
from vedette.indexes.estimates import BoxFacts, Estimate
from vedette.indexes.index import Index, TooLargeError
from vedette.indexes.names import INDEXES, PAPER_INDEXES, PLANNED_INDEXES
from vedette.queries.match import EveryRow, Group
from vedette.queries.planner.forced import explain_unsuited

PAIR_COST = 0.5  # of writing a match, for every index
# Groups with at least this many boxes and this cost per row also get a grid file, for joins with a batch.
DUAL_BOXES, DUAL_COST = 8192, 500


@dataclass(frozen=True)
class Boxes:
    """Boxes in cell space, before an index is chosen."""

    fields: tuple[str, ...]
    firsts: Cells  # (fields, boxes)
    lasts: Cells
    queries: NDArray[np.int32]
    n_cells: tuple[int, ...]
    has_residuals: bool
    repeats: bool

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def is_consecutive(self) -> bool:
        """Whether the queries have consecutive positions, in order."""
        return len(self) > 0 and bool((np.diff(self.queries) == 1).all())

    def facts(self) -> BoxFacts:
        """The facts from which indexes estimate their costs."""
        return BoxFacts.of(self.firsts, self.lasts, self.n_cells, is_consecutive=self.is_consecutive)


@dataclass(frozen=True)
class Candidate:
    """An index that could serve the group, and how."""

    name: str
    estimate: Estimate

    @property
    def nanoseconds(self) -> float:
        return self.estimate.nanoseconds


def choose_index(boxes: Boxes, forced: str | None = None) -> Group:
    """The group of these boxes with the cheapest index, or with the forced one if it can answer for them.

    If it cannot, the group's reason starts with why.
    """
    if not boxes.fields:
        reason = f"{explain_unsuited(forced, 0)}; " if forced else ""
        reason += (
            "they constrain no field: every row is a candidate; to get an index, compare a field or an expression "
        )
        reason += "with a constant that it rarely has"
        return _group(boxes, (), EveryRow(boxes.queries), reason)
    facts = boxes.facts()
    candidates = sorted(_candidates(facts), key=lambda each: each.nanoseconds)
    searches = {each: each.nanoseconds - PAIR_COST * facts.matches for each in candidates}
    wanted = _find_wanted(boxes, candidates, forced)
    refused = explain_unsuited(forced, len(boxes.fields)) if forced and not wanted else ""
    for best in wanted:
        try:
            return _build(boxes, best, candidates, search_cost=searches[best] if forced == "Dual" else None)
        except TooLargeError as error:
            refused = f"{forced} was requested but would be too large: {error}"
    for best in (each for each in candidates if each not in wanted):
        try:
            is_dual = len(boxes) >= DUAL_BOXES and searches[best] >= DUAL_COST
            return _build(boxes, best, candidates, refused, searches[best] if is_dual else None)
        except TooLargeError:
            continue
    raise AssertionError("a scan is never too large")


def _find_wanted(boxes: Boxes, candidates: list[Candidate], forced: str | None) -> list[Candidate]:
    """The ways in which the forced index can serve the group, cheapest first."""
    if forced is None:
        return []
    n_fields = len(boxes.fields)
    if forced in PAPER_INDEXES:
        requested = Candidate(forced, Estimate(tuple(range(n_fields)), math.nan, f"{forced} was requested"))
        return [requested] if n_fields in PAPER_INDEXES[forced].n_fields else []
    if forced == "Dual":
        return candidates
    wanted = [each for each in candidates if each.name == forced]
    # On more axes than it supports, an index works inside another.
    return wanted or [each for each in candidates if each.estimate.inner == forced]


def _build(
    boxes: Boxes, best: Candidate, candidates: list[Candidate], refused: str = "", search_cost: float | None = None
) -> Group:
    """The group with an index. It is a `Dual` if the cost of a row beyond writing its matches is given."""
    reason = f"{refused}; " if refused else ""
    if search_cost is not None:
        reason += f"{best.name} for a few rows, and MLGF for a batch; "
    own = best.estimate.reason
    reason += own if best is candidates[0] else f"instead of {candidates[0].name}: {own}"
    others = [f"{each.name} {each.nanoseconds:,.0f}" for each in _best_of_each(candidates) if each.name != best.name]
    cost = "no estimate" if math.isnan(best.nanoseconds) else f"about {best.nanoseconds:,.0f} ns per row"
    reason += f"; {cost}" + (f" (others: {', '.join(others)})" if others else "")
    every, axes = tuple(range(len(boxes.fields))), best.estimate.axes
    order = axes if len(axes) == len(every) else every
    arrays = boxes.firsts[list(order)], boxes.lasts[list(order)], boxes.queries, [boxes.n_cells[axis] for axis in order]
    index_class: Any = INDEXES[best.name]
    index: Index = index_class.build(*arrays) if order is axes else index_class.build(*arrays, axes=axes)
    if search_cost is not None:
        index = Dual.build(*arrays, index, search_cost)
    return _group(boxes, order, index, reason)


def _group(boxes: Boxes, order: tuple[int, ...], index: EveryRow | Index, reason: str) -> Group:
    fields = tuple(boxes.fields[axis] for axis in order)
    firsts, lasts = boxes.firsts, boxes.lasts
    if order != tuple(range(len(order))):
        firsts, lasts = firsts[list(order)], lasts[list(order)]
    is_run = boxes.is_consecutive
    listed, first = (np.empty(0, np.int32), int(boxes.queries[0])) if is_run else (boxes.queries, 0)
    return Group(fields, index, firsts, lasts, listed, first, boxes.repeats, boxes.has_residuals, reason)


def estimate_cost(boxes: Boxes) -> float:
    """The cost of a row in the cheapest index."""
    if not boxes.fields:
        return float(len(boxes))
    return min(each.nanoseconds for each in _candidates(boxes.facts()))


def _best_of_each(candidates: list[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for each in candidates:
        best.setdefault(each.name, each)
    return list(best.values())


def _candidates(facts: BoxFacts) -> list[Candidate]:
    return [
        Candidate(name, estimate)
        for name, index in PLANNED_INDEXES.items()
        if len(facts.axes) in index.n_fields
        for estimate in index.estimate(facts)
    ]
