"""A service in a process of its own, with square zones and vans that jump: 0.1 events a row."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

import vedette as vd
from benchmarks import http_load
from benchmarks.harness import AnswersDifferError

SCHEMA = "van bigint, x double, y double, ts timestamp"
N_VANS = 10_000
PATH = "/v1/sets/zones/rows"
JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
_START = datetime(2026, 3, 2, tzinfo=UTC)
_MAIN = "from vedette.cli import main; main()"


def zone_sides(n_zones: int, seed: int = 1) -> tuple[Any, Any, float]:
    """The lower corners and the side of squares that cover a twentieth of the unit square."""
    random = np.random.default_rng(seed)
    return random.random(n_zones).round(9), random.random(n_zones).round(9), (0.05 / n_zones) ** 0.5


def zone_texts(n_zones: int) -> tuple[list[str], list[str]]:
    """Ids and conditions."""
    xs, ys, side = zone_sides(n_zones)
    texts = [
        f"x BETWEEN {x!r} AND {x + side!r} AND y BETWEEN {y!r} AND {y + side!r}"
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True)
    ]
    return [f"zone-{place}" for place in range(n_zones)], texts


def make_registry(url: str, n_zones: int) -> vd.Registry:
    registry = vd.Registry(url)
    registry.create("zones", kind="border", schema=SCHEMA)
    registry.add_many("zones", *zone_texts(n_zones))
    return registry


class Vans:
    """Rows in time order, and the events that they must have. Each van jumps, so a tenth of the rows have an event."""

    def __init__(self, n_zones: int, n_vans: int = N_VANS, columns: Iterable[str] = ()) -> None:
        zones = vd.QuerySet(SCHEMA)
        zones.add_many(*zone_texts(n_zones))
        self.n_vans = n_vans
        self._monitor = zones.border(key="van", time="ts", columns=list(columns))
        self._n_made = 0
        self._random = np.random.default_rng(2)

    def make(self, n_rows: int) -> pa.Table:
        """The next rows."""
        numbers = np.arange(self._n_made, self._n_made + n_rows)
        self._n_made += n_rows
        times = pa.array(1000 * numbers + int(_START.timestamp()) * 1_000_000, pa.timestamp("us", "UTC"))
        places = {"x": self._random.random(n_rows), "y": self._random.random(n_rows)}
        return pa.table({"van": numbers % self.n_vans, **places, "ts": times})

    def events(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """The events of rows, by a monitor in this process, in a fixed order."""
        return self._step(rows, "key", "time", "query", "event")

    def moves(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """The same with the places of the rows instead of their times."""
        return self._step(rows, "key", "x", "y", "query", "event")

    def _step(self, rows: pa.Table, *names: str) -> list[tuple[Any, ...]]:
        events = self._monitor.step(rows)
        return sorted(zip(*(events[name].to_pylist() for name in names), strict=True))


def as_objects(rows: pa.Table) -> list[bytes]:
    """Each row as a JSON object."""
    first = rows["ts"][0].as_py()
    stamps = [(first + timedelta(milliseconds=k)).isoformat(timespec="milliseconds") for k in range(rows.num_rows)]
    columns = (rows[name].to_pylist() for name in ("van", "x", "y"))
    return [
        orjson.dumps({"van": van, "x": x, "y": y, "ts": stamp})
        for van, x, y, stamp in zip(*columns, stamps, strict=True)
    ]


def as_lines(rows: pa.Table, n_rows: int) -> list[bytes]:
    """Batches as JSON lines."""
    objects = as_objects(rows)
    return [b"\n".join(objects[start : start + n_rows]) for start in range(0, len(objects), n_rows)]


def as_arrow(rows: pa.Table, n_rows: int) -> list[bytes]:
    """Batches as Arrow streams."""
    made = []
    for start in range(0, rows.num_rows, n_rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.slice(start, n_rows))
        made.append(sink.getvalue().to_pybytes())
    return made


def read_events(answers: Iterable[bytes]) -> list[tuple[Any, ...]]:
    """The events of answers to rows, in a fixed order."""
    events = itertools.chain.from_iterable(orjson.loads(each)["events"] for each in answers)
    return sorted((e["key"], datetime.fromisoformat(e["time"]), e["query"], e["event"]) for e in events)


def check_load(load: http_load.Load, vans: Vans, rows: pa.Table, what: str) -> int:
    """Compare the events of all answers with those of a monitor in this process. Returns their number."""
    if load.n_failed:
        raise AnswersDifferError(f"{what}: {load.n_failed} requests failed: {load.last!r}")
    return check_events(load.answers, vans, rows, what)


def check_events(answers: Iterable[bytes], vans: Vans, rows: pa.Table, what: str) -> int:
    """Compare the events of answers with those of a monitor in this process. Returns their number."""
    found, expected = read_events(answers), vans.events(rows)
    if found != expected:
        differing = sorted(set(found) ^ set(expected))[:3]
        raise AnswersDifferError(f"{what}: {len(found):,} events instead of {len(expected):,}; {differing}")
    return len(found)


@dataclass
class Served:
    """A service over `folder`/zones.db. `cpu`: the core that it is confined to."""

    folder: Path
    options: tuple[str, ...] = ()
    cpu: int | None = None
    port: int = 0
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start the process; `wait` returns when it is ready."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        registry = f"sqlite:///{self.folder}/zones.db"
        command = [sys.executable, "-c", _MAIN, "serve", "--registry", registry, "--port", str(self.port)]
        command += ["--state", str(self.folder / "state"), *self.options]
        confine = None if self.cpu is None else lambda: os.sched_setaffinity(0, {self.cpu})
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, preexec_fn=confine)

    def wait(self, path: str = "/readyz", body: Any = None) -> Any:
        """The first answer to a request that is repeated until there is one."""
        while True:
            try:
                return self.call("GET" if body is None else "POST", path, body)
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError((self.folder / "serve.log").read_text()[-2000:]) from None
                time.sleep(0.01)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return json.loads(answer.read() or b"null")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@contextmanager
def serving(folder: Path, *options: str, cpu: int | None = None) -> Iterator[Served]:
    """A running service that monitors vans."""
    served = Served(folder, options, cpu)
    served.start()
    try:
        served.wait()
        served.call("PUT", "/v1/sets/zones/monitor", {"key": "van", "time": "ts"})
        yield served
    finally:
        served.stop()
