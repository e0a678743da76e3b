"""A cheap load generator for HTTP: prepared requests over kept-alive connections, as raw bytes on uvloop.

`closed` sends the next request of a connection when the last is answered, which shows the highest rate. `open_loop`
sends at a fixed rate whatever the answers do, and counts the delay from the moment at which a request was due. A client
of Server-Sent Events can follow meanwhile.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import orjson
import uvloop

_SEQUENCE = re.compile(rb"^id: (\d+)$", re.MULTILINE)


def request(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """A POST as it is sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@dataclass
class Load:
    """What a run has measured."""

    seconds: float
    delays: list[float] = field(default_factory=list)  # seconds, of each answer
    arrivals: list[float] = field(default_factory=list)  # when each answer was there
    answers: list[bytes] = field(default_factory=list)  # their bodies
    n_failed: int = 0  # answers that are not 200
    last: bytes = b""
    events: dict[int, float] = field(default_factory=dict)  # when each event was there, by its sequence number

    @property
    def per_second(self) -> float:
        return len(self.delays) / self.seconds

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.delays, share)) if self.delays else float("nan")

    def acknowledged(self) -> dict[int, float]:
        """When the answer that has an event was there, by the sequence number of the event."""
        return {
            event["sequence"]: arrival
            for arrival, answer in zip(self.arrivals, self.answers, strict=True)
            for event in orjson.loads(answer)["events"]
        }


class _Connection(asyncio.Protocol):
    def __init__(self, load: Load, on_answer: Callable[[_Connection], None]) -> None:
        self.due: deque[float] = deque()  # when the unanswered requests were to be sent
        self._load, self._on_answer, self._data = load, on_answer, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def send(self, data: bytes, due: float) -> None:
        self.due.append(due)
        self.transport.write(data)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        data = self._data + data if self._data else data
        while (found := _find_body(data)) is not None:
            start, end = found
            now, load = time.perf_counter(), self._load
            load.delays.append(now - self.due.popleft())
            load.arrivals.append(now)
            load.answers.append(data[start:end])
            if not data.startswith(b"HTTP/1.1 200"):
                load.n_failed += 1
                load.last = data[:500]
            data = data[end:]
            self._on_answer(self)
        self._data = data


class _Follower(asyncio.Protocol):
    """A client of Server-Sent Events that notes when each event arrives."""

    def __init__(self, load: Load, path: str) -> None:
        self._load, self._path, self._data = load, path, b""
        self.is_ready = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        complete, end, self._data = (self._data + data).rpartition(b"\n\n")
        for number in _SEQUENCE.findall(complete):
            self._load.events.setdefault(int(number), now)
        if end:  # the head, and the first heartbeat
            self.is_ready.set()


def _find_body(data: bytes) -> tuple[int, int] | None:
    """Where the body of the first answer begins and ends, if it is complete."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return None
    at = data.find(b"content-length: ", 0, head)
    start = head + 4
    end = start + int(data[at + 16 : data.index(b"\r\n", at)])
    return (start, end) if end <= len(data) else None


def closed(port: int, requests: Iterator[bytes], seconds: float, n_connections: int = 100) -> Load:
    """As many requests as the service answers. Ends early if the requests do."""
    return uvloop.run(_closed(port, requests, seconds, n_connections))


async def _closed(port: int, requests: Iterator[bytes], seconds: float, n_connections: int) -> Load:
    load, loop = Load(seconds), asyncio.get_running_loop()
    start = time.perf_counter()
    done, n_open = loop.create_future(), n_connections

    def send_next(connection: _Connection) -> None:
        nonlocal n_open
        now = time.perf_counter()
        data = next(requests, None) if now - start < seconds else None
        if data is not None:
            connection.send(data, now)
            return
        n_open -= 1
        if not n_open and not done.done():
            load.seconds = now - start
            done.set_result(None)

    made = [
        (await loop.create_connection(lambda: _Connection(load, send_next), "127.0.0.1", port))[1]
        for _ in range(n_connections)
    ]
    start = time.perf_counter()
    for each in made:
        send_next(each)
    await asyncio.wait_for(done, seconds + 60)
    for each in made:
        each.transport.close()
    return load


def open_loop(
    port: int, requests: Iterator[bytes], per_second: float, seconds: float, n_connections: int, follow: str = ""
) -> Load:
    """Requests at a fixed rate, over the connections in turn. `follow`: the path of a stream of their events."""
    return uvloop.run(_open_loop(port, requests, per_second, seconds, n_connections, follow))


async def _open_loop(
    port: int, requests: Iterator[bytes], per_second: float, seconds: float, n_connections: int, follow: str
) -> Load:
    load, loop = Load(seconds), asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: _Connection(load, lambda _: None), "127.0.0.1", port))[1]
        for _ in range(n_connections)
    ]
    follower = _Follower(load, follow)
    if follow:
        await loop.create_connection(lambda: follower, "127.0.0.1", port)
        await follower.is_ready.wait()
    start, n_sent, n_all = time.perf_counter(), 0, int(per_second * seconds)
    while n_sent < n_all:
        n_due = min(n_all, int((time.perf_counter() - start) * per_second) + 1)
        while n_sent < n_due:
            made[n_sent % n_connections].send(next(requests), start + n_sent / per_second)
            n_sent += 1
        await asyncio.sleep(0.0005)
    until = time.perf_counter() + 30
    while any(each.due for each in made) and time.perf_counter() < until:
        await asyncio.sleep(0.005)
    load.seconds = time.perf_counter() - start
    if follow:
        await asyncio.sleep(0.5)  # for the last events
        follower.transport.close()
    for each in made:
        each.transport.close()
    return load
