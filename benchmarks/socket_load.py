"""A cheap load generator for pipelined protocols: prepared messages over one connection, as raw bytes on uvloop.

All messages are sent as fast as the other side reads them, without waiting for answers. `rows_by_socket` is a client of
`vedette serve` by WebSocket; `resp` sends commands of the Redis protocol.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import uvloop

_WRITTEN = 1 << 18  # bytes that are handed to the transport at once
Reader = Callable[[bytes], tuple[list[bytes], bytes]]  # answers that are complete, and what is left


@dataclass
class Pipelined:
    """What a run has measured."""

    seconds: float = 0.0
    answers: list[bytes] = field(default_factory=list)


class Connection(asyncio.Protocol):
    """A connection that collects answers, and says when there are enough of them."""

    def __init__(self, read: Reader) -> None:
        self.answers: list[bytes] = []
        self._read, self._data = read, b""
        self._wanted, self._enough = 0, asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        made, self._data = self._read(self._data + data if self._data else data)
        self.answers += made
        if len(self.answers) >= self._wanted:
            self._enough.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enough.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def send(self, data: bytes) -> None:
        for start in range(0, len(data), _WRITTEN):
            await self._may_write.wait()
            self.transport.write(data[start : start + _WRITTEN])  # type: ignore[attr-defined]

    async def wait(self, n_answers: int, seconds: float = 120) -> None:
        """Return when there are so many answers. Raises TimeoutError, or ConnectionError if the connection ends."""
        self._wanted = n_answers
        if len(self.answers) < n_answers:
            self._enough.clear()
            await asyncio.wait_for(self._enough.wait(), seconds)
        if len(self.answers) < n_answers:
            raise ConnectionError(f"the connection ended after {len(self.answers):,} of {n_answers:,} answers")


async def connect(port: int, read: Reader) -> Connection:
    made = await asyncio.get_running_loop().create_connection(lambda: Connection(read), "127.0.0.1", port)
    return made[1]


def rows_by_socket(port: int, path: str, messages: Sequence[bytes], *, is_text: bool) -> Pipelined:
    """Send messages to a WebSocket of `vedette serve`, until each is answered."""
    return uvloop.run(_rows_by_socket(port, path, b"".join(_frame(each, is_text) for each in messages), len(messages)))


async def _rows_by_socket(port: int, path: str, data: bytes, n_messages: int) -> Pipelined:
    connection = await connect(port, _read_head)
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    await connection.send(f"{head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
    await connection.wait(1)
    if not connection.answers[0].startswith(b"HTTP/1.1 101"):
        raise ConnectionError(f"no WebSocket: {connection.answers[0][:200]!r}")
    connection.answers, connection._read = [], _read_frames
    start = time.perf_counter()
    await connection.send(data)
    await connection.wait(n_messages)
    done = Pipelined(time.perf_counter() - start, connection.answers)
    connection.transport.close()
    return done


def _frame(payload: bytes, is_text: bool) -> bytes:
    """A message as clients send it. Its mask is zero, so the payload stays as it is."""
    n, kind = len(payload), 0x81 if is_text else 0x82
    if n < 126:
        return struct.pack("!BB4x", kind, 0x80 | n) + payload
    if n < 1 << 16:
        return struct.pack("!BBH4x", kind, 0x80 | 126, n) + payload
    return struct.pack("!BBQ4x", kind, 0x80 | 127, n) + payload


def _read_head(data: bytes) -> tuple[list[bytes], bytes]:
    head, end, rest = data.partition(b"\r\n\r\n")
    return ([head], rest) if end else ([], data)


def _read_frames(data: bytes) -> tuple[list[bytes], bytes]:
    made, place = [], 0
    while place + 2 <= len(data):
        n, start = data[place + 1], place + 2
        if n == 126:
            n, start = int.from_bytes(data[start : start + 2], "big"), start + 2
        elif n == 127:
            n, start = int.from_bytes(data[start : start + 8], "big"), start + 8
        if start + n > len(data) or start > len(data):
            break
        if data[place] & 0x0F in (1, 2):  # not a ping
            made.append(data[start : start + n])
        place = start + n
    return made, data[place:]
