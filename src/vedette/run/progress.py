"""A running pipeline: its finished micro-batches, whether it is active, and how to stop it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vedette.run.pipeline import ANSWERED, COUNTED, DECODED, DELIVERED
from vedette.spark.bad_rows import BAD_ROWS
from vedette.spark.failures import reason_of, translated_errors
from vedette.spark.workers.top_queries import read_top

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.1
# What workers count, besides answers and state, which Spark counts.
TOP_QUERIES = 20  # of a micro-batch
WORKER_COUNTS = ("late", "null_keys", "failed", "held_back", "unknown_ids", "delivered", "dead_letters", "retries")


@dataclass(frozen=True)
class Batch:
    """A finished micro-batch of a sink, as Spark reports it. None means that the source does not report a value."""

    sink: str
    number: int
    query_id: str  # of Spark's query; pins use it
    n_rows: int
    n_answers: int
    n_malformed: int
    seconds: float
    lag_rows: int | None  # rows in the source that are not read yet
    lag_seconds: float | None  # from the latest time of a row until now; needs a watermark
    state_rows: int
    state_bytes: int
    counts: Mapping[str, int] = field(default_factory=dict)  # of the operator's workers
    warnings: tuple[str, ...] = ()  # of its workers
    hits: Mapping[str, int] = field(default_factory=dict)  # answers of the queries with the most of them

    @classmethod
    def read(cls, sink: str, progress: Mapping[str, Any], now: float) -> Batch:
        """A batch from Spark's progress report."""
        observed = progress.get("observedMetrics") or {}
        metrics = {name: _read_metrics(_as_dict(observed[name])) for name in observed}
        counted = [metrics.get(name, {}) for name in (COUNTED, DELIVERED)]
        states, sources = progress.get("stateOperators") or [], progress.get("sources") or []
        return cls(
            sink=sink,
            number=int(progress["batchId"]),
            query_id=str(progress["id"]),
            n_rows=_count_rows(progress, sources),
            n_answers=int(metrics.get(ANSWERED, {}).get("n_answers") or 0),
            n_malformed=sum(
                int(each.get("n_malformed") or 0) for name, each in metrics.items() if name.startswith(DECODED)
            ),
            seconds=float((progress.get("durationMs") or {}).get("triggerExecution") or 0) / 1000,
            lag_rows=_rows_behind(sources),
            lag_seconds=_seconds_behind((progress.get("eventTime") or {}).get("max"), now),
            state_rows=sum(int(state.get("numRowsTotal") or 0) for state in states),
            state_bytes=sum(int(state.get("memoryUsedBytes") or 0) for state in states),
            counts=_read_counts(counted) | _count_bad_rows(metrics),
            hits=read_top(str(counted[0].get("hits") or ""), TOP_QUERIES),
            warnings=tuple(line for each in counted for line in str(each.get("warnings") or "").split("\n") if line),
        )


def _read_counts(counted: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {name: int(each[name]) for each in counted for name in WORKER_COUNTS if each.get(name) is not None}


def _count_bad_rows(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The rows of all streams that the operator has set aside, if it does that."""
    found = [each for name, each in metrics.items() if name.startswith(f"{COUNTED} {BAD_ROWS}")]
    return {"bad_rows": sum(int(each.get("bad_rows") or 0) for each in found)} if found else {}


@dataclass
class Running:
    """The Spark queries of a pipeline, by the names of their sinks.

    All methods raise PipelineError if Spark fails or cannot be reached.
    """

    queries: Mapping[str, StreamingQuery]
    clock: Callable[[], float] = time.time
    _seen: dict[str, int] = field(default_factory=dict)

    def new_batches(self) -> list[Batch]:
        """The micro-batches that ended since the last call, each once, in order. Idle time is not included."""
        found = []
        with translated_errors():
            for sink, query in self.queries.items():
                for progress in query.recentProgress:
                    if progress["batchId"] > self._seen.get(sink, -1) and _is_batch(progress):
                        self._seen[sink] = progress["batchId"]
                        found.append(Batch.read(sink, progress, self.clock()))
        return found

    @property
    def is_active(self) -> bool:
        """Whether any sink is active, and none has failed."""
        with translated_errors():
            return self.failure() is None and any(query.isActive for query in self.queries.values())

    def failure(self) -> str | None:
        """The sink that has failed, and why; None if none has."""
        with translated_errors():
            for sink, query in self.queries.items():
                error = query.exception()
                if error is not None:
                    return f"sink {sink!r}: {reason_of(error)}"
        return None

    def stop(self, wait_seconds: float, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Stop all sinks, each after its current micro-batch if that ends within `wait_seconds` and `hurry` is false.

        Returns whether all micro-batches ended. An interrupted micro-batch is repeated after the next start, so nothing
        is lost or duplicated either way.
        """
        until = time.monotonic() + wait_seconds
        with translated_errors():
            begun = {sink: _last_batch(query) for sink, query in self.queries.items()}
            busy = dict(self.queries)
            while busy and time.monotonic() < until and not hurry():
                for sink, query in list(busy.items()):
                    if not _is_busy(query) or _last_batch(query) > begun[sink]:
                        query.stop()
                        del busy[sink]
                if busy:
                    time.sleep(_POLL_SECONDS)
            for query in busy.values():
                query.stop()
        return not busy


def _is_busy(query: StreamingQuery) -> bool:
    """Whether a micro-batch is running."""
    return query.isActive and bool(query.status["isTriggerActive"])


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return int(progress["batchId"]) if progress and _is_batch(progress) else -1


def _is_batch(progress: Mapping[str, Any]) -> bool:
    """Whether a micro-batch ran; Spark reports idle time under the number of the next micro-batch."""
    return "addBatch" in (progress.get("durationMs") or {})


def _count_rows(progress: Mapping[str, Any], sources: list[Mapping[str, Any]]) -> int:
    """The number of input rows; through Connect only the sources report it."""
    total = progress.get("numInputRows")
    return int(total) if total is not None else sum(int(source.get("numInputRows") or 0) for source in sources)


def _read_metrics(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Observed metrics by name; through Connect they are a list with a schema."""
    if isinstance(metrics.get("values"), list) and isinstance(metrics.get("schema"), dict):
        return dict(zip((field["name"] for field in metrics["schema"]["fields"]), metrics["values"], strict=True))
    return metrics


def _rows_behind(sources: list[Mapping[str, Any]]) -> int | None:
    """The number of rows in the sources that are not read yet, for sources with counted offsets, such as Kafka."""
    behind = [_offsets_behind(source.get("endOffset"), source.get("latestOffset")) for source in sources]
    known = [rows for rows in behind if rows is not None]
    return sum(known) if known else None


def _offsets_behind(end: Any, latest: Any) -> int | None:
    end, latest = _as_dict(end), _as_dict(latest)
    if not end or not latest or not all(isinstance(parts, dict) for parts in (*end.values(), *latest.values())):
        return None
    return sum(
        max(0, int(offset) - int(end.get(topic, {}).get(part, 0)))
        for topic, parts in latest.items()
        for part, offset in parts.items()
    )


def _seconds_behind(latest: str | None, now: float) -> float | None:
    if latest is None:
        return None
    time_of_row = datetime.fromisoformat(latest.replace("Z", "+00:00"))
    return max(0.0, now - time_of_row.astimezone(UTC).timestamp())


def _as_dict(value: Any) -> dict[str, Any]:
    """Offsets are JSON texts or dicts, and counts are rows, depending on the kind of session."""
    if hasattr(value, "asDict"):
        return dict(value.asDict())
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, dict) else {}
