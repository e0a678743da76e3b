"""Joins through the service: events are those of the operator, survive restarts, and bad rows are refused."""

from __future__ import annotations

import json
import random
from typing import ClassVar

import pyarrow as pa
import pytest
from serve.conftest import ARROW, LINES, Socket

import vedette as vd
from vedette.serve.arrow_streams import write_stream

STREAM = "id string, price double, ts timestamp"


class Window:
    kind, name = "window join", "spreads"
    create: ClassVar = {"schema": {"left": STREAM, "right": STREAM}, "windows": "time"}
    queries = (
        {"id": "near", "where": "left.price - right.price BETWEEN -1 AND 1", "within": "10 minutes"},
        {"id": "low", "where": "left.price < right.price AND right.price < 30", "within": "5 minutes"},
    )
    late_query: ClassVar = {"id": "any", "where": "left.price > right.price + 15", "within": "20 minutes"}
    options: ClassVar = {"time": "ts", "columns": ["price"]}
    sort = ("query", "left", "right")

    def oracle(self, uid):
        self.set = vd.JoinQuerySet(left=STREAM, right=STREAM)
        return self.set.window(
            left_time="ts", right_time="ts", left_id="id", right_id="id", columns=["price"], metadata=["owner"]
        )

    def add(self, query):
        self.set.add(query["id"], query["where"], within=query["within"], metadata=query.get("metadata"))
        return None

    def step(self, monitor, batch):
        tables = {}
        for side, rows in batch.items():
            times = pa.array([row["ts"] for row in rows], pa.string()).cast(pa.timestamp("us", "UTC"))
            own = {name: [row[name] for row in rows] for name in ("id", "price")}
            tables[side] = pa.table({**own, "ts": times})
        return monitor.step(**tables)

    def batches(self, n, seed):
        some, number = random.Random(seed), 0
        for batch in range(n):
            made = {}
            for side in some.choice([("left",), ("right",), ("left", "right")]):
                made[side] = []
                for second in sorted(some.sample(range(60), 3)):
                    number += 1
                    time = f"2026-03-02T{batch // 60:02}:{batch % 60:02}:{second:02}Z"
                    made[side].append({"id": f"r{number}", "price": float(some.randint(20, 40)), "ts": time})
            yield made


class Band:
    kind, name = "band join", "bands"
    create: ClassVar = {}
    queries = ({"id": "near", "low": -1, "high": 1}, {"id": "above", "low": 0, "high": 5})
    late_query: ClassVar = {"id": "below", "low": -9, "high": -2}
    options: ClassVar = {"known_id": "replace", "columns": {"left": ["city"]}}
    sort = ("query", "left", "right")

    def oracle(self, uid):
        self.set = vd.BandQuerySet()
        self.monitor = self.set.monitor(known_id="replace", columns={"left": ["city"]}, metadata=["owner"])
        return self.monitor

    def add(self, query):
        self.set.add(query["id"], query["low"], query["high"], metadata=query.get("metadata"))
        return self.monitor.refresh()

    def step(self, monitor, batch):
        tables = {}
        for side, rows in batch.items():
            tables[side] = {
                "id": [row["id"] for row in rows],
                "value": [row.get("value", 0.0) for row in rows],
                "op": [row.get("op", "insert") for row in rows],
                "city": [row.get("city") for row in rows],
            }
        return monitor.step(**tables)

    def batches(self, n, seed):
        some, known = random.Random(seed), {"left": set(), "right": set()}
        for _ in range(n):
            made = {}
            for side in some.choice([("left",), ("right",), ("left", "right")]):
                rows = []
                for _ in range(3):
                    if known[side] and some.random() < 0.3:
                        gone = some.choice(sorted(known[side]))
                        known[side].discard(gone)
                        rows.append({"id": gone, "op": "delete"})
                    else:
                        new = some.randint(1, 30)
                        known[side].add(new)
                        row = {"id": new, "value": some.randint(0, 12) / 2}
                        rows.append(row | ({"city": some.choice("ABC")} if side == "left" else {}))
                made[side] = rows
            yield made


