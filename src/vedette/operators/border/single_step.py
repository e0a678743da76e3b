"""A step of one row that moves its key, or is its first: the usual step of a service that gets its rows one by one.

It returns what a step of a batch would return, without the arrays that make many rows fast. It is used if nothing but
the move can cause events: the key was seen under the current version, or never, and neither time nor options of queries
delay, add or drop events. All other steps are short steps, or steps of batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes
from vedette.data.columns import Column, join_columns, large_strings
from vedette.data.one_row import OneRow, OneRowReader
from vedette.errors import RowError
from vedette.language import naming
from vedette.operators.border.changes import BorderIndex
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.event_details import BatchDetails, EventRows, details_bytes
from vedette.operators.border.event_table import EVENT_BYTES
from vedette.operators.border.events import ENTER, EXIT
from vedette.operators.border.key_state import KeyState, SlotColumn
from vedette.operators.border.move_table import MOST, MoveTables
from vedette.operators.border.moves import Moves
from vedette.operators.border.short_step import ShortSteps
from vedette.queries.set_view import SetView

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

_NO_ROW, _FIRST_ROW, _SECOND_ROW = (np.array([row], np.int64) for row in (-1, 0, 1))


@dataclass(frozen=True)
class Prepared:
    """What single steps need, for one version of the set and one kind of rows."""

    view: SetView
    compiled: Any  # the list of the view's parts, which is another one after each change
    version: int
    n_queries: int
    time_type: str
    key_kind: str | None
    steps: tuple[_SingleSteps, ShortSteps] | None  # None: steps must be those of batches

    def is_of(self, view: SetView, time_type: str, key_kind: str | None) -> bool:
        known = self.view
        is_same_set = view.versions is known.versions and view.attributes is known.attributes
        is_same_version = view.parts.compiled is self.compiled and view.versions.current == self.version
        is_same_kind = time_type == self.time_type and key_kind == self.key_kind
        return is_same_set and is_same_version and len(view.ids) == self.n_queries and is_same_kind


def prepare(monitor: BorderMonitor, view: SetView, borders: list[BorderIndex], is_plain: bool) -> Prepared:
    """Prepare single steps. `is_plain`: events are not delayed or dropped, and time does not cause any."""
    kind, time_type = monitor.keys.keys.kind, monitor.time_type
    steps = None
    if is_plain and kind is not None and time_type:
        fields = tuple(field for name in view.parts.fields if (field := view.parts.schema.find(name)) is not None)
        options, zone = monitor.options, monitor.queries.time_zone
        reader = OneRowReader(options.key, kind, options.time, time_type, fields, zone)
        tables = MoveTables(time_type, kind, view.ids)
        steps = _SingleSteps(view, borders, reader, tables), ShortSteps(view, borders, reader, tables)
    return Prepared(view, view.parts.compiled, view.versions.current, len(view.ids), time_type, kind, steps)


class _SingleSteps:
    """Single steps of a monitor with one version of the set."""

    def __init__(self, view: SetView, borders: list[BorderIndex], reader: OneRowReader, tables: MoveTables) -> None:
        self._view, self._borders, self._reader, self._tables = view, borders, reader, tables
        self._version = view.versions.current
        self._is_removed = view.versions.is_removed if view.versions.n_removed else None
        self._fields = {field.name for field in reader.fields}

    def step(self, monitor: BorderMonitor, rows: Any) -> pa.Table | None:
        """The events of one row, or None if it needs a step of a batch. Then nothing has changed."""
        row = self._reader.read(rows)
        if row is None:
            return None
        keys = monitor.keys
        slot = keys.keys.find_one(row.key)
        is_first = slot < 0 or not keys.has_row[slot]
        if not is_first and (keys.versions[slot] != self._version or row.time < keys.times[slot]):
            return None
        if keys.columns.keys() != self._fields:
            return None
        if slot < 0:
            slot = int(keys.add(_as_keys(row.key))[0])
        exits, enters, n_failed = self._find_changes(keys, slot, row, is_first)
        n = len(exits) + len(enters)
        if len(exits) > MOST or len(enters) > MOST:
            return None
        slots, table, details = np.array([slot], np.int32), self._tables.empty, None
        if n:
            table = self._tables.make(keys.keys.pick(slots), row.time, exits, enters, is_first=is_first)
        if monitor.details:
            try:
                moves = _to_moves(keys, slots, row.time, is_first)
                details = monitor.details.of_batch(monitor.details.carried.read(rows), moves, moves.times, keys)
            except RowError:
                return None
            table = self._add_details(monitor, table, moves, exits, enters, details)
        if n and EVENT_BYTES * n + (details_bytes(table) if details else 0) > max_answer_bytes():
            return None
        monitor.n_failed += n_failed
        self._remember(monitor, slots, row, details, is_first)
        return table

    def _find_changes(self, keys: KeyState, slot: int, row: OneRow, is_first: bool) -> tuple[list[int], list[int], int]:
        columns = {name: _to_column(value) for name, value in row.values.items()} if is_first else {}
        columns = columns or _join_row(keys, slot, row)
        exits: list[int] = []
        enters: list[int] = []
        n_failed = 0
        with naming(self._view.ids.at):
            for borders in self._borders:
                left, entered, failed = borders.find_change(columns, is_first=is_first)
                exits += left
                enters += entered
                n_failed += failed
        if self._is_removed is not None:
            exits = [query for query in exits if not self._is_removed[query]]
            enters = [query for query in enters if not self._is_removed[query]]
        return exits, enters, n_failed

    def _add_details(
        self,
        monitor: BorderMonitor,
        table: pa.Table,
        moves: Moves,
        exits: list[int],
        enters: list[int],
        details: BatchDetails,
    ) -> pa.Table:
        n = len(exits) + len(enters)
        kinds = np.repeat(np.array([EXIT, ENTER], np.int8), [len(exits), len(enters)])
        queries, reasons = np.array(exits + enters, np.int32), np.full(n, moves.reasons[0], np.int8)
        events = EventColumns(np.repeat(moves.slots, n), np.repeat(moves.times, n), queries, kinds, reasons)
        rows = EventRows.of(moves, np.zeros(n, np.int64), details)
        return monitor.details.add_to(table, events, rows, details, monitor.keys, self._view)

    def _remember(
        self,
        monitor: BorderMonitor,
        slots: NDArray[np.int32],
        row: OneRow,
        details: BatchDetails | None,
        is_first: bool,
    ) -> None:
        keys, slot = monitor.keys, slots[0]
        time = keys.times.dtype.type(row.time)
        keys.times[slot] = time
        if is_first:
            keys.has_row[slot], keys.versions[slot] = True, self._version
            keys.n_with_row += 1
        for name, value in row.values.items():
            column = keys.columns[name]
            if isinstance(value, Column):
                column.put(slots.astype(np.int64), value)
            else:
                column.values[slot] = value
                column.valid[slot] = True
        if details is not None:
            monitor.details.put(slots, details)
        monitor.changes.note(slots)
        monitor.clock = time if monitor.clock is None else max(monitor.clock, time)


def _join_row(keys: KeyState, slot: int, row: OneRow) -> dict[str, Column]:
    """The last row of a key, then its new row."""
    return {name: _join_value(keys.columns[name], slot, value) for name, value in row.values.items()}


def _join_value(column: SlotColumn, slot: int, value: Any) -> Column:
    if isinstance(value, Column):
        return join_columns(column.at(np.array([slot], np.int32)), value)
    values = np.empty(2, column.values.dtype)
    values[0], values[1] = column.values[slot], value
    return Column(values, None if column.valid[slot] else np.array([False, True]))


def _to_column(value: Any) -> Column:
    return value if isinstance(value, Column) else Column(np.array([value]))


def _as_keys(key: str | int) -> Any:
    return large_strings([key]) if isinstance(key, str) else np.array([key], np.int64)


def _to_moves(keys: KeyState, slots: NDArray[np.int32], time: Any, is_first: bool) -> Moves:
    """The move of one key from its last row, if it has one, to the only row of a batch."""
    times, rows = np.array([time], keys.times.dtype), np.zeros(1, np.int64)
    known = slots[:0] if is_first else slots
    before, after = (_NO_ROW, _FIRST_ROW) if is_first else (_FIRST_ROW, _SECOND_ROW)
    return Moves(before, after, slots, times, known, rows, slots, times, 0)
