"""A step of a few rows that only move their keys, or are the first of their keys: the usual step of a service.

It returns what a step of a batch returns, for less than its fixed costs: rows are read without conversions, and nothing
is copied for an undo, because the state changes only after all events are found. It is used where single steps are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.data.answer_limit import max_answer_bytes
from vedette.data.columns import Column, join_columns
from vedette.data.few_rows import read_few_rows
from vedette.data.keyed_rows import KeyedRows
from vedette.data.one_row import OneRowReader
from vedette.errors import RowError
from vedette.language import naming
from vedette.native.budget import OverBudgetError, bounded
from vedette.native.threads import limited
from vedette.operators.border.changes import BorderIndex
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.event_details import BatchDetails, EventRows, details_bytes
from vedette.operators.border.event_table import EVENT_BYTES
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.move_table import MoveTables
from vedette.operators.border.moves import Moves, find_moves
from vedette.operators.border.runs import Runs
from vedette.queries.set_view import SetView

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

MOST_ROWS = 1 << 12  # of a short step; below the least number of moves that threads share
_NO_REMOVED, _NO_LIMITS = np.empty(0, np.bool_), np.empty(0, np.int64)


class ShortSteps:
    """Short steps of a monitor with one version of the set."""

    def __init__(self, view: SetView, borders: list[BorderIndex], reader: OneRowReader, tables: MoveTables) -> None:
        self._view, self._borders, self._reader, self._tables = view, borders, reader, tables
        self._version = view.versions.current
        self._is_removed = view.versions.is_removed if view.versions.n_removed else _NO_REMOVED
        self._fields = {field.name for field in reader.fields}

    def step(self, monitor: BorderMonitor, rows: Any) -> pa.Table | None:
        """The events of a few rows, or None if they need a step of a batch. Then no key has changed."""
        batch = read_few_rows(rows, self._reader, MOST_ROWS)
        keys, limit = monitor.keys, max_answer_bytes()
        if batch is None or keys.columns.keys() != self._fields:
            return None
        slots = keys.find_slots(batch.keys)
        drops_late = monitor.options.late == "drop"
        moves = find_moves(slots, batch.times, keys, drops_late=drops_late, expire_after=None)
        if not (keys.versions[moves.known] == self._version).all():
            return None
        try:
            with bounded(limit), limited(monitor.threads), naming(self._view.ids.at):
                runs, n_failed = self._find_changes(_join_rows(keys, moves, batch), moves)
            table, details = self._to_table(monitor, rows, batch, moves, runs)
        except (OverBudgetError, RowError):
            return None
        if EVENT_BYTES * len(runs) + (details_bytes(table) if monitor.details else 0) > limit:
            return None
        monitor.n_failed += n_failed
        monitor.n_late += moves.n_late
        monitor.remember(self._view, moves, batch, details)
        latest = batch.times.max()
        monitor.clock = latest if monitor.clock is None else max(monitor.clock, latest)
        return table

    def _find_changes(self, columns: dict[str, Column], moves: Moves) -> tuple[Runs, int]:
        n_rows = len(moves.known) + len(moves.kept)
        found = [each.find_changes(columns, n_rows, moves.before, moves.after, None) for each in self._borders]
        runs = Runs.merge([runs for runs, _, _ in found], len(moves))
        if len(self._is_removed) and len(runs):
            runs = runs.without(self._is_removed, _NO_LIMITS)
        return runs, sum(n_failed for _, _, n_failed in found)

    def _to_table(
        self, monitor: BorderMonitor, rows: Any, batch: KeyedRows, moves: Moves, runs: Runs
    ) -> tuple[pa.Table, BatchDetails | None]:
        events = EventColumns.of(runs, [], moves) if len(runs) or monitor.details else None
        table = self._tables.make_many(events, monitor.keys.keys) if events is not None else self._tables.empty
        if events is None or not monitor.details:
            return table, None
        details = monitor.details.of_batch(monitor.details.carried.read(rows), moves, batch.times, monitor.keys)
        causes = EventRows.of(moves, runs.spread(np.arange(len(moves), dtype=np.int32)), details)
        return monitor.details.add_to(table, events, causes, details, monitor.keys, self._view), details


def _join_rows(keys: KeyState, moves: Moves, batch: KeyedRows) -> dict[str, Column]:
    """The last rows of the keys, then the rows of the batch, as moves number them."""
    return {
        name: join_columns(keys.columns[name].at(moves.known), column.take(moves.kept))
        for name, column in batch.columns.items()
    }
