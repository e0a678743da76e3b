"""Border monitoring of a keyed stream: which queries each key enters and leaves, batch by batch.

The monitor keeps the last row of each key, and the pairs that margins and dwell times leave open. See docs/operators.md
for its answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes, too_large
from vedette.data.columns import Column, join_columns, null_column
from vedette.data.keyed_rows import TIME_TYPES, KeyedRows, read_keyed_rows, read_near_time
from vedette.data.moments import with_moment
from vedette.errors import RowError, count
from vedette.native.budget import Pieces
from vedette.native.threads import check_threads, limited
from vedette.operators.border.behaviour import Behaviour
from vedette.operators.border.change_log import ChangeLog
from vedette.operators.border.cooldown import Cooling, Told, count_expiries, find_last_epochs, hold_back
from vedette.operators.border.deadlines import Deadlines
from vedette.operators.border.dwell import settle_dwell
from vedette.operators.border.event_columns import EventColumns
from vedette.operators.border.event_details import BatchDetails, EventDetails, EventRows, details_bytes
from vedette.operators.border.event_pieces import find_pieces
from vedette.operators.border.event_table import EVENT_BYTES, to_table
from vedette.operators.border.events import ENTER, EXIT, Events
from vedette.operators.border.expiry_moves import event_epochs, find_epochs, last_times, split_silences, time_events
from vedette.operators.border.finder import BorderFinder, RowsOf, Seen, join_events, unify
from vedette.operators.border.first_reports import FirstReports
from vedette.operators.border.key_state import KeyState
from vedette.operators.border.margin import Margins
from vedette.operators.border.moves import Moves, find_moves
from vedette.operators.border.moving_bounds import Moments
from vedette.operators.border.moving_queries import Following, MovingQueries, check_now
from vedette.operators.border.options import HELD_BACK, MonitorOptions
from vedette.operators.border.pair_table import KeyQueryPairs, PairTable
from vedette.operators.border.silences import Silences, elapsed
from vedette.operators.border.silent_keys import SilentKeys, Upcoming
from vedette.operators.border.single_step import Prepared, prepare
from vedette.operators.border.state import BorderState
from vedette.operators.border.time_moves import follow_time, read_reached
from vedette.operators.border.undo import Undo
from vedette.operators.border.why import BorderWhy, explain_pair
from vedette.queries.set_view import SetView
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

KEYS_AT_ONCE = 1 << 13  # keys for which time passes together

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
        self.n_held_back = 0  # events that cooldown and once did not report
        self.n_failed = 0  # comparisons that would fail a job in ANSI mode
        self.n_passed = 0  # moves that time made, and silent keys that were judged
        self.done: list[Any] = []  # ids of queries with once="query" that the last step or advance has reported
        self.removes_done = True  # from the set, when all pieces of the step are read
        self._finder = queries.shared(BorderFinder)  # shared by all monitors of the set
        self._margins = Margins(options.margins(queries.schema), queries.schema)
        self._moving = MovingQueries(queries.schema)
        self._unfinished: Undo | None = None  # of a step whose pieces are not all read
        self._firsts = FirstReports()  # of that step
        self.clear()
        self._view()  # raises if a query cannot be monitored
        if self.time_type:
            self._behave(queries.view())  # raises if an option of a query does not fit

    def clear(self) -> None:
        """Forget all keys."""
        self._abandon()
        time = self.queries.schema.find(self.options.time)
        self.time_type = time.type.widest.name if time is not None and time.type.widest.name in TIME_TYPES else ""
        dtype = TIME_TYPES.get(self.time_type, np.int64)
        self.keys = KeyState(dtype)
        self.clock: Any = None  # the greatest time seen
        self.lingering = PairTable(dtype)  # inside only because of the margin
        self.pending = PairTable(dtype)  # inside, but not yet for long enough to be reported
        self.cooling = PairTable(dtype)  # reported not long ago, or held back since
        self._behaviour: Behaviour | None = None
        self._prepared: Prepared | None = None
        self.changes = ChangeLog()
        self.details = EventDetails(self.queries, self.options)
        self.deadlines = Deadlines()  # of keys that time may move
        self.silent: SilentKeys | None = None  # if queries differ in `expire_after`

    @property
    def n_keys(self) -> int:
        """The number of keys in the state."""
        return self.keys.n_with_row

    @property
    def nbytes(self) -> int:
        """The memory of the state and of the region segments, without the queries."""
        return self._finder.nbytes + self._moving.nbytes + self.state_nbytes

    @property
    def state_nbytes(self) -> int:
        """The memory of the state, without the region segments, which all monitors of the set share."""
        pairs = self.lingering.nbytes + self.pending.nbytes + self.cooling.nbytes
        silent = 0 if self.silent is None else self.silent.nbytes
        return self.keys.nbytes + pairs + self.details.nbytes + self.deadlines.nbytes + silent

    def step(self, rows: Any, *, advance: bool = True) -> pa.Table:
        """The events of a batch of rows: columns key, time, query, event and reason, and those that were asked for.

        Rows are processed by key and in time order, so events of a key are in the order of its rows. With `advance`,
        keys expire that were silent for longer than `expire_after` before the greatest time seen; the answer is then
        the same as for the rows one by one in time order. Raises AnswerError, and changes nothing, if the events exceed
        the setting max_answer_bytes. `step_batches` has no such limit.
        """
        events = self._step_short(rows)
        return _join(self._step(rows, advance, max_answer_bytes()), "step_batches") if events is None else events

    def step_batches(self, rows: Any, *, advance: bool = True, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The events of `step` in pieces of at most `max_bytes`, by default the setting answer_batch_bytes.

        The monitor changes when the iteration ends, after the last piece. If the iteration stops earlier, the step is
        undone. It is also undone if the monitor is used in between (another step or advance, save, load, a delta,
        clear); the iteration then raises RowError.
        """
        return self._step(rows, advance, settings().answer_batch_bytes if max_bytes is None else max_bytes)

    def advance(self, time: Any) -> pa.Table:
        """The events up to a time that later rows are not before.

        Keys expire that were silent for too long, bounds that move with now() pass the others, and enters are emitted
        whose dwell time is over. Raises AnswerError as `step` does. `advance_batches` has no such limit.
        """
        return _join(self._advance(time, max_answer_bytes()), "advance_batches")

    def advance_batches(self, time: Any, *, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The events of `advance` in pieces, as in `step_batches`."""
        return self._advance(time, settings().answer_batch_bytes if max_bytes is None else max_bytes)

    def _step_short(self, rows: Any) -> pa.Table | None:
        """The events of a few rows, or None if they need a step of a batch."""
        self._abandon()
        view = self.queries.view()
        prepared = self._prepared
        if prepared is None or not prepared.is_of(view, self.time_type, self.keys.keys.kind):
            if self._behaviour is None or not self._behaviour.is_of(view, self.time_type):
                return None
            is_plain = not (
                self.options.cross
                or self.options.held_back
                or view.moments
                or self._behaviour.delays
                or self._behaviour.has("expire_after")
            )
            self._prepared = prepared = prepare(self, view, self._finder.borders_of(view.parts), is_plain)
        is_settled = len(self.lingering) + len(self.pending) + len(self.cooling) > 0 or self.silent is not None
        if prepared.steps is None or is_settled:
            return None
        single, short = prepared.steps
        events = single.step(self, rows)
        if events is None:
            events = short.step(self, rows)
        if events is not None:
            self.done = []
        return events

    def _step(self, rows: Any, advance: bool, most: int) -> Generator[pa.Table, None, None]:
        undo = self._begin()
        yield from self._take_pieces(self._take_rows(rows, advance, most, undo), undo)

    def _advance(self, time: Any, most: int) -> Generator[pa.Table, None, None]:
        undo = self._begin()
        yield from self._take_pieces(self._take_time(time, most), undo)

    def _begin(self) -> Undo:
        """Begin a step. Returns an object that can undo it."""
        self._abandon()
        self._unfinished, self._firsts, self.done = Undo.of(self), FirstReports(), []
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
            if self.done and self.removes_done:
                self.queries.remove_many([each for each in self.done if each in self.queries])
        finally:
            if self._unfinished is undo:
                self._abandon()

    def _view(self) -> SetView:
        view = self.queries.view()
        check_now(view, self.options.time, self.time_type)
        return view

    def _take_rows(self, rows: Any, advance: bool, most: int, undo: Undo) -> Iterator[pa.Table]:
        view = self._view()
        batch = self._read(rows, view)
        carried = self.details.read(rows, batch)
        if not self.time_type:
            yield self._nothing(view)
            return
        self._use_fields(view)
        silences = self._use_silences(view)
        clock = self.clock if advance else None
        with limited(self.threads):
            moves = find_moves(
                self._find_slots(batch),
                batch.times,
                self.keys,
                drops_late=self.options.late == "drop",
                expire_after=silences.longest,
                clock=clock,
            )
            details = self.details.of_batch(carried, moves, batch.times, self.keys)
            moves, _ = self._follow_time(view, moves, batch)
            moves = self._split(view, moves, clock=clock)
        yield from self._find_all(view, moves, batch, details, most)
        expires = advance and len(batch) > 0 and (silences.longest is not None or self.silent is not None)
        if expires or self._behave(view).has_once_per_query:
            undo.keep_rows(self, moves.kept_slots[moves.lasts])
        self.remember(view, moves, batch, details)
        self.n_late += moves.n_late
        self.n_null_keys += batch.n_null_keys
        if len(batch):
            self.clock = batch.times.max() if self.clock is None else max(self.clock, batch.times.max())
        if not expires:
            yield from self._report_first()
            return
        expired = yield from self._find_expired(view, self.clock, most)
        passed, upcoming = yield from self._judge_silent(view, self.clock, most, expired)
        yield from self._report_first()
        self._remember_judged(view, passed, upcoming, self.clock)
        self._free(expired)

    def _take_time(self, time: Any, most: int) -> Iterator[pa.Table]:
        view = self._view()
        if not self.time_type:
            yield self._nothing(view)
            return
        self._use_fields(view)
        now = read_near_time(time, self.time_type, self.queries.time_zone)
        self.clock = now if self.clock is None else max(self.clock, now)
        self._use_silences(view)
        expired = yield from self._find_expired(view, now, most)
        due = self.deadlines.take_until(now) if view.moments else np.empty(0, np.int32)
        passed, upcoming = yield from self._judge_silent(view, now, most, expired, due)
        yield from self._report_dwelt(view, now, most)
        yield from self._report_first()
        self._remember_judged(view, passed, upcoming, now)
        if self.time_type == "timestamp":
            self.deadlines.advance(int(now))
        self._free(expired)

    def why(self, query: str | int, key: str | int, row: Mapping[str, Any] | None = None) -> BorderWhy:
        """Why a key is inside a query, or not: its last row clause by clause, and what the options leave open.

        With a `row`, also what the move from the last row to this one would cause.
        """
        return explain_pair(self, self._behave(self.queries.view()), query, key, row)

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
        none = EventColumns.none()
        rows = EventRows(np.empty(0, np.int64), np.empty(0, np.int64))
        self.time_type, time_type = "bigint", self.time_type
        table, self.time_type = self._to_table(none, view, rows).table, time_type
        return table

    def check_time_type(self, time_type: str) -> None:
        """Raise QueryError if the options or the queries do not allow times of this type."""
        self.options.check_durations(time_type)
        check_now(self.queries.view(), self.options.time, time_type)

    def set_time_type(self, time_type: str) -> None:
        """Set the type of times, at the first row."""
        if self.time_type and self.time_type != time_type:
            raise RowError(f"times were {self.time_type} so far; {self.options.time!r} is now {time_type}")
        if not self.time_type:
            self.check_time_type(time_type)
            self.time_type = time_type
            dtype = TIME_TYPES[time_type]
            self.keys.times = self.keys.times.astype(dtype)
            self.lingering, self.pending, self.cooling = PairTable(dtype), PairTable(dtype), PairTable(dtype)

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

    def _use_fields(self, view: SetView) -> None:
        """Keep the fields that the queries use."""
        used = view.all_fields
        self.keys.use_fields([field for field in self.queries.schema if field.name in used])

    def _find_slots(self, batch: KeyedRows) -> NDArray[np.int32]:
        """The slot of each row's key."""
        slots = self.keys.find_slots(batch.keys)
        return slots if batch.codes is None else slots[batch.codes]

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

    def _find_all(
        self,
        view: SetView,
        moves: Moves,
        batch: KeyedRows | None,
        details: BatchDetails | None,
        most: int,
        upcoming: Upcoming | None = None,
    ) -> Iterator[pa.Table]:
        """The events of the moves, in tables of `most` bytes; only those of a single move may take more."""

        def find(start: int, end: int) -> _Found:
            part = moves if end - start == len(moves) else moves.part(start, end)
            with limited(self.threads):
                return self._find(view, part, batch, details, upcoming)

        for _, _, found in Pieces(len(moves), most // 2, most).of(find, len(moves)):
            yield found.table

    def _find(
        self,
        view: SetView,
        moves: Moves,
        batch: KeyedRows | None,
        details: BatchDetails | None,
        upcoming: Upcoming | None,
    ) -> _Found:
        versions = moves.find_versions(self.keys.versions, view.versions.current)
        has_moments = moves.passed is not None and len(view.retained) > 0
        seen = Seen(versions, self._find_seen(moves) if has_moments else None)
        rows_of = self._rows_at(view, batch)
        find = partial(find_pieces, self._finder, view, moves, seen, rows_of, crosses=self.options.cross)
        behaviour = self._behave(view)
        is_settled = behaviour.delays or any(map(len, (self.lingering, self.pending, self.cooling)))
        if not is_settled and not self.details and moves.windows is None:
            columns, n_failed = find(EventColumns.of)
            self.n_failed += n_failed
            return self._to_table(EventColumns.concat([found for _, found in columns]), view)
        pieces, n_failed = find(join_events)
        self.n_failed += n_failed
        events = Events.concat([found.later(start) for start, found in pieces])
        events = self._choose(view, moves, events, upcoming)
        if is_settled:
            return self._to_table(*self._settle(view, moves, rows_of, versions, unify(view, events), details), details)
        events, times = time_events(events, moves, behaviour.silences)
        rows = EventRows.of(moves, events.moves, details)
        return self._to_table(_columns(events, moves, times), view, rows, details)

    def _choose(self, view: SetView, moves: Moves, events: Events, upcoming: Upcoming | None) -> Events:
        """The events of queries that their moves concern. Queries that silent keys stay inside are noted."""
        windows = moves.windows
        if windows is None:
            return events
        silences = windows.silences_of(self._behave(view).silences, events.moves, events.queries)
        lows, highs = windows.lows[events.moves], windows.highs[events.moves]
        if upcoming is not None:
            is_inside = (moves.after[events.moves] < 0) & (silences >= highs)
            upcoming.note(moves.slots[events.moves[is_inside]], silences[is_inside])
        return events.take((lows <= silences) & (silences < highs))

    def _to_table(
        self, events: EventColumns, view: SetView, rows: EventRows | None = None, details: BatchDetails | None = None
    ) -> _Found:
        table = to_table(events, self.time_type, self.keys, view)
        holds = self._behave(view).holds_back if self.options.held_back is None else self.options.held_back
        if holds:
            n_held = np.zeros(len(events), np.int64) if rows is None or rows.n_held is None else rows.n_held
            table = table.append_column(HELD_BACK, pa.array(n_held))
        if rows is not None and self.details:
            table = self.details.add_to(table, events, rows, details, self.keys, view)
        return _Found(table)

    def _find_seen(self, moves: Moves) -> Moments:
        """By move: the moment at which its key was last compared with the queries of its version."""
        return np.maximum(self.keys.times[moves.slots], self.deadlines.read_seen(moves.slots))

    def _settle(
        self,
        view: SetView,
        moves: Moves,
        rows_of: RowsOf,
        seen: NDArray[np.int32],
        events: Events,
        details: BatchDetails | None,
    ) -> tuple[EventColumns, SetView, EventRows]:
        """The events after margins and dwell times, with their rows. Open pairs change at the end."""
        is_touched = np.zeros(len(self.keys), np.bool_)
        is_touched[moves.slots] = True
        staying = []
        behaviour = self._behave(view)
        if self._margins.margins or behaviour.has("margin") or len(self.lingering):
            open_, queries = self._open(view, self.lingering.at(is_touched))
            events, stays = self._margins.settle(
                events, moves, rows_of(moves), view, seen, open_.slots, queries, behaviour
            )
            staying.append((self.lingering, stays, moves.times[stays.moves], np.zeros(len(stays), np.int64)))
        events, times = time_events(events, moves, behaviour.silences)
        rows = EventRows.of(moves, events.moves, details)
        if behaviour.has("dwell") or len(self.pending):
            open_, queries = self._open(view, self.pending.at(is_touched))
            dwells, open_dwells = (behaviour.durations("dwell", each) for each in (events.queries, queries))
            timed = last_times(events, times, moves)
            settled = settle_dwell(events, times, rows.ordinals, timed, dwells, open_dwells, open_, queries)
            staying.append((self.pending, settled.stays, settled.since, settled.staying_ordinals))
            events, times = settled.events, settled.times
            caused = EventRows.of(moves, events.moves, details).rows
            last = EventRows.last_rows(moves, events.moves)
            rows = EventRows(np.where(settled.is_delayed, last, caused), settled.ordinals)
        for table, stays, since, ordinals in staying:
            table.take(is_touched)
            if len(stays):
                slots, ids = moves.slots[stays.moves], view.ids_of(stays.queries)
                table.put(KeyQueryPairs(slots, ids, since, stays.reasons, ordinals))
        columns = _columns(events, moves, times)
        if not behaviour.holds_back and not len(self.cooling):
            return columns, view, rows
        if moves.windows is None:
            by_move = count_expiries(moves)
            epochs, last_epochs = by_move[events.moves], find_last_epochs(moves, by_move, len(self.keys))
        else:
            epochs = event_epochs(events, moves, behaviour.silences)
            last_epochs = np.zeros(len(self.keys), np.int32)
        columns, rows, epochs = self._set_aside(view, columns, rows, epochs, details)
        latest, has_row = self.keys.times.copy(), moves.after >= 0  # a silent key may yet have an earlier enter
        latest[moves.slots[has_row]] = moves.times[has_row]  # the last move of a key is written last
        return self._hold_back(view, columns, rows, is_touched, epochs, last_epochs, latest, moves)

    def _set_aside(
        self,
        view: SetView,
        events: EventColumns,
        rows: EventRows,
        epochs: NDArray[np.int32],
        details: BatchDetails | None,
    ) -> tuple[EventColumns, EventRows, NDArray[np.int32]]:
        """The events without those of queries that are reported once for all keys. The first ones are kept."""
        is_once = self._behave(view).are_once_per_query(events.queries)
        if is_once is None or not is_once.any():
            return events, rows, epochs
        reports, others = np.flatnonzero(is_once & (events.kinds != EXIT)), np.flatnonzero(~is_once)
        if len(reports):
            mine = events.take(reports)
            table = self._to_table(mine, view, rows.take(reports), details).table
            keys = self.keys.keys.to_arrow().take(pa.array(mine.slots))
            self.n_held_back += self._firsts.add(mine.queries, mine.times, keys, table)
        self.n_held_back += len(events) - len(reports) - len(others)
        return events.take(others), rows.take(others), epochs[others]

    def _report_first(self) -> Iterator[pa.Table]:
        """The first report of each query that has one for all keys. Its query is done."""
        found = self._firsts.take()
        if found is not None:
            table, n_others = found
            self.n_held_back += n_others
            self.done = table["query"].to_pylist()
            yield table

    def _hold_back(
        self,
        view: SetView,
        events: EventColumns,
        rows: EventRows,
        is_touched: NDArray[np.bool_],
        epochs: NDArray[np.int32],
        last_epochs: NDArray[np.int32],
        latest: NDArray[Any],
        moves: Moves | None = None,
    ) -> tuple[EventColumns, SetView, EventRows]:
        """The events after cooldown and once. `epochs` tells how often the key of each expired before.

        `last_epochs` and `latest` have the last such number and the latest time by slot.
        """
        behaviour = self._behave(view)
        opened = self.cooling.take_numbered(view, is_touched)
        told, open_ = (
            (behaviour.durations("cooldown", queries), behaviour.are_once(queries))
            for queries in (events.queries, opened.queries)
        )
        open_epochs = np.zeros(len(opened.queries), np.int32)
        if moves is not None and moves.windows is not None:
            starts = moves.first_of(opened.slots)
            open_epochs = find_epochs(moves, behaviour.silences, starts, opened.queries)
        held = hold_back(
            Told(events.slots, events.queries, events.kinds, events.times, epochs, *told),
            Cooling(*opened, *open_, open_epochs),
            last_epochs,
            latest,
        )
        self.cooling.put_numbered(view, held.kept)
        self.n_held_back += held.n_dropped
        chosen = np.flatnonzero(held.is_reported)
        n_held = held.n_held[chosen]
        return events.take(chosen), view, replace(rows.take(chosen), n_held=n_held)

    def _behave(self, view: SetView) -> Behaviour:
        """The options of the queries at this version."""
        if self._behaviour is None or not self._behaviour.is_of(view, self.time_type):
            self._behaviour = Behaviour(view, self.options, self.time_type)
        return self._behaviour

    def _use_silences(self, view: SetView) -> Silences:
        """How long keys may be silent. From the first difference between queries on, it is kept what keys have left."""
        silences = self._behave(view).silences
        if self.silent is None and silences.differ:
            self.silent = SilentKeys(silences)
        return silences

    def load_silent(self, slots: NDArray[np.int32], saved: list[NDArray[Any]] | None) -> None:
        """What keys of a loaded state have left."""
        if saved is None and self.silent is None:
            return
        silences = self._behave(self.queries.view()).silences
        self.silent = SilentKeys(silences) if self.silent is None else self.silent
        self.silent.load(slots, saved, silences)

    def _split(self, view: SetView, moves: Moves, *, clock: Any = None, forgets: bool = True) -> Moves:
        """The moves, cut by the silences of queries."""
        if self.silent is None:
            return moves
        silences, version = self._behave(view).silences, view.versions.current
        return split_silences(moves, self.keys, self.silent, silences, version, clock=clock, forgets=forgets)

    def _open(self, view: SetView, pairs: KeyQueryPairs) -> tuple[KeyQueryPairs, NDArray[np.int32]]:
        """Open pairs with the numbers of their queries, without those of forgotten queries."""
        queries = view.number(pairs.ids) if len(pairs) else np.empty(0, np.int32)
        known = np.flatnonzero(view.is_known(queries))
        some = KeyQueryPairs(pairs.slots[known], None, pairs.times[known], pairs.reasons[known], pairs.ordinals[known])
        return some, queries[known]

    def _follow_time(self, view: SetView, moves: Moves, batch: KeyedRows | None) -> tuple[Moves, Moments]:
        """The moves, with those that time makes between them; and the next moments of the rows that were examined."""
        if not view.moments:
            return moves, np.empty(0, np.int64)
        following, stops = self._following(view), self.options.cross
        rows_of = partial(self._join_rows, batch=batch)
        return follow_time(moves, self.keys, self.deadlines, following, rows_of, stops=stops)

    def _following(self, view: SetView) -> Following:
        """The moving bounds of the queries, and of their copies that margins widen."""
        behaviour = self._behave(view)
        self._margins.use(behaviour)
        return self._moving.of(view.parts, self._margins.widen if behaviour.has("margin") else None)

    def now_of(self, slot: int) -> int:
        """The moment that a key has reached: by its rows, by time that moved it, or by `advance`."""
        moment = int(read_reached(self.keys, self.deadlines, np.array([slot], np.int32))[0])
        return moment if self.deadlines.reached is None else max(moment, self.deadlines.reached)

    def _rows_at(self, view: SetView, batch: KeyedRows | None) -> RowsOf:
        """The rows of moves, with their moments."""

        def rows_of(some: Moves) -> dict[str, Column]:
            rows = self._join_rows(some, batch)
            if some.passed is None:
                return rows
            return with_moment(rows, view.moments, some.passed.moments, len(some.passed.moments))

        return rows_of

    def remember(self, view: SetView, moves: Moves, batch: KeyedRows, details: BatchDetails | None) -> None:
        """Set the last rows of the keys that moved."""
        slots, rows, times = moves.kept_slots, moves.kept, moves.latest_times
        lasts = moves.lasts
        if len(lasts) < len(slots):
            slots, rows, times = slots[lasts], rows[lasts], times[lasts]
        columns = {name: column.take(rows) for name, column in batch.columns.items()}
        self.keys.put_some(slots, times, np.full(len(slots), view.versions.current, np.int32), columns)
        if details is not None and self.details:
            self.details.put(slots, details.take(rows))
        self.changes.note(slots)
        if self.silent is not None:
            self.silent.begin(slots, self._behave(view).silences)
        if moves.passed is not None:
            moments = moves.passed.moments[len(moves.known) + lasts]
            self.deadlines.put(slots, moments, moments, moments)
            self.deadlines.put_nexts(slots, self._following(view).find_next(columns, moments))

    def _judge_silent(
        self, view: SetView, now: Any, most: int, expired: NDArray[np.int32], due: NDArray[np.int32] | None = None
    ) -> Generator[pa.Table, None, tuple[list[_Passed], Upcoming | None]]:
        """The events of keys that time moves up to `now`, and of those that were silent for too long for some queries.

        `due` are the keys that bounds may pass; without them, only those that were silent for too long are moved.
        Returns what must be remembered afterwards.
        """
        silent = np.empty(0, np.int32) if self.silent is None else self.silent.find_due(self.keys, now)
        if due is None:
            due = silent[self.deadlines.read(silent).nexts <= now] if view.moments else silent[:0]
        due = np.setdiff1d(due, expired)
        due = due[self.keys.has_row[due]]
        silent = np.setdiff1d(silent, np.concatenate([due, expired]))
        upcoming = None
        if self.silent is not None:
            everything = np.union1d(due, silent).astype(np.int32)
            judged = np.maximum(elapsed(now, self.keys.times[everything]), self.silent.read(everything).judged)
            upcoming = Upcoming(everything, judged, self._behave(view).silences)
        passed = yield from self._pass_time(view, now, most, due, upcoming)
        if len(silent):
            moves, _ = self._follow_time(view, Moves.away(silent, np.full(len(silent), now)), None)
            moves = self._split(view, moves, forgets=False)
            yield from self._find_all(view, moves, None, None, most, upcoming)
        return passed, upcoming

    def _pass_time(
        self, view: SetView, now: Any, most: int, due: NDArray[np.int32], upcoming: Upcoming | None
    ) -> Generator[pa.Table, None, list[_Passed]]:
        """The events of keys that bounds pass, up to `now`. Returns what must be remembered afterwards."""
        passed: list[_Passed] = []
        for start in range(0, len(due), KEYS_AT_ONCE):
            slots = due[start : start + KEYS_AT_ONCE]
            with limited(self.threads):
                moves, nexts = self._follow_time(view, Moves.away(slots, np.full(len(slots), now)), None)
            of_time = np.flatnonzero(moves.after >= 0)
            passed.append(_Passed(slots, nexts, moves.slots[of_time], moves.times[of_time]))
            moves = moves.at(of_time) if self.silent is None else self._split(view, moves, forgets=False)
            yield from self._find_all(view, moves, None, None, most, upcoming)
        return passed

    def _remember_judged(self, view: SetView, passed: list[_Passed], upcoming: Upcoming | None, now: Any) -> None:
        for each in passed:
            self._remember_passed(each, now, view.versions.current)
        if upcoming is None or self.silent is None or not len(upcoming.slots):
            return
        is_chosen = np.zeros(len(self.keys), np.bool_)
        is_chosen[upcoming.slots] = True
        lingering, queries = self._open(view, self.lingering.at(is_chosen))
        if len(queries):
            versions, defaults = self.keys.versions[lingering.slots], self.silent.read(lingering.slots).defaults
            upcoming.note(lingering.slots, self._behave(view).silences.of(queries, versions, defaults))
        self.silent.judge(upcoming.slots, upcoming.judged, upcoming.nexts)
        self.n_passed += len(upcoming.slots)
        self.changes.note(upcoming.slots)

    def _remember_passed(self, passed: _Passed, now: Any, version: int) -> None:
        slots, reached = passed.slots, read_reached(self.keys, self.deadlines, passed.slots)
        np.maximum.at(reached, np.searchsorted(slots, passed.moved_slots), passed.moments)
        is_current = self.keys.versions[slots] == version
        seen = np.where(is_current, reached, self.deadlines.read(slots).seen)
        self.deadlines.put(slots, seen, reached, np.full(len(slots), now))
        self.deadlines.put_nexts(slots, passed.nexts)
        self.changes.note(np.unique(passed.moved_slots))
        self.n_passed += len(passed.moved_slots)

    def _find_expired(self, view: SetView, clock: Any, most: int) -> Generator[pa.Table, None, NDArray[np.int32]]:
        """The events of expired keys. Returns their slots, which must be freed afterwards."""
        expire_after = self._behave(view).silences.longest
        if expire_after is None:
            return np.empty(0, np.int32)
        keys = self.keys
        used = slice(0, len(keys))
        silent = np.flatnonzero(keys.has_row[used] & (elapsed(clock, keys.times[used]) > expire_after)).astype(np.int32)
        if len(silent):
            moves = Moves.away(silent, (keys.times[silent] + expire_after).astype(keys.times.dtype))
            moves, _ = self._follow_time(view, moves, None)
            yield from self._find_all(view, self._split(view, moves), None, None, most)
        return silent

    def _free(self, silent: NDArray[np.int32]) -> None:
        """Free the slots of expired keys."""
        if not len(silent):
            return
        keys = self.keys
        freed = keys.keys.take(silent)
        keys.free(silent)
        self.details.free(silent)
        self.changes.note_freed(freed, keys.n_with_row)
        self.pack()

    def pack(self) -> None:
        """Remove the slots of keys without a row if they are the majority."""
        moved = self.keys.pack()
        if moved is not None:
            self.changes.move_slots(moved)
            self.lingering.move_slots(moved)
            self.pending.move_slots(moved)
            self.cooling.move_slots(moved)
            self.details.move_slots(moved)
            self.deadlines.move_slots(moved)
            if self.silent is not None:
                self.silent.move_slots(moved)

    def _report_dwelt(self, view: SetView, now: Any, most: int) -> Iterator[pa.Table]:
        pairs, queries = self._take_dwelt(view, now)
        order = np.argsort(pairs.times, kind="stable")
        slots, kinds = pairs.slots[order], np.full(len(order), ENTER, np.int8)
        events = EventColumns(slots, pairs.times[order], queries[order], kinds, pairs.reasons[order].astype(np.int8))
        rows = EventRows(-1 - slots.astype(np.int64), pairs.ordinals[order])
        if self._behave(view).holds_back or len(self.cooling):
            is_touched = np.zeros(len(self.keys), np.bool_)
            is_touched[slots] = True
            none = np.zeros(len(order), np.int32)
            last, latest = np.zeros(len(self.keys), np.int32), np.full(len(self.keys), now)
            events, rows, none = self._set_aside(view, events, rows, none, None)
            events, view, rows = self._hold_back(view, events, rows, is_touched, none, last, latest)
        table = self._to_table(events, view, rows).table
        n_rows = max(1, most // EVENT_BYTES)
        for start in range(0, max(1, table.num_rows), n_rows):
            yield table.slice(start, n_rows)

    def _take_dwelt(self, view: SetView, now: Any) -> tuple[KeyQueryPairs, NDArray[np.int32]]:
        """Remove and return the enters whose dwell time is over, with the time when it was, and their queries."""
        everything = self.pending.at(np.ones(len(self.keys), np.bool_))
        queries = view.number(everything.ids) if len(everything) else np.empty(0, np.int32)
        dwells = np.maximum(self._behave(view).durations("dwell", np.maximum(queries, 0)), 0)
        due = self.pending.take_pairs(everything.times <= now - dwells)
        self.changes.note(np.unique(due.slots))
        due_dwells = dwells[everything.times <= now - dwells]
        ends = (due.times + due_dwells).astype(self.keys.times.dtype)
        return self._open(view, replace(due, times=ends))


@dataclass(frozen=True)
class _Passed:
    """Keys for which time passed, with their next moments; and the moves that it made, by slot and moment."""

    slots: NDArray[np.int32]
    nexts: Moments
    moved_slots: NDArray[np.int32]
    moments: Moments


@dataclass(frozen=True)
class _Found:
    """A table of events. Its dictionaries share memory with the state and the set."""

    table: pa.Table

    @property
    def nbytes(self) -> int:
        return table_bytes(self.table)


def table_bytes(table: pa.Table) -> int:
    """The memory of a table of events, without its dictionaries."""
    return EVENT_BYTES * int(table.num_rows) + details_bytes(table)


def _columns(events: Events, moves: Moves, times: NDArray[Any]) -> EventColumns:
    return EventColumns(moves.slots[events.moves], times, events.queries, events.kinds, events.reasons)


def _join(pieces: Generator[pa.Table, None, None], other: str) -> pa.Table:
    """All pieces as one table. Raises AnswerError if they exceed the limit on answers, and advises `other`."""
    tables: list[pa.Table] = []
    n_events = n_bytes = 0
    with closing(pieces):
        for table in pieces:
            n_events += table.num_rows
            n_bytes += table_bytes(table)
            if n_bytes > max_answer_bytes():
                advice = f"pass fewer rows at once, or get the events with {other}"
                raise too_large(f"has at least {count(n_events, 'event')}", advice)
            tables.append(table)
    return _concat(tables)


def _concat(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()
