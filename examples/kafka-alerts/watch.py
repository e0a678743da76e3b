"""Price alerts over Kafka: ticks in, events out, alerts added while it runs, and a restart in the middle.

    python examples/kafka-alerts/watch.py

It starts its own broker, runs `vedette run`, and leaves no files behind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from broker import Broker, fetch

import vedette as vd

FILE = Path(__file__).with_name("pipeline.toml")
SCHEMA = "symbol string, price double, ts timestamp"
SYMBOLS = ("IBM", "SAP")
OPENING = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)


def make_ticks(first: int, n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ticks from the `first` second on, two in each: prices that go up and down between 90 and 110."""
    for second in range(first, first + n):
        for place, symbol in enumerate(SYMBOLS):
            price = round(100 + 10 * math.sin(second / 5 + place), 2)
            yield symbol, {"symbol": symbol, "price": price, "ts": (OPENING + timedelta(seconds=second)).isoformat()}


class Watcher:
    """`vedette run` in its own process."""

    def __init__(self, file: Path, environment: dict[str, str], log: Path) -> None:
        command = [sys.executable, "-c", "from vedette.cli import main; main()", "run", str(file), "--log", "json"]
        self.log = log
        self._from = log.stat().st_size if log.exists() else 0
        with log.open("ab") as log_file:
            self.process = subprocess.Popen(command, env=os.environ | environment, stderr=log_file)

    def records(self) -> list[dict[str, Any]]:
        """The log records since the start."""
        text = self.log.read_bytes()[self._from :].decode()
        return [
            json.loads(line) for line in text.splitlines(keepends=True) if line.startswith("{") and line.endswith("\n")
        ]

    def wait_until(self, done: Callable[[list[dict[str, Any]]], bool], seconds: float = 900) -> None:
        """Wait until the log records satisfy `done`."""
        until = time.monotonic() + seconds
        while not done(self.records()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the pipeline did not reach this point: {self.log.read_text()[-3000:]}")
            time.sleep(0.1)

    def wait_for_rows(self, n_rows: int) -> None:
        """Wait until this many rows have been read since the start."""
        self.wait_until(lambda records: sum(record.get("rows_in", 0) for record in records) >= n_rows)

    def stop(self) -> int:
        """Request a stop and wait for it. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=300)


def read_events(file: Path) -> list[dict[str, Any]]:
    """The events, read when no more have arrived for a second."""
    text, before = file.read_text(), None
    while text != before:
        time.sleep(1)
        text, before = file.read_text(), text
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="seconds of market data between two changes")
    n = parser.parse_args(arguments).seconds
    with tempfile.TemporaryDirectory(prefix="vedette-kafka-") as name:
        jars, folder = fetch(), Path(name)
        broker = Broker.start(jars, folder / "kafka")
        try:
            watch(broker, folder, n)
        finally:
            broker.stop()


def watch(broker: Broker, folder: Path, n: int) -> list[dict[str, Any]]:
    """Run the whole example. Returns the events."""
    for topic in ("ticks", "events"):
        broker.create(topic, partitions=2)
    url = f"sqlite:///{folder / 'alerts.db'}"
    registry = vd.Registry(url)
    registry.create("alerts", kind="border", schema=SCHEMA)
    registry.add("alerts", "expensive-ibm", "symbol = 'IBM' AND price > 105")
    environment = {
        "BROKER": broker.address,
        "VEDETTE_REGISTRY": url,
        "KAFKA_JARS": str(broker.jars),
        "FOLDER": str(folder),
    }
    events = broker.follow("events")

    print(f"the market opens with {len(registry.list('alerts'))} alert")
    broker.write("ticks", make_ticks(0, n))
    watcher = Watcher(FILE, environment, folder / "log")
    watcher.wait_for_rows(2 * n)

    version = registry.add("alerts", "any-cheap", "price < 95")
    print(f"an alert is added while it runs: version {version}")
    broker.write("ticks", make_ticks(n, n))
    watcher.wait_for_rows(4 * n)

    print(f"the pipeline is stopped, exit code {watcher.stop()}; an alert is removed, and ticks still arrive")
    registry.remove("alerts", "expensive-ibm")
    broker.write("ticks", make_ticks(2 * n, n))
    watcher = Watcher(FILE, environment, folder / "log")
    watcher.wait_for_rows(2 * n)
    watcher.stop()

    found = read_events(events)
    for event in sorted(found, key=lambda event: (event["time"], event["key"], event["query"])):
        print("  {time}  {key:5} {event:5} {query:10} {reason:9} at version {version}".format(**event))
    return found


if __name__ == "__main__":
    main()
