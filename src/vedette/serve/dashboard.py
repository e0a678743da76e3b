"""The Grafana dashboard of the service. `vedette serve dashboard` prints it as the file that Grafana imports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_IN = '{instance=~"$instance"}'
_OF_SET = '{instance=~"$instance", set=~"$set"}'
_WIDTH, _HEIGHT = 8, 7  # three panels a line


@dataclass(frozen=True)
class Panel:
    """A chart: queries of Prometheus by their legends."""

    title: str
    unit: str  # as Grafana names units
    queries: dict[str, str]
    description: str = ""


def _quantile(share: float) -> str:
    return (
        f"histogram_quantile({share}, sum by (le, route) "
        f"(rate(vedette_serve_request_seconds_bucket{_IN}[$__rate_interval])))"
    )


PANELS = [
    Panel(
        "Requests",
        "reqps",
        {"{{method}} {{route}}": f"sum by (method, route) (rate(vedette_serve_requests_total{_IN}[$__rate_interval]))"},
    ),
    Panel(
        "Refused and failed requests",
        "reqps",
        {
            "{{status}} {{route}}": "sum by (status, route) (rate(vedette_serve_requests_total"
            '{instance=~"$instance", status=~"4..|5.."}[$__rate_interval]))'
        },
        "By status: 401 no token, 413 too large, 429 a limit is reached, 503 the registry or the disk does not answer.",
    ),
    Panel("Duration, 99th percentile", "s", {"{{route}}": _quantile(0.99)}),
    Panel(
        "Rows",
        "cps",
        {"{{set}} {{call}}": f"sum by (set, call) (rate(vedette_serve_rows_total{_OF_SET}[$__rate_interval]))"},
    ),
    Panel(
        "Events and matches",
        "cps",
        {
            "{{set}} events": f"sum by (set) (rate(vedette_serve_events_total{_OF_SET}[$__rate_interval]))",
            "{{set}} matches": f"sum by (set) (rate(vedette_serve_matches_total{_OF_SET}[$__rate_interval]))",
        },
    ),
    Panel("Duration, median", "s", {"{{route}}": _quantile(0.5)}),
    Panel(
        "Waiting requests",
        "short",
        {"{{set}}": f"max by (set) (vedette_serve_waiting{_OF_SET})"},
        "Requests in the line of a set's thread. If it stays long, the set is at its limit.",
    ),
    Panel("Keys of monitors", "short", {"{{set}}": f"max by (set) (vedette_serve_keys{_OF_SET})"}),
    Panel(
        "Late rows",
        "cps",
        {"{{set}}": f"sum by (set) (rate(vedette_serve_late{_OF_SET}[$__rate_interval]))"},
    ),
    Panel("Log since the last snapshot", "bytes", {"{{set}}": f"max by (set) (vedette_serve_log_bytes{_OF_SET})"}),
    Panel("Version in force", "short", {"{{set}}": f"max by (set) (vedette_serve_version{_OF_SET})"}),
    Panel(
        "Clients that follow events; registry lost",
        "short",
        {
            "clients": f"sum(vedette_serve_streams{_IN})",
            "registry lost": f"max(vedette_serve_registry_lost{_IN})",
        },
        "Registry lost is 1 while the registry's database does not answer.",
    ),
]
VARIABLES = {
    "instance": "label_values(vedette_serve_streams, instance)",
    "set": "label_values(vedette_serve_version, set)",
}


def make_dashboard() -> str:
    """The dashboard as JSON."""
    source = {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}
    variables = [source, *(_variable(name, query) for name, query in VARIABLES.items())]
    document = {
        "title": "Vedette service",
        "uid": "vedette-serve",
        "tags": ["vedette"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(document, indent=2)


def _variable(name: str, query: str) -> dict[str, Any]:
    options = {"multi": True, "includeAll": True, "allValue": ".*", "refresh": 2, "sort": 1}
    current = {"text": "All", "value": "$__all"}
    return {"name": name, "type": "query", "datasource": _SOURCE, "query": query, "current": current, **options}


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
        for place, (legend, query) in enumerate(panel.queries.items())
    ]
    line, column = divmod(number, 3)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": line * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }
