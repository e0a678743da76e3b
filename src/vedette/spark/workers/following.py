"""Followed sets in Spark's workers: which version a task sees, and the compiled set at that version.

A micro-batch sees one version, in every task and every repetition: its first task pins it in the registry, under the
stream's id and the number of the batch. A worker keeps the set of each stream, and updates it by the new changes. One
worker of a host, its leader, asks the database for all of them (`vedette.registry.host`).
A function of SQL is also called in queries that are not streams; each of them is pinned under its own number.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext

from vedette.errors import FileError, PipelineError, QueryError, SnapshotError
from vedette.spark.shipping.query_sets import Parcel, check_sender, unpack

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed
    from vedette.registry.snapshots.bases import OpenSet, Snapshots

# Local properties of a task. The jobs of a streaming query have the id of its run as their group.
STREAM, BATCH, RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
EXECUTION = "spark.sql.execution.id"  # of a query that is not a stream
_KEPT_SETS = 16  # their bases are mapped and shared
_KEPT_PINS = 64
_COMPACTION_SECONDS = 30.0  # between two attempts of a worker
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """A compiled set. For a followed set, also the version that the task sees."""

    queries: Any
    version: int | None


@dataclass(frozen=True)
class _Batch:
    """A micro-batch of a stream, and the run of the stream."""

    stream: str
    number: int
    run: str | None


@dataclass(frozen=True)
class _Seen:
    """The version that a task sees, with its mark if it is known."""

    version: int
    mark: int | None


@dataclass
class _Kept:
    """The cached sets and pins of a worker."""

    sets: OrderedDict[tuple[str, str, int], OpenSet] = field(default_factory=OrderedDict)  # by stream, set and schema
    pins: OrderedDict[tuple[_Batch, str], _Seen] = field(default_factory=OrderedDict)  # by batch and set
    compacted_at: float = -_COMPACTION_SECONDS
    is_warned: bool = False  # that there is no leader


_kept = _Kept()


def open_queries(facts: dict[str, Any], since: int | None = None) -> Opened:
    """The queries that a task sees. With `since`, band joins can read the changes after that version."""
    if "followed" not in facts:
        return Opened(unpack(Parcel(**facts)), None)
    from vedette.registry.read.followed import Followed

    check_sender(facts["sender"])
    followed = Followed.from_plain(facts["followed"])
    _check_host(followed)
    batch = _find_batch(facts.get("calls")) if facts["version"] is None else None
    seen = _kept.pins.get((batch, followed.uid)) if batch else _Seen(facts["version"], facts.get("mark"))
    key = ("" if batch is None else batch.stream, followed.uid, followed.info.schema_version)
    opened = _kept.sets.pop(key, None)
    if opened is not None and since is not None and since < getattr(opened.queries, "oldest_version", 0):
        opened = None
    if opened is None or seen is None or not _is_at(opened, seen):
        seen, opened = _open(followed, batch, seen, opened, since)
    _keep(key, opened, batch, followed.uid, seen)
    return Opened(opened.queries, seen.version)


def _is_at(opened: OpenSet, seen: _Seen) -> bool:
    """Whether a set is at a version. A restored database may have another version with the same number."""
    now: int = opened.queries.version
    return now == seen.version and seen.mark in (None, opened.queries.history_mark(now))


def _keep(key: tuple[str, str, int], opened: OpenSet, batch: _Batch | None, uid: str, seen: _Seen) -> None:
    _kept.sets[key] = opened
    while len(_kept.sets) > _KEPT_SETS:
        _kept.sets.popitem(last=False)
    if batch is not None:
        _kept.pins[batch, uid] = seen
        while len(_kept.pins) > _KEPT_PINS:
            _kept.pins.popitem(last=False)


def _open(
    followed: Followed, batch: _Batch | None, seen: _Seen | None, opened: OpenSet | None, since: int | None
) -> tuple[_Seen, OpenSet]:
    """The version of a batch and the set at that version, from the leader of this host."""
    from vedette.host_files.leader import StalledError
    from vedette.registry.host.reader import open_on_host
    from vedette.registry.host.set_on_host import Ask

    ask = Ask(None, since=since, outage=followed.on_registry_outage)
    if batch is not None:
        ask = replace(ask, stream=batch.stream, batch=batch.number, run=batch.run)
    elif seen is not None:
        ask = replace(ask, version=seen.version, mark=seen.mark)
    if opened is not None:
        now = opened.queries.version
        mark = opened.queries.history_mark(now)
        ask = replace(ask, known=now, known_mark=mark, base=opened.base, n_changes=opened.n_changes)
    try:
        told, opened = open_on_host(followed, ask, opened)
    except (StalledError, OSError) as error:
        if not _kept.is_warned:
            _kept.is_warned = True
            _log.warning("set %r is read from the database, without a leader of this host: %s", followed.name, error)
    except (FileError, SnapshotError, QueryError) as error:
        _log.warning("set %r is read from the database, not from the files of this host: %s", followed.name, error)
        opened = None
    else:
        return _Seen(told.version, told.mark), opened
    seen = seen or _pin(followed, batch)
    return seen, _open_directly(followed, seen, opened, since)


def _check_host(followed: Followed) -> None:
    host = socket.gethostname()
    if followed.is_local and host != followed.host:
        raise PipelineError(
            f"set {followed.name!r} is in a SQLite registry, a file on host {followed.host}, but a Spark worker runs "
            f"on {host}; use a registry in PostgreSQL if workers run on several hosts"
        )


def _find_batch(calls: str | None) -> _Batch:
    """The micro-batch of this task; in a query that is not a stream, its number among the `calls` of a function."""
    context = TaskContext.get()
    stream, number, run = (None if context is None else context.getLocalProperty(name) for name in (STREAM, BATCH, RUN))
    if stream is None or number is None:
        if calls is not None and context is not None:
            execution = context.getLocalProperty(EXECUTION)
            if execution is None:  # of an RDD; its stage has the same number in every repetition
                return _Batch(f"{calls} stages", context.stageId(), None)
            return _Batch(calls, int(execution), None)
        raise PipelineError("a followed set is used outside of a micro-batch; start the stream with writeStream")
    return _Batch(stream, int(number), run)


def current_batch() -> tuple[str, int]:
    """The stream and the number of the micro-batch of this task."""
    batch = _find_batch(None)
    return batch.stream, batch.number


def _pin(followed: Followed, batch: _Batch | None) -> _Seen:
    assert batch is not None
    pin = followed.pin_marked(batch.stream, batch.number, batch.run)
    return _Seen(pin.version, pin.mark)


def _open_directly(followed: Followed, seen: _Seen, opened: OpenSet | None, since: int | None) -> OpenSet:
    """The set at a version, from the database."""
    bases = followed.bases
    if opened is None or not _try_move(bases, opened, seen):
        opened = bases.open(seen.version, since)
    if bases.is_outdated(opened) and time.monotonic() > _kept.compacted_at + _COMPACTION_SECONDS:
        _kept.compacted_at = time.monotonic()
        bases.compact_soon(seen.version)
    return opened


def _try_move(bases: Snapshots, opened: OpenSet, seen: _Seen) -> bool:
    """Update a cached set to a version; returns False if it must be opened again, or if that is faster."""
    from vedette.registry.read.reader import HistoryError

    if opened.queries.version == seen.version:
        return _is_at(opened, seen)
    is_slow = bases.is_outdated(opened) and bases.has_newer(opened.base, seen.version)
    if is_slow or not bases.can_move(opened, seen.version):
        return False
    try:
        bases.move(opened, seen.version)
    except HistoryError:
        return False
    return True
