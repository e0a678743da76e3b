"""The sets of the demo, in a registry of its own that is removed at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vedette.registry.registry import Registry
from vedette.serve.demo import live_fleet, live_market
from vedette.serve.demo.live_fleet import LiveFleet
from vedette.serve.demo.live_market import LiveMarket
from vedette.serve.demo.live_sea import LiveSea
from vedette.serve.demo.simulator import Simulator

N_ALERTS, N_ZONES, N_TRUCKS = 6_000, 4_000, 240
N_AREAS, N_VESSELS = 36, 60
_SEED = 7


@dataclass
class Demo:
    """A registry with the sets, a directory for the state of the service, and the client that sends rows."""

    folder: Path
    market: LiveMarket = field(default_factory=lambda: LiveMarket(_SEED))
    fleet: LiveFleet = field(default_factory=lambda: LiveFleet(_SEED, N_TRUCKS))
    sea: LiveSea = field(default_factory=lambda: LiveSea(_SEED, N_VESSELS))
    _simulator: Simulator | None = None

    @property
    def registry(self) -> str:
        return f"sqlite:///{self.folder / 'demo.db'}"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def fill(self, registry: Registry) -> None:
        """Create the sets with their queries."""
        sets = {
            "market": ("border", live_market.SCHEMA, self.market.alerts(N_ALERTS)),
            "fleet": ("border", live_fleet.SCHEMA, self.fleet.zones(N_ZONES)),
            "sea": ("moving join", None, self.sea.areas(N_AREAS)),
        }
        for name, (kind, schema, queries) in sets.items():
            registry.create(name, kind, schema)
            change = registry.change(name, author="demo")
            for query in queries:
                given = dict(query)
                change.add(given.pop("id"), given.pop("where", None), **given)
            change.commit()

    def start(self, address: str) -> None:
        """Begin to send rows to the service at this address."""
        self._simulator = Simulator(address, self.market, self.fleet, self.sea)
        self._simulator.start()

    def stop(self) -> None:
        if self._simulator is not None:
            self._simulator.stop()


@contextmanager
def open_demo() -> Iterator[Demo]:
    """A demo in a private folder, which is removed at the end, also if SIGTERM ends the process before it serves."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    folder = Path(tempfile.mkdtemp(prefix="vedette-demo-"))
    demo = Demo(folder)
    try:
        yield demo
    finally:
        demo.stop()
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)
