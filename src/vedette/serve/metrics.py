"""Metrics of the service for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from vedette.serve.service import Service

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of requests and rows; what the open sets have is read when metrics are asked for."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self.requests = Counter("vedette_serve_requests", "Requests", ["method", "route", "status"], **own)
        self.seconds = Histogram("vedette_serve_request_seconds", "Duration", ["route"], buckets=_SECONDS, **own)
        self.rows = Counter("vedette_serve_rows", "Rows that were accepted or matched", ["set", "call"], **own)
        self.matches = Counter("vedette_serve_matches", "Matches of rows with queries", ["set"], **own)
        self.events = Counter("vedette_serve_events", "Events of monitors", ["set"], **own)
        self._of_rows: dict[str, tuple[Any, Any]] = {}
        self._registry.register(_Collector(service))

    def of_rows(self, name: str) -> tuple[Any, Any]:
        """The counters of a set's accepted rows and events. To find them by their labels takes longer than to count."""
        found = self._of_rows.get(name)
        if found is None:
            found = self._of_rows[name] = self.rows.labels(name, "rows"), self.events.labels(name)
        return found

    def counts_of(self, name: str) -> dict[str, int]:
        """Rows, matches and events of a set so far."""
        rows = sum(self.rows.labels(name, call)._value.get() for call in ("match", "rows"))
        of_set = {"rows": rows, "matches": self.matches.labels(name)._value.get()}
        return {each: int(n) for each, n in (of_set | {"events": self.events.labels(name)._value.get()}).items()}

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Collector:
    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        by_set = {name: GaugeMetricFamily(name, text, labels=["set"]) for name, text in _OF_SETS.items()}
        for live in list(self._service.live.values()):
            by_set["vedette_serve_version"].add_metric([live.name], live.version)
            by_set["vedette_serve_waiting"].add_metric([live.name], live.n_waiting)
            monitor = live.monitor
            if monitor is not None:
                by_set["vedette_serve_keys"].add_metric([live.name], monitor.operator.n_kept)
                by_set["vedette_serve_log_bytes"].add_metric([live.name], monitor.log_bytes)
                by_set["vedette_serve_late"].add_metric([live.name], monitor.operator.n_late)
        yield from by_set.values()
        streams = GaugeMetricFamily("vedette_serve_streams", "Clients that follow events")
        streams.add_metric([], self._service.n_streams)
        yield streams
        lost = GaugeMetricFamily("vedette_serve_registry_lost", "1 while the registry's database does not answer")
        lost.add_metric([], float(self._service.last_poll_error is not None))
        yield lost


_OF_SETS = {
    "vedette_serve_version": "Version of the set that requests are answered with",
    "vedette_serve_waiting": "Requests that wait for the thread of the set",
    "vedette_serve_keys": "Keys, or rows, values or objects of a join, in the state of the monitor",
    "vedette_serve_log_bytes": "Bytes of accepted rows since the last snapshot",
    "vedette_serve_late": "Late rows that were dropped",
}
