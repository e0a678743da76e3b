"""What events say about the rows that caused them: columns of the row, and an id.

The row of an event is the row that caused it. For events that time causes, such as expiry and dwell, it is the last row
of the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.keyed_rows import KeyedRows
from vedette.native.buffers import grown
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.event_ids import EXPIRY, count_ordinals, make_event_ids
from vedette.operators.border.event_metadata import metadata_at
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.moves import Moves
from vedette.operators.border.options import MonitorOptions
from vedette.operators.carried_rows import CarriedRows
from vedette.operators.query_metadata import find_metadata
from vedette.operators.stable_ids import EVENT_ID, ID_BYTES
from vedette.queries.set_view import SetView

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet


@dataclass(frozen=True)
class BatchDetails:
    """Of the rows of a batch: the columns that events have, and ordinals."""

    table: pa.Table
    ordinals: NDArray[np.int64]  # by row of the batch
    key_ordinals: NDArray[np.int64]  # by row of the batch: those of its key after the row

    def take(self, rows: NDArray[np.int64]) -> BatchDetails:
        return BatchDetails(self.table.take(pa.array(rows)), self.ordinals[rows], self.key_ordinals[rows])


@dataclass(frozen=True)
class EventRows:
    """By event: its row, a row of the batch or -1 - the slot of a key whose last row it is; and its ordinal."""

    rows: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    n_held: NDArray[np.int64] | None = None  # events of its key and query that were held back before it

    @classmethod
    def of(cls, moves: Moves, events: NDArray[Any], batch: BatchDetails | None) -> EventRows:
        """The rows that cause the events of some moves."""
        rows = _rows_of(moves, np.where(moves.after < 0, moves.before, moves.after))[events]
        ordinals = np.full(len(rows), EXPIRY, np.int64)
        if batch is not None:
            caused = ((moves.after >= 0) & ~moves.are_of_time)[events]
            ordinals[caused] = batch.ordinals[rows[caused]]
        return cls(rows, ordinals)

    def take(self, chosen: NDArray[Any]) -> EventRows:
        """Those of some events, without the numbers of events held back."""
        return EventRows(self.rows[chosen], self.ordinals[chosen])

    @staticmethod
    def last_rows(moves: Moves, events: NDArray[Any]) -> NDArray[np.int64]:
        """The last rows of the keys before these moves."""
        return np.asarray(_rows_of(moves, moves.before)[events])


def _rows_of(moves: Moves, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the batch, or -1 - slot, of rows as moves number them."""
    rows: NDArray[np.int64] = np.concatenate([-1 - moves.known.astype(np.int64), moves.kept, [0]])
    return np.asarray(rows[numbers], np.int64)


class EventDetails:
    """The details of the events of a monitor, with what they need to know about the last row of each key."""

    def __init__(self, queries: QuerySet, options: MonitorOptions) -> None:
        self._queries = queries
        self.has_ids = options.has_event_ids
        self.metadata = tuple(options.metadata or ())
        self.carried = CarriedRows(options.carried)
        self.ordinals = np.zeros(0, np.int64)  # by slot; see `count_ordinals`

    def __bool__(self) -> bool:
        """Whether events have any details."""
        return self.has_ids or bool(self.carried or self.metadata)

    @property
    def nbytes(self) -> int:
        return self.carried.nbytes + self.ordinals.nbytes

    def read(self, rows: Any, batch: KeyedRows) -> pa.Table:
        """The columns of the rows that have a key."""
        table = self.carried.read(rows)
        return table if batch.kept is None else table.take(pa.array(batch.kept))

    def of_batch(self, table: pa.Table, moves: Moves, times: NDArray[Any], keys: KeyState) -> BatchDetails:
        """The details of the rows of a batch, before it is remembered."""
        if not self.has_ids:
            nothing = np.zeros(len(times), np.int64)
            return BatchDetails(table, nothing, nothing)
        self._reach(len(keys))
        found = count_ordinals(moves.kept_slots, times[moves.kept], moves.latest_times, keys, self.ordinals)
        by_row = np.zeros((2, len(times)), np.int64)
        by_row[:, moves.kept] = found
        return BatchDetails(table, by_row[0], by_row[1])

    def add_to(
        self,
        table: pa.Table,
        events: EventColumns,
        rows: EventRows,
        batch: BatchDetails | None,
        keys: KeyState,
        view: SetView,
    ) -> pa.Table:
        """A table of events with the columns of their rows, and with their ids."""
        if self.carried:
            carried = self._find(rows.rows, batch)
            for name, column in zip(carried.column_names, carried.columns, strict=True):
                table = table.append_column(name, column)
        found = find_metadata(self.metadata, events.queries, lambda queries: metadata_at(queries, view))
        for name, column in found.items():
            table = table.append_column(name, column)
        if self.has_ids:
            ids = make_event_ids(self._queries.name, events, rows.ordinals, keys, view)
            table = table.append_column(EVENT_ID, ids)
        return table

    def _find(self, rows: NDArray[np.int64], batch: BatchDetails | None) -> pa.Table:
        old = rows < 0
        if batch is None or old.all():
            return self.carried.at(-1 - rows)
        if not old.any():
            return batch.table.take(pa.array(rows))
        places = np.where(old, batch.table.num_rows + np.cumsum(old) - 1, rows)
        return pa.concat_tables([batch.table, self.carried.at(-1 - rows[old])]).take(pa.array(places))

    def at(self, slots: NDArray[np.int32]) -> BatchDetails:
        """The details of the last rows of keys."""
        self._reach(int(slots.max(initial=-1)) + 1)
        return BatchDetails(self.carried.at(slots), self.ordinals[slots], self.ordinals[slots])

    def put(self, slots: NDArray[np.int32], details: BatchDetails) -> None:
        """Set the details of the last rows of keys."""
        self.carried.put(slots, details.table)
        if self.has_ids:
            self._reach(int(slots.max(initial=-1)) + 1)
            self.ordinals[slots] = details.key_ordinals

    def free(self, slots: NDArray[np.int32]) -> None:
        self.carried.free(slots)

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        self.carried.move_slots(moved)
        if self.has_ids:
            self._reach(len(moved))
            stays = np.flatnonzero(moved >= 0)
            ordinals = np.zeros(len(stays), np.int64)
            ordinals[moved[stays]] = self.ordinals[stays]
            self.ordinals = ordinals

    def _reach(self, n: int) -> None:
        self.ordinals = grown(self.ordinals, len(self.ordinals), n)


def details_bytes(table: pa.Table) -> int:
    """The memory of the details in a table of events."""
    added = table.column_names[5:]
    return sum(ID_BYTES * table.num_rows if name == EVENT_ID else int(table[name].nbytes) for name in added)
