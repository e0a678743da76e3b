"""`vedette serve` against Tile38: the same zones, the same points, the same events, both over loopback.

Tile38 gets pipelined SETs and sends its events to one subscriber. Vedette has the events in its answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import http_load, socket_load
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.peers import tile38
from benchmarks.served_zones import (
    ARROW,
    JSON,
    LINES,
    PATH,
    Served,
    Vans,
    as_arrow,
    as_lines,
    as_objects,
    check_events,
    check_load,
    make_registry,
    serving,
)

TARGET = "serve-tile38"
BATCHES, PIPELINED = 10, 1  # times the updates a second of Tile38
BATCH, N_CONNECTIONS = 1000, 16
N_VANS = 2 * N_CONNECTIONS * BATCH  # batches that wait at the same time have no van twice
_SOCKET_ROWS = 100  # of a message with several rows


@experiment(TARGET)
def serve_tile38(bench: Bench) -> None:
    """Updates a second: Tile38 by pipelined SET; Vedette by HTTP in batches and row by row, and by WebSocket."""
    program = tile38.find_program()
    if program is None:
        bench.say(f"Tile38 is left out: set {tile38.VARIABLE} to the path of its server program")
    n_zones = bench.size(100_000, 2_000)
    theirs = _measure_tile38(bench, program, n_zones) if program else None
    with tempfile.TemporaryDirectory() as name:
        make_registry(f"sqlite:///{name}/zones.db", n_zones).close()
        vans = Vans(n_zones, N_VANS)
        with serving(Path(name)) as served:
            for words, send, goal in _ways():
                for n_rows in (bench.size(N_VANS, 2_000), bench.size(100_000, 2_000)):
                    per_second = send(served, vans, vans.make(n_rows))
                if theirs is None or goal is None:
                    bench.note(TARGET, words, "updates a second", per_second)
                else:
                    bench.record(TARGET, words, "vedette serve", n_rows / per_second, n_rows=n_rows)
                    bench.verdict(TARGET, words, "times the updates of Tile38", per_second / theirs, goal, "at least")


def _ways() -> list[tuple[str, Any, float | None]]:
    return [
        ("HTTP, Arrow, 1,000 rows a request", _by_arrow, BATCHES),
        ("HTTP, JSON lines, 1,000 rows a request", _by_lines, None),
        ("WebSocket, pipelined, Arrow, 1,000 rows a message", _by_arrow_socket, PIPELINED),
        ("WebSocket, pipelined, JSON, 100 rows a message", _by_json_socket, PIPELINED),
        ("WebSocket, pipelined, JSON, one row a message", _by_row_socket, PIPELINED),
        ("HTTP, one row a request, 100 connections", _by_row, None),
    ]


def _measure_tile38(bench: Bench, program: str, n_zones: int) -> float:
    """Updates a second, after its events are compared."""
    vans, n_rows = Vans(n_zones, N_VANS, columns=["x", "y"]), bench.size(100_000, 2_000)
    with tempfile.TemporaryDirectory() as name:
        server = tile38.Tile38(Path(name), program)
        try:
            bench.note(TARGET, "Tile38", "seconds to make the channels", server.add_zones(n_zones))
            for _ in range(3):
                rows = vans.make(n_rows)
                expected = vans.moves(rows)
                done, messages = server.send(rows, len(expected))
                found = sorted(map(tile38.read_message, messages))
                if found != expected:
                    differing = sorted(set(found) ^ set(expected))[:3]
                    raise AnswersDifferError(f"Tile38 has {len(found):,} events, not {len(expected):,}; {differing}")
        finally:
            server.close()
    per_second = n_rows / done.seconds
    bench.record(TARGET, "RESP, pipelined SET", "Tile38", done.seconds, n_rows=n_rows)
    bench.note(TARGET, "RESP, pipelined SET", "updates a second of Tile38", per_second)
    return per_second


def _by_arrow(served: Served, vans: Vans, rows: pa.Table) -> float:
    return _by_http(served, vans, rows, as_arrow(rows, BATCH), ARROW, N_CONNECTIONS)


def _by_lines(served: Served, vans: Vans, rows: pa.Table) -> float:
    return _by_http(served, vans, rows, as_lines(rows, BATCH), LINES, N_CONNECTIONS)


def _by_row(served: Served, vans: Vans, rows: pa.Table) -> float:
    part = rows.slice(0, rows.num_rows // 4)  # the others are sent below: vans go on from there
    per_second = _by_http(served, vans, part, as_objects(part), JSON, 100)
    rest = rows.slice(rows.num_rows // 4)
    _by_http(served, vans, rest, as_arrow(rest, BATCH), ARROW, 1)
    return per_second


def _by_http(
    served: Served, vans: Vans, rows: pa.Table, bodies: Sequence[bytes], media_type: str, n_connections: int
) -> float:
    requests = iter([http_load.request(PATH, body, media_type) for body in bodies])
    load = http_load.closed(served.port, requests, 60, n_connections)
    check_load(load, vans, rows, media_type)
    return rows.num_rows / load.seconds


def _by_arrow_socket(served: Served, vans: Vans, rows: pa.Table) -> float:
    return _by_socket(served, vans, rows, as_arrow(rows, BATCH), is_text=False)


def _by_json_socket(served: Served, vans: Vans, rows: pa.Table) -> float:
    objects = as_objects(rows)
    parts = [objects[start : start + _SOCKET_ROWS] for start in range(0, len(objects), _SOCKET_ROWS)]
    return _by_socket(served, vans, rows, [b"[" + b",".join(part) + b"]" for part in parts], is_text=True)


def _by_row_socket(served: Served, vans: Vans, rows: pa.Table) -> float:
    return _by_socket(served, vans, rows, as_objects(rows), is_text=True)


def _by_socket(served: Served, vans: Vans, rows: pa.Table, messages: Sequence[bytes], *, is_text: bool) -> float:
    done = socket_load.rows_by_socket(served.port, f"{PATH}/ws", messages, is_text=is_text)
    check_events(done.answers, vans, rows, "WebSocket")
    return rows.num_rows / done.seconds
