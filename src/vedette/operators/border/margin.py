"""Margins: a key leaves a range only when its value is outside by more than the margin.

So whether a key is inside depends on its earlier rows. A pair of a key and a query lingers while the last row is
outside the query but within the margin. Copies of the queries with widened ranges decide that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.columns import Column
from vedette.data.schema import Schema
from vedette.language import Residual, naming, widen_fences
from vedette.operators.border.behaviour import Behaviour
from vedette.operators.border.events import CROSS, EXIT, MOVED, REMOVED, REPLACED, TIME, Events
from vedette.operators.border.metres import METRES, widen_by_metres
from vedette.operators.border.moves import Moves
from vedette.queries.match import Part
from vedette.queries.parts import decompile
from vedette.queries.planner import compile_part
from vedette.queries.set_view import SetView

_LINGERS = -1  # the kind of pairs that were open before, among events
_MOVES_AT_ONCE = 64  # moves of a pair that are checked together
_PAIRS_AT_ONCE = 1 << 16  # pairs that are checked together
_INT64 = np.iinfo(np.int64)


class Margins:
    """By field, how far outside a range a value may be; and the parts with ranges widened by the margins."""

    def __init__(self, margins: dict[str, float], schema: Schema) -> None:
        self.margins = margins
        self.schema = schema
        self._behaviour: Behaviour | None = None
        self._widened: dict[int, tuple[Part, Part]] = {}

    def settle(
        self,
        events: Events,
        moves: Moves,
        columns: dict[str, Column],
        view: SetView,
        seen: NDArray[np.int32],
        open_slots: NDArray[np.int32],
        open_queries: NDArray[np.int32],
        behaviour: Behaviour,
    ) -> tuple[Events, Events]:
        """The events that remain, and the pairs that linger after the last move of their key.

        `open_*` are the pairs that lingered before, of the keys of these moves. `seen` has the version of each
        move's old row. A query that was replaced since is compared without a margin.
        """
        self.use(behaviour)
        is_border = events.kinds != CROSS
        all_moves = np.concatenate([moves.first_of(open_slots), events.moves[is_border]])
        queries = np.concatenate([open_queries, events.queries[is_border]])
        kinds = np.concatenate([np.full(len(open_slots), _LINGERS, np.int8), events.kinds[is_border]])
        reasons = np.concatenate([np.zeros(len(open_slots), np.int8), events.reasons[is_border]])
        order = np.lexsort((kinds, all_moves, queries, moves.slots[all_moves]))
        all_moves, queries, kinds, reasons = all_moves[order], queries[order], kinds[order], reasons[order]
        slots = moves.slots[all_moves]
        has_next = np.append((slots[1:] == slots[:-1]) & (queries[1:] == queries[:-1]), False)
        may_stay = (kinds == _LINGERS) | ((kinds == EXIT) & ((reasons == MOVED) | (reasons == TIME)))
        chosen = np.flatnonzero(may_stay)
        ends = moves.ends[all_moves[chosen]]
        ends[has_next[chosen]] = all_moves[chosen[has_next[chosen]] + 1]
        starts = all_moves[chosen].astype(np.int64)
        is_old = (kinds[chosen] == _LINGERS) & (queries[chosen] < view.first_retained)
        is_replaced = is_old & (queries[chosen] >= view.versions.count_at(seen[starts])) & (starts < ends)
        leaves = self._first_outside(view, moves, columns, queries[chosen], starts, ends, is_replaced)
        left = leaves >= 0
        keep = np.ones(len(kinds), np.bool_)
        keep[chosen] = left
        keep[chosen[~left & has_next[chosen]] + 1] = False  # it was inside all the time
        all_moves[chosen[left]] = leaves[left]
        reasons[chosen] = np.where(
            ~_are_active(view, queries[chosen]),
            REMOVED,
            np.where(is_replaced, REPLACED, moves.reasons[all_moves[chosen]]),
        )
        kinds[chosen] = EXIT
        lingering = chosen[~left & ~has_next[chosen]]
        settled = Events(all_moves[keep].astype(np.int32), queries[keep], kinds[keep], reasons[keep])
        stays = Events(all_moves[lingering].astype(np.int32), queries[lingering], kinds[lingering], reasons[lingering])
        settled = settled.take(np.lexsort((settled.kinds, settled.moves)))
        stops = np.where(left, leaves, ends)
        crosses = events.take(~is_border)
        crosses = crosses.take(~_within(crosses, moves, queries[chosen], slots[chosen], starts, stops))
        return Events.join([settled, crosses], len(moves)), stays

    def _first_outside(
        self,
        view: SetView,
        moves: Moves,
        columns: dict[str, Column],
        queries: NDArray[np.int32],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        is_replaced: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """The first of the moves [start, end) after which a pair is outside by more than the margin, or -1.

        A query that was replaced has no margin: its pair is outside after the first move that concerns it.
        """
        found = np.full(len(queries), -1, np.int64)
        every, at = np.flatnonzero(starts < ends), starts.copy()
        for first_of in range(0, len(every), _PAIRS_AT_ONCE):
            waiting = every[first_of : first_of + _PAIRS_AT_ONCE]
            self._look_outside(view, moves, columns, queries, waiting, at, ends, is_replaced, found)
        return found

    def _look_outside(
        self,
        view: SetView,
        moves: Moves,
        columns: dict[str, Column],
        queries: NDArray[np.int32],
        waiting: NDArray[np.int64],
        at: NDArray[np.int64],
        ends: NDArray[np.int64],
        is_replaced: NDArray[np.bool_],
        found: NDArray[np.int64],
    ) -> None:
        """Write the move for the waiting pairs. Each continues from its move `at`."""
        width = 1
        while len(waiting):
            counts = np.minimum(ends[waiting] - at[waiting], width)
            pairs = np.repeat(np.arange(len(waiting)), counts)
            offsets = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
            tried = at[waiting][pairs] + offsets
            tried_queries = queries[waiting][pairs]
            outside = ~self._contain(view, columns, moves.after[tried], tried_queries) | is_replaced[waiting][pairs]
            if moves.windows is not None and self._behaviour is not None:
                outside &= moves.windows.concern(self._behaviour.silences, tried, tried_queries)
            first = np.full(len(waiting), np.iinfo(np.int64).max)
            np.minimum.at(first, pairs[outside], tried[outside])
            done = first < np.iinfo(np.int64).max
            found[waiting[done]] = first[done]
            at[waiting] += counts
            waiting = waiting[~done & (at[waiting] < ends[waiting])]
            width = min(2 * width, _MOVES_AT_ONCE)

    def _contain(
        self, view: SetView, columns: dict[str, Column], rows: NDArray[np.int64], queries: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Whether each query, widened, contains the row. False for a missing row or a removed query."""
        holds = np.zeros(len(rows), np.bool_)
        current = {id(part) for part in view.parts.compiled}
        self._widened = {number: each for number, each in self._widened.items() if number in current}
        active = (rows >= 0) & _are_active(view, queries)
        for part in view.parts.compiled:
            inside = (part.first_query <= queries) & (queries < part.first_query + part.n_queries)
            chosen = np.flatnonzero(active & inside)
            if not len(chosen):
                continue
            wide = self.widen(part)
            distinct, places = np.unique(rows[chosen], return_inverse=True)
            with naming(view.ids.at):
                matches = wide.match({name: columns[name].take(distinct) for name in wide.fields}, len(distinct))
            held = (matches.rows.astype(np.int64) << 32) | matches.positions
            holds[chosen] = np.isin((places << 32) | queries[chosen].astype(np.int64), held)
        return holds

    def widen(self, part: Part) -> Part:
        """The part with its ranges widened."""
        known = self._widened.get(id(part))
        if known is None or known[0] is not part:
            blocks, residuals = decompile(part, np.zeros(part.first_query + part.n_queries, np.bool_))
            wide, fences = self._widen_all(blocks, residuals)
            known = part, compile_part(wide, fences, self.schema, part.first_query, part.n_queries)
            self._widened[id(part)] = known
        return known[1]

    def _widen_all(
        self, blocks: Sequence[BoxBlock], residuals: Sequence[Residual]
    ) -> tuple[list[BoxBlock], list[Residual]]:
        """Boxes and residuals, widened by numbers and by metres."""
        wide = [BoxBlock(block.queries, self._widen_ranges(block.ranges, block.queries)) for block in blocks]
        fences = [fence for each in residuals for fence in self._widen_fences(each)]
        boxes_by, fences_by = self._by_metres(wide), self._by_metres(fences)
        all_wide: list[BoxBlock] = []
        all_fences: list[Residual] = []
        for metres in sorted({*boxes_by, *fences_by}):
            some, some_fences = boxes_by.get(metres, []), fences_by.get(metres, [])
            if metres:
                some, some_fences = widen_by_metres(some, some_fences, metres, self.schema)
            all_wide += some
            all_fences += some_fences
        return all_wide, all_fences

    def _metres_of(self, each: BoxBlock | Residual) -> NDArray[np.float64]:
        default = self.margins.get(METRES, 0.0)
        if self._behaviour is None:
            return np.full(len(each.queries), default)
        return self._behaviour.metres(each.queries, default)

    def _by_metres(self, many: Sequence[Any]) -> dict[float, list[Any]]:
        """The parts of boxes or residuals by the margin of their queries in metres."""
        found: dict[float, list[Any]] = {}
        for each in many:
            metres = self._metres_of(each)
            order = np.argsort(metres, kind="stable")
            for some in np.split(order, np.flatnonzero(np.diff(metres[order])) + 1):
                if len(some):
                    part = each if len(some) == len(metres) else each.take(some)
                    found.setdefault(float(metres[some[0]]), []).append(part)
        return found

    def use(self, behaviour: Behaviour) -> None:
        """Take over the options of queries. Widened parts stay valid: a query has the same options in a part."""
        self._behaviour = behaviour

    def _margins_of(self, name: str, queries: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The distinct margins of queries in a field, and the place of each query's among them."""
        own = None if self._behaviour is None else self._behaviour.margins(queries)
        default = self.margins.get(name, 0.0)
        margins = np.full(len(queries), default) if own is None else np.where(np.isnan(own), default, own)
        return np.unique(margins, return_inverse=True)

    def _widen_fences(self, residual: Residual) -> list[Residual]:
        """The residual with wider polygons and circles, once per margin that its queries have."""
        own = None if self._behaviour is None else self._behaviour.margins(residual.queries)
        if own is None:
            return [widen_fences(residual, self.margins)]
        numbers = [field.name for field in self.schema if field.type.is_number]
        fences = []
        for margin in np.unique(own):  # NaN comes last, once
            some = residual.take(np.flatnonzero(np.isnan(own) if np.isnan(margin) else own == margin))
            fences.append(widen_fences(some, self.margins if np.isnan(margin) else dict.fromkeys(numbers, margin)))
        return fences

    def _widen_ranges(self, ranges: dict[str, Ranges | Nulls], queries: NDArray[Any]) -> dict[str, Ranges | Nulls]:
        widened = dict(ranges)
        for name, each in ranges.items():
            field = self.schema.find(name)
            if isinstance(each, Ranges) and field is not None and field.type.is_number:
                margins, places = self._margins_of(name, queries)
                steps: Any = margins
                if not field.type.is_floating:
                    exact = [math.floor(Decimal(repr(float(margin))) * 10**field.type.scale) for margin in margins]
                    steps = np.array(exact, object)
                step = steps[places]
                widened[name] = Ranges(
                    _shift(each.lows, -step),
                    _shift(each.highs, step),
                    _closed(each.low_ends, margins[places]),
                    _closed(each.high_ends, margins[places]),
                )
        return widened


def _are_active(view: SetView, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
    active = queries < view.first_retained
    active[active] = ~view.versions.is_removed[queries[active]]
    return active


def _shift(values: NDArray[Any], step: Any) -> NDArray[Any]:
    if values.dtype != np.int64:
        with np.errstate(over="ignore"):
            return np.asarray(values + step)
    return np.asarray(np.clip(values.astype(object) + step, int(_INT64.min), int(_INT64.max)), np.int64)


def _closed(ends: NDArray[np.int8], margins: NDArray[np.float64]) -> NDArray[np.int8]:
    """The ends of ranges that a margin widens. Without a margin they stay."""
    return np.where((ends == UNBOUNDED) | (margins == 0), ends, CLOSED).astype(np.int8)


def _within(
    crosses: Events,
    moves: Moves,
    queries: NDArray[np.int32],
    slots: NDArray[np.int32],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether the pair of each crossing lingers during the moves [start, stop]: then it was never outside."""
    if not len(crosses) or not len(starts):
        return np.zeros(len(crosses), np.bool_)
    pairs = (slots.astype(np.int64) << 32) | queries
    crossed = (moves.slots[crosses.moves].astype(np.int64) << 32) | crosses.queries
    _, numbers = np.unique(np.concatenate([pairs, crossed]), return_inverse=True)
    scale = len(moves) + 1
    keys = numbers[: len(pairs)] * scale + starts
    order = np.argsort(keys)
    place = np.searchsorted(keys[order], numbers[len(pairs) :] * scale + crosses.moves, side="right") - 1
    last = order[np.maximum(place, 0)]
    same = (place >= 0) & (numbers[last] == numbers[len(pairs) :])
    return np.asarray(same & (crosses.moves <= stops[last]))
