"""The streams of events and the sockets for rows: how they begin, what they skip, and how they end."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from serve.conftest import Socket
from serve.test_rows import ROWS, row

import vedette as vd
from vedette.serve.access import LOCAL
from vedette.serve.event_feed import Chunk, Event, EventFeed, EventFilter
from vedette.serve.routes import rows
from vedette.serve.routes.events import read_on

EVENTS = "/v1/sets/alerts/events"


def test_a_client_that_goes_while_its_answers_wait_is_no_longer_counted(alerts, monkeypatch):
    monkeypatch.setattr(rows, "_MOST_UNANSWERED", 2)

    class Gone(Socket):
        async def send(self, message):
            if message["type"] == "websocket.send":
                raise OSError("the client has gone")

    socket = Gone(alerts, f"{ROWS}/ws")
    for minute in range(10):
        socket.put("receive", text=json.dumps(row("IBM", 35, minute)))
    alerts.run(socket.end())

    assert alerts.service.n_streams == 0


def test_bytes_from_a_client_that_follows_events_mean_nothing(alerts):
    socket = Socket(alerts, f"{EVENTS}/ws")
    socket.put("receive", bytes=b"x")
    alerts.run(socket.wait_for(1))
    alerts.post(ROWS, json=row("SAP", 35, 0))
    alerts.run(socket.wait_for(2))

    socket.put("disconnect")
    alerts.run(socket.end())

    assert json.loads(socket.sent[1]["text"])["query"] == "cheap"
    assert alerts.service.n_streams == 0
    assert not alerts.service.live["alerts"].feed._waiting


@pytest.mark.parametrize("path", ["rows/ws", "events/ws"])
def test_a_socket_is_refused_while_the_registry_cannot_be_reached(alerts, monkeypatch, path):
    alerts.post("/v1/sets", json={"name": "other", "kind": "border", "schema": "x double"})

    def fail(*_):
        raise vd.RegistryError("the database is away", is_retryable=True)

    for name in ("follow", "end_due"):
        monkeypatch.setattr(vd.Registry, name, fail)
    socket = Socket(alerts, f"/v1/sets/other/{path}")
    alerts.run(socket.end())

    (closed,) = socket.sent
    assert (closed["type"], closed["code"], closed["reason"]) == ("websocket.close", 4503, "the database is away")


@pytest.mark.parametrize("given", ["9" * 5000, str(2**63), "-1", "x", ""])
def test_a_sequence_number_that_is_none_is_refused(alerts, given):
    refused = alerts.get(EVENTS, headers={"last-event-id": given})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_id")

    socket = Socket(alerts, f"{EVENTS}/ws?after={given}")
    alerts.run(socket.end())
    assert [each["code"] for each in socket.sent] == [4400]


def test_an_owner_named_none_does_not_get_the_events_of_queries_without_an_owner():
    ownerless = Event(1, {"query": 7, "owner": None}, b"")

    assert not EventFilter(owner="None").accepts(ownerless)
    assert EventFilter(query="7").accepts(ownerless)


def test_events_that_are_dropped_while_a_client_reads_are_a_gap(alerts):
    class Busy(EventFeed):
        def after(self, sequence, most=1000):
            if self.next == 2:  # a step of three events, just before this read
                self.append(Chunk(2, pa.table({"query": ["a", "b", "c"]})))
            return super().after(sequence, most)

    feed = Busy(2)
    feed.append(Chunk(1, pa.table({"query": ["a"]})))
    feed.is_closed = True

    async def read():
        return [each async for each in read_on(alerts.service, LOCAL, feed, EventFilter(), 0)]

    start, gap, *events = alerts.run(read())
    assert (start, gap) == (None, {"from": 1, "to": 1})
    assert [event.sequence for event in events] == [2, 3, 4]
