"""A receiver of webhooks on the loopback: it remembers what it got, and misbehaves as a test says."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler"], None]


@dataclass
class Got:
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def ids(self) -> list[str]:
        return [event["event_id"] for event in json.loads(self.body)["events"]]


@dataclass
class Receiver:
    """`behave` gets the number of the request, from 0, and returns what to do; None is to answer 200."""

    url: str
    behave: Callable[[int], Behaviour | None] = lambda number: None
    requests: list[Got] = field(default_factory=list)  # all
    accepted: list[Got] = field(default_factory=list)  # those that were answered with 200
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ids(self) -> list[str]:
        """The ids of events that were accepted, in order, with repetitions."""
        return [each for got in self.accepted for each in got.ids]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        got = Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        with self.receiver.lock:
            number = len(self.receiver.requests)
            self.receiver.requests.append(got)
        behaviour = self.receiver.behave(number)
        if behaviour is not None:
            behaviour(self)
            return
        with self.receiver.lock:
            self.receiver.accepted.append(got)
        answer(200)(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def answer(status: int, content: bytes = b"", **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return behave


def stall(seconds: float) -> Behaviour:
    def behave(handler: Handler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return behave


def reset(handler: Handler) -> None:
    """Close the connection with a reset instead of an end."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def write_raw(pieces: Callable[[], Iterator[bytes]]) -> Behaviour:
    """Answer with these bytes, until the client has had enough."""

    def behave(handler: Handler) -> None:
        handler.close_connection = True
        try:
            for piece in pieces():
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            pass

    return behave


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients go away


@contextmanager
def serve(behave: Callable[[int], Behaviour | None] = lambda number: None, port: int = 0) -> Iterator[Receiver]:
    handler = type("Handler", (Handler,), {})
    server = _Server(("127.0.0.1", port), handler)
    handler.receiver = receiver = Receiver(f"http://127.0.0.1:{server.server_port}/hook", behave)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
