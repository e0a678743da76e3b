"""The moving join: two sets of moving rectangles or boxes, and at every moment the pairs that intersect.

What its answers mean is written in docs/operators.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import check_answer, max_answer_bytes, too_large
from vedette.data.durations import Interval, read_interval
from vedette.data.ids import Ids, take_ids
from vedette.errors import QueryError, RowError, count
from vedette.native.budget import OverBudgetError, bounded, check_bytes
from vedette.operators.moving_join.explanation import explain
from vedette.operators.moving_join.interval import expected_costs
from vedette.operators.moving_join.join import IntersectionJoin, Step
from vedette.operators.moving_join.meetings import MEETING_BYTES, Meetings, net
from vedette.operators.moving_join.motion_rows import TIME
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingRows, MovingTable, read_moving_rows, read_number
from vedette.operators.moving_join.state import MovingState
from vedette.operators.moving_join.table import to_change_table, to_event_table, to_overdue_table, to_pair_table

SETS = ("a", "b")
Tables = tuple[MovingTable | None, MovingTable | None]

_STATE = MovingState()


class MovingJoin:
    """Objects of two sets that move, and when which of them intersect.

    >>> vessels = {"id": ["Ada"], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0]}
    >>> storms = {"id": [7], "x_low": [10], "x_high": [14], "y_low": [-1], "y_high": [1], "vx": [0.0], "vy": [0.0]}
    >>> moving = MovingJoin(max_update_interval=60)
    >>> moving.load(a=vessels, b=storms, time=0).to_pylist()
    [{'sign': 1, 'a': 'Ada', 'b': 7, 'start': 10.0, 'end': 14.0}]
    >>> moving.pairs(at=12).to_pylist()
    [{'a': 'Ada', 'b': 7}]
    """

    def __init__(
        self, max_update_interval: Interval, *, expire_overdue: bool = False, static: str | None = None
    ) -> None:
        """Objects update at least every `max_update_interval`: a number in the unit of times and speeds, or a duration.

        A duration, such as "60 seconds" or a timedelta, is for times in seconds.

        With `expire_overdue` one that does not leaves the result. The objects of the set that is `static`, "a" or
        "b", need not.
        """
        self.max_update_interval = read_interval(max_update_interval, "max_update_interval")
        if static not in (None, *SETS):
            raise QueryError(f"is 'a', 'b' or None; got {static!r}", option="static")
        if not isinstance(expire_overdue, (bool, np.bool_)):
            raise QueryError(f"is True or False; got {expire_overdue!r}", option="expire_overdue")
        self.expire_overdue = bool(expire_overdue)
        self.static = static
        self.clear()

    def clear(self) -> None:
        """Forget all objects."""
        self.join: IntersectionJoin | None = None
        self.changes = to_change_table([], *self._new_join(2, 0.0).sets)  # of the last call

    def __repr__(self) -> str:
        objects = f"{count(self.n_a, 'object')} in a, {count(self.n_b, 'object')} in b"
        is_known = self.join is None or self.join.calendar is not None
        pairs = count(self.n_pairs, "pair") if is_known else "pairs not found yet"
        return f"MovingJoin(max_update_interval={self.max_update_interval:g}, {objects}, {pairs})"

    # Objects.

    @property
    def time(self) -> float | None:
        """The moment of the last update; None before there was any."""
        return None if self.join is None else self.join.now

    @property
    def n_a(self) -> int:
        return 0 if self.join is None else len(self.join.a)

    @property
    def n_b(self) -> int:
        return 0 if self.join is None else len(self.join.b)

    @property
    def n_pairs(self) -> int:
        """Pairs that intersect now or are known to do so later."""
        return self._started().n_pairs

    @property
    def nbytes(self) -> int:
        """The memory of all objects, and of the pairs where they are kept."""
        return 0 if self.join is None else self.join.nbytes

    def load(self, state: bytes | None = None, *, a: Any = None, b: Any = None, time: Any = None) -> pa.Table | None:
        """Begin anew with two sets of objects; their pairs, as `update` tells them. Or take up a saved state.

        What was there is forgotten, and its pairs are not taken back; the time may be earlier than it was. Raises
        AnswerError, and changes nothing, where the pairs exceed the setting max_answer_bytes.
        """
        if state is not None:
            if a is not None or b is not None or time is not None:
                raise QueryError("load takes a saved state, or sets a and b with their time, but not both")
            _STATE.load(self, state)
            return None
        self._check_given(a, b)
        tables = _tables(a, b)
        n_dims = max(table.n_dims for table in tables if table is not None)
        now = None if time is None else self._read_time(time)
        read = self._read(tables, (None, None), (Ids(), Ids()), n_dims, now)
        now = self._last_time(read, now)
        for rows, name in zip(read, SETS, strict=True):
            _check_times(rows, -np.inf, now, name)
        self._check_interval(now)
        join = self._new_join(n_dims, now)
        for rows, of in zip(read, join.sets, strict=True):
            latest = rows.latest()
            if len(latest):
                of.put(latest.ids, latest.rows, now)
        with _refusing("load fewer objects"):
            pairs = join.start()
        self.join = join
        self.changes = to_change_table([(1, pairs)], *join.sets)
        return self.changes

    def update(
        self, a: Any = None, b: Any = None, time: Any = None, *, remove_a: Any = None, remove_b: Any = None
    ) -> pa.Table:
        """Let time pass, and objects come, update and go: what that changes, as lines of sign, a, b, start, end.

        Raises RowError, and changes nothing, where a row cannot be taken or time would run backwards. Raises
        AnswerError, and changes nothing, where the changes exceed the setting max_answer_bytes.
        """
        with _refusing("update fewer objects at once, and let less time pass at once"):
            return self._update(a, b, time, remove_a, remove_b)

    def update_unlimited(self, a: Any = None, b: Any = None, time: Any = None) -> pa.Table:
        """As `update`, whatever the setting max_answer_bytes is."""
        return self._update(a, b, time, None, None)

    def _update(self, a: Any, b: Any, time: Any, remove_a: Any, remove_b: Any) -> pa.Table:
        if time is None:
            self._check_given(a, b)
        now = None if time is None else self._read_time(time)
        join, tables = self.join, _tables(a, b)
        n_dims = self._n_dims(tables)
        known = (Ids(), Ids()) if join is None else (join.a.ids, join.b.ids)
        read = self._read(tables, (remove_a, remove_b), known, n_dims, now)
        now = self._last_time(read, now)
        before = -np.inf if join is None else join.now
        if now < before:
            raise RowError(f"time runs backwards: {now:g} after {before:g}; give {before:g} or later")
        for rows, name in zip(read, SETS, strict=True):
            _check_times(rows, before, now, name)
        self._check_interval(now)
        if join is None or join.a.n_dims != n_dims:
            first = min(float(rows.times.min(initial=now)) for rows in read)
            join = self._new_join(n_dims, max(first, before))
        steps = _take_steps(join, read, now)
        self.join = join
        self.changes = to_change_table(steps[0] if len(steps) == 1 else net(list(chain(*steps))), *join.sets)
        join.pack()
        return self.changes

    # Answers.

    def pairs(self, at: Any = None) -> pa.Table:
        """The pairs that intersect at a time, now or later, if nothing updates until then: columns a and b.

        The first call after updates of an empty join, or after loading a saved state, finds all pairs; from then on
        they are kept up to date, and a call costs what it reports. Raises AnswerError where the pairs exceed the
        setting max_answer_bytes, at that time or, where all are to be found, together.
        """
        if self.join is None:
            return to_pair_table(_NONE, _NONE, *self._new_join(2, 0.0).sets)
        time = self._read_later(at, "pairs are told")
        join = self._started()
        with _refusing("keep fewer objects"):
            found = join.at(time)
        check_answer(len(found[0]), _PAIR_BYTES * len(found[0]), "pair", "keep fewer objects, or raise the setting")
        return to_pair_table(*found, *join.sets)

    def events(self, until: Any = None) -> pa.Table:
        """Who will begin and who will cease to intersect whom after now, in the order of time, if nothing updates.

        As far as objects are looked at: columns time, event ("enter" or "exit"), a and b. Raises AnswerError as `pairs`
        does.
        """
        join = self._started()
        last = np.inf if until is None or self.join is None else self._read_later(until, "events are told")
        pairs, ends_so = join.upcoming()
        enters = np.flatnonzero((pairs.starts > join.now) & (pairs.starts <= last))
        exits = np.flatnonzero(ends_so & (pairs.ends <= last))
        n_events = len(enters) + len(exits)
        check_answer(n_events, _EVENT_BYTES * n_events, "event", "give an earlier until=, or raise the setting")
        times = np.concatenate([pairs.starts[enters], pairs.ends[exits]])
        order = np.argsort(times, kind="stable")
        of = np.concatenate([enters, exits])[order]
        return to_event_table(times[order], order < len(enters), pairs.take(of), *join.sets)

    def overdue(self, at: Any = None) -> pa.Table:
        """The objects that should have updated before a time, now or later: columns set, id and deadline.

        Where the ids of one set are strings and those of the other numbers: columns set, a, b, of which one is null,
        and deadline.
        """
        if self.join is None:
            return to_overdue_table((_NONE, _NONE), (np.empty(0), np.empty(0)), *self._new_join(2, 0.0).sets)
        time = self._read_later(at, "who is overdue is told")
        a, b = (of.overdue(time) for of in self.join.sets)
        interval = self.max_update_interval
        deadlines = self.join.a.rows[a, TIME] + interval, self.join.b.rows[b, TIME] + interval
        return to_overdue_table((a, b), deadlines, *self.join.sets)

    def explain(self) -> str:
        """What is held, how it is looked up, and what it costs, in words."""
        return explain(self)

    # The interval.

    def recommend_interval(self, candidates: Sequence[Interval]) -> float:
        """The one of some intervals with which updates would cost least, by what has been seen so far (section 7)."""
        costs = self.interval_costs(candidates)
        return float(costs["interval"][int(np.argmin(costs["cost"].to_numpy()))].as_py())

    def interval_costs(self, candidates: Sequence[Interval]) -> pa.Table:
        """What updates would cost in a unit of time, with each of some intervals: columns interval and cost.

        The cost is in seconds of the machine on which it was measured; what tells is which is least.
        """
        intervals = np.array([read_interval(each, "an interval") for each in candidates])
        if not len(intervals):
            raise QueryError("give one interval or more to choose from")
        if not self.n_a or not self.n_b:
            raise QueryError("there are no objects to tell from which interval is best; load some, and let them update")
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

    def _new_join(self, n_dims: int, now: float) -> IntersectionJoin:
        a, b = (
            MovingSet(n_dims, self.max_update_interval, stands=name == self.static, renews=not self.expire_overdue)
            for name in SETS
        )
        return IntersectionJoin(a, b, now)

    def begin_unstarted(self, n_dims: int, now: float) -> IntersectionJoin:
        """The join at a time, whose objects will be set and whose pairs will be found when they are asked for."""
        if self.join is None:
            self.join = self._new_join(n_dims, now)
        self.join.now, self.join.calendar = now, None
        return self.join

    def _started(self) -> IntersectionJoin:
        """The join, which keeps its pairs from here on; an empty one before there was any object."""
        join = self._new_join(2, 0.0) if self.join is None else self.join
        if join.calendar is None:
            with _refusing("keep fewer objects"):
                join.start()
        return join

    def _n_dims(self, tables: Tables) -> int:
        given = [table for table in tables if table is not None]
        if self.join is None or not (len(self.join.a.ids) or len(self.join.b.ids)):
            return max((table.n_dims for table in given), default=2)
        n_dims = self.join.a.n_dims
        for table in given:
            if table.n_dims > n_dims:
                raise RowError(f"the rows of set {table.name} have a z, but the join has two dimensions")
        return n_dims

    def _read(
        self, tables: Tables, removals: Sequence[Any], known: Sequence[Ids], n_dims: int, time: float | None
    ) -> tuple[MovingRows, MovingRows]:
        a, b = (
            read_moving_rows(table, gone, ids, name, n_dims=n_dims, time=time, is_static=name == self.static)
            for table, gone, ids, name in zip(tables, removals, known, SETS, strict=True)
        )
        return a, b

    def _check_given(self, a: Any, b: Any) -> None:
        if a is None and b is None:
            raise RowError("nothing is given; give rows as a= or b=, or both, and their time=")

    def _read_time(self, time: Any) -> float:
        return read_number(time, "time")

    def _last_time(self, read: Sequence[MovingRows], time: float | None) -> float:
        if time is not None:
            return time
        times = [float(rows.times.max()) for rows in read if len(rows)]
        if not times:
            raise RowError("there are no rows and no time; give time=")
        return max(times)

    def _check_interval(self, time: float) -> None:
        if not time + self.max_update_interval > time:
            raise QueryError(
                f"is {self.max_update_interval:g}, which is too short to be told at the time {time:g}; count time "
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
                f"{what} for now, which is {self.join.now:g}, and later; got {later:g}: the past is in the changes"
            )
        return later


def _tables(a: Any, b: Any) -> Tables:
    return None if a is None else MovingTable(a, "a"), None if b is None else MovingTable(b, "b")


@contextmanager
def _refusing(advice: str) -> Iterator[None]:
    """Raise AnswerError where what is found in the block exceeds the limit."""
    try:
        with bounded(max_answer_bytes()):
            yield
    except OverBudgetError as error:
        n = error.n_bytes // MEETING_BYTES
        raise too_large(f"has at least {count(n, 'pair')}", f"{advice}, or raise the setting") from None


def _take_steps(join: IntersectionJoin, read: Sequence[MovingRows], now: float) -> list[list[tuple[int, Meetings]]]:
    """Let the rows be taken, moment after moment; what that changes. If it exceeds the bound, nothing has changed."""
    steps: list[list[tuple[int, Meetings]]] = []
    moments = _moments(read, now)
    n_bytes = 0
    join.begin_change()
    try:
        for moment, *both in zip(moments.tolist(), *(rows.at_each(moments) for rows in read), strict=True):
            a_step, b_step = (_step(of, rows) for of, rows in zip(join.sets, both, strict=True))
            found = join.step(moment, a_step, b_step)
            n_bytes += sum(each.nbytes for _, each in chain(*found))
            check_bytes(n_bytes)
            steps += found
    except BaseException:
        join.take_back()
        raise
    join.end_change()
    return steps


def _check_times(rows: MovingRows, first: float, last: float, name: str) -> None:
    if not len(rows):
        return
    early, late = int(np.argmin(rows.times)), int(np.argmax(rows.times))
    if rows.times[early] < first:
        raise RowError(f"time runs backwards: row {early} of set {name} is of {rows.times[early]:g}, after {first:g}")
    if rows.times[late] > last:
        raise RowError(f"row {late} of set {name} is of {rows.times[late]:g}, but the update of {last:g}")


def _moments(read: Sequence[MovingRows], now: float) -> NDArray[np.float64]:
    """All times of rows, in order, and now."""
    if all((rows.times == now).all() for rows in read):
        return np.array([now])
    return np.unique(np.concatenate([*(rows.times for rows in read), [now]]))


def _step(of: MovingSet, rows: MovingRows) -> Step:
    if not rows.goes.any():
        return Step(rows.ids, rows.rows, _NONE)
    freed = of.find(take_ids(rows.ids, np.flatnonzero(rows.goes)))
    kept = np.flatnonzero(~rows.goes)
    return Step(take_ids(rows.ids, kept), rows.rows[kept], freed[freed >= 0])


_NONE = np.empty(0, np.int32)
_PAIR_BYTES, _EVENT_BYTES = 8, 17  # in the tables of `pairs` and `events`
