"""`vedette serve` as a process: kill -9, streams over sockets, a graceful stop, and its log."""

from __future__ import annotations

import json
import random
import threading
import time

import httpx
import pytest
import websockets.sync.client
from serve.conftest import with_alerts
from serve.test_rows import ROWS, oracle, plain, random_rows, row

import vedette as vd


class Requests:
    """What `with_alerts` needs, over a socket."""

    def __init__(self, server, registry):
        self._client = httpx.Client(base_url=server.url, timeout=30)
        self.service = type("Service", (), {"registry": registry})
        for name in ("get", "post", "put", "patch", "delete"):
            setattr(self, name, getattr(self._client, name))

    def close(self):
        self._client.close()


def read_events(server, n, after=0, **filters):
    """So many events of the stream."""
    events = []
    headers = {"Last-Event-ID": str(after)}
    with httpx.stream(
        "GET", f"{server.url}/v1/sets/alerts/events", params=filters, headers=headers, timeout=20
    ) as stream:
        assert stream.status_code == 200
        for line in stream.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
                if len(events) == n:
                    return events
    return events


def send_until_killed(client, server, batches, seconds):
    """Send batches until another thread kills the server, so long after the first; returns how many were answered."""
    killer = threading.Timer(seconds, server.kill)
    n = 0
    try:
        for batch in batches:
            answer = client.post(ROWS, json=batch)
            assert answer.status_code == 200, answer.text
            n += 1
            if n == 1:
                killer.start()
    except httpx.TransportError:
        pass
    killer.join()
    return n


@pytest.mark.parametrize(
    ("rounds", "options"),
    [(1, ["--sync"]), pytest.param(6, [], marks=pytest.mark.full)],
)
def test_kill_9_loses_no_acknowledged_row_and_doubles_no_event(start_server, tmp_path, rounds, options):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    rows = random_rows(60_000, seed=5, n_keys=10)
    waiting = [rows[place : place + 5] for place in range(0, len(rows), 5)]
    server = start_server(*options)
    client = with_alerts(Requests(server, registry))
    applied = []
    some = random.Random(6)
    for _ in range(rounds):
        n = send_until_killed(client, server, waiting, some.uniform(0.3, 1.5))
        assert 0 < n < len(waiting)
        client.close()
        server = start_server(*options)
        client = Requests(server, registry)
        # The batch in flight was not acknowledged. It may be in the log or not; both are right.
        sequence = client.post(ROWS, json=[]).json()["sequence"]
        events = plain(read_events(server, sequence))
        candidates = [applied + waiting[:n], applied + waiting[: n + 1]]
        matching = [each for each in candidates if oracle(client, each) == events]
        assert matching, f"{len(events)} events after {n} batches"
        applied, waiting = matching[0], waiting[n:]
    for batch in waiting[:20]:
        assert client.post(ROWS, json=batch).status_code == 200
    sequence = client.post(ROWS, json=[]).json()["sequence"]
    assert plain(read_events(server, sequence)) == oracle(client, applied + waiting[:20])
    client.close()
    registry.close()


def test_streams_resume_filter_and_end_with_the_service(start_server, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    server = start_server("--log-requests")
    client = with_alerts(Requests(server, registry))
    rows = random_rows(60, seed=7)
    client.post(ROWS, json=rows[:30])
    first = read_events(server, 5)
    client.post(ROWS, json=rows[30:])
    sequence = client.post(ROWS, json=[]).json()["sequence"]

    assert plain(first + read_events(server, sequence - 5, after=first[-1]["sequence"])) == oracle(
        client, [rows[:30], rows[30:]]
    )
    of_ann = [event for event in read_events(server, sequence) if event["owner"] == "ann"]
    assert read_events(server, len(of_ann), owner="ann") == of_ann
    of_key = [event for event in of_ann if event["key"] == "IBM"]
    assert read_events(server, len(of_key), owner="ann", key="IBM") == of_key

    url = f"{server.url.replace('http', 'ws')}/v1/sets/alerts/events/ws?after={sequence - 3}"
    with websockets.sync.client.connect(url) as socket:
        assert [json.loads(socket.recv(10))["sequence"] for _ in range(3)] == [sequence - 2, sequence - 1, sequence]
        client.post(ROWS, json=row("new", 35, 700))
        assert json.loads(socket.recv(10))["key"] == "new"

    with websockets.sync.client.connect(f"{server.url.replace('http', 'ws')}{ROWS}/ws") as socket:
        for message in (json.dumps(row("pipe", 35, 701)), "{", json.dumps([row("pipe", 45, 702)]), b"no stream"):
            socket.send(message)
        answers = [json.loads(socket.recv(10)) for _ in range(4)]
    assert [[event["event"] for event in answer.get("events", [])] for answer in answers] == [
        ["enter"],
        [],
        ["exit"],
        [],
    ]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, "invalid_rows", None, "invalid_rows"]

    ended = []
    follower = threading.Thread(target=lambda: ended.extend(read_events(server, 10**6, after=sequence)))
    follower.start()
    time.sleep(0.3)
    assert server.stop() == 0
    follower.join(10)
    assert [event["key"] for event in ended] == ["new", "pipe", "pipe"]  # the stream has ended, not waited
    assert not list((tmp_path / "alerts.db.serve").glob("*/rows-0.log"))  # a snapshot was written
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert {"method", "path", "status", "milliseconds"} <= next(
        line for line in lines if line["message"] == "request"
    ).keys()
    client.close()
    registry.close()


def test_an_address_for_other_hosts_needs_a_token(run, tmp_path):
    url = f"sqlite:///{tmp_path / 'alerts.db'}"

    code, _, err = run("serve", "--registry", url, "--host", "0.0.0.0")

    assert code == 2
    assert "--host is 0.0.0.0, so other hosts can connect, and the registry has no active token" in err
    assert "Traceback" not in err
