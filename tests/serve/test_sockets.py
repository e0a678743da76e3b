"""The streams of events and the sockets for rows: how they begin, what they skip, and how they end."""

from __future__ import annotations

import json

import httpx
import pyarrow as pa
import pytest
from serve.conftest import SCHEMA, Socket, with_alerts
from serve.test_rows import ROWS, row
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

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


def test_bodies_that_wait_are_bounded_together(open_client):
    client = with_alerts(open_client(max_waiting_bytes=500))
    body = b" " * 300 + json.dumps(row("IBM", 35, 0)).encode()
    headers = {"content-type": "application/json"}

    async def send_both():
        return await client.together(*[("POST", ROWS, {"content": body, "headers": headers})] * 2)

    found = client.run(send_both())

    assert sorted(each.status_code for each in found) == [200, 429]
    assert [each.json()["error"]["code"] for each in found if each.status_code == 429] == ["too_many_bytes"]
    assert client.service.n_body_bytes == 0
    assert client.post(ROWS, content=body, headers=headers).status_code == 200


def test_messages_of_a_socket_that_wait_are_bounded_with_them(open_client):
    client = with_alerts(open_client(max_waiting_bytes=100))
    socket = Socket(client, f"{ROWS}/ws")
    socket.put("receive", text=" " * 300 + json.dumps(row("IBM", 35, 0)))
    client.run(socket.wait_for(2))
    socket.put("disconnect")
    client.run(socket.end())

    assert json.loads(socket.sent[1]["text"])["error"]["code"] == "too_many_bytes"
    assert client.service.n_body_bytes == 0


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("/v1/sets/none/rows/ws", 404, "unknown_set"), (f"{EVENTS}/ws?after=x", 400, "invalid_id")],
)
def test_a_socket_that_is_refused_gets_the_reason_in_its_handshake(start_server, path, status, code):
    server = start_server()
    httpx.post(f"{server.url}/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})

    with pytest.raises(InvalidStatus) as caught, connect(server.url.replace("http", "ws") + path):
        pass

    assert caught.value.response.status_code == status
    assert json.loads(caught.value.response.body)["error"]["code"] == code