class Moving:
    kind, name = "moving join", "zones"
    create: ClassVar = {}
    queries = (
        {"id": "port", "x_low": 0, "x_high": 5, "y_low": 0, "y_high": 5},
        {"id": "bay", "x_low": 4, "x_high": 9, "y_low": -3, "y_high": 3},
    )
    late_query: ClassVar = {"id": "sea", "x_low": -500, "x_high": 500, "y_low": -500, "y_high": 500}
    options: ClassVar = {"max_update_interval": 60, "columns": ["flag"]}
    sort = ("a", "b")

    def oracle(self, uid):
        self.set = vd.ZoneSet()
        self.monitor = self.set.monitor(60, columns=["flag"], metadata=["owner"])
        return self.monitor

    def add(self, query):
        sides = {name: value for name, value in query.items() if name not in ("id", "metadata")}
        self.set.add(query["id"], **sides, metadata=query.get("metadata"))
        return None if self.monitor.time is None else self.monitor.update(time=self.monitor.time)

    def step(self, monitor, batch):
        columns = ("id", "x", "y", "vx", "vy", "time", "flag", "removed")
        return monitor.update({name: [row.get(name) for row in batch] for name in columns})

    def batches(self, n, seed):
        some = random.Random(seed)
        for batch in range(n):
            yield [
                {
                    "id": f"v{some.randint(1, 8)}",
                    **{name: some.randint(-10, 10) / 2 for name in ("x", "y", "vx", "vy")},
                    "time": batch * 5 + place,
                    "flag": some.choice("xyz"),
                    **({"removed": True} if some.random() < 0.1 else {}),
                }
                for place in range(3)
            ]


JOINS = [Window(), Band(), Moving()]
each_join = pytest.mark.parametrize("join", JOINS, ids=lambda join: join.name)


def with_join(client, join):
    """A service with a set of a kind, two queries of two owners, and a monitor."""
    assert client.post("/v1/sets", json={"name": join.name, "kind": join.kind, **join.create}).status_code == 201
    for query, owner in zip(join.queries, ("ann", "bob"), strict=True):
        add(client, join, query, owner)
    made = client.put(f"/v1/sets/{join.name}/monitor", json=join.options)
    assert made.status_code == 201, made.text
    return client


def add(client, join, query, owner):
    path = f"/v1/sets/{join.name}/queries"
    assert client.post(path, json={**query, "metadata": {"owner": owner}}).status_code == 201


def send(client, join, batch):
    answer = client.post(f"/v1/sets/{join.name}/rows", json=batch)
    assert answer.status_code == 200, answer.text
    return answer.json()


class Oracle:
    """The events of the operator itself, numbered; in each step ordered by what the event is about."""

    def __init__(self, client, join):
        self.join = join
        self.monitor = join.oracle(client.service.registry.set(join.name).uid)
        self.events = []
        for query, owner in zip(join.queries, ("ann", "bob"), strict=True):
            self.add(query, owner)

    def add(self, query, owner):
        self._note(self.join.add({**query, "metadata": {"owner": owner}}))

    def step(self, batch):
        self._note(self.join.step(self.monitor, batch))

    def _note(self, table):
        found = sorted([] if table is None else table.to_pylist(), key=lambda e: [e[name] for name in self.join.sort])
        for event in found:
            self.events.append({"sequence": len(self.events) + 1, **event})


def feed(client, join):
    events = client.service.live[join.name].feed.after(0, 10**9)
    return [json.loads(event.text) for event in events]


def as_json(events):
    """Events without ids of versions: those of a registry and of a set in memory may differ."""
    return [{name: value for name, value in event.items() if name != "event_id"} for event in json.loads(
        json.dumps(events, default=lambda time: time.isoformat()))]  # fmt: skip


@each_join
def test_the_events_of_rows_are_those_of_the_operator(client, join):
    with_join(client, join)
    oracle = Oracle(client, join)
    answered = []
    for batch in join.batches(40, seed=1):
        answered += send(client, join, batch)["events"]
        oracle.step(batch)

    assert len(oracle.events) > 30
    assert as_json(feed(client, join)) == as_json(oracle.events)
    assert as_json(answered) == as_json(oracle.events)
    assert {event["owner"] for event in answered} == {"ann", "bob"}


@each_join
@pytest.mark.parametrize("log_bytes", [1, 1500, 32 << 20])
def test_a_restart_continues_with_the_same_events(open_client, join, log_bytes, monkeypatch):
    monkeypatch.setattr("vedette.serve.live_set.LiveSet._close", lambda live: live.monitor.close())  # as kill -9
    client = with_join(open_client(log_bytes=log_bytes), join)
    oracle = Oracle(client, join)
    for number, batch in enumerate(join.batches(30, seed=2)):
        if number in (10, 11, 20):
            client.close()
            client = open_client(log_bytes=log_bytes)
        if number == 15:
            add(client, join, join.late_query, "eve")
            oracle.add(join.late_query, "eve")
        send(client, join, batch)
        oracle.step(batch)
    before = feed(client, join)
    client.close()
    client = open_client(log_bytes=log_bytes)
    send(client, join, {})

    assert feed(client, join) == before
    assert as_json(before) == as_json(oracle.events)
    assert "eve" in {event["owner"] for event in before}


