"""A monitor that survives the end of its process: snapshots, and the log of rows since the last one.

Rows are processed first, then written to the log, then acknowledged, and then their events are published. A crash in
between loses only what was not acknowledged. After a restart the log is repeated from the last snapshot, each batch
with the version of the queries that it had: that gives the same state, and the same events with the same sequence
numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vedette.errors import SnapshotError, VedetteError
from vedette.registry.read.followed import Followed
from vedette.serve.bodies import MOMENT
from vedette.serve.event_feed import Chunk, EventFeed
from vedette.serve.monitor_file import MonitorFile, Snapshot
from vedette.serve.operators.operator import Moment, Operator
from vedette.serve.problems import Problem
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
        self, operator: Operator, file: MonitorFile, snapshot: Snapshot, feed: EventFeed, *, sync: bool
    ) -> None:
        self.operator = operator
        self.monitor = operator.monitor
        self.feed = feed
        self._file = file
        self._sync = sync
        self._batch = snapshot.batch
        self._log = RowLog(file.log_path(snapshot.batch), sync=sync)
        self._first_of_log = snapshot.batch
        self._next_event = snapshot.next_event
        self._version = snapshot.version  # of the queries, in the last step
        self._n_moments = 0
        self._unpublished: list[Chunk] = []
        self.is_ahead = False  # a step was made, and its record could not be: the monitor must be restored
        self.reported: list[Reported] = []  # queries with once="query" that are still to be removed from the set

    @classmethod
    def create(
        cls, operator: Operator, file: MonitorFile, options: dict[str, Any], feed: EventFeed, *, sync: bool
    ) -> DurableMonitor:
        """A monitor without keys or rows."""
        first = Snapshot(0, operator.queries.version, feed.next, operator.monitor.save(), [])
        file.create(options, first)
        return cls(operator, file, first, feed, sync=sync)

    @classmethod
    def restore(
        cls,
        operator_type: type[Operator],
        file: MonitorFile,
        snapshot: Snapshot,
        followed: Followed,
        feed: EventFeed,
        *,
        sync: bool,
    ) -> DurableMonitor:
        """The monitor as it was after the last batch that was accepted. `followed` is the set at the snapshot."""
        queries = followed.open(snapshot.version)
        operator = operator_type(queries, file.read_options())
        operator.load(snapshot.state)
        feed.restore(snapshot.events, snapshot.next_event)
        made = cls(operator, file, snapshot, feed, sync=sync)
        n_batches = 0
        for record in made._log.read():
            followed.advance(queries, record.version)
            made._repeat(record)
            n_batches += 1
        if n_batches:
            _log.info("repeated %d batches of %s", n_batches, file.directory)
        return made

    def step(self, bodies: Sequence[Body], batches: Sequence[Any]) -> Chunk:
        """The events of requests, with their sequence numbers. `commit` writes the requests and publishes them."""
        version = self.monitor.queries.version
        events = self.operator.run(batches)
        self.is_ahead = True
        self._batch += 1
        mark = self.monitor.queries.history_mark(version) or 0
        chunk = Chunk(self._next_event, events)
        self._log.append(Record(self._batch, version, mark, chunk.first, events.num_rows, tuple(bodies)))
        self._next_event, self._version = chunk.end, version
        self._unpublished.append(chunk)
        self._n_moments += bodies[0].form == MOMENT
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

    def refresh(self) -> None:
        """Let changes of queries take effect, if that needs no rows. Raises VedetteError if that cannot be done."""
        version = self.monitor.queries.version
        if self.operator.follows_queries and version != self._version:
            self.step([Moment.to_body(None)], [Moment(None)])
            self.commit()

    @property
    def next_event(self) -> int:
        """The sequence number of the next event."""
        return self._next_event

    @property
    def n_moments(self) -> int:
        """The number of moments in the log."""
        return self._n_moments

    @property
    def n_logged(self) -> int:
        """The number of batches in the log."""
        return self._batch - self._first_of_log

    @property
    def log_bytes(self) -> int:
        return self._log.n_bytes

    @property
    def n_batches(self) -> int:
        return self._batch

    def snapshot(self) -> None:
        """Write the state, and begin another log. After an OSError it is unknown which is in force: restore it.

        Raises VedetteError, and writes nothing, if changes of queries cannot take effect before.
        """
        self.refresh()
        if not self.n_logged:
            return
        queries = self.monitor.queries
        snapshot = Snapshot(self._batch, queries.version, self.feed.next, self.monitor.save(), self.feed.to_tables())
        log = RowLog(self._file.log_path(self._batch), sync=self._sync)
        try:
            self._file.write_snapshot(snapshot)
        except BaseException:
            log.close()
            raise
        self._log.close()
        self._log = log
        self._first_of_log, self._n_moments = self._batch, 0
        self._file.remove_before(self._batch)

    def close(self) -> None:
        self._log.close()

    def _repeat(self, record: Record) -> None:
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
            events = self.operator.run([self.operator.read(body) for body in record.bodies])
        except (VedetteError, Problem) as error:
            raise SnapshotError(f"batch {record.batch} of {self._file.directory} cannot be repeated: {error}") from None
        if events.num_rows != record.n_events:
            raise SnapshotError(
                f"batch {record.batch} of {self._file.directory} gave {record.n_events} events, and repeated "
                f"{events.num_rows}; it was written by another Vedette"
            )
        chunk = Chunk(record.first_event, events)
        self._batch, self._next_event, self._version = record.batch, chunk.end, record.version
        self.feed.append(chunk)
        self._n_moments += record.bodies[0].form == MOMENT
        self._note_done(record.version)

    def _note_done(self, version: int) -> None:
        done = self.operator.done
        if done:
            self.reported.append(Reported(self._batch, version, done))
