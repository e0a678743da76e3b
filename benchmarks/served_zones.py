"""A service in a process of its own, with 100k square zones and vans that jump: 0.1 events a row."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd

SCHEMA = "van bigint, x double, y double, ts timestamp"
N_VANS = 10_000
PATH = "/v1/sets/zones/rows"
_START = datetime(2026, 3, 2, tzinfo=UTC)


def zone_sides(n_zones: int, seed: int = 1) -> tuple[Any, Any, float]:
    """The lower corners and the side of squares that cover a twentieth of the unit square."""
    random = np.random.default_rng(seed)
    return random.random(n_zones), random.random(n_zones), (0.05 / n_zones) ** 0.5


def make_registry(url: str, n_zones: int) -> None:
    registry = vd.Registry(url)
    registry.create("zones", kind="border", schema=SCHEMA)
    xs, ys, side = zone_sides(n_zones)
    texts = [
        f"x BETWEEN {x:.9f} AND {x + side:.9f} AND y BETWEEN {y:.9f} AND {y + side:.9f}"
        for x, y in zip(xs, ys, strict=True)
    ]
    registry.add_many("zones", [f"zone-{i}" for i in range(n_zones)], texts)
    registry.close()


def rows_of_vans(n_rows: int, first: int = 0) -> dict[str, Any]:
    """Rows in time order. Each van jumps, so about a tenth of the rows have an event."""
    random = np.random.default_rng(2 + first)
    numbers = np.arange(first, first + n_rows)
    return {"van": numbers % N_VANS, "x": random.random(n_rows), "y": random.random(n_rows), "ts": numbers}


def as_bodies(rows: dict[str, Any]) -> list[bytes]:
    """Each row as a JSON object."""
    return [
        json.dumps(
            {"van": van, "x": x, "y": y, "ts": (_START + timedelta(milliseconds=ts)).isoformat(timespec="milliseconds")}
        ).encode()
        for van, x, y, ts in zip(*(values.tolist() for values in rows.values()), strict=True)
    ]


def as_arrow(rows: dict[str, Any]) -> bytes:
    times = pa.array(1000 * rows["ts"] + int(_START.timestamp()) * 1_000_000, pa.timestamp("us", "UTC"))
    table = pa.table({"van": rows["van"], "x": rows["x"], "y": rows["y"], "ts": times})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@contextmanager
def serving(folder: Path, *options: str, cpu: int | None = None) -> Iterator[int]:
    """A running service over `folder`/zones.db; its port. `cpu`: the core that it is confined to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    main = "from vedette.cli import main; main()"
    command = [sys.executable, "-c", main, "serve", "--registry", f"sqlite:///{folder}/zones.db", "--port", str(port)]
    confine = None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen([*command, *options], stderr=log, preexec_fn=confine)
    try:
        while True:
            try:
                call(port, "GET", "/readyz")
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError((folder / "serve.log").read_text()[-2000:]) from None
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
    asked.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.loads(answer.read() or b"null")


def make_monitor(port: int) -> None:
    call(port, "PUT", "/v1/sets/zones/monitor", {"key": "van", "time": "ts"})
