"""A border monitor that survives the end of its process: snapshots, and the log of rows since the last one.

Rows are processed first, then written to the log, then acknowledged, and then their events are published. A crash in
between loses only what was not acknowledged. After a restart the log is repeated from the last snapshot, each batch
with the version of the queries that it had: that gives the same state, and the same events with the same sequence
numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vedette.errors import SnapshotError, VedetteError
from vedette.operators.border.monitor import BorderMonitor
from vedette.queries.query_set import QuerySet
from vedette.registry.read.followed import Followed
from vedette.serve.bodies import RowsOf
from vedette.serve.event_feed import Chunk, EventFeed
from vedette.serve.monitor_file import MonitorFile, Snapshot
from vedette.serve.row_log import Body, Record, RowLog

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reported:
    """Queries with once="query" that a batch has reported, at a version of the set."""

    batch: int
    version: int
    ids: Sequence[Any]


class DurableMonitor:
    """A monitor, its log and its feed of events. Used by one thread at a time."""

    def __init__(
        self, monitor: BorderMonitor, file: MonitorFile, snapshot: Snapshot, feed: EventFeed, *, sync: bool
    ) -> None:
        self.monitor = monitor
        self.feed = feed
        self._file = file
        self._sync = sync
        self._batch = snapshot.batch
        self._log = RowLog(file.log_path(snapshot.batch), sync=sync)
        self._first_of_log = snapshot.batch
        self._next_event = snapshot.next_event
        self._unpublished: list[Chunk] = []
        self.is_ahead = False  # a step was made, and its record could not be: the monitor must be restored
        self.reported: list[Reported] = []  # queries with once="query" that are still to be removed from the set

    @classmethod
    def create(
        cls, queries: QuerySet, file: MonitorFile, options: dict[str, Any], feed: EventFeed, *, sync: bool
    ) -> DurableMonitor:
        """A monitor without keys."""
        monitor = make_monitor(queries, options)
        first = Snapshot(0, queries.version, feed.next, monitor.save(), [])
        file.create(options, first)
        return cls(monitor, file, first, feed, sync=sync)

    @classmethod
    def restore(
        cls,
        file: MonitorFile,
        snapshot: Snapshot,
        followed: Followed,
        rows_of: Callable[[QuerySet], RowsOf],
        feed: EventFeed,
        *,
        sync: bool,
    ) -> DurableMonitor:
        """The monitor as it was after the last batch that was accepted. `followed` is the set at the snapshot."""
        queries: QuerySet = followed.open(snapshot.version)
        monitor = make_monitor(queries, file.read_options())
        monitor.load(snapshot.state)
        feed.restore(snapshot.events, snapshot.next_event)
        made = cls(monitor, file, snapshot, feed, sync=sync)
        n_batches = 0
        for record in made._log.read():
            followed.advance(queries, record.version)
            made._repeat(record, rows_of(queries))
            n_batches += 1
        if n_batches:
            _log.info("repeated %d batches of %s", n_batches, file.directory)
        return made

    def step(self, bodies: Sequence[Body], rows: pa.Table) -> Chunk:
        """The events of a batch, with their sequence numbers. `commit` writes the batch and publishes them."""
        version = self.monitor.queries.version
        events = self.monitor.step(rows)
        self.is_ahead = True
        self._batch += 1
        mark = self.monitor.queries.history_mark(version) or 0
        chunk = Chunk(self._next_event, events)
        self._log.append(Record(self._batch, version, mark, chunk.first, events.num_rows, tuple(bodies)))
        self._next_event = chunk.end
        self._unpublished.append(chunk)
        self._note_done(version)
        self.is_ahead = False
        return chunk

    def commit(self) -> None:
        """Write the batches since the last commit, then publish their events.

        Raises OSError if they cannot be written. The monitor is then ahead of its log and must be restored.
        """
        self._log.commit()
        for chunk in self._unpublished:
            self.feed.append(chunk)
        self._unpublished = []

    @property
    def next_event(self) -> int:
        """The sequence number of the next event."""
        return self._next_event

    @property
    def makes_events_of_others(self) -> bool:
        """Whether rows of a key can cause events of other keys, because time passes."""
        options = self.monitor.options
        return bool(options.expire_after or options.dwell or self.monitor.queries.has_option("expire_after"))

    @property
    def log_bytes(self) -> int:
        return self._log.n_bytes

    @property
    def n_batches(self) -> int:
        return self._batch

    def snapshot(self) -> None:
        """Write the state, and begin another log. After an OSError it is unknown which is in force: restore it."""
        if self._batch == self._first_of_log:
            return
        queries = self.monitor.queries
        events = [(chunk.first, chunk.table) for chunk in self.feed.chunks]
        snapshot = Snapshot(self._batch, queries.version, self.feed.next, self.monitor.save(), events)
        log = RowLog(self._file.log_path(self._batch), sync=self._sync)
        try:
            self._file.write_snapshot(snapshot)
        except BaseException:
            log.close()
            raise
        self._log.close()
        self._log = log
        self._first_of_log = self._batch
        self._file.remove_before(self._batch)

    def close(self) -> None:
        self._log.close()

    def _repeat(self, record: Record, rows_of: RowsOf) -> None:
        if record.batch != self._batch + 1 or record.first_event != self._next_event:
            raise SnapshotError(
                f"the log in {self._file.directory} does not continue its snapshot: batch {record.batch} follows batch "
                f"{self._batch}; restore both from one backup"
            )
        queries = self.monitor.queries
        if (queries.history_mark(record.version) or 0) != record.mark:
            raise SnapshotError(
                f"the log in {self._file.directory} belongs to another history of the registry: version "
                f"{record.version} has another mark; restore both from one backup, or delete the monitor"
            )
        try:
            events = self.monitor.step(join_tables([read_body(body, rows_of) for body in record.bodies]))
        except VedetteError as error:
            raise SnapshotError(f"batch {record.batch} of {self._file.directory} cannot be repeated: {error}") from None
        if events.num_rows != record.n_events:
            raise SnapshotError(
                f"batch {record.batch} of {self._file.directory} gave {record.n_events} events, and repeated "
                f"{events.num_rows}; it was written by another Vedette"
            )
        chunk = Chunk(record.first_event, events)
        self._batch, self._next_event = record.batch, chunk.end
        self.feed.append(chunk)
        self._note_done(record.version)

    def _note_done(self, version: int) -> None:
        if self.monitor.done:
            self.reported.append(Reported(self._batch, version, self.monitor.done))


def make_monitor(queries: QuerySet, options: dict[str, Any]) -> BorderMonitor:
    """A monitor whose events have an id and the owner of their query."""
    metadata = list(dict.fromkeys([*(options.get("metadata") or ()), "owner"]))
    monitor = queries.border(**{**options, "metadata": metadata, "event_id": True})
    monitor.removes_done = False  # the registry removes them
    return monitor


def read_body(body: Body, rows_of: RowsOf) -> pa.Table:
    """The rows of a request."""
    return rows_of.to_table(rows_of.read(body.form, body.data))


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several requests, in their order."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
