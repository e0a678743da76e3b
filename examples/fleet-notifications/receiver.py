"""A small receiver of webhooks: it verifies signatures, remembers ids, and shows what came.

It is as unreliable as real ones: it answers some requests with 503 or 429, and closes some connections without an
answer, sometimes after it has taken the events.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Inbox:
    """What the receiver has: each event once, and what became of each request."""

    secret: bytes
    events: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id
    requests: list[tuple[str, str, int]] = field(default_factory=list)  # group, what happened, number of events
    n_repeated: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, headers: Any, body: bytes) -> dict[str, Any]:
        """Verify a request and keep its new events. Raises ValueError if it is not signed with the secret."""
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = "v1," + base64.b64encode(hmac.digest(self.secret, signed, hashlib.sha256)).decode()
        if not hmac.compare_digest(expected, headers["webhook-signature"] or ""):
            raise ValueError("wrong signature")
        if abs(time.time() - int(headers["webhook-timestamp"])) > 300:
            raise ValueError("too old")
        content: dict[str, Any] = json.loads(body)
        for event in content["events"]:
            self.n_repeated += event["event_id"] in self.events
            self.events.setdefault(event["event_id"], event | {"group": content["group"]})
        return content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    inbox: Inbox
    chance: random.Random
    is_loud = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.inbox.lock:
            luck = self.chance.choice(["taken"] * 6 + ["503", "429", "no answer", "taken, no answer"])
            group, n_events = json.loads(body)["group"], 0
            if luck.startswith("taken"):
                n_events = len(self.inbox.take(self.headers, body)["events"])
            self.inbox.requests.append((group, luck, n_events))
        if self.is_loud:
            print(f"  POST for {group:5} {luck:17} {n_events or '':>4}")
        if luck.endswith("no answer"):
            self.close_connection = True
            return
        self.send_response(200 if luck == "taken" else int(luck))
        self.send_header("Content-Length", "0")
        if luck == "429":
            self.send_header("Retry-After", "1")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def receive(secret: str, seed: int, is_loud: bool = True) -> Iterator[tuple[str, Inbox]]:
    """The URL of a receiver on the loopback, and its inbox."""
    inbox = Inbox(secret.encode())
    facts = {"inbox": inbox, "chance": random.Random(seed), "is_loud": is_loud}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), facts))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/notify", inbox
    finally:
        server.shutdown()
        server.server_close()
