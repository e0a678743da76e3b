"""Tile38: zones as channels with enter and exit, one subscriber of all of them, points by pipelined SET.

`TILE38_SERVER` is the path of its server program, built from its sources. Its append-only file is on, as by default.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvloop

from benchmarks.served_zones import zone_sides
from benchmarks.socket_load import Connection, Pipelined, connect

VARIABLE = "TILE38_SERVER"
_LINE = b"\r\n"
_AT_ONCE = 1000  # channels of one write


class Tile38:
    """A server with zones."""

    name = "Tile38"

    def __init__(self, folder: Path, program: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [program, "-h", "127.0.0.1", "-p", str(self.port), "-d", str(folder), "-q"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{VARIABLE} does not name a Tile38 server that answers")

    def add_zones(self, n_zones: int) -> float:
        """Make a channel of each zone; returns the seconds that it took."""
        xs, ys, side = zone_sides(n_zones)
        commands = [
            write_command("SETCHAN", f"zone-{zone}", "WITHIN", "vans", "FENCE", "DETECT", "enter,exit", "BOUNDS",
                          repr(y), repr(x), repr(y + side), repr(x + side))
            for zone, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True))
        ]  # fmt: skip
        return uvloop.run(_send(self.port, commands)).seconds

    def send(self, rows: pa.Table, n_events: int) -> tuple[Pipelined, list[bytes]]:
        """Pipelined SETs of all rows, until all are answered and the subscriber has so many messages."""
        places = zip(*(rows[name].to_pylist() for name in ("van", "x", "y")), strict=True)
        commands = [write_command("SET", "vans", str(van), "POINT", repr(y), repr(x)) for van, x, y in places]
        return uvloop.run(_send_watched(self.port, commands, n_events))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def find_program() -> str | None:
    """The path of the server program, if the environment names one."""
    return os.environ.get(VARIABLE)


def read_message(message: bytes) -> tuple[Any, ...]:
    """An event of a channel: van, place, zone, and what it did."""
    read = json.loads(message)
    return (int(read["id"]), *read["object"]["coordinates"][:2], read["hook"], read["detect"])


def write_command(*words: str) -> bytes:
    """A command of the Redis protocol."""
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = word.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


async def _send(port: int, commands: Sequence[bytes]) -> Pipelined:
    connection = await connect(port, _read_lines)
    start = time.perf_counter()
    for place in range(0, len(commands), _AT_ONCE):
        await connection.send(b"".join(commands[place : place + _AT_ONCE]))
    await connection.wait(len(commands))
    done = Pipelined(time.perf_counter() - start, connection.answers)
    connection.transport.close()
    _check(done.answers)
    return done


async def _send_watched(port: int, commands: Sequence[bytes], n_events: int) -> tuple[Pipelined, list[bytes]]:
    subscriber: Connection = await connect(port, _read_messages)
    await subscriber.send(write_command("PSUBSCRIBE", "zone-*"))
    await subscriber.wait(1)
    subscriber.answers = []
    start = time.perf_counter()
    done = await _send(port, commands)
    await subscriber.wait(n_events)
    done.seconds = time.perf_counter() - start
    subscriber.transport.close()
    return done, subscriber.answers


def _check(answers: Sequence[bytes]) -> None:
    wrong = [answer for answer in answers if answer.startswith(b"-")]
    if wrong:
        raise RuntimeError(f"Tile38 refuses {len(wrong):,} commands: {wrong[0]!r}")


def _read_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Answers of one line each."""
    *made, rest = data.split(_LINE)
    return made, rest


def _read_messages(data: bytes) -> tuple[list[bytes], bytes]:
    """What a subscriber gets: arrays of texts and numbers. The last item of each is the message."""
    made, place = [], 0
    while (found := _read_array(data, place)) is not None:
        item, place = found
        made.append(item)
    return made, data[place:]


def _read_array(data: bytes, place: int) -> tuple[bytes, int] | None:
    end = data.find(_LINE, place)
    if end < 0:
        return None
    item = b""
    n_items = int(data[place + 1 : end])
    for _ in range(n_items):
        start, end = end + 2, data.find(_LINE, end + 2)
        if end < 0:
            return None
        if data[start : start + 1] == b"$":
            n = int(data[start + 1 : end])
            start, end = end + 2, end + 2 + n
            if end + 2 > len(data):
                return None
        item = data[start:end]
    return item, end + 2
