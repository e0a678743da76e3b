"""A set that the service has open: its compiled queries, its monitor, and the one thread that uses them.

Requests wait in a line. The thread takes all that are waiting: rows of several requests become one step where that
gives the same answers, and one write to the log. So the event loop never computes, and many small requests cost little
more than one large request.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from vedette.errors import RegistryError, SnapshotError, UnknownSetError, VedetteError
from vedette.registry.kinds import BORDER, KINDS, MATCH
from vedette.registry.read.followed import Followed
from vedette.registry.registry import Registry
from vedette.serve.bodies import MOMENT, RowsOf
from vedette.serve.durable_monitor import DurableMonitor
from vedette.serve.event_feed import Chunk, EventFeed
from vedette.serve.match_shares import LEAST_ROWS, BroadQueries
from vedette.serve.monitor_file import MonitorFile
from vedette.serve.operators.by_kind import operator_of
from vedette.serve.operators.operator import EventForm, Moment, Operator
from vedette.serve.options import ServeOptions
from vedette.serve.problems import Problem
from vedette.serve.recent_rows import RecentRows
from vedette.serve.row_log import Body
from vedette.serve.wall_clock import WallClock

_GROUP_ROWS = 1 << 15  # of requests that are one step: a step costs as much as 5,000 rows in it
_BATCHES = 20_000  # in the log, after which a snapshot is written: to repeat them takes seconds, however small they are
_MOMENTS = 10_000  # the same: one may look at all keys
_GAP = 1_000_000_000  # between the last event that is known and the next, if some are not known
_AT_ONCE = 1024  # requests that the thread takes from the line
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass
class Call:
    """Work for the thread, and the future of its result."""

    work: Callable[[], Any]
    future: asyncio.Future[Any]


@dataclass
class RowsCall:
    """Rows for the monitor, or a moment."""

    body: Body
    future: asyncio.Future[Any]
    batch: Any = None  # as the operator reads it
    keys: set[Any] = field(default_factory=set)


@dataclass(frozen=True)
class Accepted:
    """The answer to rows: how many, with which version, and the events of their keys."""

    n_rows: int
    version: int
    sequence: int  # of the last event of the set so far
    events: Sequence[dict[str, Any]]

    def to_record(self) -> dict[str, Any]:
        return {"rows": self.n_rows, "version": self.version, "sequence": self.sequence, "events": self.events}


class LiveSet:
    """One set. Its methods that return futures are called in the event loop; all others run on its thread."""

    def __init__(self, registry: Registry, followed: Followed, options: ServeOptions) -> None:
        self.followed = followed
        self.feed = EventFeed(options.keep_events)
        self.recent = RecentRows()
        self.broad: BroadQueries | None = None  # as last measured
        self._measuring: asyncio.Future[Any] | None = None
        self.monitor: DurableMonitor | None = None
        self.monitor_error: VedetteError | None = None  # why rows cannot be accepted
        self.wall_clock: WallClock | None = None  # by which time passes without rows
        self._registry = registry
        self._options = options
        self._file = MonitorFile(Path(options.state) / followed.uid)
        self.feed.next = self._file.read_next_event()
        self._lost_events = False  # the feed may be behind the events of a state that cannot be restored
        self._queries: Any = None
        self._schema_version = followed.info.schema_version  # of the schema that the set was opened with
        self._rows_of: RowsOf | None = None
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, f"vedette-set-{followed.name[:20]}")
        self._line: list[Call | RowsCall] = []
        self._lock = threading.Lock()
        self._is_busy = False
        self._has_ended = False

    @property
    def name(self) -> str:
        return self.followed.name

    @property
    def kind(self) -> str:
        return self.followed.info.kind

    @property
    def event_form(self) -> EventForm:
        """Where events have their query and keys. Raises a problem if the set can have no events."""
        return operator_of(self.kind, self.name).event_form(self.followed.streams)

    @property
    def version(self) -> int:
        """The version that requests are answered with; 0 before the first one."""
        return 0 if self._queries is None else self._queries.version

    @property
    def is_idle(self) -> bool:
        """Whether nothing has needed the queries yet."""
        return self._queries is None

    @property
    def n_waiting(self) -> int:
        return len(self._line)

    # In the event loop.

    def call(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """The result of work that the thread does."""
        future: asyncio.Future[Result] = self._loop.create_future()
        self._enqueue(Call(work, future))
        return future

    def measure_soon(self) -> None:
        """Find broad queries when the thread has time, unless that was done lately."""
        is_current = self.broad is not None and self.broad.is_current(self.version)
        if not is_current and self.recent and (self._measuring is None or self._measuring.done()):
            self._measuring = self.call(self.measure)

    def accept_time(self, time: Any) -> asyncio.Future[Accepted]:
        """The answer to time that has passed without rows."""
        return self.accept(Moment.to_body(time))

    def pass_wall_time(self, seconds: float) -> asyncio.Future[Accepted] | None:
        """Let time pass by the clock of the service, if the monitor asks for that."""
        clock = self.wall_clock
        return None if clock is None or self.monitor_error is not None else self.accept_time(clock.time_at(seconds))

    def accept(self, body: Body) -> asyncio.Future[Accepted]:
        """The answer to rows, once they are in the log."""
        future: asyncio.Future[Accepted] = self._loop.create_future()
        self._enqueue(RowsCall(body, future))
        return future

    def _enqueue(self, call: Call | RowsCall) -> None:
        if self._has_ended:
            call.future.set_exception(UnknownSetError(f"set {self.name!r} was closed; try again"))
            return
        with self._lock:
            self._line.append(call)
            if self._is_busy:
                return
            self._is_busy = True
        self._executor.submit(self._work)

    def _end(self) -> None:
        """End the thread after what is in the line."""
        self._has_ended = True
        self._executor.shutdown(wait=False)

    async def close(self) -> None:
        """Process what is in the line, write a snapshot, and end the thread."""
        self.feed.close()
        try:
            await self.call(self._close)
        finally:
            self._end()

    async def forget(self) -> None:
        """End the thread, and delete the state of the monitor: the set was dropped."""
        self.feed.close()

        def delete() -> None:
            if self._file.exists:
                self._delete_state()
            self._file.forget()

        await self.call(delete)
        self._end()

    def _settle(self, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        """Give answers to those who wait for them, and tell the clients of the feed."""
        for future, answer in answers:
            if future.done():  # the client has gone
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self.feed.wake()

    # On the thread.

    def _work(self) -> None:
        while True:
            with self._lock:
                taken, self._line = self._line[:_AT_ONCE], self._line[_AT_ONCE:]
                if not taken:
                    self._is_busy = False
                    return
            answers: list[tuple[asyncio.Future[Any], Any]] = []
            place = 0
            while place < len(taken):
                call = taken[place]
                if isinstance(call, Call):
                    answers.append((call.future, _try(call.work)))
                    place += 1
                    continue
                group = []
                while place < len(taken) and isinstance(each := taken[place], RowsCall):
                    group.append(each)
                    place += 1
                try:
                    answers += self._take(group)
                except Exception as error:
                    self._discard()
                    answers += [(each.future, error) for each in group]
            self._loop.call_soon_threadsafe(self._settle, answers)

    @property
    def queries(self) -> Any:
        """The compiled set. It is opened on first use: at the version of the monitor's state, if it has one."""
        if self._queries is None:
            self._open()
            gc.freeze()  # its queries stay
        return self._queries

    @property
    def rows_of(self) -> RowsOf:
        """How rows to match are read. Raises a problem if the queries of the set are not for matching."""
        if MATCH not in KINDS[self.kind].operators:
            raise Problem(
                409,
                "other_kind",
                f"set {self.name!r} is of kind {self.kind}; this call is for sets of match and border",
            )
        queries = self.queries
        if self._rows_of is None or self._rows_of.schema is not queries.schema:
            self._rows_of = RowsOf(queries.schema, queries.time_zone, self._options.max_rows)
        return self._rows_of

    def _open(self) -> None:
        if self._file.exists and self.monitor_error is None:
            try:
                self._restore()
            except VedetteError as error:
                if isinstance(error, RegistryError) and error.is_retryable:
                    raise
                _log.error("set %r: %s", self.name, error)
                self.monitor_error = SnapshotError(f"the state of the monitor cannot be restored: {error}")
                self._lost_events = True
        if self.monitor is None:
            self._open_now()
        else:
            self.advance()

    def _open_now(self) -> None:
        self.followed = self._registry.follow(self.name)
        self._schema_version = self.followed.info.schema_version
        self._queries = self.followed.open(self.followed.current_version())

    def _restore(self) -> None:
        """Open the set as it was when the monitor accepted its last rows."""
        snapshot = self._file.read_snapshot()
        followed = self._registry.follow(self.name, version=snapshot.version)
        self.monitor = DurableMonitor.restore(
            operator_of(self.kind, self.name), self._file, snapshot, followed, self.feed, sync=self._options.sync
        )
        self.monitor.operator.limit_rows(self._options.max_rows)
        self.wall_clock = WallClock.of(self.monitor.operator, self._file.read_options())
        self._queries, self._schema_version = self.monitor.monitor.queries, followed.info.schema_version

    def advance(self) -> int:
        """Follow the set to its current version; returns the version."""
        queries = self.queries
        info = self._registry.end_due(self.name)
        if info.uid != self.followed.uid:
            raise UnknownSetError(f"set {self.name!r} was dropped and created again; try again")
        if info.id_kind != self.followed.info.id_kind:  # the first query has decided it
            self.followed = self._registry.follow(self.name)
        if info.schema_version > self._schema_version:
            self._reopen()
        elif info.version > queries.version:
            self.followed.advance(queries, info.version)
            self._refresh()
        version: int = (queries if self._queries is None else self._queries).version
        return version

    def _refresh(self) -> None:
        """Let the events of changed queries happen now, if the operator needs no rows for that."""
        if self.monitor is None:
            return
        try:
            self.monitor.refresh()
        except OSError as error:
            self._lose(error)
        except VedetteError as error:  # the next rows are refused with it
            _log.warning("set %r: changes of queries cannot take effect: %s", self.name, error)
        except Exception:
            self._discard()
            raise

    def _reopen(self) -> None:
        """Open the set again, with the schema that it has now. The state of a monitor is of the old schema."""
        if self.monitor is not None:
            try:
                self._snapshot()
            except (OSError, VedetteError) as error:
                _log.error("set %r: cannot write a snapshot: %s", self.name, error)
            self.monitor.close()
            self.monitor = None
            self.monitor_error = SnapshotError(
                f"the schema of set {self.name!r} was altered, and the state of its monitor has rows of the old "
                f"schema; delete the monitor and create it again"
            )
        self._open_now()

    def measure(self) -> BroadQueries | None:
        """Find the queries that match many of the recent rows. None if there are too few rows, or other ones."""
        self.broad = None
        if self.recent:  # of a kind that has them
            rows = self.recent.sample(self.rows_of)
            if rows is not None and rows.num_rows >= LEAST_ROWS:
                with suppress(VedetteError):  # rows of a schema that the set had before
                    self.broad = BroadQueries.find(self.queries, rows)
        return self.broad

    # The monitor, on the thread.

    def create_monitor(self, options: dict[str, Any]) -> None:
        """Begin to monitor the set. Raises a problem if it has a monitor."""
        operator_type = operator_of(self.kind, self.name)
        if self._file.exists:
            raise Problem(409, "existing_monitor", f"set {self.name!r} has a monitor; delete it first, with its state")
        operator = operator_type(self.queries, options)
        operator.limit_rows(self._options.max_rows)
        wall = WallClock.of(operator, options)
        self.monitor = DurableMonitor.create(operator, self._file, options, self.feed, sync=self._options.sync)
        self.monitor_error, self.wall_clock = None, wall
        self._pin()

    def monitor_options(self) -> dict[str, Any]:
        if not self._file.exists:
            raise no_monitor(self.name)
        return self._file.read_options()

    def event_fields(self) -> list[str] | None:
        """The fields that events have; None if there is no monitor that says it."""
        return self.event_form.fields_with(self._file.read_options()) if self._file.exists else None

    def delete_monitor(self) -> None:
        """Forget the monitor and its state. Its events stay in the feed, and later ones continue their numbers."""
        if not self._file.exists:
            raise no_monitor(self.name)
        _ = self.queries  # restores the number of the next event
        self._delete_state()

    def _delete_state(self) -> None:
        if self.monitor is not None:
            self.monitor.close()
        self.monitor = self.monitor_error = self.wall_clock = None
        if self._lost_events:  # how many there were is not known
            self.feed.restore([], self.feed.next + _GAP)
            self._lost_events = False
        self._file.delete(self.feed.next)
        with suppress(RegistryError):
            self._registry.unpin(self._stream, name=self.name)

    def _snapshot(self) -> None:
        """Write a snapshot, and keep the registry from forgetting the versions that the log after it needs.

        While reported queries are not removed from the registry, the log must tell which they are.
        """
        if self.monitor is not None and not self.monitor.reported:
            self.monitor.snapshot()
            self._pin()

    def _pin(self) -> None:
        if self.monitor is None or self.followed.id_kind is None:  # the first pin would make ids strings
            return
        try:
            self._registry.pin(self._stream, self.monitor.n_batches, self.followed.info)
        except RegistryError as error:
            _log.warning("set %r: cannot pin a version: %s", self.name, error)

    @property
    def _stream(self) -> str:
        """The name of this service among the streams that have pins."""
        place = f"{socket.gethostname()} {self._file.directory.absolute()}"
        return f"serve:{hashlib.blake2b(place.encode(), digest_size=8).hexdigest()}"

    def need_monitor(self) -> DurableMonitor:
        _ = self.queries
        if self.monitor_error is not None:
            raise self.monitor_error
        if self.monitor is None:
            raise no_monitor(self.name)
        return self.monitor

    def need_feed(self) -> None:
        """Raise a problem if the set can have no events."""
        operator_of(self.kind, self.name)
        if self._file.exists:
            _ = self.queries  # restores the recent events

    # Rows, on the thread.

    def _take(self, calls: list[RowsCall]) -> list[tuple[asyncio.Future[Any], Any]]:
        """Process rows of several requests, in their order, and write them to the log together."""
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        done: list[tuple[asyncio.Future[Any], Any]] = []
        try:
            monitor = self.need_monitor()
        except Exception as error:
            return [(call.future, error) for call in calls]
        operator, ready = monitor.operator, []
        groups_calls = len(calls) > 1 and operator.joins_requests
        for call in calls:
            try:
                call.batch = operator.read(call.body)
                if groups_calls and call.body.form != MOMENT:
                    call.keys = operator.keys_of(call.batch)
                ready.append(call)
            except Exception as error:
                answers.append((call.future, error))
        try:
            waiting = _disjoint(ready, operator) if groups_calls else [[call] for call in ready]
            while waiting:
                group = waiting.pop(0)
                try:
                    monitor = self._remove_reported(monitor)
                except (VedetteError, Problem) as error:
                    answers += [(call.future, error) for call in group]
                    continue
                found = self._step(monitor, group)
                if found is None:
                    waiting[:0] = [[call] for call in group]
                else:
                    done += found
            if monitor is self.monitor:
                monitor.commit()
        except OSError as error:
            lost, answered = self._lose(error), {future for future, _ in answers}
            return answers + [(call.future, lost) for call in ready if call.future not in answered]
        try:
            self._remove_reported(monitor)
        except (VedetteError, Problem) as error:
            _log.warning("set %r: queries that were reported are not removed yet: %s", self.name, error)
        if monitor is self.monitor and self._is_log_long(monitor):
            try:
                self._snapshot()
            except OSError as error:
                _log.error("set %r: cannot write a snapshot: %s", self.name, error)
                self._discard()
            except VedetteError as error:
                _log.error("set %r: cannot write a snapshot: %s", self.name, error)
        return answers + done

    def _is_log_long(self, monitor: DurableMonitor) -> bool:
        """Whether a snapshot should shorten the log, which a restart repeats."""
        is_large = monitor.log_bytes > self._options.log_bytes
        return is_large or monitor.n_logged > _BATCHES or monitor.n_moments > _MOMENTS

    def _remove_reported(self, monitor: DurableMonitor) -> DurableMonitor:
        """Remove queries with once="query" that batches have reported, so that no later one does; returns the monitor.

        The batches are written to the log before. After a crash they are repeated, and so is this.
        """
        if monitor is not self.monitor:  # the schema was altered
            return self.need_monitor()
        if not monitor.reported:
            return monitor
        monitor.commit()
        for each in monitor.reported:
            self.followed.note_reports(self._stream, each.batch, each.version, each.ids)
        self._registry.remove_reported(self.name, {self._stream: monitor.reported[-1].batch})
        self.advance()
        monitor.reported = []
        return self.need_monitor()

    def _step(self, monitor: DurableMonitor, group: list[RowsCall]) -> list[tuple[asyncio.Future[Any], Any]] | None:
        """The answers to the requests of a group; None if they must be processed one by one."""
        version = self.queries.version
        batches = [call.batch for call in group]
        if not any(batch.num_rows for batch in batches) and group[0].body.form != MOMENT:
            answer = Accepted(0, version, monitor.next_event - 1, [])
            return [(call.future, answer) for call in group]
        try:
            chunk = monitor.step([call.body for call in group], batches)
        except Exception as error:
            if monitor.is_ahead:
                raise
            return [(group[0].future, error)] if len(group) == 1 else None
        if self.kind == BORDER:  # only keys have charts
            self.recent.append(call.body for call in group if call.body.form != MOMENT)
        last = chunk.end - 1
        return [
            (call.future, Accepted(call.batch.num_rows, version, last, events))
            for call, events in zip(group, self._divide(chunk, group, monitor), strict=True)
        ]

    def _divide(self, chunk: Chunk, group: list[RowsCall], monitor: DurableMonitor) -> list[list[dict[str, Any]]]:
        """The events of each request: those of its keys. Time may cause events of other keys; they are in the feed."""
        if chunk.end == chunk.first:
            return [[] for _ in group]
        records = chunk.records
        if len(group) == 1 and (group[0].body.form == MOMENT or not monitor.operator.makes_events_of_others):
            return [records]
        keys = [call.keys or monitor.operator.keys_of(call.batch) for call in group]
        if sum(map(len, keys)) == 1 or len(group) == 1:
            return [[record for record in records if record["key"] in own] for own in keys]
        found = {record["key"] for record in records}
        owners = {
            key: place for place, own in enumerate(keys) for key in found & own
        }  # the keys of a group are distinct
        divided: list[list[dict[str, Any]]] = [[] for _ in group]
        for record in records:
            if (place := owners.get(record["key"])) is not None:
                divided[place].append(record)
        return divided

    def _lose(self, error: OSError) -> Problem:
        """After a failed write: the monitor is ahead of its log, so it is restored before the next use."""
        _log.error("set %r: cannot write the log of rows: %s", self.name, error)
        self._discard()
        return Problem(503, "unavailable", f"the rows were not accepted: the log cannot be written: {error.strerror}")

    def _discard(self) -> None:
        """Forget what is in memory. The next use restores it from the files."""
        monitor, self.monitor, self._queries = self.monitor, None, None
        if monitor is not None:
            with suppress(OSError):
                monitor.close()

    def _close(self) -> None:
        if self.monitor is not None:
            try:
                self._snapshot()
            finally:
                self.monitor.close()
                self.monitor = None


def no_monitor(name: str) -> Problem:
    return Problem(404, "no_monitor", f"set {name!r} has no monitor; create one with PUT /v1/sets/{name}/monitor")


def _try(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


def _disjoint(calls: list[RowsCall], operator: Operator) -> list[list[RowsCall]]:
    """The requests in groups that can be processed together: of distinct keys, and not too many rows.

    A key's rows of two requests are never in one group, so each is judged late or not as if it came alone.
    """
    groups: list[list[RowsCall]] = []
    keys: set[Any] = set()
    n_rows = 0
    for call in calls:
        can_join = (
            groups
            and MOMENT not in (call.body.form, groups[-1][-1].body.form)
            and n_rows + call.batch.num_rows <= _GROUP_ROWS
            and operator.can_join(groups[-1][-1].batch, call.batch)
            and keys.isdisjoint(call.keys)
        )
        if can_join:
            groups[-1].append(call)
            keys |= call.keys
            n_rows += call.batch.num_rows
        else:
            groups.append([call])
            keys, n_rows = set(call.keys), call.batch.num_rows
    return groups
