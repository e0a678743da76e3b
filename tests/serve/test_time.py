"""Time that passes without rows: by a request, or by the clock of the service. It is repeated after a restart."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from serve.conftest import SCHEMA
from serve.test_rows import row

PATH = "/v1/sets/alerts"
START = datetime(2026, 3, 2, tzinfo=UTC)


def at(minute):
    return f"{(START + timedelta(minutes=minute)).isoformat()}"


def with_monitor(client, query=None, **options):
    client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})
    client.post(f"{PATH}/queries", json=query or {"id": "cheap", "where": "price < 40", "metadata": {"owner": "ann"}})
    made = client.put(f"{PATH}/monitor", json={"key": "symbol", "time": "ts", **options})
    assert made.status_code == 201, made.text
    return client


def advance(client, minute):
    answer = client.post(f"{PATH}/advance", json={"time": at(minute)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def shown(events):
    return [(event["key"], event["query"], event["event"], event["time"][11:16]) for event in events]


def feed(client):
    return [json.loads(event.text) for event in client.service.live["alerts"].feed.after(0, 10**9)]


def test_dwell_expiry_and_now_fire_when_time_passes(client):
    with_monitor(client, dwell="5 minutes", expire_after="1 hour")
    assert client.post(f"{PATH}/rows", json=row("IBM", 35, 0)).json()["events"] == []

    assert advance(client, 4)["events"] == []
    entered = advance(client, 6)
    expired = advance(client, 90)

    assert (entered["rows"], entered["sequence"]) == (0, 1)
    assert shown(entered["events"]) == [("IBM", "cheap", "enter", "00:05")]
    assert shown(expired["events"]) == [("IBM", "cheap", "exit", "01:00")]
    assert advance(client, 10)["events"] == []  # time does not go back


def test_bounds_with_now_move(client):
    with_monitor(client, {"id": "recent", "where": "ts > now() - INTERVAL 10 MINUTES"})
    assert shown(client.post(f"{PATH}/rows", json=row("IBM", 35, 0)).json()["events"]) == [
        ("IBM", "recent", "enter", "00:00")
    ]
    assert shown(advance(client, 11)["events"]) == [("IBM", "recent", "exit", "00:10")]


def test_time_that_has_passed_is_repeated_after_a_crash(open_client, monkeypatch):
    monkeypatch.setattr("vedette.serve.live_set.LiveSet._close", lambda live: live.monitor.close())  # as kill -9
    client = with_monitor(open_client(), dwell="5 minutes")
    client.post(f"{PATH}/rows", json=row("IBM", 35, 0))
    advance(client, 6)
    client.post(f"{PATH}/rows", json=row("SAP", 35, 7))
    before = feed(client)
    client.close()
    client = open_client()
    after = advance(client, 20)

    assert len(before) == 1
    assert feed(client)[:1] == before
    assert shown(after["events"]) == [("SAP", "cheap", "enter", "00:12")]
    assert after["sequence"] == 2


def test_the_clock_of_the_service_lets_time_pass_after_a_delay(open_client, monkeypatch):
    client = with_monitor(open_client(tick_seconds=3600), dwell="5 minutes", clock="wall", delay="10 seconds")
    client.post(f"{PATH}/rows", json=row("IBM", 35, 0))

    def tick(minute):
        monkeypatch.setattr(time, "time", lambda: START.timestamp() + 60 * minute)

        async def settle():
            await asyncio.gather(*client.service.tick())

        client.run(settle())
        return shown(feed(client))

    assert tick(5.1) == []
    assert tick(5.2) == [("IBM", "cheap", "enter", "00:05")]
    client.close()
    client = open_client(tick_seconds=3600)
    client.post(f"{PATH}/rows", json=row("IBM", 45, 6))  # opens the set; without rows, the service does at its start
    assert client.service.live["alerts"].wall_clock.delay == 10
    client.post(f"{PATH}/rows", json=row("SAP", 30, 7))
    assert [each[0] for each in tick(13)] == ["IBM", "IBM", "SAP"]


def test_many_moments_are_followed_by_a_snapshot(open_client, monkeypatch):
    monkeypatch.setattr("vedette.serve.live_set._MOMENTS", 3)
    client = with_monitor(open_client())
    for minute in range(6):
        advance(client, minute)
    (log,) = client.service.options.state.glob("*/rows-*.log")

    assert log.name == "rows-4.log"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"time": "no time"}, 400), ({"time": True}, 422), ({"time": None}, 422), ({}, 422), ({"time": 1e400}, 422),
        ({"time": [1]}, 422), ({"time": 2**70}, 400), ({"time": "x" * 200}, 422), ({"time": "\ud800"}, 422),
    ],
)  # fmt: skip
def test_times_that_are_none_are_refused(client, body, status):
    with_monitor(client)
    answer = client.post(
        f"{PATH}/advance", content=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )

    assert answer.status_code == status, answer.text
    assert not feed(client)


def test_a_clock_needs_timestamps(client):
    client.post("/v1/sets", json={"name": "n", "kind": "border", "schema": "k string, t bigint"})
    refused = client.put("/v1/sets/n/monitor", json={"key": "k", "time": "t", "clock": "wall"})
    late = client.put("/v1/sets/n/monitor", json={"key": "k", "time": "t", "clock": "wall", "delay": "900 days"})
    assert (refused.status_code, late.status_code) == (400, 400)
    assert "needs times that are timestamps" in refused.text
    client.post("/v1/sets", json={"name": "b", "kind": "band join"})
    assert client.put("/v1/sets/b/monitor", json={}).status_code == 201
    assert client.post("/v1/sets/b/advance", json={"time": 5}).status_code == 409
    client.post("/v1/sets", json={"name": "z", "kind": "moving join"})
    assert client.put("/v1/sets/z/monitor", json={"max_update_interval": 60, "clock": "wall"}).status_code == 201
    assert client.post("/v1/sets/z/advance", json={"time": 5}).json()["events"] == []
