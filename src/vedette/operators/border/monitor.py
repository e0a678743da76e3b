"""Border monitoring of a keyed stream: which queries each key enters and leaves, batch by batch.

The monitor keeps the last row of each key, and the pairs that margins and dwell times leave open. See docs/operators.md
for its answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes, too_large
from vedette.data.columns import Column, join_columns, null_column
from vedette.data.keyed_rows import TIME_TYPES, KeyedRows, read_keyed_rows, read_near_time
from vedette.errors import RowError, count
from vedette.native.budget import Pieces
from vedette.native.threads import check_threads, limited
from vedette.operators.border.change_log import ChangeLog
from vedette.operators.border.dwell import settle_dwell
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.event_pieces import find_pieces
from vedette.operators.border.event_table import EVENT_BYTES, to_table
from vedette.operators.border.events import ENTER, Events
from vedette.operators.border.finder import BorderFinder, RowsOf, join_events, unify
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.margin import Margins
from vedette.operators.border.moves import Moves, find_moves
from vedette.operators.border.options import MonitorOptions
from vedette.operators.border.pair_table import KeyQueryPairs, PairTable
from vedette.operators.border.state import BorderState
from vedette.operators.border.undo import Undo
from vedette.queries.set_view import SetView
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

_STATE = BorderState()


class BorderMonitor:
    """Enter and exit events of a keyed stream.

    >>> from vedette import QuerySet
    >>> alerts = QuerySet("symbol string, price double, t bigint")
    >>> alerts.add("cheap", "price < 40")
    >>> monitor = alerts.border(key="symbol", time="t")
    >>> rows = {"symbol": ["IBM", "IBM", "IBM"], "price": [41.0, 39.0, 42.0], "t": [1, 2, 3]}
    >>> [(event["time"], event["query"], event["event"]) for event in monitor.step(rows).to_pylist()]
    [(2, 'cheap', 'enter'), (3, 'cheap', 'exit')]
    """

    n_rebuilt = 0  # there is no index over the keys that would be built from all of them

    def __init__(self, queries: QuerySet, options: MonitorOptions, *, threads: int | None = None) -> None:
        options.check(queries.schema)
        self.options = options
        self.queries = queries
        self.threads = check_threads(threads)
        self.n_late = 0  # late rows that were dropped
        self.n_null_keys = 0  # rows without a key that were dropped
        self.n_failed = 0  # comparisons that would fail a job in ANSI mode
        self._finder = queries.shared(BorderFinder)  # shared by all monitors of the set
        self._margins = Margins(options.margins(queries.schema), queries.schema)
        self._unfinished: Undo | None = None  # of a step whose pieces are not all read
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self._abandon()
        time = self.queries.schema.find(self.options.time)
        self.time_type = time.type.name if time is not None and time.type.name in TIME_TYPES else ""
        dtype = TIME_TYPES.get(self.time_type, np.int64)
        self.keys = KeyState(dtype)
        self.clock: Any = None  # the greatest time seen
        self.lingering = PairTable(dtype)  # inside only because of the margin
        self.pending = PairTable(dtype)  # inside, but not yet for long enough to be reported
        self.changes = ChangeLog()

    @property
    def n_keys(self) -> int:
        """The number of keys in the state."""
        return self.keys.n_with_row

    @property
    def nbytes(self) -> int:
        """The memory of the state and of the region segments, without the queries."""
        return self._finder.nbytes + self.state_nbytes

    @property
    def state_nbytes(self) -> int:
        """The memory of the state, without the region segments, which all monitors of the set share."""
        return self.keys.nbytes + self.lingering.nbytes + self.pending.nbytes

    def step(self, rows: Any, *, advance: bool = True) -> pa.Table:
        """The events of a batch of rows: columns key, time, query, event and reason.

        Rows are processed by key and in time order, so events of a key are in the order of its rows. With `advance`,
        keys expire that were silent for longer than `expire_after` before the greatest time seen; the answer is then
        the same as for the rows one by one in time order. Raises AnswerError, and changes nothing, if the events exceed
        the setting max_answer_bytes. `step_batches` has no such limit.
        """
        return _join(self._step(rows, advance, max_answer_bytes()), "step_batches")

    def step_batches(self, rows: Any, *, advance: bool = True, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The events of `step` in pieces of at most `max_bytes`, by default the setting answer_batch_bytes.

        The monitor changes when the iteration ends, after the last piece. If the iteration stops earlier, the step is
        undone. It is also undone if the monitor is used in between (another step or advance, save, load, a delta,
        clear); the iteration then raises RowError.
        """
        return self._step(rows, advance, settings().answer_batch_bytes if max_bytes is None else max_bytes)

    def advance(self, time: Any) -> pa.Table:
        """The events up to a time that later rows are not before.

        Keys expire that were silent for too long, and enters are emitted whose dwell time is over. Raises AnswerError
        as `step` does. `advance_batches` has no such limit.
        """
        return _join(self._advance(time, max_answer_bytes()), "advance_batches")

    def advance_batches(self, time: Any, *, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The events of `advance` in pieces, as in `step_batches`."""
        return self._advance(time, settings().answer_batch_bytes if max_bytes is None else max_bytes)

    def _step(self, rows: Any, advance: bool, most: int) -> Generator[pa.Table, None, None]:
        undo = self._begin()
        yield from self._take_pieces(self._take_rows(rows, advance, most, undo), undo)

    def _advance(self, time: Any, most: int) -> Generator[pa.Table, None, None]:
        undo = self._begin()
        yield from self._take_pieces(self._take_time(time, most), undo)

    def _begin(self) -> Undo:
        """Begin a step. Returns an object that can undo it."""
        self._abandon()
        self._unfinished = Undo.of(self)
        return self._unfinished

    def _abandon(self) -> None:
        """Undo the unfinished step, if there is one. Its iteration cannot continue."""
        undo, self._unfinished = self._unfinished, None
        if undo is not None:
            undo.apply(self)

    def _take_pieces(self, pieces: Iterator[pa.Table], undo: Undo) -> Generator[pa.Table, None, None]:
        """The pieces of a step. It is undone unless all are read."""
        try:
            for piece in pieces:
                yield piece
                if self._unfinished is not undo:
                    raise RowError(
                        "the monitor was used before all pieces of this step were read, so the step was undone; read "
                        "all pieces first, then use the monitor again"
                    )
            self._unfinished = None
        finally:
            if self._unfinished is undo:
                self._abandon()

    def _take_rows(self, rows: Any, advance: bool, most: int, undo: Undo) -> Iterator[pa.Table]:
        view = self.queries.view()
        batch = self._read(rows, view)
        if not self.time_type:
            yield self._nothing(view)
            return
        self.keys.use_fields([field for field in self.queries.schema if field.name in view.all_fields])
        slots = self.keys.find_slots(batch.keys)
        if batch.codes is not None:
            slots = slots[batch.codes]
        expire_after = self.options.duration("expire_after", self.time_type)
        moves = find_moves(
            slots,
            batch.times,
            self.keys,
            drops_late=self.options.late == "drop",
            expire_after=expire_after,
            clock=self.clock if advance else None,
        )
        yield from self._find_all(view, moves, batch, most)
        expires = advance and len(batch) > 0 and expire_after is not None
        if expires:
            undo.keep_rows(self.keys, moves.kept_slots[moves.lasts])
        self._remember(moves, batch, view.versions.current)
        self.n_late += moves.n_late
        self.n_null_keys += batch.n_null_keys
        if len(batch):
            self.clock = batch.times.max() if self.clock is None else max(self.clock, batch.times.max())
        if expires:
            silent = yield from self._find_expired(view, self.clock, most)
            self._free(silent)

    def _take_time(self, time: Any, most: int) -> Iterator[pa.Table]:
        view = self.queries.view()
        if not self.time_type:
            yield self._nothing(view)
            return
        now = read_near_time(time, self.time_type, self.queries.time_zone)
        self.clock = now if self.clock is None else max(self.clock, now)
        silent = yield from self._find_expired(view, now, most)
        yield from self._report_dwelt(view, now, most)
        self._free(silent)

    # Saving.

    def save(self) -> bytes:
        """The whole state."""
        self._abandon()
        return _STATE.save(self)

    def load(self, blob: bytes) -> None:
        """Replace this state by a saved one. Raises SnapshotError, and changes nothing, if it does not fit."""
        self._abandon()
        _STATE.load(self, blob)

    def take_delta(self) -> bytes:
        """The changes of the state since the last `save`, `load` or `take_delta`."""
        self._abandon()
        return _STATE.take_delta(self)

    def apply_delta(self, blob: bytes) -> None:
        """Update a loaded state. Apply deltas in the order in which they were taken."""
        self._abandon()
        _STATE.apply_delta(self, blob)

    # Inside.

    def _nothing(self, view: SetView) -> pa.Table:
        """An empty table, before the first row, when the type of the time is unknown."""
        return to_table(EventColumns.none(), "bigint", self.keys, view)

    def set_time_type(self, time_type: str) -> None:
        """Set the type of times, at the first row."""
        if self.time_type and self.time_type != time_type:
            raise RowError(f"times were {self.time_type} so far; {self.options.time!r} is now {time_type}")
        if not self.time_type:
            self.options.check_durations(time_type)
            self.time_type = time_type
            dtype = TIME_TYPES[time_type]
            self.keys.times = self.keys.times.astype(dtype)
            self.lingering, self.pending = PairTable(dtype), PairTable(dtype)

    def _read(self, rows: Any, view: SetView) -> KeyedRows:
        options = self.options
        batch = read_keyed_rows(
            rows,
            self.queries.schema,
            view.parts.fields,
            self.queries.time_zone,
            key=options.key,
            time=options.time,
            drops_null_keys=options.null_key == "drop",
        )
        kind = "integer" if isinstance(batch.keys, np.ndarray) else "string"
        if self.keys.keys.kind not in (None, kind) and len(batch):
            raise RowError(f"keys were {self.keys.keys.kind}s so far; {options.key!r} now has {kind}s")
        if batch.time_type:  # else the columns are empty and have no type
            self.set_time_type(batch.time_type)
            if self.keys.keys.kind is None and not batch.n_null_keys:
                self.keys.keys.kind = kind
        return batch

    def _join_rows(self, moves: Moves, batch: KeyedRows | None) -> dict[str, Column]:
        """The last rows of the keys, then the rows of the batch, as moves number them."""
        joined = self.keys.rows(moves.known)
        if batch is not None:
            for name, column in joined.items():
                if name in batch.columns:
                    more = batch.columns[name].take(moves.kept)
                else:  # only removed queries use it, and they are not matched with new rows
                    more = null_column(self.keys.columns[name].type, len(moves.kept))
                joined[name] = join_columns(column, more)
        return joined

    def _find_all(self, view: SetView, moves: Moves, batch: KeyedRows | None, most: int) -> Iterator[pa.Table]:
        """The events of the moves, in tables of `most` bytes; only those of a single move may take more."""

        def find(start: int, end: int) -> _Found:
            part = moves if end - start == len(moves) else moves.part(start, end)
            with limited(self.threads):
                return self._find(view, part, batch)

        for _, _, found in Pieces(len(moves), most // 2, most).of(find, len(moves)):
            yield found.table

    def _find(self, view: SetView, moves: Moves, batch: KeyedRows | None) -> _Found:
        n_known = len(moves.known)
        seen = np.full(len(moves), view.versions.current, np.int32)
        from_state = np.flatnonzero((moves.before >= 0) & (moves.before < n_known))
        seen[from_state] = self.keys.versions[moves.known[moves.before[from_state]]]

        def rows_of(some: Moves) -> dict[str, Column]:
            return self._join_rows(some, batch)

        find = partial(find_pieces, self._finder, view, moves, seen, rows_of, crosses=self.options.cross)
        if self._margins.margins or self.options.dwell is not None:
            pieces, n_failed = find(join_events)
            joined = Events.concat([found.later(start) for start, found in pieces])
            events = self._settle(view, moves, rows_of, seen, unify(view, joined))
        else:
            columns, n_failed = find(EventColumns.of)
            events = EventColumns.concat([found for _, found in columns])
        self.n_failed += n_failed
        return _Found(to_table(events, self.time_type, self.keys, view))

    def _settle(
        self, view: SetView, moves: Moves, rows_of: RowsOf, seen: NDArray[np.int32], events: Events
    ) -> EventColumns:
        """The events after margins and dwell times. Open pairs change at the end."""
        is_touched = np.zeros(len(self.keys), np.bool_)
        is_touched[moves.slots] = True
        staying = []
        if self._margins.margins:
            open_, queries = self._open(view, self.lingering.at(is_touched))
            events, stays = self._margins.settle(events, moves, rows_of(moves), view, seen, open_.slots, queries)
            staying.append((self.lingering, stays, moves.times[stays.moves]))
        times = moves.times[events.moves]
        dwell = self.options.duration("dwell", self.time_type)
        if dwell is not None:
            open_, queries = self._open(view, self.pending.at(is_touched))
            events, times, stays, since = settle_dwell(
                events, moves, dwell, open_.slots, queries, open_.times, open_.reasons
            )
            staying.append((self.pending, stays, since))
        for table, stays, since in staying:
            table.take(is_touched)
            if len(stays):
                table.put(KeyQueryPairs(moves.slots[stays.moves], view.ids_of(stays.queries), since, stays.reasons))
        return EventColumns(moves.slots[events.moves], times, events.queries, events.kinds, events.reasons)

    def _open(self, view: SetView, pairs: KeyQueryPairs) -> tuple[KeyQueryPairs, NDArray[np.int32]]:
        """Open pairs with the numbers of their queries, without those of forgotten queries."""
        queries = view.number(pairs.ids) if len(pairs) else np.empty(0, np.int32)
        known = np.flatnonzero(view.is_known(queries))
        return KeyQueryPairs(pairs.slots[known], None, pairs.times[known], pairs.reasons[known]), queries[known]

    def _remember(self, moves: Moves, batch: KeyedRows, version: int) -> None:
        lasts = moves.lasts
        slots, rows = moves.kept_slots[lasts], moves.kept[lasts]
        columns = {name: column.take(rows) for name, column in batch.columns.items()}
        self.keys.put_some(slots, moves.latest_times[lasts], np.full(len(slots), version, np.int32), columns)
        self.changes.note(slots)

    def _find_expired(self, view: SetView, clock: Any, most: int) -> Generator[pa.Table, None, NDArray[np.int32]]:
        """The events of expired keys. Returns their slots, which must be freed afterwards."""
        expire_after = self.options.duration("expire_after", self.time_type)
        if expire_after is None:
            return np.empty(0, np.int32)
        keys = self.keys
        used = slice(0, len(keys))
        silent = np.flatnonzero(keys.has_row[used] & (clock - keys.times[used] > expire_after)).astype(np.int32)
        if len(silent):
            moves = Moves.away(silent, (keys.times[silent] + expire_after).astype(keys.times.dtype))
            yield from self._find_all(view, moves, None, most)
        return silent

    def _free(self, silent: NDArray[np.int32]) -> None:
        """Free the slots of expired keys."""
        if not len(silent):
            return
        keys = self.keys
        self.changes.note_freed(keys.keys.take(silent))
        keys.free(silent)
        self.pack()

    def pack(self) -> None:
        """Remove the slots of keys without a row if they are the majority."""
        moved = self.keys.pack()
        if moved is not None:
            self.changes.move_slots(moved)
            self.lingering.move_slots(moved)
            self.pending.move_slots(moved)

    def _report_dwelt(self, view: SetView, now: Any, most: int) -> Iterator[pa.Table]:
        dwell = self.options.duration("dwell", self.time_type)
        pairs = self.pending.take_until(now - dwell) if dwell is not None else self.pending.take_until(-np.inf)
        self.changes.note(np.unique(pairs.slots))
        pairs, queries = self._open(view, pairs)
        order = np.argsort(pairs.times, kind="stable")
        times = (pairs.times[order] + (dwell or 0)).astype(self.keys.times.dtype)
        kinds = np.full(len(order), ENTER, np.int8)
        events = EventColumns(pairs.slots[order], times, queries[order], kinds, pairs.reasons[order].astype(np.int8))
        table = to_table(events, self.time_type, self.keys, view)
        n_rows = max(1, most // EVENT_BYTES)
        for start in range(0, max(1, table.num_rows), n_rows):
            yield table.slice(start, n_rows)


@dataclass(frozen=True)
class _Found:
    """A table of events. Its dictionaries share memory with the state and the set."""

    table: pa.Table

    @property
    def nbytes(self) -> int:
        return EVENT_BYTES * int(self.table.num_rows)


def _join(pieces: Generator[pa.Table, None, None], other: str) -> pa.Table:
    """All pieces as one table. Raises AnswerError if they exceed the limit on answers, and advises `other`."""
    tables: list[pa.Table] = []
    n_events = 0
    with closing(pieces):
        for table in pieces:
            n_events += table.num_rows
            if EVENT_BYTES * n_events > max_answer_bytes():
                advice = f"pass fewer rows at once, or get the events with {other}"
                raise too_large(f"has at least {count(n_events, 'event')}", advice)
            tables.append(table)
    return _concat(tables)


def _concat(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()
