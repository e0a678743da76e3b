"""Followed sets in Spark's workers: which version a task sees, and the compiled set at that version.

A micro-batch sees one version, in every task and every repetition: its first task pins it in the registry, under the
stream's id and the number of the batch. A worker keeps the set of each stream, and updates it by the new changes.
A function of SQL is also called in queries that are not streams; each of them is pinned under its own number.
"""

from __future__ import annotations

import socket
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext

from vedette.errors import PipelineError
from vedette.spark.shipping.query_sets import Parcel, check_sender, unpack

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed
    from vedette.registry.read.pins import Pin
    from vedette.registry.snapshots.bases import OpenSet, Snapshots

# Local properties of a task. The jobs of a streaming query have the id of its run as their group.
STREAM, BATCH, RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
EXECUTION = "spark.sql.execution.id"  # of a query that is not a stream
_KEPT_SETS = 16  # their bases are mapped and shared
_KEPT_PINS = 64
_COMPACTION_SECONDS = 30.0  # between two attempts of a worker


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


@dataclass
class _Kept:
    """The cached sets and pins of a worker."""

    sets: OrderedDict[tuple[str, str, int], OpenSet] = field(default_factory=OrderedDict)  # by stream, set and schema
    pins: OrderedDict[tuple[_Batch, str], Pin] = field(default_factory=OrderedDict)  # by batch and set
    compacted_at: float = -_COMPACTION_SECONDS


_kept = _Kept()


def open_queries(facts: dict[str, Any], since: int | None = None) -> Opened:
    """The queries that a task sees. With `since`, band joins can read the changes after that version."""
    if "followed" not in facts:
        return Opened(unpack(Parcel(**facts)), None)
    from vedette.registry.read.followed import Followed

    check_sender(facts["sender"])
    followed = Followed.from_plain(facts["followed"])
    _check_host(followed)
    stream, version, mark = "", facts["version"], facts.get("mark")
    if version is None:
        batch = _find_batch(facts.get("calls"))
        pin = _pin(followed, batch)
        stream, version, mark = batch.stream, pin.version, pin.mark
    return Opened(_open(followed, stream, version, mark, since), version)


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


def _pin(followed: Followed, batch: _Batch) -> Pin:
    key = (batch, followed.uid)
    if key not in _kept.pins:
        _kept.pins[key] = followed.pin_marked(batch.stream, batch.number, batch.run)
        while len(_kept.pins) > _KEPT_PINS:
            _kept.pins.popitem(last=False)
    return _kept.pins[key]


def _open(followed: Followed, stream: str, version: int, mark: int | None, since: int | None) -> Any:
    key, bases = (stream, followed.uid, followed.info.schema_version), followed.bases
    opened = _kept.sets.pop(key, None)
    if opened is not None and since is not None and since < getattr(opened.queries, "oldest_version", 0):
        opened = None
    if opened is not None and not _try_move(bases, opened, version, mark):
        opened = None
    if opened is None:
        opened = bases.open(version, since)
    _kept.sets[key] = opened
    while len(_kept.sets) > _KEPT_SETS:
        _kept.sets.popitem(last=False)
    if bases.is_outdated(opened) and time.monotonic() > _kept.compacted_at + _COMPACTION_SECONDS:
        _kept.compacted_at = time.monotonic()
        bases.compact_soon(version)
    return opened.queries


def _try_move(bases: Snapshots, opened: OpenSet, version: int, mark: int | None) -> bool:
    """Update a cached set to a version; returns False if it must be opened again, or if that is faster."""
    from vedette.registry.read.reader import HistoryError

    if opened.queries.version == version:  # a restored database may have another version with this number
        return mark in (None, opened.queries.history_mark(version))
    if not bases.can_move(opened, version) or (bases.is_outdated(opened) and bases.has_newer(opened, version)):
        return False
    try:
        bases.move(opened, version)
    except HistoryError:
        return False
    return True