@pytest.mark.parametrize("join", JOINS[1:], ids=lambda join: join.name)
def test_a_changed_query_has_its_events_without_rows(client, join):
    with_join(client, join)
    for batch in join.batches(20, seed=3):
        send(client, join, batch)
    n_before = len(feed(client, join))
    add(client, join, join.late_query, "eve")
    added = feed(client, join)[n_before:]
    client.delete(f"/v1/sets/{join.name}/queries/{join.late_query['id']}")
    removed = feed(client, join)[n_before + len(added) :]

    assert added
    assert {(event["owner"], event["sign"]) for event in added} == {("eve", 1)}
    assert {(event["owner"], event["sign"]) for event in removed} == {("eve", -1)}
    assert len(removed) == len(added)


def test_rows_of_one_side_come_in_every_form(client):
    join = Window()
    with_join(client, join)
    path = "/v1/sets/spreads/rows"
    row = {"id": "a", "price": 30.0, "ts": "2026-03-02T10:00:00Z"}
    assert client.post(f"{path}?side=left", json=row).json()["rows"] == 1
    times = pa.array(["2026-03-02T10:00:01Z"]).cast(pa.timestamp("us", "UTC"))
    stream = write_stream(pa.table({"id": ["b"], "price": [30.5], "ts": times}))
    by_arrow = client.post(f"{path}?side=right", content=stream, headers=ARROW).json()
    lines = "\n".join(json.dumps({side: {**row, "id": f"{side}-3"}}) for side in ("left", "right"))
    by_lines = client.post(path, content=lines.encode(), headers=LINES).json()

    assert [(each["query"], each["left"], each["right"]) for each in by_arrow["events"]] == [("near", "a", "b")]
    assert by_lines["rows"] == 2
    socket = Socket(client, f"{path}/ws?side=right")
    later = write_stream(pa.table({"id": ["c"], "price": [29.5], "ts": times}))
    socket.put("receive", bytes=later)
    client.run(socket.wait_for(2))
    socket.put("disconnect", code=1000)
    client.run(socket.end())
    answer = json.loads(socket.sent[1]["text"])
    assert {(each["left"], each["right"]) for each in answer["events"]} == {("a", "c"), ("left-3", "c")}


