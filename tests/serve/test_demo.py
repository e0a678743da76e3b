"""`vedette serve --demo`: one command, and rows move; when it is stopped, nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest

import vedette as vd
from tests.ports import free_port
from vedette.serve.demo import live_fleet, live_market
from vedette.serve.demo.live_fleet import LiveFleet
from vedette.serve.demo.live_market import LiveMarket
from vedette.serve.demo.live_sea import HEIGHT, WIDTH, LiveSea


def test_the_queries_of_the_demo_are_valid_and_distinct():
    for schema, queries in (
        (live_market.SCHEMA, LiveMarket(7).alerts(300)),
        (live_fleet.SCHEMA, LiveFleet(7, 5).zones(300)),
    ):
        held = vd.QuerySet(schema)
        for query in queries:
            given = dict(query)
            held.add(given.pop("id"), given.pop("where"), **given)
        assert len(held) == 300


def test_trucks_drive_and_prices_stay_near_their_openings():
    fleet, market = LiveFleet(7, 50), LiveMarket(7)
    now = datetime(2026, 3, 2, tzinfo=UTC)
    before = fleet.reports(np.arange(50), now)
    for _ in range(400):
        fleet.drive(0.25)
        ticks = market.ticks(40, now)
    after = fleet.reports(np.arange(50), now)

    moved = [
        abs(old["lon"] - new["lon"]) + abs(old["lat"] - new["lat"]) for old, new in zip(before, after, strict=True)
    ]
    assert np.median(moved) > 0.3
    assert all(-6 < each["lon"] < 24 and 38 < each["lat"] < 58 for each in after)
    openings = dict(zip(live_market.SYMBOLS, market.openings, strict=True))
    assert all(0.7 < tick["price"] / openings[tick["symbol"]] < 1.4 for tick in ticks)


def test_vessels_report_when_they_turn_and_are_where_their_last_report_says():
    sea, last, n_rows = LiveSea(7, 40), {}, []
    for step in range(400):
        sea.sail(0.25)
        now = 1000 + step / 4
        rows = sea.reports(now)
        n_rows.append(len(rows))
        last |= {row["id"]: row for row in rows}
        for vessel, name in enumerate(sea.names):
            row = last[name]
            passed = now - row["time"]
            assert passed <= 20.25
            expected = (row["x_low"] + row["x_high"]) / 2 + row["vx"] * passed
            assert sea._at[vessel][0] == pytest.approx(expected, abs=0.01)
            assert -1 < sea._at[vessel][0] < WIDTH + 1
            assert -1 < sea._at[vessel][1] < HEIGHT + 1
    assert n_rows[0] == 40
    assert np.mean(n_rows[1:]) < 2


def test_the_areas_of_the_sea_are_valid_and_distinct():
    zones = vd.ZoneSet()
    for area in LiveSea(7, 5).areas(36):
        given = dict(area)
        zones.add(given.pop("id"), **given)
    assert len(zones) == 36


@pytest.mark.full
def test_the_demo_moves_and_leaves_nothing(tmp_path):
    port = free_port()
    command = [sys.executable, "-c", "from vedette.cli import main; main()", "serve", "--demo", "--no-open"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([*command, "--port", str(port)], env=environment, cwd=tmp_path)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            deadline, sets = time.monotonic() + 60, []
            while not (len(sets) == 3 and all(each["sequence"] for each in sets)):
                assert time.monotonic() < deadline, sets
                time.sleep(0.2)
                try:
                    sets = client.get("/v1/status").json()["sets"]
                except httpx.TransportError:
                    continue
            assert sum(each["queries"] for each in sets) == 10_036
            sea = client.get("/v1/sets/sea/objects", params={"limit": 1000}).json()
            assert sea["total"] == 60
            assert any(each["start"] > sea["time"] for each in sea["pairs"])
            assert len(list(tmp_path.glob("vedette-demo-*"))) == 1
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert list(tmp_path.glob("vedette-demo-*")) == []


@pytest.mark.full
def test_a_demo_that_is_stopped_before_it_serves_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", "from vedette.cli import main; main()", "serve", "--demo", "--no-open"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([*command, "--port", str(free_port())], env=environment, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("vedette-demo-*/demo.db")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.terminate()
    assert process.wait(60) == 0
    assert list(tmp_path.glob("vedette-demo-*")) == []


@pytest.mark.parametrize("option", ["--registry", "--state"])
def test_the_demo_keeps_nothing_elsewhere(option, monkeypatch, capsys):
    from vedette.cli import main

    monkeypatch.setattr(sys, "argv", ["vedette", "serve", "--demo", option, "x"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "of its own" in capsys.readouterr().err
