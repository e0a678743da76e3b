"""The output of a running pipeline: lines, JSON, a table on a terminal, and metrics for Prometheus."""

from __future__ import annotations

import io
import json
import logging
import urllib.request
from dataclasses import replace
from types import SimpleNamespace

import pytest

from vedette.cli.jobs.run import RunOptions, _Run
from vedette.errors import PipelineError
from vedette.run import display as run_display
from vedette.run.display import JsonDisplay, LineDisplay, TableDisplay, WarningHandler
from vedette.run.metrics import read_address, serve_metrics
from vedette.run.progress import Batch
from vedette.run.signals import Signals
from vedette.run.status import Status

BATCH = Batch("events", 3, "5a5f", 1000, 7, 2, 1.25, 12, 0.5, 6, 2_000_000)


@pytest.fixture
def status():
    made = Status.begin("ticks", ["events", "idle"])
    made.state, made.n_queries = "running", 5_000_000
    made.take(BATCH, 41)
    made.take(BATCH, None)
    return made


def test_a_line_has_totals_and_the_last_batch(status, monkeypatch):
    monkeypatch.setattr(run_display, "_LINE_SECONDS", 1e9)
    out = io.StringIO()
    display = LineDisplay(out, lambda text: text.replace("ticks", "${NAME}"))

    display.show(status, status.sinks["events"])
    display.show(status, status.sinks["events"])  # too soon for another line
    display.report("info", "ended", "ticks: ended")

    assert out.getvalue().splitlines() == [
        "vedette: events: batch 3, rows 1,000 (total 2,000), matches 7 (total 14), "
        "queries 5,000,000, version 41, batch time 1.25 s, lag 12 rows 0.5 s, state 2.0 MB, malformed 2 (total 4)",
        "vedette: ${NAME}: ended",
    ]


def test_json_has_the_batch_itself(status):
    out = io.StringIO()

    JsonDisplay(out, str).show(status, status.sinks["events"])

    record = json.loads(out.getvalue())
    assert {record.pop(name) is not None for name in ("time", "message")} == {True}
    assert record == {
        "level": "info", "event": "batch", "pipeline": "ticks", "sink": "events", "batch": 3, "rows_in": 1000,
        "matches_out": 7, "malformed": 2, "rows_in_total": 2000, "matches_out_total": 14, "malformed_total": 4,
        "queries": 5_000_000, "version": 41, "batch_seconds": 1.25, "lag_rows": 12,
        "lag_seconds": 0.5, "state_rows": 6, "state_bytes": 2_000_000, "hits": {},
    }  # fmt: skip


@pytest.mark.parametrize("display", [LineDisplay, JsonDisplay])
def test_quiet_shows_errors_only(status, display):
    out = io.StringIO()
    quiet = display(out, str, True)

    quiet.show(status, status.sinks["events"])
    quiet.report("error", "failed", "ticks: no")

    assert len(out.getvalue().splitlines()) == 1
    assert "ticks: no" in out.getvalue()


def test_a_terminal_shows_a_table_with_a_line_per_sink(status):
    out = io.StringIO()
    display = TableDisplay(str, file=out, force_terminal=True, width=150)
    status.pipeline = "ticks [/eu] :a:"  # no markup

    display.show(status, None)
    display.close()

    text = out.getvalue()
    assert "ticks [/eu] :a:: running" in text
    for word in ("7 (total 14)", "5,000,000", "12 rows 0.5 s", "idle"):
        assert word in text


def test_metrics_are_served_on_the_loopback_interface(status):
    server = serve_metrics(status, read_address("0"))
    try:
        host, port = server.server_address[:2]
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        text = direct.open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
        with pytest.raises(PipelineError, match=f"cannot serve metrics on 127.0.0.1:{port}: "):
            serve_metrics(status, read_address(str(port)))
    finally:
        server.shutdown()
        server.server_close()

    assert host == "127.0.0.1"
    for line in (
        'vedette_rows_in_total{pipeline="ticks",sink="events"} 2000.0',
        'vedette_version{pipeline="ticks",sink="events"} 41.0',
        'vedette_queries{pipeline="ticks"} 5e+06',
        'vedette_pipeline_state{pipeline="ticks",state="running"} 1.0',
        'vedette_state_bytes{pipeline="ticks",sink="events"} 2e+06',
    ):
        assert line in text
    assert 'vedette_version{pipeline="ticks",sink="idle"}' not in text


