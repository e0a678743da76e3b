"""The moving join: two sets of moving rectangles or boxes, and the pairs that intersect at every moment.

docs/operators.md defines its answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import check_answer, max_answer_bytes, too_large
from vedette.data.durations import Interval, read_interval
from vedette.data.ids import Ids
from vedette.errors import QueryError, RowError, count, shown
from vedette.native.budget import OverBudgetError, bounded, check_bytes
from vedette.native.threads import check_threads, limited
from vedette.operators.carried_rows import CarriedRows
from vedette.operators.moving_join.batch import SETS, Batch
from vedette.operators.moving_join.columns import ChangedRows, MovingColumns
from vedette.operators.moving_join.explanation import explain
from vedette.operators.moving_join.interval import expected_costs
from vedette.operators.moving_join.join import IntersectionJoin
from vedette.operators.moving_join.late_rows import LATE, Late
from vedette.operators.moving_join.meetings import MEETING_BYTES, Meetings
from vedette.operators.moving_join.motion_rows import TIME
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingRows, MovingTable, read_moving_rows, read_number
from vedette.operators.moving_join.state import MovingState
from vedette.operators.moving_join.table import to_change_table, to_event_table, to_overdue_table, to_pair_table
from vedette.operators.side_columns import PairRows, Rows, count_bytes

Tables = tuple[MovingTable | None, MovingTable | None]

_STATE = MovingState()


class MovingJoin:
    """Two sets of moving objects: which pairs intersect, from when until when.

    >>> vessels = {"id": ["Ada"], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0]}
    >>> storms = {"id": [7], "x_low": [10], "x_high": [14], "y_low": [-1], "y_high": [1], "vx": [0.0], "vy": [0.0]}
    >>> moving = MovingJoin(max_update_interval=60)
    >>> moving.load(a=vessels, b=storms, time=0).to_pylist()
    [{'sign': 1, 'a': 'Ada', 'b': 7, 'start': 10.0, 'end': 14.0}]
    >>> moving.pairs(at=12).to_pylist()
    [{'a': 'Ada', 'b': 7}]
    """

    zones_in: Literal["a", "b"] | None = None  # the set whose objects are zones

    def __init__(
        self,
        max_update_interval: Interval,
        *,
        expire_overdue: bool = False,
        static: Literal["a", "b"] | None = None,
        late: Late = "apply",
        columns: Any = None,
        metadata: Any = None,
        threads: int | None = None,
    ) -> None:
        """Objects update at least every `max_update_interval`: a number in the unit of times and speeds, or a duration.

        A duration, such as "60 seconds" or a timedelta, is for times in seconds.

        With `expire_overdue`, an object that misses its deadline leaves the result. Objects of the `static` set, "a" or
        "b", need not update. `late` says what happens to rows from before the time that the join has reached: "apply"
        them from now on, "drop" them, or raise an "error". `columns` brings columns of both rows of a pair, as `a_...`
        and `b_...`: a list of names for both sets, or a dict with a list per set. `metadata` is for zones, see
        `ZoneSet.monitor`. `threads` limits the threads that many objects are cut for, by default the setting threads,
        else all cores; the answer is the same for any number.
        """
        self.max_update_interval = read_interval(max_update_interval, "max_update_interval")
        if static not in (None, *SETS):
            raise QueryError(f"must be 'a', 'b' or None; got {shown(static)}", option="static")
        if late not in LATE:
            raise QueryError(f"must be one of: 'apply', 'drop', 'error'; got {shown(late)}", option="late")
        if not isinstance(expire_overdue, (bool, np.bool_)):
            raise QueryError(f"must be True or False; got {shown(expire_overdue)}", option="expire_overdue")
        self.expire_overdue = bool(expire_overdue)
        self.static = static
        self.late = late
        self.columns = MovingColumns.read(columns, metadata, self.zones_in)
        self.threads = check_threads(threads)
        self.clear()

    def clear(self) -> None:
        """Remove all objects."""
        self.join: IntersectionJoin | None = None
        self.waiting: MovingRows | None = None  # rows of the static set that came before the first time
        self.n_late = 0  # rows that came late and were dropped
        self.late_rows = [0, 0]  # by set, since the join was made or loaded
        self.changes = self._no_changes()  # of the last call

    def __repr__(self) -> str:
        objects = f"{count(self.n_a, 'object')} in a, {count(self.n_b, 'object')} in b"
        is_known = self.join is None or self.join.calendar is not None
        pairs = count(self.n_pairs, "pair") if is_known else "pairs not found yet"
        return f"MovingJoin(max_update_interval={self.max_update_interval:g}, {objects}, {pairs})"

    # Objects.

    @property
    def time(self) -> float | None:
        """The time that the join has reached; None before the first update."""
        return None if self.join is None else self.join.now

    @property
    def n_a(self) -> int:
        return 0 if self.join is None else len(self.join.a)

    @property
    def n_b(self) -> int:
        return 0 if self.join is None else len(self.join.b)

    @property
    def n_pairs(self) -> int:
        """The number of pairs that intersect now, or later up to the deadlines of their objects."""
        return self._started().n_pairs

    @property
    def nbytes(self) -> int:
        """The memory of all objects, and of the pairs if they are stored."""
        return 0 if self.join is None else self.join.nbytes

    @property
    def state_nbytes(self) -> int:
        """As `nbytes`: joins share nothing."""
        return self.nbytes

    @property
    def n_rebuilt(self) -> int:
        """How often the index of a set was built because there was none."""
        return 0 if self.join is None else self.join.a.n_rebuilt + self.join.b.n_rebuilt

    def load(self, state: bytes | None = None, *, a: Any = None, b: Any = None, time: Any = None) -> pa.Table | None:
        """Start again with two sets of objects; their pairs, as `update` reports them. Or restore a saved state.

        Earlier objects are dropped without retracting their pairs, and the time may be earlier than before. Raises
        AnswerError, and changes nothing, if the pairs exceed the setting max_answer_bytes.
        """
        if state is not None:
            if a is not None or b is not None or time is not None:
                raise QueryError("load takes a saved state, or sets a and b with their time, but not both")
            _STATE.load(self, state)
            return None
        self._check_given(a, b)
        tables = _tables(a, b)
        n_dims = max(table.n_dims for table in tables if table is not None)
        until = None if time is None else read_number(time, "time")
        read = self._read(tables, (None, None), (Ids(), Ids()), n_dims, until)
        times = _times_of(read, until)
        if not len(times):
            self.clear()
            self._wait(read)
            return self.changes
        now = float(times.max())
        self._check_interval(now)
        join = self._new_join(n_dims, now)
        for rows, of in zip(read, join.sets, strict=True):
            latest = (rows if rows.is_timed else rows.with_time(now)).latest()
            if len(latest):
                of.put(latest.ids, latest.rows, latest.reported, now, latest.carried)
        advice = "load fewer objects, or raise the setting"
        with self._refusing(advice):
            pairs = join.start()
        carried = self.columns.at_slots(join, (pairs.a, pairs.b))
        self._check_columns(len(pairs), carried, advice)
        self.clear()
        self.join = join
        self.changes = self.columns.add_to(to_change_table([(1, pairs)], *join.sets), carried)
        return self.changes

    def update(
        self, a: Any = None, b: Any = None, time: Any = None, *, remove_a: Any = None, remove_b: Any = None
    ) -> pa.Table:
        """Advance time, and add, update and remove objects: how the pairs change, as rows of sign, a, b, start and end.

        Rows are of the moment `time`, or have a column of times, in whose order they are applied. Rows and removals of
        the static set need no time: they are applied at the time that the join has reached, or wait for the first.
        Raises RowError, and changes nothing, if a row is invalid. Raises AnswerError, and changes nothing, if the
        changes exceed the setting max_answer_bytes.
        """
        if time is None:
            self._check_given(a, b, remove_a, remove_b)
        until, tables = None if time is None else read_number(time, "time"), _tables(a, b)
        known = (Ids(), Ids()) if self.join is None else (self.join.a.ids, self.join.b.ids)
        read = self._read(tables, (remove_a, remove_b), known, self._n_dims(tables), until)
        if until is not None and self.late == "error" and self.time is not None and until < self.time:
            raise RowError(f"time goes back from {self.time:g} to {until:g}; pass {self.time:g} or later")
        times = _times_of(read, until)
        if not len(times) and self.time is None:
            self._wait(read)
            return self.changes
        advice = "update fewer objects at once, let less time pass at once, or raise the setting"
        with self._refusing(advice):
            batch = self._begin(read, times)
            changes, rows = self._take_steps(batch, advice)
        self._end(batch)
        self.changes = self.columns.add_to(to_change_table(changes, *batch.join.sets), rows)
        batch.join.pack()
        return self.changes

    def update_each(
        self, a: MovingRows, b: MovingRows, times: NDArray[np.float64], max_bytes: int
    ) -> Iterator[pa.Table]:
        """As `update` with rows that were read, one table for each moment. Time also stops at other `times`.

        Raises AnswerError if the changes of one moment exceed `max_bytes`. The join must not be used after an error.
        """
        times = np.concatenate([times, a.times, b.times])
        if not len(times):
            return
        batch = self._begin((a, b), times)
        for moment, a_step, b_step in batch.steps():
            advice = "use more shards, or raise the setting"
            with self._refusing(advice, max_bytes):
                changes = batch.join.step(moment, a_step, b_step)
            changed = ChangedRows(self.columns)
            changed.note(changes, batch.join, moment)
            rows = changed.find(batch.join)
            self._check_columns(sum(len(each) for _, each in changes), rows, advice, max_bytes)
            yield self.columns.add_to(to_change_table(changes, *batch.join.sets), rows)
        batch.join.end_change()
        self._end(batch)
        batch.join.pack()

    # Answers.

    def pairs(self, at: Any = None) -> pa.Table:
        """The pairs that intersect at a time, now or later, if nothing updates until then: columns a and b.

        The first call after updates of an empty join, or after loading a saved state, finds all pairs. From then on
        they are kept up to date, and the cost of a call is that of its result. Raises AnswerError if the pairs exceed
        the setting max_answer_bytes: those of that time or, if all must be found, all pairs.
        """
        if self.join is None:
            join = self._new_join(2, 0.0)
            return self._with_columns(to_pair_table(_NONE, _NONE, *join.sets), join, (_NONE, _NONE), "")
        time = self._read_later(at, "pairs are known")
        join, advice = self._started(), "keep fewer objects, or raise the setting"
        with self._refusing(advice):
            found = join.at(time)
        check_answer(len(found[0]), _PAIR_BYTES * len(found[0]), "pair", advice)
        return self._with_columns(to_pair_table(*found, *join.sets), join, found, advice)

    def events(self, until: Any = None) -> pa.Table:
        """The pairs that will start and stop to intersect, in time order, if no object updates.

        Up to the deadlines of objects: columns time, event ("enter" or "exit"), a and b. Raises AnswerError as `pairs`
        does.
        """
        join = self._started()
        last = np.inf if until is None or self.join is None else self._read_later(until, "events are known")
        pairs, ends_so = join.upcoming()
        enters = np.flatnonzero((pairs.starts > join.now) & (pairs.starts <= last))
        exits = np.flatnonzero(ends_so & (pairs.ends <= last))
        n_events = len(enters) + len(exits)
        advice = "give an earlier until=, or raise the setting"
        check_answer(n_events, _EVENT_BYTES * n_events, "event", advice)
        times = np.concatenate([pairs.starts[enters], pairs.ends[exits]])
        order = np.argsort(times, kind="stable")
        of = np.concatenate([enters, exits])[order]
        chosen = pairs.take(of)
        events = to_event_table(times[order], order < len(enters), chosen, *join.sets)
        return self._with_columns(events, join, (chosen.a, chosen.b), advice)

    def pairs_of(self, slots: NDArray[np.int32], max_bytes: int) -> tuple[Meetings, NDArray[np.bool_]]:
        """The pairs of some objects of a, by slot, and whether each really ends at its end. There is a time.

        The cost is that of these objects, and no pairs are stored. Raises AnswerError if they exceed `max_bytes`.
        """
        assert self.join is not None
        with self._refusing("ask for fewer objects", max_bytes):
            return self.join.pairs_of(slots)

    def overdue(self, at: Any = None) -> pa.Table:
        """The objects that should have updated before a time, now or later: columns set, id and deadline.

        If the ids of one set are strings and those of the other integers: columns set, a, b and deadline, where either
        a or b is null.
        """
        if self.join is None:
            return to_overdue_table((_NONE, _NONE), (np.empty(0), np.empty(0)), *self._new_join(2, 0.0).sets)
        time = self._read_later(at, "overdue objects are known")
        a, b = (of.overdue(time) for of in self.join.sets)
        interval = self.max_update_interval
        deadlines = self.join.a.rows[a, TIME] + interval, self.join.b.rows[b, TIME] + interval
        return to_overdue_table((a, b), deadlines, *self.join.sets)

    def explain(self) -> str:
        """What is stored, how it is looked up, and what it costs, in words."""
        return explain(self)

    # The interval.

    def recommend_interval(self, candidates: Sequence[Interval]) -> float:
        """The interval with the lowest expected cost of updates, judged by the updates so far (section 7)."""
        costs = self.interval_costs(candidates)
        return float(costs["interval"][int(np.argmin(costs["cost"].to_numpy()))].as_py())

    def interval_costs(self, candidates: Sequence[Interval]) -> pa.Table:
        """The expected cost of updates per unit of time for each interval: columns interval and cost.

        The cost is in seconds of the machine on which the model was fitted; only comparisons are meaningful.
        """
        intervals = np.array([read_interval(each, "an interval") for each in candidates])
        if not len(intervals):
            raise QueryError("give one interval or more to choose from")
        if not self.n_a or not self.n_b:
            raise QueryError(
                "the join has no objects, so intervals cannot be compared; load objects, and let them update"
            )
        costs = expected_costs(self._started().traffic(), intervals) * 1e-9
        return pa.table({"interval": intervals, "cost": costs})

    # Saving.

    def save(self) -> bytes:
        """The whole state: the objects of both sets. Their pairs follow from it."""
        return _STATE.save(self)

    def take_delta(self) -> bytes:
        """What changed in the state since the last `save`, `load` or `take_delta`."""
        return _STATE.take_delta(self)

    def apply_delta(self, state: bytes) -> None:
        """Update a loaded state; apply deltas in the order in which they were taken."""
        _STATE.apply_delta(self, state)

    # Inside.

    def _begin(self, read: Sequence[MovingRows], times: NDArray[np.float64]) -> Batch:
        """The rows as a batch. There is a time: of the rows, of the join, or in `times`."""
        n_dims, now = read[0].n_dims, -np.inf if self.time is None else self.time
        join = self.join
        if join is None or join.a.n_dims != n_dims:
            join = self._new_join(n_dims, max(float(times.min(initial=np.inf)), now))
        if self.waiting is not None:
            read = [self._after_waiting(rows, name, join.now) for rows, name in zip(read, SETS, strict=True)]
        self._check_interval(max(float(times.max(initial=now)), now))
        return Batch.make(join, read, times if len(times) else np.array([now]), self.late)

    def _take_steps(self, batch: Batch, advice: str) -> tuple[list[tuple[int, Meetings]], dict[str, PairRows]]:
        """Apply a batch; how the pairs change, and their rows. If that exceeds the bound, nothing has changed."""
        join, n_bytes = batch.join, 0
        changes: list[tuple[int, Meetings]] = []
        rows = ChangedRows(self.columns)
        join.begin_change()
        try:
            for moment, a, b in batch.steps():
                found = join.step(moment, a, b)
                n_bytes += sum(each.nbytes for _, each in found)
                check_bytes(n_bytes)
                changes += found
                rows.note(found, join, moment)
            found_rows = rows.find(join)
            self._check_columns(sum(len(each) for _, each in changes), found_rows, advice)
        except BaseException:
            join.undo()
            raise
        join.end_change()
        return changes, found_rows

    def _end(self, batch: Batch) -> None:
        self.join, self.waiting = batch.join, None
        for number, n_dropped in enumerate(batch.n_dropped):
            self.n_late += n_dropped
            self.late_rows[number] += n_dropped

    def _wait(self, read: Sequence[MovingRows]) -> None:
        """Keep rows of the static set until the first time."""
        (rows,) = (rows for rows, name in zip(read, SETS, strict=True) if name == self.static)
        self.waiting = rows if self.waiting is None else self.waiting.followed_by(rows)
        self.changes = self._no_changes()

    def _no_changes(self) -> pa.Table:
        join = self._new_join(2, 0.0)
        return self._with_columns(to_change_table([], *join.sets), join, (_NONE, _NONE), "")

    def _with_columns(
        self, answer: pa.Table, join: IntersectionJoin, slots: tuple[NDArray[np.int32], NDArray[np.int32]], advice: str
    ) -> pa.Table:
        """An answer about pairs, with the columns of their objects now."""
        if not self.columns:
            return answer
        rows = self.columns.at_slots(join, slots)
        self._check_columns(answer.num_rows, rows, advice)
        return self.columns.add_to(answer, rows)

    def _check_columns(self, n: int, rows: Rows, advice: str, max_bytes: int | None = None) -> None:
        """Raise AnswerError if the columns of `n` pairs exceed the limit."""
        n_bytes, limit = count_bytes(rows), max_answer_bytes() if max_bytes is None else max_bytes
        if n_bytes > limit:
            raise too_large(f"has {count(n, 'pair')} with {n_bytes:,} bytes of columns", advice, limit)

    def _after_waiting(self, rows: MovingRows, name: str, now: float) -> MovingRows:
        if name != self.static or self.waiting is None:
            return rows
        waiting = self.waiting if not rows.is_timed else self.waiting.with_time(now)
        return waiting.followed_by(rows)

    def _new_join(self, n_dims: int, now: float) -> IntersectionJoin:
        a, b = (
            MovingSet(
                n_dims,
                self.max_update_interval,
                is_static=name == self.static,
                renews=not self.expire_overdue,
                columns=self.columns.of[name],
            )
            for name in SETS
        )
        return IntersectionJoin(a, b, now)

    def begin_unstarted(self, n_dims: int, now: float) -> IntersectionJoin:
        """The join at a time, without stored pairs. The caller sets its objects."""
        if self.join is None:
            self.join = self._new_join(n_dims, now)
        self.join.now, self.join.calendar = now, None
        return self.join

    def _started(self) -> IntersectionJoin:
        """The join, which stores its pairs from now on; an empty one before the first object."""
        join = self._new_join(2, 0.0) if self.join is None else self.join
        if join.calendar is None:
            with self._refusing("keep fewer objects, or raise the setting"):
                join.start()
        return join

    @contextmanager
    def _refusing(self, advice: str, max_bytes: int | None = None) -> Iterator[None]:
        """Raise AnswerError if what is found in the block exceeds the limit, by default the setting."""
        limit = max_answer_bytes() if max_bytes is None else max_bytes
        try:
            with bounded(limit), limited(self.threads):
                yield
        except OverBudgetError as error:
            n = error.n_bytes // MEETING_BYTES
            raise too_large(f"has at least {count(n, 'pair')}", advice, limit) from None

    def _n_dims(self, tables: Tables) -> int:
        given = [table for table in tables if table is not None]
        if self.join is not None and (len(self.join.a.ids) or len(self.join.b.ids)):
            n_dims = self.join.a.n_dims
        elif self.waiting is not None:
            n_dims = self.waiting.n_dims
        else:
            return max((table.n_dims for table in given), default=2)
        for table in given:
            if table.n_dims > n_dims:
                raise RowError(f"the rows of set {table.name} have a z, but the join has two dimensions")
        return n_dims

    def _read(
        self, tables: Tables, removals: Sequence[Any], known: Sequence[Ids], n_dims: int, time: float | None
    ) -> tuple[MovingRows, MovingRows]:
        a, b = (
            self._with_carried(
                read_moving_rows(table, gone, ids, name, n_dims=n_dims, time=time, is_static=name == self.static),
                table,
                name,
            )
            for table, gone, ids, name in zip(tables, removals, known, SETS, strict=True)
        )
        return a, b

    def _with_carried(self, rows: MovingRows, table: MovingTable | None, name: str) -> MovingRows:
        """The rows, with the columns that answers carry. Rows that only remove objects need none."""
        if table is None or not self.columns.of[name] or (len(rows) and rows.removed.all()):
            return rows
        n = len(table.find_ids())
        return replace(rows, carried=self.columns.read_rows(table.frame, name, n, len(rows) - n, self.carried_of(name)))

    def carried_of(self, name: str) -> CarriedRows | None:
        """The carried columns of a set so far."""
        return None if self.join is None else self.join.sets[SETS.index(name)].carried

    def _check_given(self, *given: Any) -> None:
        if all(each is None for each in given):
            raise RowError("no rows; pass a= or b=, or both, and time=")

    def _check_interval(self, time: float) -> None:
        if not time + self.max_update_interval > time:
            raise QueryError(
                f"is {self.max_update_interval:g}, which is too short to be added to the time {time:g}; count time "
                f"from a later moment",
                option="max_update_interval",
            )

    def _read_later(self, time: Any, what: str) -> float:
        """A time that is not before now."""
        assert self.join is not None
        if time is None:
            return self.join.now
        later = read_number(time, "time")
        if later < self.join.now:
            raise QueryError(
                f"{what} from the current time, {self.join.now:g}, on; got {later:g}; for the past, add up the changes"
            )
        return later


def _tables(a: Any, b: Any) -> Tables:
    return None if a is None else MovingTable(a, "a"), None if b is None else MovingTable(b, "b")


def _times_of(read: Sequence[MovingRows], until: float | None) -> NDArray[np.float64]:
    """The times of rows and `until`, which no row may exceed."""
    for rows, name in zip(read, SETS, strict=True):
        if until is not None and rows.is_timed and len(rows) and rows.times.max() > until:
            last = int(np.argmax(rows.times))
            raise RowError(
                f"row {last} of set {name} has time {rows.times[last]:g}, after the time= of the update, {until:g}"
            )
    times = [rows.times for rows in read if rows.is_timed]
    if not any(map(len, times)) and until is None and all(rows.is_timed for rows in read):
        raise RowError("there are no rows and no time; pass time=")
    return np.concatenate([*times, np.empty(0) if until is None else [until]])


_NONE = np.empty(0, np.int32)
_PAIR_BYTES, _EVENT_BYTES = 8, 17  # in the tables of `pairs` and `events`
