"""Ticks in from a real Kafka, events out to it: alerts change while it runs, and it is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import vedette as vd

N = 20  # seconds of market between two changes


def walk(ticks, alerts):
    """The events of ticks in order: key, time and query with what happens. `alerts(second)` are those that stand."""
    inside, events = {}, []
    for place, (symbol, tick) in enumerate(ticks):
        before = inside.get(symbol, set())
        now = {name for name, holds in alerts(place).items() if holds(tick)}
        events += [(symbol, tick["ts"], name, "exit") for name in before - now]
        events += [(symbol, tick["ts"], name, "enter") for name in now - before]
        inside[symbol] = now
    return sorted(events)


def shown(events):
    """Each event once: Kafka as a sink may have one twice after a crash."""
    return sorted({(e["key"], e["time"].replace(".000Z", "+00:00"), e["query"], e["event"]) for e in events})


def vedette(*arguments):
    command = [sys.executable, "-c", "from vedette.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


@pytest.mark.timeout(3600)
def test_alerts_change_while_it_runs_and_nothing_is_lost_when_it_is_killed(broker, example, tmp_path):
    _, market = example
    url = f"sqlite:///{tmp_path}/alerts.db"
    vedette("set", "create", "alerts", "--kind", "border", "--schema", market.SCHEMA, "--registry", url)
    vedette("query", "add", "expensive-ibm", "symbol = 'IBM' AND price > 105", "--registry", url)
    environment = {
        "BROKER": broker.address,
        "VEDETTE_REGISTRY": url,
        "KAFKA_JARS": str(broker.jars),
        "FOLDER": str(tmp_path),
    }
    for topic in ("ticks", "events"):
        broker.create(topic, partitions=2)
    out = broker.follow("events")
    file = tmp_path / "pipeline.toml"
    file.write_text(market.FILE.read_text().replace("[operator]\n", "[operator]\nshards = 2\n"))
    assert "shards" in file.read_text()
    ticks = [list(market.make_ticks(part * N, N)) for part in range(3)]

    broker.write("ticks", ticks[0])
    watcher = market.Watcher(file, environment, tmp_path / "log")
    watcher.wait_for_rows(2 * N)
    assert vedette("query", "add", "any-cheap", "price < 95", "--registry", url, "--csv").split() == [
        "set,id,version", "alerts,any-cheap,2"
    ]  # fmt: skip
    broker.write("ticks", ticks[1])
    watcher.wait_for_rows(4 * N)
    watcher.process.kill()
    watcher.process.wait()
    vd.Registry(url).remove("alerts", "expensive-ibm")
    broker.write("ticks", ticks[2])
    watcher = market.Watcher(file, environment, tmp_path / "log")
    watcher.wait_for_rows(2 * N)
    assert watcher.stop() == 0

    def alerts(place):
        standing = {
            "expensive-ibm": lambda tick: tick["symbol"] == "IBM" and tick["price"] > 105,
            "any-cheap": lambda tick: tick["price"] < 95,
        }
        gone = [] if 2 * N <= place < 4 * N else ["any-cheap" if place < 2 * N else "expensive-ibm"]
        return {name: holds for name, holds in standing.items() if name not in gone}

    expected = walk([tick for part in ticks for tick in part], alerts)
    until = time.monotonic() + 120
    while len(shown(market.read_events(out))) < len(expected) and time.monotonic() < until:
        time.sleep(0.1)
    events = market.read_events(out)
    assert shown(events) == expected
    assert {event["version"] for event in events if event["time"] >= ticks[2][0][1]["ts"][:19]} == {3}
    last = [record for record in watcher.records() if record["event"] == "batch"][-1]
    assert (last["lag_rows"], last["queries"], last["malformed"]) == (0, 1, 0)
