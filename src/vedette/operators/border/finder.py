"""The events of a batch of moves: the changes between two rows of a key, while queries may change, too.

Queries that were active when a key was last seen and are active now are followed by the boundaries of each part. Added
queries are matched with the new row only, and removed queries with the old row only. So the old revision of a replaced
query is compared with the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.moments import with_moment
from vedette.language import naming
from vedette.operators.border.changes import BorderIndex, Ways, find_first_rows, sample_moves
from vedette.operators.border.differences import MOVES_AT_ONCE
from vedette.operators.border.events import ADDED, CROSS, ENTER, EXIT, MOVED, REMOVED, REPLACED, Events
from vedette.operators.border.moves import Moves
from vedette.operators.border.runs import Runs
from vedette.queries.match import Part
from vedette.queries.parts import Parts
from vedette.queries.retained import Retained
from vedette.queries.set_view import SetView

# The rows that moves refer to.
RowsOf = Callable[[Moves], dict[str, Column]]
_NO_LIMIT = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Seen:
    """By move: how its key was last compared with all queries of a version."""

    versions: NDArray[np.int32]
    moments: NDArray[np.int64] | None  # what now() was then, if it is used

    def part(self, start: int, stop: int) -> Seen:
        return Seen(self.versions[start:stop], None if self.moments is None else self.moments[start:stop])


@dataclass(frozen=True)
class EventPlan:
    """How the events of a batch of moves are found. Pieces of the batch have the same plan, for their moves."""

    borders: list[BorderIndex]  # of each part
    ways: Sequence[Ways | None]  # of each part; None: chosen for the moves themselves, which are the whole batch
    seen: Seen
    limits: NDArray[np.int64]  # by move: queries from this position on were added since; empty if there are none
    first_limit: int  # the least of them
    crosses: bool

    @property
    def has_residuals(self) -> bool:
        return any(borders.part.residuals for borders in self.borders)

    def part(self, start: int, stop: int) -> EventPlan:
        """The plan for some of the moves."""
        return replace(self, seen=self.seen.part(start, stop), limits=self.limits[start:stop])


@dataclass
class BorderFinder:
    """Finds events, and keeps the boundaries of the parts as long as the parts exist."""

    _borders: dict[int, BorderIndex] = field(default_factory=dict)

    def plan(
        self,
        view: SetView,
        moves: Moves,
        seen: Seen,
        rows_of: RowsOf | None,
        *,
        crosses: bool,
    ) -> EventPlan:
        """How to find the events of a batch of moves.

        If the batch will be cut into pieces, `rows_of` returns the rows that some of the moves refer to.
        """
        stale = np.flatnonzero((moves.before >= 0) & (seen.versions < view.versions.current))
        limits, first_limit = np.empty(0, np.int64), _NO_LIMIT
        if len(stale):
            limits = np.full(len(moves), _NO_LIMIT, np.int64)
            limits[stale] = view.versions.count_at(seen.versions[stale])
            first_limit = int(limits[moves.after >= 0].min(initial=_NO_LIMIT))
        borders = self.borders_of(view.parts)
        if crosses:
            for each in borders:
                each.list_boundaries()
        plan = EventPlan(borders, [None] * len(borders), seen, limits, first_limit, crosses)
        if rows_of is None:
            return plan
        some = moves.at(np.arange(len(moves))[sample_moves(len(moves))])
        columns, n_rows = rows_of(some), len(some.known) + len(some.kept)
        first_rows: dict[str, Column] = {}
        if any(each.has_dual for each in borders):
            first = moves.part(0, min(len(moves), MOVES_AT_ONCE))
            chosen = find_first_rows(first.before, first.after)
            first_rows = {name: column.take(chosen) for name, column in rows_of(first).items()}
        ways = [each.choose_ways(columns, n_rows, some.before, some.after, first_rows) for each in borders]
        return replace(plan, ways=ways)

    def find_events(
        self, view: SetView, moves: Moves, columns: dict[str, Column], plan: EventPlan
    ) -> tuple[Runs, list[Events], int]:
        """The changes of the moves of a plan, other events, and the number of failed comparisons.

        Runs are of queries that were active before and after.
        """
        n_rows = len(moves.known) + len(moves.kept)
        versions = plan.seen.versions
        is_stale = (moves.before >= 0) & (versions < view.versions.current)
        limits = plan.limits if is_stale.any() else np.empty(0, np.int64)
        stale = np.flatnonzero(
            is_stale & ~moves.are_of_time
        )  # time moves keys only with regard to queries they have seen
        is_removed = view.versions.is_removed if view.versions.n_removed else np.empty(0, np.bool_)
        found, special = [], []
        n_failed = 0
        parts = []
        with naming(view.ids.at):
            for borders, known_ways in zip(plan.borders, plan.ways, strict=True):
                runs, ways, failed = borders.find_changes(columns, n_rows, moves.before, moves.after, known_ways)
                parts.append(ways.part)
                found.append(runs.without(is_removed, limits) if len(is_removed) or len(limits) else runs)
                n_failed += failed
                if plan.crosses:
                    at, queries = borders.find_crossings(columns, n_rows, moves.before, moves.after)
                    was_active = np.ones(len(at), np.bool_) if not len(is_removed) else ~is_removed[queries]
                    was_active &= queries < limits[at] if len(limits) else True
                    special.append(Events.of(at[was_active], queries[was_active], CROSS, MOVED))
        if len(stale):
            with naming(view.ids.at):
                entered = _find_added(view, parts, moves, columns, stale, plan)
            with naming(view.retained.ids.at):
                left = _find_removed(view, moves, columns, stale, plan.seen)
            special += _settle_replaced(view, entered, left, versions)
        return Runs.merge(found, len(moves)), [each for each in special if len(each)], n_failed

    def borders_of(self, parts: Parts) -> list[BorderIndex]:
        """The boundaries of each part."""
        known, self._borders = self._borders, {}
        for part in parts.compiled:
            borders = known.get(id(part))
            self._borders[id(part)] = borders if borders is not None and borders.part is part else BorderIndex(part)
        return list(self._borders.values())

    @property
    def nbytes(self) -> int:
        return sum(borders.nbytes for borders in self._borders.values())


@dataclass(frozen=True)
class _Pairs:
    """A move and a query, by position or by the number of a removed one."""

    moves: NDArray[np.int64]
    queries: NDArray[np.int64]


def join_events(runs: Runs, special: Sequence[Events], moves: Moves) -> Events:
    """The changes of moves and other events, in the order of the moves."""
    numbers, _, kinds = runs.columns(np.arange(len(moves), dtype=np.int32), moves.times)
    return Events.join([Events(numbers, runs.queries, kinds, reasons_of(runs, moves)), *special], len(moves))


def reasons_of(runs: Runs, moves: Moves) -> NDArray[np.int8]:
    """The reason of each change."""
    if moves.have_one_reason:
        return np.full(len(runs), MOVED, np.int8)
    return runs.spread(moves.reasons)


def _find_added(
    view: SetView,
    parts: Sequence[Part],
    moves: Moves,
    columns: dict[str, Column],
    stale: NDArray[np.int64],
    plan: EventPlan,
) -> _Pairs:
    """Queries that were added since the key was last seen and contain its new row."""
    stale = stale[moves.after[stale] >= 0]
    rows, limits = moves.after[stale], plan.limits
    found_moves, found_queries = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for part in parts:
        if part.first_query + part.n_queries <= plan.first_limit or not len(stale):
            continue
        matches = part.match({name: columns[name].take(rows) for name in part.fields}, len(rows))
        at, queries = stale[matches.rows], matches.positions
        new = (queries >= limits[at]) & ~view.versions.is_removed[queries]
        found_moves.append(at[new])
        found_queries.append(queries[new].astype(np.int64))
    return _Pairs(np.concatenate(found_moves), np.concatenate(found_queries))


def _find_removed(
    view: SetView,
    moves: Moves,
    columns: dict[str, Column],
    stale: NDArray[np.int64],
    seen: Seen,
) -> _Pairs:
    """Queries that were removed since the key was last seen and contained its old row."""
    retained, versions = view.retained, seen.versions
    if not len(retained):
        return _Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
    rows = {name: column.take(moves.before[stale]) for name, column in columns.items()}
    if seen.moments is not None:
        rows = with_moment(rows, view.moments, seen.moments[stale], len(stale))
    matches = retained.part.match(rows, len(stale))
    at, numbers = stale[matches.rows], matches.positions
    known = retained.removed[numbers] > view.versions.current - view.retained_versions
    was_active = known & (retained.added[numbers] <= versions[at]) & (versions[at] < retained.removed[numbers])
    at, queries = at[was_active], numbers[was_active].astype(np.int64)
    order = np.lexsort((queries, at))  # whichever index has answered
    return _Pairs(at[order], queries[order])


def _settle_replaced(view: SetView, entered: _Pairs, left: _Pairs, seen: NDArray[np.int32]) -> list[Events]:
    """Enters and exits of queries that changed. There is no event if both revisions of a replaced query match."""
    retained = view.retained
    if not len(retained):
        return [Events.of(entered.moves, entered.queries, ENTER, ADDED)]
    successors = view.ids.find(retained.ids.read_all()).astype(np.int64)  # by number: the current position of its id
    known = np.flatnonzero(successors >= 0)
    successors[known[view.versions.is_removed[successors[known]]]] = -1
    stays_left = np.isin(_codes(left.moves, successors[left.queries]), _codes(entered.moves, entered.queries))
    stays_entered = np.isin(_codes(entered.moves, entered.queries), _codes(left.moves, successors[left.queries]))
    left = _Pairs(left.moves[~stays_left], left.queries[~stays_left])
    entered = _Pairs(entered.moves[~stays_entered], entered.queries[~stays_entered])
    exit_reasons = np.where(successors[left.queries] >= 0, REPLACED, REMOVED)
    enter_reasons = np.where(_had_revision(entered, successors, retained, seen), REPLACED, ADDED)
    return [
        Events.of(left.moves, left.queries + view.first_retained, EXIT, exit_reasons),
        Events.of(entered.moves, entered.queries, ENTER, enter_reasons),
    ]


def _codes(moves: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    return (moves << 32) | (queries & 0xFFFFFFFF)


def _had_revision(
    entered: _Pairs, successors: NDArray[np.int64], retained: Retained, seen: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether an older revision of each entered query was active when the key was last seen."""
    order = np.argsort(successors, kind="stable")
    firsts = np.searchsorted(successors[order], entered.queries, side="left")
    lasts = np.searchsorted(successors[order], entered.queries, side="right")
    had = np.zeros(len(entered.moves), np.bool_)
    for step in range(int((lasts - firsts).max(initial=0))):  # a query is rarely replaced more than once
        inside = firsts + step < lasts
        number = order[np.minimum(firsts + step, len(order) - 1)]
        version = seen[entered.moves]
        had |= inside & (retained.added[number] <= version) & (version < retained.removed[number])
    return had


def unify(view: SetView, events: Events) -> Events:
    """The events with one number for all revisions of a query."""
    removed = np.flatnonzero(events.queries >= view.first_retained)
    if not len(removed):
        return events
    queries = events.queries.copy()
    queries[removed] = view.number(view.retained.ids.take(queries[removed] - view.first_retained))
    return Events(events.moves, queries, events.kinds, events.reasons)
