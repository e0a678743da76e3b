"""A pipeline that runs: what each micro-batch did, whether it goes on, and how it is stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vedette.run.pipeline import ANSWERED, DECODED
from vedette.spark.failures import in_reach, reason_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Batch:
    """A micro-batch of a sink, as Spark tells of it when it is done. None stands for what the source does not tell."""

    sink: str
    number: int
    query_id: str  # of Spark's query, which pins are made for
    n_rows: int
    n_answers: int
    n_malformed: int
    seconds: float
    lag_rows: int | None  # that the source had beyond those read
    lag_seconds: float | None  # between the latest time of a row and now; needs a watermark
    state_rows: int
    state_bytes: int

    @classmethod
    def read(cls, sink: str, told: Mapping[str, Any], now: float) -> Batch:
        """A batch of what Spark calls progress."""
        observed = told.get("observedMetrics") or {}
        counts = {name: _read_counts(_as_dict(observed[name])) for name in observed}
        states, sources = told.get("stateOperators") or [], told.get("sources") or []
        return cls(
            sink=sink,
            number=int(told["batchId"]),
            query_id=str(told["id"]),
            n_rows=_count_rows(told, sources),
            n_answers=counts.get(ANSWERED, {}).get("n_answers", 0),
            n_malformed=sum(each.get("n_malformed", 0) for name, each in counts.items() if name.startswith(DECODED)),
            seconds=float((told.get("durationMs") or {}).get("triggerExecution") or 0) / 1000,
            lag_rows=_rows_behind(sources),
            lag_seconds=_seconds_behind((told.get("eventTime") or {}).get("max"), now),
            state_rows=sum(int(state.get("numRowsTotal") or 0) for state in states),
            state_bytes=sum(int(state.get("memoryUsedBytes") or 0) for state in states),
        )


@dataclass
class Running:
    """The Spark queries of a pipeline, by the names of their sinks.

    All raise PipelineError where Spark refuses or is gone.
    """

    queries: Mapping[str, StreamingQuery]
    clock: Callable[[], float] = time.time
    _seen: dict[str, int] = field(default_factory=dict)

    def new_batches(self) -> list[Batch]:
        """The micro-batches that were done since the last call, each once, in order. Idle ones are left out."""
        found = []
        with in_reach():
            for sink, query in self.queries.items():
                for told in query.recentProgress:
                    if told["batchId"] > self._seen.get(sink, -1) and _is_batch(told):
                        self._seen[sink] = told["batchId"]
                        found.append(Batch.read(sink, told, self.clock()))
        return found

    @property
    def is_active(self) -> bool:
        """Whether any sink goes on, and none has failed."""
        with in_reach():
            return self.failure() is None and any(query.isActive for query in self.queries.values())

    def failure(self) -> str | None:
        """The sink that has failed and why, if one has."""
        with in_reach():
            for sink, query in self.queries.items():
                error = query.exception()
                if error is not None:
                    return f"sink {sink!r}: {reason_of(error)}"
        return None

    def stop(self, wait_seconds: float, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Stop all sinks, each after its micro-batch if that ends in time and nobody is in a hurry; whether all did.

        A micro-batch that is cut off is done again by the next start, so nothing is lost or doubled either way.
        """
        until = time.monotonic() + wait_seconds
        with in_reach():
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
    """Whether a micro-batch is at work."""
    return query.isActive and bool(query.status["isTriggerActive"])


def _last_batch(query: StreamingQuery) -> int:
    told = query.lastProgress
    return int(told["batchId"]) if told and _is_batch(told) else -1


def _is_batch(told: Mapping[str, Any]) -> bool:
    """Whether progress is of a micro-batch that ran; Spark tells of idle time under the number of the next."""
    return "addBatch" in (told.get("durationMs") or {})


def _count_rows(told: Mapping[str, Any], sources: list[Mapping[str, Any]]) -> int:
    """How many rows came in; through Connect only the sources tell."""
    whole = told.get("numInputRows")
    return int(whole) if whole is not None else sum(int(source.get("numInputRows") or 0) for source in sources)


def _read_counts(told: Mapping[str, Any]) -> dict[str, int]:
    """Counts by their names; through Connect they are a list beside a schema."""
    if isinstance(told.get("values"), list) and isinstance(told.get("schema"), dict):
        told = dict(zip((field["name"] for field in told["schema"]["fields"]), told["values"], strict=True))
    return {name: int(value or 0) for name, value in told.items()}


def _rows_behind(sources: list[Mapping[str, Any]]) -> int | None:
    """How many rows the sources have beyond those read, where they count them as Kafka does."""
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
    moment = datetime.fromisoformat(latest.replace("Z", "+00:00"))
    return max(0.0, now - moment.astimezone(UTC).timestamp())


def _as_dict(value: Any) -> dict[str, Any]:
    """Spark tells offsets as JSON texts or as tables, and counts as rows."""
    if hasattr(value, "asDict"):
        return dict(value.asDict())
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, dict) else {}
