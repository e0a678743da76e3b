"""A client of the service that sends the rows of the demo until it is stopped. It uses HTTP, as any client does."""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from vedette.serve.demo.live_fleet import LiveFleet
from vedette.serve.demo.live_market import LiveMarket
from vedette.serve.demo.live_sea import LiveSea

EVERY_SECONDS = 0.25
TICKS = 25  # each time: a hundred a second
PARTS = 4  # a truck reports once in so many times
MONITORS: dict[str, dict[str, Any]] = {
    "market": {"key": "symbol", "time": "ts", "columns": ["price", "volume"]},
    "fleet": {"key": "truck", "time": "ts", "columns": ["lon", "lat", "load"], "metadata": ["kind"]},
    "sea": {"max_update_interval": "60 seconds", "expire_overdue": True, "metadata": ["kind"], "clock": "wall"},
}
_log = logging.getLogger(__name__)


class Simulator(threading.Thread):
    """Sends rows to the sets `market`, `fleet` and `sea` of a service."""

    def __init__(self, address: str, market: LiveMarket, fleet: LiveFleet, sea: LiveSea) -> None:
        super().__init__(name="vedette-demo", daemon=True)
        self._host = urlsplit(address).netloc
        self._market, self._fleet, self._sea = market, fleet, sea
        self._ended = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._has_failed = False

    def stop(self) -> None:
        """End it, and wait until it has ended."""
        self._ended.set()
        self.join(10)

    def run(self) -> None:
        for name, options in MONITORS.items():
            self._send("PUT", f"/v1/sets/{name}/monitor", options)
        turn, last = 0, time.monotonic()
        while not self._ended.wait(max(0.0, last + EVERY_SECONDS - time.monotonic())):
            passed, last = time.monotonic() - last, time.monotonic()
            self._fleet.drive(min(passed, 1.0))
            self._sea.sail(passed)
            now = datetime.now(UTC)
            which = np.arange(turn % PARTS, len(self._fleet.names), PARTS)
            self._send("POST", "/v1/sets/fleet/rows", self._fleet.reports(which, now))
            self._send("POST", "/v1/sets/market/rows", self._market.ticks(TICKS, now))
            if sailed := self._sea.reports(now.timestamp()):
                self._send("POST", "/v1/sets/sea/rows", sailed)
            turn += 1

    def _send(self, method: str, path: str, content: Any) -> None:
        """Send a request. A failure is logged once: somebody may have deleted the set."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._host, timeout=60)
            headers = {"Content-Type": "application/json"}
            self._connection.request(method, path, json.dumps(content), headers)
            answer = self._connection.getresponse()
            text = answer.read()
            if answer.status >= 400 and not self._has_failed:
                self._has_failed = True
                _log.warning("the demo could not send rows: %s", text.decode(errors="replace")[:500])
        except (OSError, http.client.HTTPException):  # the service stops
            if self._connection is not None:
                self._connection.close()
            self._connection = None
