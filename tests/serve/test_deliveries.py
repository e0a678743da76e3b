"""Events of sets as webhooks: at least once, in the background, with dead letters and a status."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
import time
from urllib.parse import quote

import pytest
from delivery.receiver import answer, serve, stall
from serve.conftest import SCHEMA, with_alerts
from serve.test_rows import ROWS, row

from vedette.delivery.signing import Secret
from vedette.serve.deliveries.delivery_file import DeliveryFile

PATH = "/v1/sets/alerts/deliveries"
LOCAL = {"allow_addresses": ("127.0.0.0/8",)}
SECRET = "whsec_" + "c2VjcmV0" * 8


@pytest.fixture
def served(open_client):
    return with_alerts(open_client(**LOCAL))


def wait_until(client, is_true):
    """Let the service work until something is true."""
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        client.run(asyncio.sleep(0.01))


def put(client, url, name="hook", **options):
    answered = client.put(f"{PATH}/{name}", json={"url": url, "time_limit": "5 seconds", **options})
    assert answered.status_code == 200, answered.text
    return answered.json()


def status(client, name="hook"):
    return client.get(f"{PATH}/{name}").json()["status"]


def send(client, *rows):
    answered = client.post(ROWS, json=list(rows))
    assert answered.status_code == 200, answered.text
    return [event["event_id"] for event in answered.json()["events"]]


def test_events_are_sent_filtered_grouped_and_signed(served, monkeypatch):
    monkeypatch.setenv("VEDETTE_WEBHOOK_SECRET", SECRET)
    send(served, row("old", 35, 0))  # before the delivery
    with serve() as all_events, serve() as of_ann:
        put(served, all_events.url, secret_env="VEDETTE_WEBHOOK_SECRET", group_by="owner")
        put(served, of_ann.url, "ann", owner="ann", events=["enter"])
        ids = send(served, row("IBM", 35, 1), row("SAP", 35, 2)) + send(served, row("IBM", 45, 3))
        wait_until(served, lambda: len(all_events.ids) == len(ids) and of_ann.ids)

        assert sorted(all_events.ids) == sorted(ids)
        groups = [json.loads(got.body) for got in all_events.accepted]
        assert all({event["owner"] for event in each["events"]} == {each["group"]} for each in groups)
        events = [event for got in of_ann.accepted for event in json.loads(got.body)["events"]]
        assert {(event["owner"], event["event"]) for event in events} == {("ann", "enter")}
        got = all_events.accepted[0]
        expected = Secret.find("VEDETTE_WEBHOOK_SECRET", None).sign(
            got.headers["webhook-id"], int(got.headers["webhook-timestamp"]), got.body
        )
        assert got.headers["webhook-signature"] == expected
        wait_until(served, lambda: status(served)["lag"] == 0)
        assert status(served)["sent"] == len(ids)
    assert SECRET not in served.get(PATH).text


def test_a_restart_sends_what_is_not_settled_and_nothing_else(open_client, monkeypatch):
    client = with_alerts(open_client(**LOCAL))
    with serve(lambda number: None if number == 0 else stall(60)) as receiver:
        put(client, receiver.url, timeout="50 seconds", time_limit="1 minute")
        first = send(client, row("IBM", 35, 1))
        wait_until(client, lambda: receiver.ids == first and status(client)["lag"] == 0)
        second = send(client, row("IBM", 45, 2))
        wait_until(client, lambda: len(receiver.requests) == 2)  # it has no answer
        client.close()
        receiver.behave = lambda number: None
        client = open_client(**LOCAL)
        wait_until(client, lambda: len(receiver.ids) >= len(first + second))

        assert receiver.ids == first + second


def test_a_failing_receiver_delays_nobody_and_its_events_are_dead_letters(served):
    with serve(lambda number: answer(500)) as broken, serve() as fine:
        put(served, broken.url, "broken", attempts=1)
        put(served, fine.url, "fine")
        ids = send(served, row("IBM", 35, 1))
        wait_until(served, lambda: fine.ids == ids and status(served, "broken")["dead"] == len(ids))
        letters = served.get("/v1/dead-letters").json()

        assert sorted(letter["id"] for letter in letters) == sorted(ids)
        assert {(letter["source"], letter["status"]) for letter in letters} == {("serve/alerts/broken", 500)}
        assert "/hook" not in json.dumps([letter["host"] for letter in letters])
        failing = status(served, "broken")
        assert failing["failing_since"]
        assert "answered 500" in failing["last_error"]

        assert served.post("/v1/dead-letters/retry", json={}).json() == {"delivered": 0, "failed": len(ids)}
        broken.behave = lambda number: None
        chosen = {"source": "serve/alerts/broken", "ids": ids[:1]}
        assert served.post("/v1/dead-letters/retry", json=chosen).json() == {"delivered": 1, "failed": 0}
        assert broken.ids == ids[:1]
        refused = served.post("/v1/dead-letters/drop", json={})
        assert refused.status_code == 400
        assert served.post("/v1/dead-letters/drop", json={"ids": ids}).json() == {"dropped": len(ids) - 1}
        assert served.get("/v1/dead-letters").json() == []


def test_addresses_that_the_service_does_not_allow_are_refused(open_client):
    client = with_alerts(open_client(**LOCAL))
    with serve() as receiver:
        put(client, receiver.url)
        client.close()
        client = open_client()  # which does not allow it any more
        send(client, row("IBM", 35, 1))
        wait_until(client, lambda: status(client)["dead"])

        assert "is not public" in status(client)["last_error"]
        assert receiver.requests == []


def test_deliveries_are_changed_and_deleted(served):
    with serve() as first, serve() as second:
        put(served, first.url)
        put(served, second.url)
        ids = send(served, row("IBM", 35, 1))
        wait_until(served, lambda: second.ids == ids)
        assert first.requests == []
        assert [each["name"] for each in served.get(PATH).json()] == ["hook"]
        assert served.delete(f"{PATH}/hook").status_code == 204
        send(served, row("IBM", 45, 2))

        assert second.ids == ids
        assert served.get(f"{PATH}/hook").status_code == 404
        assert served.delete(f"{PATH}/hook").status_code == 404


def test_a_delivery_that_is_deleted_while_its_place_is_written_stays_deleted(served, tmp_path, monkeypatch):
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()
    write = DeliveryFile.write

    def write_slowly(self, *content):
        begun.set()
        goes_on.wait(20)
        write(self, *content)
        ended.set()

    with serve() as receiver:
        put(served, receiver.url)
        assert len(list(tmp_path.glob("state/*.deliveries/*"))) == 1
        monkeypatch.setattr(DeliveryFile, "write", write_slowly)
        send(served, row("IBM", 35, 1))
        wait_until(served, begun.is_set)
        threading.Timer(0.1, goes_on.set).start()
        assert served.delete(f"{PATH}/hook").status_code == 204
        assert ended.wait(20)

        assert list(tmp_path.glob("state/*.deliveries/*")) == []


def test_a_delivery_that_cannot_be_started_goes_on_from_its_place_once_it_is_valid(open_client, monkeypatch):
    monkeypatch.setenv("VEDETTE_WEBHOOK_SECRET", SECRET)
    client = with_alerts(open_client(**LOCAL))
    with serve() as receiver, serve() as other:
        put(client, receiver.url, secret_env="VEDETTE_WEBHOOK_SECRET")
        put(client, other.url, "other")
        client.close()
        monkeypatch.delenv("VEDETTE_WEBHOOK_SECRET")
        client = open_client(**LOCAL)
        ids = send(client, row("IBM", 35, 1))
        wait_until(client, lambda: other.ids == ids)
        assert [each["name"] for each in client.get(PATH).json()] == ["other"]
        assert receiver.requests == []

        put(client, receiver.url)
        wait_until(client, lambda: receiver.ids == ids)


@pytest.mark.parametrize("name", ["é" * 100, "a b", "%2e%2e", "😀" * 100])
def test_names_of_deliveries_are_any_text_of_100_characters(served, name):
    path = f"{PATH}/{quote(name)}"

    assert served.put(path, json={"url": "https://example.com"}).json()["name"] == name
    assert served.get(path).json()["name"] == name
    assert served.delete(path).status_code == 204


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ({"url": "ftp://example.com"}, 400, "scheme"),
        ({"url": "https://a:b@example.com/"}, 400, "password"),
        ({"url": "https://example.com", "secret_env": "HOME"}, 400, "VEDETTE_WEBHOOK_"),
        ({"url": "https://example.com", "secret_env": "VEDETTE_WEBHOOK_NO"}, 400, "no such variable"),
        ({"url": "https://example.com", "timeout": "soon"}, 400, "timeout"),
        ({"url": "https://example.com", "allow_addresses": ["10.0.0.0/8"]}, 422, "allow_addresses"),
        ({}, 422, "url"),
        (
            {"url": "http://127.0.0.1:9/"},
            400,
            "url is of the address 127.0.0.1, which is not public; start the service",
        ),
        ({"url": "http://localhost:9/"}, 400, "url is of the address 127.0.0.1, which is not public"),
        ({"url": "http://a.localhost./"}, 400, "which is not public"),
        ({"url": "http://[::1]/"}, 400, "url is of the address ::1, which is not public"),
        ({"url": "http://169.254.169.254/"}, 400, "which is not public"),
        ({"url": "http://2130706433/"}, 400, "url is of the address 127.0.0.1, which is not public"),
        ({"url": "https://example.com", "events": []}, 400, "events must have at least one type; leave it out"),
        (
            {"url": "https://example.com", "events": ["enter", "exits"]},
            400,
            "events has 'exits'; events of this set are: exit, enter, cross; did you mean 'exit'?",
        ),
        (
            {"url": "https://example.com", "group_by": "ownr"},
            400,
            "group_by is 'ownr'; events of this set have: sequence, key, time, query, event, reason, price, owner, "
            "event_id; did you mean 'owner'?",
        ),
    ],
)
def test_invalid_deliveries_are_refused(alerts, options, status, said):
    answered = alerts.put(f"{PATH}/hook", json=options)

    assert answered.status_code == status
    assert said in answered.text
    assert "a:b" not in answered.text
    assert alerts.get(PATH).json() == []


def test_a_set_without_events_has_no_deliveries(client):
    client.post("/v1/sets", json={"name": "m", "schema": SCHEMA})
    answered = client.put("/v1/sets/m/deliveries/hook", json={"url": "https://example.com"})

    assert answered.status_code == 409


def test_a_delivery_that_cannot_be_changed_continues_as_before(served, monkeypatch):
    with serve() as receiver:
        put(served, receiver.url)

        def fail(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as disk:
            disk.setattr(DeliveryFile, "write", fail)
            for name in ("hook", "new"):
                refused = served.put(f"{PATH}/{name}", json={"url": "https://example.com/other"})
                assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        ids = send(served, row("IBM", 35, 1))
        wait_until(served, lambda: len(receiver.ids) == len(ids))

        assert [(each["name"], each["url"]) for each in served.get(PATH).json()] == [("hook", receiver.url)]


def test_a_stored_delivery_is_found_while_the_service_starts(open_client, monkeypatch):
    client = with_alerts(open_client())
    put(client, "https://example.com/hook")
    client.close()

    client = open_client()  # nothing of it has run yet

    assert client.get(f"{PATH}/hook").json()["name"] == "hook"
    monkeypatch.setattr("vedette.serve.deliveries.deliveries._START_SECONDS", 0.01)
    client.service.deliveries._started.clear()  # as while the registry does not answer
    waiting = client.get(PATH)
    assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "1")


def test_groups_of_joins_are_fields_of_their_events(client):
    schema = "id string, price double, ts timestamp"
    client.post("/v1/sets", json={"name": "j", "kind": "window join", "schema": {"left": schema, "right": schema}})
    path = "/v1/sets/j/deliveries/hook"
    assert (
        client.put(path, json={"url": "https://example.com", "group_by": "later"}).status_code == 200
    )  # not known yet
    client.put("/v1/sets/j/monitor", json={"time": "ts", "id": "id", "columns": {"left": ["price"]}})

    def status_of(field):
        return client.put(path, json={"url": "https://example.com", "group_by": field}).status_code

    assert [status_of(each) for each in ("left", "left_price", "right_price", "price")] == [200, 200, 400, 400]
    assert client.put(path, json={"url": "https://example.com", "events": ["enter"]}).status_code == 400
    assert client.put(path, json={"url": "https://example.com", "events": ["pair"]}).status_code == 200
