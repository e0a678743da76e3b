"""Figures of a running pipeline for Prometheus, over HTTP on the loopback unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vedette.errors import PipelineError

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
        raise PipelineError(f"--metrics takes a port, or host:port; got {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def serve_metrics(status: Status, address: tuple[str, int]) -> Any:
    """Serve the figures in a thread until `shutdown` of what is returned is called."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise PipelineError("--metrics needs the package prometheus-client: pip install prometheus-client") from None
    registry = CollectorRegistry()
    registry.register(_Figures(status))
    host, port = address
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise PipelineError(f"cannot serve metrics on {host}:{port}: {error.strerror or error}") from None
    return server


class _Figures:
    """The status as families of figures, made anew whenever they are asked for."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._status
        labels = ["pipeline", "sink"]
        for make, figures in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
            for name, text, read in figures:
                family = make(name, text, labels=labels)
                for sink in status.sinks.values():
                    value = read(sink)
                    if value is not None:
                        family.add_metric([status.pipeline, sink.name], value)
                yield family
        if status.n_queries is not None:
            queries = GaugeMetricFamily("vedette_queries", "Queries that stand", labels=labels[:1])
            queries.add_metric([status.pipeline], status.n_queries)
            yield queries
        state = GaugeMetricFamily("vedette_pipeline_state", "1 for the state it is in", labels=["pipeline", "state"])
        for name in _STATES:
            state.add_metric([status.pipeline, name], float(name == status.state))
        yield state


def _of_last(name: str) -> Any:
    """Reads a figure of the last micro-batch."""

    def read(sink: SinkStatus) -> float | None:
        return None if sink.last is None else getattr(sink.last, name)

    return read


_COUNTERS: list[tuple[str, str, Any]] = [
    ("vedette_rows_in", "Rows read", lambda sink: sink.n_rows),
    ("vedette_matches_out", "Answers, before a sink's own where", lambda sink: sink.n_answers),
    ("vedette_malformed", "Rows that could not be decoded", lambda sink: sink.n_malformed),
    ("vedette_batches", "Micro-batches done", lambda sink: sink.n_batches),
    ("vedette_batch_seconds", "Time that micro-batches took", lambda sink: sink.busy_seconds),
]
_GAUGES: list[tuple[str, str, Any]] = [
    ("vedette_last_batch_seconds", "Time that the last micro-batch took", _of_last("seconds")),
    ("vedette_version", "Version of the query set in the last micro-batch", lambda sink: sink.version),
    ("vedette_lag_rows", "Rows that the source had beyond those read", _of_last("lag_rows")),
    ("vedette_lag_seconds", "Age of the latest row", _of_last("lag_seconds")),
    ("vedette_state_rows", "Rows in Spark's state store", _of_last("state_rows")),
    ("vedette_state_bytes", "Memory of Spark's state store", _of_last("state_bytes")),
]
