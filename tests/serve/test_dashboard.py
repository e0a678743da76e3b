"""Every query of the Grafana dashboard asks for metrics and labels that a running service exports."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import httpx
from prometheus_client.parser import text_fd_to_metric_families
from serve.conftest import SCHEMA

_METRIC = re.compile(r"(vedette_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\bby \(([^)]*)\)")
_BY_PROMETHEUS = {"instance"}  # the label that Prometheus adds


def printed_dashboard():
    command = [sys.executable, "-c", "from vedette.cli import main; main()", "serve", "dashboard"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def asked(query):
    """The metrics of a PromQL query, each with the labels that the query uses."""
    found = _METRIC.findall(query)
    grouped = {label.strip() for labels in _GROUPED.findall(query) for label in labels.split(",")}
    return [(name, grouped | set(re.findall(r"(\w+)\s*[=!]~?", matchers))) for name, matchers in found]


def exported(url):
    """The samples of a service: by name, the labels that they have."""
    text = httpx.get(f"{url}/metrics").text
    samples = [
        sample for family in text_fd_to_metric_families(iter(text.splitlines(True))) for sample in family.samples
    ]
    return {name: {label for each in samples if each.name == name for label in each.labels} for name in
            {sample.name for sample in samples}}  # fmt: skip


def use(url):
    """Requests of every kind that has a metric."""
    httpx.post(f"{url}/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})
    httpx.post(f"{url}/v1/sets/alerts/queries", json={"id": "cheap", "where": "price < 40"})
    httpx.put(f"{url}/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"})
    row = {"symbol": "IBM", "price": 39, "ts": "2026-03-02T14:00:00Z"}
    for call in ("match", "rows"):
        assert httpx.post(f"{url}/v1/sets/alerts/{call}", json=row).status_code == 200


def test_every_query_of_the_dashboard_is_answered_by_the_metrics_of_a_service(start_server):
    server, board = start_server(), printed_dashboard()
    use(server.url)
    has = exported(server.url)
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]

    assert len(queries) > 10
    for query in queries:
        assert asked(query), query
        for name, labels in asked(query):
            assert name in has, f"{query}: the service does not export {name}"
            assert labels <= has[name] | _BY_PROMETHEUS, f"{query}: {name} has the labels {sorted(has[name])}"


def test_legends_use_labels_that_their_queries_keep():
    for panel in printed_dashboard()["panels"]:
        for target in panel["targets"]:
            used = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert used <= {label for _, labels in asked(target["expr"]) for label in labels}, target


def test_every_metric_of_the_service_is_on_the_dashboard(start_server):
    server = start_server()
    use(server.url)
    shown = json.dumps(printed_dashboard())

    for name in exported(server.url):
        if not name.endswith(("_created", "_sum", "_count")):
            assert name in shown, name


def test_variables_ask_for_labels_that_exist(start_server):
    server, board = start_server(), printed_dashboard()
    use(server.url)
    has = exported(server.url)
    for variable in board["templating"]["list"][1:]:
        name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
        assert label in has[name] | _BY_PROMETHEUS
