"""`vedette serve` over loopback: single rows, batches, and how soon events arrive.

The load comes from this process, and the service is one process of its own; both share the cores of the machine. Events
are compared with those of a monitor in this process: of the first rows before anything is timed, and of all others
after.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import http_load
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.served_zones import (
    ARROW,
    JSON,
    LINES,
    N_VANS,
    PATH,
    Served,
    Vans,
    as_arrow,
    as_lines,
    as_objects,
    check_load,
    make_registry,
    serving,
)

N_CONNECTIONS, N_BATCH_CONNECTIONS = 100, 16
BATCH = 1000
BATCHED_VANS = 2 * N_BATCH_CONNECTIONS * BATCH  # batches that wait at the same time have no van twice
ROWS_A_SECOND, SLOWEST_ROW = 4_000, 20.0  # milliseconds, at half of that rate
BATCHED: dict[str, tuple[str, Callable[[Any, int], list[bytes]], int]] = {
    "JSON lines": (LINES, as_lines, 250_000),
    "Arrow": (ARROW, as_arrow, 1_000_000),
}
EVENTS_PATH = "/v1/sets/zones/events"
EVENT_ROWS_A_SECOND, SLOWEST_EVENT = 1_000, 50.0


@experiment("serve-rows")
def serve_rows(bench: Bench) -> None:
    """`POST /rows` of one row each over 100 connections: the highest rate, and the delay at half of the goal."""
    seconds = bench.size(5, 1)
    server, own = _two_cores()
    with tempfile.TemporaryDirectory() as folder:
        vans = _make(bench, Path(folder))
        os.sched_setaffinity(0, {own})
        with serving(Path(folder), cpu=server) as served:
            _send_rows(served, vans, bench.size(10_000, 500), "warm-up")
            n_rows = bench.size(2 * ROWS_A_SECOND, 200) * seconds
            load = _send_rows(served, vans, n_rows, "closed loop", seconds=seconds)
            case = f"{N_CONNECTIONS} connections"
            bench.verdict("serve-rows", case, "requests a second", load.per_second, ROWS_A_SECOND, "at least")
            bench.note("serve-rows", case, "milliseconds, median", 1000 * load.quantile(0.5))
            bench.note("serve-rows", case, "milliseconds, 99th percentile", 1000 * load.quantile(0.99))
            rate = bench.size(ROWS_A_SECOND // 2, 100)
            load = _send_rows(served, vans, rate * seconds, "open loop", rate=rate)
            case = f"{rate:,} requests a second, open loop"
            bench.note("serve-rows", case, "milliseconds, median", 1000 * load.quantile(0.5))
            slowest = 1000 * load.quantile(0.99)
            bench.verdict("serve-rows", case, "milliseconds, 99th percentile", slowest, SLOWEST_ROW)


@experiment("serve-batches")
def serve_batches(bench: Bench) -> None:
    """`POST /rows` of 1,000 rows each over 16 connections, as JSON lines and as Arrow: rows a second."""
    seconds = bench.size(3, 1)
    with tempfile.TemporaryDirectory() as folder:
        vans = _make(bench, Path(folder), BATCHED_VANS)
        with serving(Path(folder)) as served:
            for name, (media_type, write, goal) in BATCHED.items():
                for n_batches in (bench.size(100, 4), bench.size(goal * seconds * 3 // 2 // BATCH, 20)):
                    rows = vans.make(n_batches * BATCH)
                    requests = [http_load.request(PATH, body, media_type) for body in write(rows, BATCH)]
                    load = http_load.closed(served.port, iter(requests), seconds, N_BATCH_CONNECTIONS)
                    n_sent = len(load.delays) * BATCH
                    n_events = check_load(load, vans, rows.slice(0, n_sent), name)
                per_second = BATCH * load.per_second
                bench.verdict("serve-batches", name, "rows a second", per_second, goal, "at least")
                bench.note("serve-batches", name, "events a row", n_events / n_sent)
                bench.note("serve-batches", name, "milliseconds a request, median", 1000 * load.quantile(0.5))


@experiment("serve-events")
def serve_events(bench: Bench) -> None:
    """From the acknowledged row to its event at a client of Server-Sent Events, at 1,000 rows a second."""
    seconds, rate = bench.size(10, 1), bench.size(EVENT_ROWS_A_SECOND, 200)
    for case, options in (("durable against kill -9", ()), ("durable against power loss", ("--sync",))):
        with tempfile.TemporaryDirectory() as folder:
            vans = _make(bench, Path(folder))
            with serving(Path(folder), *options) as served:
                _send_rows(served, vans, bench.size(10_000, 500), "warm-up")
                rows = vans.make(seconds * rate)
                requests = iter([http_load.request(PATH, body) for body in as_objects(rows)])
                load = http_load.open_loop(served.port, requests, rate, seconds, N_CONNECTIONS, EVENTS_PATH)
            check_load(load, vans, rows, case)
            acknowledged = load.acknowledged()
            if load.events.keys() != acknowledged.keys():
                raise AnswersDifferError(
                    f"{case}: {len(load.events):,} events in the stream, {len(acknowledged):,} in answers"
                )
            delays = 1000 * np.array([load.events[number] - at for number, at in acknowledged.items()])
            bench.note("serve-events", case, "milliseconds, median", float(np.quantile(delays, 0.5)))
            slowest = float(np.quantile(delays, 0.99))
            if options:
                bench.note("serve-events", case, "milliseconds, 99th percentile", slowest)
            else:
                bench.verdict("serve-events", case, "milliseconds, 99th percentile", slowest, SLOWEST_EVENT)


def _two_cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def _make(bench: Bench, folder: Path, n_vans: int = N_VANS) -> Vans:
    n_zones = bench.size(100_000, 2_000)
    make_registry(f"sqlite:///{folder}/zones.db", n_zones).close()
    return Vans(n_zones, n_vans)


def _send_rows(
    served: Served, vans: Vans, n_rows: int, what: str, *, seconds: float = 60, rate: float | None = None
) -> http_load.Load:
    """Send rows in requests of one row, and check their events. `rate`: at so many a second."""
    rows = vans.make(n_rows)
    requests = iter([http_load.request(PATH, body, JSON) for body in as_objects(rows)])
    if rate is None:
        load = http_load.closed(served.port, requests, seconds, N_CONNECTIONS)
    else:
        load = http_load.open_loop(served.port, requests, rate, n_rows / rate, N_CONNECTIONS)
    check_load(load, vans, rows.slice(0, len(load.delays)), what)
    return load
