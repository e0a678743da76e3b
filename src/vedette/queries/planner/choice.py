"""Choice: which index answers for a group of boxes.

From a sample of the boxes the planner tells how many of them a row meets on each axis and on all, estimates what a
row would cost under each index that can do it, and takes the cheapest. Costs are nanoseconds on one core of the
machine of docs/benchmarks.md; only their ratios matter, and `python -m benchmarks run planner` shows where they are
wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells
from vedette.indexes.dual import Dual
from vedette.indexes.index import Index, TooLargeError, sample_boxes
from vedette.indexes.leaves import choose_leaf
from vedette.indexes.lists import fits
from vedette.indexes.names import INDEXES, PAPER_INDEXES
from vedette.indexes.verified import Verified
from vedette.queries.match import EveryRow, Group
from vedette.queries.planner.forced import tell_unsuited

SAMPLE = 4096  # boxes that the estimate looks at
PAIR_COST = 0.5  # of writing a match, whatever found it
# So many boxes, and so long a search for each row, are put into a grid file besides, with which a batch may be joined.
DUAL_BOXES, DUAL_COST = 8192, 500
MAX_BYTES_PER_BOX = 400  # of a quadtree; boxes that are long on an axis of very many cells would take far more


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


@dataclass(frozen=True)
class Candidate:
    """An index that could answer, on which axes, and what a row would cost."""

    name: str
    axes: tuple[int, ...]  # of the index itself, or of the inner one of a Verified
    nanoseconds: float
    reason: str


@dataclass(frozen=True)
class Facts:
    """What the choice rests on."""

    n: int
    shares: NDArray[np.float64]  # (axes, sampled boxes): the part of the axis that a box covers
    is_point: tuple[bool, ...]  # by axis: all boxes are of one cell
    has_short_lists: bool  # on one axis: lists by cell take little memory

    @classmethod
    def of(cls, boxes: Boxes) -> Facts:
        chosen = sample_boxes(len(boxes), SAMPLE)
        firsts, lasts = boxes.firsts[:, chosen].astype(np.float64), boxes.lasts[:, chosen].astype(np.float64)
        n_cuts = np.maximum(1.0, (np.array(boxes.n_cells, np.float64)[:, None] - 2) / 2)
        # Half a cell range is its number of cuts; one cell holds at least a cut's share of the rows.
        shares = np.clip(np.maximum((lasts - firsts) / 2, 1.0) / n_cuts, 0.0, 1.0)
        is_point = tuple(bool((boxes.firsts[axis] == boxes.lasts[axis]).all()) for axis in range(len(boxes.fields)))
        has_short_lists = len(boxes.fields) == 1 and fits(boxes.firsts[0], boxes.lasts[0], boxes.n_cells[0])
        return cls(len(boxes), shares, is_point, has_short_lists)

    @property
    def matches(self) -> float:
        """How many boxes hold a row, on average."""
        return self.met(tuple(range(len(self.is_point))))

    def met(self, axes: tuple[int, ...]) -> float:
        """How many boxes a row meets on these axes, on average."""
        return self.n * float(np.mean(np.prod(self.shares[list(axes)], axis=0)))


def choose_index(boxes: Boxes, forced: str | None = None) -> Group:
    """The group of these boxes, under the cheapest index or, where it can answer for them, the forced one.

    Where it cannot, the reason of the group begins with why.
    """
    if not boxes.fields:
        reason = f"{tell_unsuited(forced, 0)}; " if forced else ""
        reason += "they constrain no field: every row is a candidate"
        return _group(boxes, (), EveryRow(boxes.queries), reason)
    facts = Facts.of(boxes)
    candidates = sorted(_candidates(boxes, facts), key=lambda each: each.nanoseconds)
    searches = {each: each.nanoseconds - PAIR_COST * facts.matches for each in candidates}
    wanted = _find_wanted(boxes, facts, candidates, forced)
    refused = tell_unsuited(forced, len(boxes.fields)) if forced and not wanted else ""
    for best in wanted:
        try:
            return _build(boxes, best, candidates, search_cost=searches[best] if forced == "Dual" else None)
        except TooLargeError as error:
            refused = f"{forced} was asked for and would be too large: {error}"
    for best in (each for each in candidates if each not in wanted):
        try:
            is_dual = len(boxes) >= DUAL_BOXES and searches[best] >= DUAL_COST
            return _build(boxes, best, candidates, refused, searches[best] if is_dual else None)
        except TooLargeError:
            continue
    raise AssertionError("a scan is never too large")


def _find_wanted(boxes: Boxes, facts: Facts, candidates: list[Candidate], forced: str | None) -> list[Candidate]:
    """The ways in which the forced index can answer, the cheapest first."""
    if forced is None:
        return []
    if len(boxes.fields) in PAPER_INDEXES.get(forced, ()):
        return [Candidate(forced, tuple(range(len(boxes.fields))), math.nan, f"{forced} was asked for")]
    if forced == "Dual":
        return candidates
    wanted = [each for each in candidates if each.name == forced]
    # On more axes than it has, an index works inside a Verified.
    return wanted or [
        each for each in candidates if each.name == "Verified" and _inner_name(facts, each.axes) == forced
    ]


def _build(
    boxes: Boxes, best: Candidate, candidates: list[Candidate], refused: str = "", search_cost: float | None = None
) -> Group:
    """The group under an index, which is a `Dual` where it is told what a row costs beyond writing its matches."""
    reason = f"{refused}; " if refused else ""
    if search_cost is not None:
        reason += f"{best.name} for a few rows, and MLGF for a batch; "
    reason += best.reason if best is candidates[0] else f"instead of {candidates[0].name}: {best.reason}"
    others = [f"{each.name} {each.nanoseconds:,.0f}" for each in _best_of_each(candidates) if each.name != best.name]
    cost = "no estimate" if math.isnan(best.nanoseconds) else f"about {best.nanoseconds:,.0f} ns a row"
    reason += f"; {cost}" + (f" (others: {', '.join(others)})" if others else "")
    every = tuple(range(len(boxes.fields)))
    order = best.axes if best.name != "Verified" and len(best.axes) == len(every) else every
    arrays = boxes.firsts[list(order)], boxes.lasts[list(order)], boxes.queries, [boxes.n_cells[axis] for axis in order]
    index: Index
    index = Verified.build(*arrays, axes=best.axes) if best.name == "Verified" else INDEXES[best.name].build(*arrays)
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
    """What a row would cost under the cheapest index."""
    if not boxes.fields:
        return float(len(boxes))
    return min(each.nanoseconds for each in _candidates(boxes, Facts.of(boxes)))


def _inner_name(facts: Facts, axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        return "Lists" if facts.has_short_lists else "Buckets"
    return "Keyed" if facts.is_point[axes[0]] else "Quadtree"


def _best_of_each(candidates: list[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for each in candidates:
        best.setdefault(each.name, each)
    return list(best.values())


def _candidates(boxes: Boxes, facts: Facts) -> list[Candidate]:
    every = tuple(range(len(boxes.fields)))
    n, matches = len(boxes), facts.matches
    found = [
        Candidate("Scan", every, _scan_cost(n, len(every), matches), f"{n:,} boxes are few enough to try each"),
        Candidate(
            "Bitmaps",
            every,
            _bitmaps_cost(n, len(every), matches, boxes.is_consecutive),
            f"a row meets about {matches:,.0f} of {n:,} boxes, too many for lists to skip the rest",
        ),
    ]
    for axes in [(axis,) for axis in every] + _pairs(facts):
        met = facts.met(axes)
        name = _inner_name(facts, axes)
        if name == "Quadtree":
            chosen = list(axes)
            leaf = choose_leaf(boxes.firsts[chosen], boxes.lasts[chosen], [boxes.n_cells[axis] for axis in axes])
            if leaf.bytes_per_box > MAX_BYTES_PER_BOX:
                continue
            cost = _quadtree_cost(n, met, leaf.tests_per_row)
        else:
            cost = {"Lists": _lists_cost, "Buckets": _buckets_cost, "Keyed": _keyed_cost}[name](n, met)
        if len(axes) == len(every):
            found.append(Candidate(name, axes, cost, f"a row meets about {met:,.1f} of {n:,} boxes"))
            if name == "Lists":
                found.append(Candidate("Buckets", axes, _buckets_cost(n, met), f"a row meets about {met:,.1f} boxes"))
        else:
            reason = f"{name} on {len(axes)} of {len(every)} fields leaves about {met:,.1f} of {n:,} boxes to check"
            found.append(Candidate("Verified", axes, cost + _check_cost(met, len(every) - len(axes)), reason))
    return found


def _pairs(facts: Facts) -> list[tuple[int, ...]]:
    """Two axes to index together, a point axis first; the most selective few where there are many."""
    ranked = sorted(range(len(facts.is_point)), key=lambda axis: float(np.mean(facts.shares[axis])))[:4]
    return [tuple(sorted(pair, key=lambda axis: not facts.is_point[axis])) for pair in combinations(ranked, 2)]


def _scan_cost(n: int, n_axes: int, matches: float) -> float:
    return 10 + 0.12 * n * n_axes + 1.2 * matches


def _lists_cost(n: int, matches: float) -> float:
    return 5 + 0.5 * matches + _miss_cost(n, 60)


def _buckets_cost(n: int, matches: float) -> float:
    return 11 + 0.45 * matches + _miss_cost(n, 50)


def _keyed_cost(n: int, matches: float) -> float:
    return 26 + 0.65 * matches + 2 * _miss_cost(n, 60)


def _quadtree_cost(n: int, matches: float, tests: float) -> float:
    return 22 + 0.7 * min(tests, matches + 8) + 0.5 * matches + 3 * _miss_cost(n, 150)


def _bitmaps_cost(n: int, n_axes: int, matches: float, is_consecutive: bool) -> float:
    fits_cache = 130 * n * n_axes < 1 << 20
    words = n / 64 * (1.5 + 0.6 * n_axes) * (1.0 if fits_cache else 1.6)
    return 14 + words + (0.4 if is_consecutive else 1.25) * matches


def _check_cost(candidates: float, n_axes: int) -> float:
    return 10 + candidates * (2.5 + 0.7 * n_axes)


def _miss_cost(n: int, bytes_each: float) -> float:
    """Waiting for memory: nothing while the index fits the second cache, some 15 ns once it fits no cache."""
    return 2.5 * max(0.0, math.log2(max(1.0, n * bytes_each / (1 << 20))))