HOSTILE = [
    ("spreads", [{"left": 5}, {"left": [5]}, {"middle": []}, [[]], "x", {"left": [{"price": "x"}]}, {"left": [None]}]),
    ("bands", [
        {"left": [{"id": 1}]}, {"left": [{"value": 1}]}, {"left": [{"id": 1, "value": "x"}]}, {"a": []},
        {"left": [{"id": 1, "value": 1, "op": "x"}]}, {"left": [{"id": 1, "value": 1}, {"id": "x", "value": 2}]},
        {"left": [{"id": [], "value": 1}]}, {"left": [{"id": 10**30, "value": 1}]},
        {"left": [{"id": True, "value": 1}]}, {"left": [{"id": 1, "value": None}]}, [3],
        {"left": [{"id": 1, "value": 1, "city": {"a": 1}}]}, {"left": [{"id": 1, "value": 1, "city": 10**400}]},
    ]),
    ("zones", [
        [{"id": 1}], [{"id": 1, "x": 0, "y": 0, "vx": 0, "vy": 0}], [{"x": 1}], 5, [[]],
        [{"id": "a", "x": "b", "y": 0, "vx": 0, "vy": 0, "time": 0, "flag": "x"}],
        [{"id": "a", "x": 1, "y": 0, "vx": 0, "vy": 0, "time": True, "flag": "x"}],
        [{"id": "a", "x": 1, "X": 2, "y": 0, "vx": 0, "vy": 0, "time": 1, "flag": "x"}],
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bodies"), HOSTILE, ids=[name for name, _ in HOSTILE])
def test_bad_rows_are_refused_with_a_sentence_and_change_nothing(open_client, name, bodies):
    join = next(join for join in JOINS if join.name == name)
    client = with_join(open_client(), join)
    path = f"/v1/sets/{name}/rows"
    for batch in join.batches(5, seed=4):
        send(client, join, batch)
    before = feed(client, join)
    for body in bodies:
        answer = client.post(path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
        assert answer.status_code == 400, (body, answer.text)
        assert answer.json()["error"]["code"] == "invalid_rows", (body, answer.text)
    for content in (b"", b"{", b"null", b'{"left": [', b"\xff"):
        answer = client.post(path, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 400, (content, answer.text)
    arrow = client.post(path, content=b"junk", headers=ARROW)
    assert arrow.status_code == 400
    assert "?side=" in arrow.text or "Arrow" in arrow.text
    assert client.post(f"{path}?side=nosuch", json=[]).status_code == 400
    assert client.post(f"{path}?side={'x' * 300}", json=[]).status_code == 400

    assert feed(client, join) == before
    client.close()
    again = open_client()
    send(again, join, {})
    assert feed(again, join) == before


@each_join
def test_a_request_has_a_limit_of_rows_and_a_log_has_none(open_client, join):
    client = with_join(open_client(), join)
    batches = list(join.batches(20, seed=5))
    for batch in batches:
        send(client, join, batch)
    before = feed(client, join)
    client.service.live[join.name].monitor.snapshot = lambda: None
    client.close()
    client = open_client(max_rows=2)
    refused = client.post(f"/v1/sets/{join.name}/rows", json=batches[-1])

    assert refused.status_code == 413
    assert "--max-rows" in refused.text
    assert feed(client, join) == before


def test_options_that_do_not_fit_the_kind_are_refused(client):
    for join in JOINS:
        with_join(client, join)
        assert client.get(f"/v1/sets/{join.name}/monitor").json().items() >= join.options.items()
        client.delete(f"/v1/sets/{join.name}/monitor")
    for name, options, status, said in (
        ("spreads", {"time": "nosuch"}, 400, "nosuch"),
        ("spreads", {"time": {"middle": "ts"}}, 400, "unknown stream 'middle'; the streams are: left, right"),
        ("spreads", {"time": {"left": "ts"}}, 400, "right_time"),
        ("spreads", {"key": "id"}, 422, "key"),
        ("spreads", {"time": "ts", "metadata": ["sequence"]}, 400, "every event has itself"),
        ("bands", {"report": "nothing"}, 422, "report"),
        ("bands", {"report": "queries", "columns": ["x"]}, 400, "columns"),
        ("zones", {}, 422, "max_update_interval"),
        ("zones", {"max_update_interval": -1}, 400, "max_update_interval"),
    ):
        answer = client.put(f"/v1/sets/{name}/monitor", json=options)
        assert (answer.status_code, said in answer.text) == (status, True), (options, answer.text)


def test_calls_of_other_kinds_are_refused(client):
    client.post("/v1/sets", json={"name": "m", "schema": "x double"})
    with_join(client, JOINS[0])
    monitor = client.put("/v1/sets/m/monitor", json={"key": "x", "time": "x"})
    match = client.post("/v1/sets/spreads/match", json={"id": "a"})

    assert (monitor.status_code, match.status_code) == (409, 409)
    assert "is of kind match; a monitor needs one of: border, window join" in monitor.text
    assert client.get("/v1/sets/spreads/explain").status_code == 200


@each_join
def test_keys_and_values_of_a_join_are_refused_and_its_rows_are_not_kept_for_charts(client, join):
    with_join(client, join)
    for batch in join.batches(9, seed=6):
        send(client, join, batch)
    path = f"/v1/sets/{join.name}"
    answers = [client.get(f"{path}/keys"), client.get(f"{path}/values?key=a&field=price")]
    socket = Socket(client, f"{path}/keys/ws?fields=price")
    client.run(socket.end())

    assert [(each.status_code, each.json()["error"]["code"]) for each in answers] == [(409, "other_kind")] * 2
    said = f"is of kind {join.kind}; keys need kind border"
    assert all(said in each.text for each in answers)
    assert (socket.sent[0]["code"], said in socket.sent[0]["reason"]) == (4409, True)
    assert list(client.service.live[join.name].recent._bodies) == []


@each_join
def test_events_are_filtered_by_query_key_and_owner_and_have_a_type(client, join):
    with_join(client, join)
    for batch in join.batches(30, seed=6):
        send(client, join, batch)
    events = feed(client, join)
    live = client.service.live[join.name]
    form = live.event_form
    socket = Socket(client, f"/v1/sets/{join.name}/events/ws?after=0&query={join.queries[0]['id']}&owner=ann")
    expected = [event for event in events if event["owner"] == "ann"]
    client.run(socket.wait_for(1 + len(expected)))
    key = events[0][form.keys[0]]
    of_key = Socket(client, f"/v1/sets/{join.name}/events/ws?after=0&key={key}")
    own = [event for event in events if str(key) in [str(event[name]) for name in form.keys]]
    client.run(of_key.wait_for(1 + len(own)))

    assert [json.loads(each["text"]) for each in socket.sent[1:]] == expected
    assert {event[form.query] for event in expected} == {join.queries[0]["id"]}
    assert [json.loads(each["text"]) for each in of_key.sent[1:]] == own
    types = {form.type_of(event) for event in events}
    assert types == ({"pair"} if join.kind == "window join" else {"emit", "retract"})
    for each in (socket, of_key):
        each.put("disconnect", code=1000)
        client.run(each.end())
