"""`vedette serve` with a million keys and a million queries: restart after `kill -9`, and the first page of a list."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import orjson

from benchmarks import http_load
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.served_zones import (
    ARROW,
    PATH,
    Served,
    Vans,
    as_arrow,
    as_objects,
    check_load,
    make_registry,
    read_events,
    serving,
)

RESTART_SECONDS, PAGE_MILLISECONDS = 10, 300
PAGE = 50  # queries, as the console asks for them
_CHUNK = 50_000  # rows of a request


@experiment("serve-restart", "serve-list")
def serve_large(bench: Bench) -> None:
    """Seconds from the start to the first answer, and milliseconds to the first page of queries."""
    n = bench.size(1_000_000, 5_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_registry(f"sqlite:///{folder}/zones.db", n).close()
        vans = Vans(n, n)
        with serving(folder) as served:
            _fill(bench, served, vans, n)
            _time_restart(bench, served, vans, "1M rows of 20 batches in the log")
            _send_single(served, vans, bench.size(20_000, 200))
            _time_restart(bench, served, vans, "the same, and 20,000 batches of one row")
            _time_list(bench, served, n)


def _fill(bench: Bench, served: Served, vans: Vans, n: int) -> None:
    rows = vans.make(n)
    requests = [http_load.request(PATH, body, ARROW) for body in as_arrow(rows, bench.size(_CHUNK, 1000))]
    load = http_load.closed(served.port, iter(requests), 120, 1)
    check_load(load, vans, rows, "rows before the restart")


def _send_single(served: Served, vans: Vans, n_rows: int) -> None:
    rows = vans.make(n_rows)
    requests = iter([http_load.request(PATH, body) for body in as_objects(rows)])
    check_load(http_load.closed(served.port, requests, 120, 1), vans, rows, "single rows")


def _time_restart(bench: Bench, served: Served, vans: Vans, case: str) -> None:
    """Kill the service, start it, and send a batch: the state must be that of a monitor that was never stopped."""
    served.kill()
    start = time.perf_counter()
    served.start()
    rows = vans.make(1)
    answer = served.wait(PATH, orjson.loads(as_objects(rows)[0]))
    seconds = time.perf_counter() - start
    if read_events([orjson.dumps(answer)]) != vans.events(rows):
        raise AnswersDifferError("the first answer after a restart has other events")
    bench.verdict("serve-restart", case, "seconds to the first answer", seconds, RESTART_SECONDS)
    rows = vans.make(1000)
    requests = iter([http_load.request(PATH, body, ARROW) for body in as_arrow(rows, 1000)])
    check_load(http_load.closed(served.port, requests, 60, 1), vans, rows, "rows after the restart")


def _time_list(bench: Bench, served: Served, n: int) -> None:
    page = partial(served.call, "GET", f"/v1/sets/zones/queries?state=active&limit={PAGE}")
    expected = sorted(f"zone-{place}" for place in range(n))[:PAGE]
    if [each["id"] for each in page()["queries"]] != expected:
        raise AnswersDifferError("the first page has other queries than the first in the order of ids")
    first = 1000 * statistics.median(time_once(page) for _ in range(5))
    bench.verdict("serve-list", "the request", "milliseconds to the first page", first, PAGE_MILLISECONDS)
    _time_in_browser(bench, served.port)


def _time_in_browser(bench: Bench, port: int) -> None:
    """From a click on the set, on the first page of the console, to its table."""
    program = os.environ.get("VEDETTE_CHROMIUM") or shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        bench.say("the browser is skipped: Playwright or Chromium is missing")
        return
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        seconds = []
        for _ in range(5):
            page.goto(f"http://127.0.0.1:{port}/#/")
            page.wait_for_selector("main:not([aria-busy]) a[href='#/sets/zones']")
            start = time.perf_counter()
            page.click("main a[href='#/sets/zones']")
            page.wait_for_selector(f"main:not([aria-busy]) tbody tr:nth-child({PAGE})")
            seconds.append(time.perf_counter() - start)
        browser.close()
    milliseconds = 1000 * statistics.median(seconds)
    bench.verdict("serve-list", "in Chromium", "milliseconds to the first page", milliseconds, PAGE_MILLISECONDS)
