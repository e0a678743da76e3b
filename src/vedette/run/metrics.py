"""Metrics of a running pipeline for Prometheus, served over HTTP, by default on the loopback interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vedette.errors import PipelineError
from vedette.extras import needs_extra

if TYPE_CHECKING:
    from vedette.run.status import SinkStatus, Status

_STATES = ("starting", "running", "stopping", "stopped", "ended", "failed")


def read_address(text: str) -> tuple[str, int]:
    """Host and port of `9100`, `0.0.0.0:9100` or `[::]:9100`.

    >>> read_address("9100")
    ('127.0.0.1', 9100)
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise PipelineError(f"--metrics must be a port or host:port; got {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def serve_metrics(status: Status, address: tuple[str, int]) -> Any:
    """Serve the metrics in a thread; returns the server. Its `shutdown` ends it."""
    with needs_extra("metrics", "--metrics"):
        from prometheus_client import CollectorRegistry, start_http_server
    registry = CollectorRegistry()
    registry.register(_Collector(status))
    host, port = address
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise PipelineError(f"cannot serve metrics on {host}:{port}: {error.strerror or error}") from None
    return server


class _Collector:
    """Makes metric families from the status on every request."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._status
        labels = ["pipeline", "sink"]
        for make, metrics in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
            for name, text, read in metrics:
                family = make(name, text, labels=labels)
                for sink in status.sinks.values():
                    value = read(sink)
                    if value is not None:
                        family.add_metric([status.pipeline, sink.name], value)
                yield family
        hits = GaugeMetricFamily(
            "vedette_hits", "Answers of the queries with the most in the last micro-batch", labels=[*labels, "query"]
        )
        for sink in status.sinks.values():
            for query, n in ({} if sink.last is None else sink.last.hits).items():
                hits.add_metric([status.pipeline, sink.name, query], n)
        yield hits
        if status.n_queries is not None:
            queries = GaugeMetricFamily("vedette_queries", "Active queries", labels=labels[:1])
            queries.add_metric([status.pipeline], status.n_queries)
            yield queries
        state = GaugeMetricFamily("vedette_pipeline_state", "1 for the current state", labels=["pipeline", "state"])
        for name in _STATES:
            state.add_metric([status.pipeline, name], float(name == status.state))
        yield state


def _of_last(name: str) -> Any:
    """A function that reads a metric of the last micro-batch."""

    def read(sink: SinkStatus) -> float | None:
        return None if sink.last is None else getattr(sink.last, name)

    return read


def _of_workers(name: str) -> Any:
    """A function that reads a count of workers; None if the operator does not have it."""

    def read(sink: SinkStatus) -> float | None:
        return sink.counts.get(name)

    return read


_COUNTERS: list[tuple[str, str, Any]] = [
    ("vedette_rows_in", "Rows read", lambda sink: sink.n_rows),
    ("vedette_matches_out", "Answers, before the `where` of the sink", lambda sink: sink.n_answers),
    ("vedette_malformed", "Rows that could not be decoded", lambda sink: sink.n_malformed),
    ("vedette_late", "Late rows that were dropped", _of_workers("late")),
    ("vedette_null_keys", "Rows without a key that were dropped", _of_workers("null_keys")),
    ("vedette_bad_rows", "Rows that could not be processed: dropped, or dead letters", _of_workers("bad_rows")),
    ("vedette_failed", "Comparisons that failed and count as null", _of_workers("failed")),
    ("vedette_held_back", "Events that cooldown or once has held back", _of_workers("held_back")),
    ("vedette_unknown_ids", "Deletions of unknown ids", _of_workers("unknown_ids")),
    ("vedette_delivered", "Events that a webhook has delivered", _of_workers("delivered")),
    ("vedette_dead_letters", "Events that could not be delivered", _of_workers("dead_letters")),
    ("vedette_retries", "Further tries of requests to webhooks", _of_workers("retries")),
    ("vedette_batches", "Finished micro-batches", lambda sink: sink.n_batches),
    (
        "vedette_batches_in_outage",
        "Micro-batches that ended while the registry could not be reached",
        lambda sink: sink.n_in_outage,
    ),
    ("vedette_batch_seconds", "Duration of all micro-batches", lambda sink: sink.busy_seconds),
]
_GAUGES: list[tuple[str, str, Any]] = [
    ("vedette_last_batch_seconds", "Duration of the last micro-batch", _of_last("seconds")),
    ("vedette_version", "Version of the query set in the last micro-batch", lambda sink: sink.version),
    ("vedette_lag_rows", "Rows in the source that are not read yet", _of_last("lag_rows")),
    ("vedette_lag_seconds", "Age of the latest row", _of_last("lag_seconds")),
    ("vedette_state_rows", "Rows in Spark's state store", _of_last("state_rows")),
    ("vedette_state_bytes", "Memory of Spark's state store", _of_last("state_bytes")),
]
