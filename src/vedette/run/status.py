"""The status of a running pipeline: per sink, totals of rows and answers, and the last micro-batch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedette.run.progress import Batch


@dataclass
class SinkStatus:
    """Totals since the start, and the last micro-batch."""

    name: str
    n_rows: int = 0
    n_answers: int = 0
    n_malformed: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # of the operator's workers
    n_batches: int = 0
    n_in_outage: int = 0  # micro-batches that ended while the registry could not be reached
    busy_seconds: float = 0.0
    version: int | None = None
    last: Batch | None = None

    def take(self, batch: Batch, version: int | None, is_reached: bool) -> None:
        self.n_rows += batch.n_rows
        self.n_answers += batch.n_answers
        self.n_malformed += batch.n_malformed
        self.n_batches += 1
        for name, n in batch.counts.items():
            self.counts[name] = self.counts.get(name, 0) + n
        self.n_in_outage += not is_reached
        self.busy_seconds += batch.seconds
        self.version = self.version if version is None else version
        self.last = batch


@dataclass
class Status:
    """The status of all sinks of a pipeline, and the number of active queries."""

    pipeline: str
    sinks: dict[str, SinkStatus]
    n_queries: int | None = None
    state: str = "starting"  # then running, stopping, and stopped, ended or failed
    started: float = field(default_factory=time.time)
    error: str | None = None  # the last one

    @classmethod
    def begin(cls, pipeline: str, sinks: list[str]) -> Status:
        return cls(pipeline, {name: SinkStatus(name) for name in sinks})

    def take(self, batch: Batch, version: int | None, is_reached: bool = True) -> SinkStatus:
        sink = self.sinks[batch.sink]
        sink.take(batch, version, is_reached)
        return sink


def batch_facts(sink: SinkStatus, n_queries: int | None) -> dict[str, Any]:
    """The last micro-batch of a sink, and totals since the start, with the names of log fields."""
    batch = sink.last
    assert batch is not None
    return {
        "sink": sink.name,
        "batch": batch.number,
        "rows_in": batch.n_rows,
        "matches_out": batch.n_answers,
        "malformed": batch.n_malformed,
        "rows_in_total": sink.n_rows,
        "matches_out_total": sink.n_answers,
        "malformed_total": sink.n_malformed,
        "queries": n_queries,
        "version": sink.version,
        "batch_seconds": round(batch.seconds, 3),
        "lag_rows": batch.lag_rows,
        "lag_seconds": None if batch.lag_seconds is None else round(batch.lag_seconds, 3),
        "state_rows": batch.state_rows,
        "state_bytes": batch.state_bytes,
        "hits": dict(batch.hits),
        **batch.counts,
        **{f"{name}_total": n for name, n in sink.counts.items()},
    }