@pytest.mark.parametrize(("text", "address"), [("0.0.0.0:9100", ("0.0.0.0", 9100)), ("[::]:9100", ("::", 9100))])
def test_another_host_must_be_named(text, address):
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["x", "99999", "host:", ""])
def test_an_invalid_port_is_refused(text):
    with pytest.raises(PipelineError, match="--metrics must be a port or host:port; got "):
        read_address(text)


def test_a_secret_with_any_characters_is_hidden_in_json():
    out = io.StringIO()
    display = JsonDisplay(out, lambda text: text.replace('a"b\\c', "${SECRET}"))

    display.report("error", "failed", 'no a"b\\c', reason='a"b\\c')

    assert (json.loads(out.getvalue())["message"], json.loads(out.getvalue())["reason"]) == (
        "no ${SECRET}",
        "${SECRET}",
    )


@pytest.mark.parametrize(("n_received", "code", "event"), [(0, 3, "failed"), (1, 0, "stopped")])
def test_a_failure_after_a_stop_request_counts_as_stopped(status, n_received, code, event):
    out = io.StringIO()
    signals = Signals()
    signals.n_received = n_received

    file = SimpleNamespace(plan=None, variables=SimpleNamespace(hide=str))  # nothing is started, so nothing is read
    run = _Run(file, RunOptions(), status, JsonDisplay(out, str), signals)

    assert run._end("Spark's Java process has ended") == code
    assert json.loads(out.getvalue().splitlines()[-1])["event"] == event
    assert status.state == event


def test_warnings_of_vedette_are_shown():
    out = io.StringIO()

    with WarningHandler(LineDisplay(out, str), "ticks"):
        logging.getLogger("vedette.registry.snapshots.bases").warning("a snapshot is %s", "damaged")

    assert out.getvalue() == "vedette: a snapshot is damaged\n"


def test_a_warning_in_json_names_the_pipeline():
    out = io.StringIO()

    with WarningHandler(JsonDisplay(out, str), "ticks"):
        logging.getLogger("vedette.registry.snapshots.bases").warning("a snapshot is damaged")

    record = json.loads(out.getvalue())
    assert (record["event"], record["level"], record["pipeline"]) == ("warning", "warning", "ticks")


def test_counts_of_workers_are_in_the_log_and_the_metrics(status):
    sink, out = status.sinks["events"], io.StringIO()
    sink.take(replace(sink.last, counts={"late": 2, "failed": 0}), None, True)
    sink.take(replace(sink.last, counts={"late": 3, "failed": 0}), None, True)

    JsonDisplay(out, str).show(status, sink)
    server = serve_metrics(status, read_address("0"))
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        text = direct.open(f"http://127.0.0.1:{server.server_port}/metrics", timeout=60).read().decode()
    finally:
        server.shutdown()
        server.server_close()

    record = json.loads(out.getvalue())
    assert {name: record[name] for name in ("late", "late_total", "failed", "failed_total")} == {
        "late": 3, "late_total": 5, "failed": 0, "failed_total": 0
    }  # fmt: skip
    assert 'vedette_late_total{pipeline="ticks",sink="events"} 5.0' in text
    assert "vedette_null_keys_total{" not in text


def test_a_warning_that_a_line_has_shown_is_not_shown_again():
    out = io.StringIO()
    handler = run_display.WarningHandler(LineDisplay(out, str), "ticks")

    handler.show_line("a base is  missing", True)
    handler.show_counted("a base is missing")
    handler.show_counted("another")

    assert out.getvalue().splitlines() == ["vedette: a base is  missing", "vedette: another"]
