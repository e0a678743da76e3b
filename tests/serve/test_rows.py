"""Matching and monitoring of rows, and the events of a feed."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from serve.conftest import ARROW, LINES, SCHEMA, with_alerts

import vedette as vd
from vedette.errors import UnknownSetError
from vedette.serve import live_set
from vedette.serve.arrow_streams import write_stream
from vedette.serve.event_feed import Chunk, EventFeed
from vedette.serve.service import Service

ROWS = "/v1/sets/alerts/rows"
MATCH = "/v1/sets/alerts/match"


def row(symbol, price, minute):
    time = datetime(2026, 3, 2) + timedelta(minutes=minute)
    return {"symbol": symbol, "price": price, "ts": f"{time.isoformat()}Z"}


def random_rows(n, seed, n_keys=7):
    """Rows in time order, whose prices cross the bounds of the queries often."""
    some = random.Random(seed)
    return [row(some.choice(["IBM", "SAP", *"abcdefgh"][:n_keys]), some.randint(25, 45), minute) for minute in range(n)]


def oracle(alerts, batches):
    """The events of a monitor that sees these batches, as the service writes them."""
    info = alerts.service.registry.set("alerts")
    queries = vd.QuerySet(SCHEMA, name=info.uid)
    queries.add("cheap", "price < 40", metadata={"owner": "ann"})
    queries.add("ibm", "symbol = 'IBM' AND price > 30", metadata={"owner": "bob"})
    monitor = queries.border(key="symbol", time="ts", columns=["price"], metadata=["owner"], event_id=True)
    events = []
    for batch in batches:
        columns = {name: [each[name] for each in batch] for name in ("symbol", "price")}
        times = pa.array([each["ts"].removesuffix("Z") for each in batch]).cast(pa.timestamp("us", tz=None))
        table = pa.table({**columns, "ts": times.cast(pa.timestamp("us", "UTC"))})
        events += monitor.step(table.set_column(1, "price", table["price"].cast(pa.float64()))).to_pylist()
    return [(n, event["key"], event["query"], event["event"], event["price"], event["event_id"])
            for n, event in enumerate(events, 1)]  # fmt: skip


def plain(events):
    return [tuple(each[name] for name in ("sequence", "key", "query", "event", "price", "event_id")) for each in events]


def feed(alerts, after=0):
    live = alerts.service.live["alerts"]
    return plain(event.record for event in live.feed.after(after, 10**9))


def test_rows_are_matched_as_json_lines_and_arrow(alerts):
    rows = [{"symbol": "IBM", "price": 35}, {"symbol": "SAP", "price": 50}, {"symbol": "SAP", "price": 39.5}]
    expected = [["cheap", "ibm"], [], ["cheap"]]

    found = alerts.post(MATCH, json=rows).json()
    assert ([sorted(each) for each in found["matches"]], found["version"]) == (expected, 2)
    assert sorted(alerts.post(MATCH, json=rows[0]).json()["queries"]) == ["cheap", "ibm"]
    lines = alerts.post(MATCH, content="\n".join(map(json.dumps, rows)), headers=LINES)
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert [sorted(json.loads(line)["queries"]) for line in lines.text.splitlines()] == expected
    table = pa.table(
        {"symbol": ["IBM", "SAP", "SAP"], "price": [35.0, 50.0, 39.5], "ts": pa.nulls(3, pa.timestamp("us"))}
    )
    answer = alerts.post(MATCH, content=write_stream(table), headers=ARROW)
    pairs = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    assert sorted((pair["row"], pair["query"]) for pair in pairs) == [(0, "cheap"), (0, "ibm"), (2, "cheap")]
    as_json = alerts.post(MATCH, content=write_stream(table), headers={**ARROW, "accept": "application/json"})
    assert [sorted(each) for each in as_json.json()["matches"]] == expected


def test_a_change_through_the_service_is_seen_by_the_next_request(alerts):
    assert alerts.post(MATCH, json={"price": 500}).json()["queries"] == []
    alerts.post("/v1/sets/alerts/queries", json={"id": "high", "where": "price > 499"})
    assert alerts.post(MATCH, json={"price": 500}).json()["queries"] == ["high"]


def test_the_events_of_rows_are_those_of_a_monitor(alerts):
    rows = random_rows(200, seed=1)
    batches = [rows[:50], rows[50:51], rows[51:120], rows[120:]]
    answers = [
        alerts.post(ROWS, json=batches[0]).json(),
        alerts.post(ROWS, json=batches[1][0]).json(),
        alerts.post(ROWS, content="\n".join(map(json.dumps, batches[2])), headers=LINES).json(),
        alerts.post(ROWS, json=batches[3]).json(),
    ]

    expected = oracle(alerts, batches)
    assert plain(event for answer in answers for event in answer["events"]) == expected
    assert feed(alerts) == expected
    assert answers[-1]["sequence"] == len(expected) > 50


def test_requests_at_the_same_time_are_processed_together_with_the_same_events(alerts, monkeypatch):
    keys = "abcdefgh"
    batches = [[row(key, price, minute)] for minute, price in enumerate([35, 45, 33]) for key in keys]
    steps = []
    original = live_set.LiveSet._step
    monkeypatch.setattr(live_set.LiveSet, "_step", lambda *given: steps.append(len(given[2])) or original(*given))

    requests = [("POST", ROWS, {"json": batch}) for batch in batches]
    answers = alerts.run(alerts.together(*requests))

    by_key = {key: [] for key in keys}
    for answer, batch in zip(answers, batches, strict=True):
        events = answer.json()["events"]
        assert {event["key"] for event in events} <= {batch[0]["symbol"]}
        by_key[batch[0]["symbol"]] += [event["event"] for event in events]
    assert by_key == {key: ["enter", "exit", "enter"] for key in keys}
    assert max(steps) > 1  # some were together
    assert sorted(number for number, *_ in feed(alerts)) == list(range(1, 25))
    assert {each[1:] for each in feed(alerts)} == {each[1:] for each in oracle(alerts, batches)}


@pytest.mark.parametrize("type_", ["bigint", "string"])
def test_arrow_batches_at_the_same_time_are_one_step_and_each_has_its_own_events(client, monkeypatch, type_):
    client.post("/v1/sets", json={"name": "vans", "kind": "border", "schema": f"van {type_}, x double, t bigint"})
    client.post("/v1/sets/vans/queries", json={"id": "zone", "where": "x < 0.5"})
    client.put("/v1/sets/vans/monitor", json={"key": "van", "time": "t"})
    steps = []
    original = live_set.LiveSet._step
    monkeypatch.setattr(live_set.LiveSet, "_step", lambda *given: steps.append(len(given[2])) or original(*given))
    some = random.Random(5)
    batches = [
        pa.table(
            {
                "van": pa.array([100 * part + k for k in range(100)]).cast(
                    pa.int64() if type_ == "bigint" else pa.string()
                ),
                "x": [some.random() for _ in range(100)],
                "t": [time] * 100,
            }
        )
        for time in (1, 2)
        for part in range(6)
    ]

    requests = [("POST", "/v1/sets/vans/rows", {"content": write_stream(each), "headers": ARROW}) for each in batches]
    answers = [client.run(client.together(*requests[:6])), client.run(client.together(*requests[6:]))]

    queries = vd.QuerySet(f"van {type_}, x double, t bigint")
    queries.add("zone", "x < 0.5")
    monitor = queries.border(key="van", time="t")
    for answer, batch in zip(answers[0] + answers[1], batches, strict=True):
        found = sorted((event["key"], event["event"]) for event in answer.json()["events"])
        events = monitor.step(batch)
        assert found == sorted(zip(events["key"].to_pylist(), events["event"].to_pylist(), strict=True))
    assert max(steps) > 1  # some were together


def test_a_bad_request_does_not_spoil_those_beside_it(alerts):
    good = [("POST", ROWS, {"json": row(key, 35, 1)}) for key in "abc"]
    bad = ("POST", ROWS, {"json": {"symbol": None, "price": 35, "ts": "2026-03-02T14:00:00Z"}})
    worse = ("POST", ROWS, {"content": b"{", "headers": {"content-type": "application/json"}})

    answers = alerts.run(alerts.together(good[0], bad, good[1], worse, good[2]))

    assert [answer.status_code for answer in answers] == [200, 400, 200, 400, 200]
    assert sorted(key for _, key, *_ in feed(alerts)) == ["a", "b", "c"]


def test_time_causes_events_of_other_keys_in_the_feed_only(client):
    client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})
    client.post("/v1/sets/alerts/queries", json={"id": "cheap", "where": "price < 40"})
    client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts", "expire_after": "5 minutes"})
    client.post(ROWS, json=row("IBM", 35, 0))

    later = client.post(ROWS, json=row("SAP", 35, 30)).json()

    assert [(event["key"], event["event"]) for event in later["events"]] == [("SAP", "enter")]
    events = [event.record for event in client.service.live["alerts"].feed.after(0)]
    assert sorted((event["key"], event["event"]) for event in events) == [
        ("IBM", "enter"),
        ("IBM", "exit"),
        ("SAP", "enter"),
    ]


def test_a_key_leaves_each_query_after_its_own_silence(client):
    client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})
    for name, own in (("short", "5 minutes"), ("long", "20 minutes")):
        client.post("/v1/sets/alerts/queries", json={"id": name, "where": "price < 40", "expire_after": own})
    client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"})
    client.post(ROWS, json=row("IBM", 35, 0))

    client.post(ROWS, json=row("SAP", 99, 10))

    events = [event.record for event in client.service.live["alerts"].feed.after(0)]
    assert sorted((event["query"], event["event"]) for event in events) == [
        ("long", "enter"),
        ("short", "enter"),
        ("short", "exit"),
    ]
    why = client.post("/v1/sets/alerts/why", json={"query": "short", "key": "IBM"}).json()
    assert (why["holds"], why["expired_at"]) == (False, "2026-03-02T00:05:00+00:00")


def test_a_set_without_a_monitor_says_how_to_create_one(client):
    client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})

    refused = client.post(ROWS, json=row("IBM", 35, 0))

    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "no_monitor")
    assert "PUT /v1/sets/alerts/monitor" in refused.json()["error"]["message"]
    unknown = client.put("/v1/sets/alerts/monitor", json={"key": "symbl", "time": "ts"})
    assert (unknown.status_code, unknown.json()["error"]["field"]) == (400, "symbl")
    assert client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"}).status_code == 201
    assert client.get("/v1/sets/alerts/monitor").json()["key"] == "symbol"
    assert client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"}).status_code == 409
    assert client.delete("/v1/sets/alerts/monitor").status_code == 204
    assert client.post(ROWS, json=row("IBM", 35, 0)).status_code == 404


def test_numbers_are_not_used_again_if_a_monitor_is_deleted_before_it_is_restored(open_client, monkeypatch):
    async def open_none(service):
        pass

    client = with_alerts(open_client())
    last = client.post(ROWS, json=row("IBM", 5, 0)).json()["sequence"]
    client.close()
    monkeypatch.setattr(Service, "_open_monitors", open_none)
    client = open_client()

    assert client.delete("/v1/sets/alerts/monitor").status_code == 204
    client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"})
    (event,) = client.post(ROWS, json=row("IBM", 5, 0)).json()["events"]

    assert (last, event["sequence"]) == (1, 2)


@pytest.mark.parametrize("damages", [False, True])
def test_numbers_of_events_are_not_used_again_by_another_monitor(open_client, tmp_path, damages):
    client = with_alerts(open_client())
    last = client.post(ROWS, json=row("IBM", 35, 0)).json()["sequence"]
    if damages:
        client.close()
        (snapshot,) = (tmp_path / "state").glob("*/snapshot-*")
        snapshot.write_bytes(b"damaged")
        client = open_client()
        assert client.post(ROWS, json=row("IBM", 35, 1)).status_code == 409
    assert client.delete("/v1/sets/alerts/monitor").status_code == 204
    client.close()

    client = open_client()
    assert client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"}).status_code == 201
    first = client.post(ROWS, json=row("IBM", 35, 0)).json()["events"][0]["sequence"]

    assert first > last if damages else first == last + 1
    client.close()
    client = open_client()  # also with the log of the second one
    assert client.post(ROWS, json=[]).json()["sequence"] == first + 1
    assert client.delete("/v1/sets/alerts").status_code == 204
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]


def test_after_another_schema_rows_need_another_monitor(alerts):
    alerts.post(ROWS, json=row("IBM", 35, 0))
    alerts.patch("/v1/sets/alerts", json={"schema": f"{SCHEMA}, volume bigint"})

    refused = alerts.post(ROWS, json=row("IBM", 50, 1))

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "damaged_state")
    assert "the schema of set 'alerts' was altered" in refused.json()["error"]["message"]
    assert alerts.post(MATCH, json={"price": 3, "volume": 5}).json()["queries"] == ["cheap"]
    assert alerts.delete("/v1/sets/alerts/monitor").status_code == 204
    assert alerts.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"}).status_code == 201
    assert alerts.post(ROWS, json=row("IBM", 35, 0)).json()["events"][0]["event"] == "enter"


@pytest.mark.parametrize("log_bytes", [1, 2000, 1 << 20])
def test_a_restart_continues_where_the_last_one_stopped(open_client, log_bytes):
    client = with_alerts(open_client(log_bytes=log_bytes))
    rows = random_rows(120, seed=2)
    batches = [rows[place : place + 10] for place in range(0, 120, 10)]
    for batch in batches[:6]:
        client.post(ROWS, json=batch)
    client.post("/v1/sets/alerts/queries", json={"id": "never", "where": "price > 1000"})
    client.close()

    client = open_client(log_bytes=log_bytes)
    for batch in batches[6:]:
        client.post(ROWS, json=batch)

    assert feed(client) == oracle(client, batches)


def test_many_small_batches_end_in_a_snapshot_so_that_a_restart_repeats_few(open_client, monkeypatch):
    monkeypatch.setattr(live_set, "_BATCHES", 10)
    client = with_alerts(open_client())
    rows = random_rows(64, seed=8)
    for each in rows:
        client.post(ROWS, json=each)

    monitor = client.service.live["alerts"].monitor
    assert (monitor.n_batches, monitor.n_logged) == (64, 64 % 11)
    assert feed(client) == oracle(client, [[each] for each in rows])


def test_what_was_not_written_is_not_acknowledged_and_not_kept(alerts, monkeypatch):
    batches = [[each] for each in random_rows(30, seed=3)]
    for batch in batches[:10]:
        assert alerts.post(ROWS, json=batch).status_code == 200

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("vedette.serve.row_log.os.write", fail)
        refused = alerts.post(ROWS, json=batches[10])
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    assert "No space left on device" in refused.json()["error"]["message"]

    for batch in batches[11:]:
        assert alerts.post(ROWS, json=batch).status_code == 200
    assert feed(alerts) == oracle(alerts, batches[:10] + batches[11:])


def test_after_a_failure_between_step_and_log_the_state_is_restored(alerts, monkeypatch):
    batches = [[each] for each in random_rows(20, seed=10)]
    for batch in batches[:10]:
        alerts.post(ROWS, json=batch)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr("vedette.serve.durable_monitor.Record", fail)
        assert alerts.post(ROWS, json=batches[10]).status_code == 500

    for batch in batches[11:]:
        assert alerts.post(ROWS, json=batch).status_code == 200
    assert feed(alerts) == oracle(alerts, batches[:10] + batches[11:])


def fail_with_full_table(*_, **__):
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(
    "place", ["row_log.sync_directory", "durable_monitor.RowLog", "monitor_file.MonitorFile.remove_before"]
)
def test_rows_after_a_snapshot_that_failed_half_way_are_kept(open_client, monkeypatch, place):
    batches = [[each] for each in random_rows(20, seed=11)]
    client = with_alerts(open_client(log_bytes=1))  # a snapshot after every batch
    for number, batch in enumerate(batches):
        with monkeypatch.context() as broken:
            if number == 7:
                broken.setattr(f"vedette.serve.{place}", fail_with_full_table)
            assert client.post(ROWS, json=batch).status_code == 200
    client.close()

    assert feed(open_and_read(open_client)) == oracle(client, batches)


def open_and_read(open_client):
    """A client of a service that has restored the state of the last one."""
    client = open_client()
    assert client.post(ROWS, json=[]).status_code == 200
    return client


def test_what_an_interrupted_delete_left_is_not_restored(open_client, monkeypatch):
    client = with_alerts(open_client())
    client.post(ROWS, json=random_rows(30, seed=12))
    client.close()
    client = open_client()  # a snapshot of batch 1 and its log exist now
    client.post(ROWS, json=random_rows(5, seed=13))
    with monkeypatch.context() as broken:
        broken.setattr("vedette.serve.monitor_file.shutil.rmtree", lambda *_, **__: None)
        assert client.delete("/v1/sets/alerts/monitor").status_code == 204
    options = {"key": "symbol", "time": "ts", "columns": ["price"]}
    assert client.put("/v1/sets/alerts/monitor", json=options).status_code == 201
    before = client.service.live["alerts"].feed.next - 1
    batches = [[each] for each in random_rows(10, seed=14)]
    for batch in batches:
        client.post(ROWS, json=batch)
    client.close()

    found = feed(open_and_read(open_client), after=before)
    assert [event[1:] for event in found] == [event[1:] for event in oracle(client, batches)]


def test_a_smaller_limit_of_rows_does_not_apply_to_the_log(open_client):
    client = with_alerts(open_client())
    rows = random_rows(50, seed=15)
    client.post(ROWS, json=rows)
    client.service.live["alerts"]._close = lambda: None  # as if killed: no snapshot
    client.close()

    client = open_client(max_rows=10)
    assert client.post(ROWS, json=[]).status_code == 200
    assert feed(client) == oracle(client, [rows])


def test_requests_in_one_group_with_a_bad_one_report_a_query_once(alerts):
    add_once(alerts)
    bodies = [row("a", 20, 1), {**row("b", 20, 1), "symbol": None}, row("c", 20, 2)]
    answers = alerts.run(alerts.together(*(("POST", ROWS, {"json": body}) for body in bodies)))
    assert [answer.status_code for answer in answers] == [200, 400, 200]
    assert reports(alerts) == ["a"]


def test_a_query_with_an_integer_id_is_reported_once(client):
    client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA})
    client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"})
    client.post(ROWS, json=row("z", 50, 0))
    assert (
        client.post("/v1/sets/alerts/queries", json={"id": 7, "where": "price < 30", "once": "query"}).status_code
        == 201
    )
    events = [client.post(ROWS, json=row(key, 20, minute)).json()["events"] for minute, key in enumerate("abc", 1)]
    assert [len(each) for each in events] == [1, 0, 0]


def test_a_set_that_is_created_while_the_registry_is_read_is_not_forgotten(client, monkeypatch):
    sets = client.service.registry.sets()
    with_alerts(client)
    live = client.service.live.pop("alerts")

    def read_old():
        client.service.live["alerts"] = live
        return sets

    with monkeypatch.context() as slow:
        slow.setattr(client.service.registry, "sets", read_old)
        client.run(client.service.poll())
    assert client.service.live["alerts"] is live
    assert client.post(ROWS, json=row("IBM", 35, 0)).status_code == 200


def test_every_request_to_a_set_that_was_closed_is_answered(alerts):
    live = alerts.service.live["alerts"]
    alerts.run(alerts.service.dropped("alerts"))

    async def ask():
        return await asyncio.wait_for(live.call(lambda: 1), 5)

    for _ in range(2):
        with pytest.raises(UnknownSetError, match="was closed"):
            alerts.run(ask())


def add_once(client):
    query = {"id": "first", "where": "price < 30", "once": "query", "metadata": {"owner": "ann"}}
    assert client.post("/v1/sets/alerts/queries", json=query).status_code == 201


def reports(client):
    return [event[1] for event in feed(client) if event[2] == "first"]


def test_a_query_that_is_reported_once_is_removed_before_the_next_rows(alerts):
    add_once(alerts)
    alerts.post(ROWS, json=[row("b", 20, 2), row("a", 20, 1), row("a", 50, 2)])
    assert alerts.get("/v1/sets/alerts/queries/first").status_code == 404
    alerts.post(ROWS, json=row("c", 20, 3))
    assert reports(alerts) == ["a"]

    add_once(alerts)  # another query of the same id, of which the first report knows nothing
    alerts.post(ROWS, json=row("d", 20, 4))
    assert reports(alerts) == ["a", "d"]


@pytest.mark.parametrize("log_bytes", [1, 1 << 20])
def test_a_report_whose_removal_failed_is_not_repeated(open_client, monkeypatch, log_bytes):
    client = with_alerts(open_client(log_bytes=log_bytes))
    add_once(client)

    def fail(*_):
        raise vd.RegistryError("the database is away", is_retryable=True)

    with monkeypatch.context() as away:
        away.setattr(vd.Registry, "remove_reported", fail)
        assert client.post(ROWS, json=row("a", 20, 1)).status_code == 200
        assert client.post(ROWS, json=row("b", 20, 2)).status_code == 503
        client.close()

    client = open_client(log_bytes=log_bytes)
    client.post(ROWS, json=row("c", 20, 3))
    assert reports(client) == ["a"]
    assert client.get("/v1/sets/alerts/queries/first").status_code == 404


def test_two_services_do_not_share_a_state(alerts, open_client):
    with pytest.raises(vd.FileError, match="another server uses the state directory"):
        open_client()


def test_events_that_are_no_longer_kept_are_a_gap(open_client):
    client = with_alerts(open_client(keep_events=10))
    for batch in random_rows(100, seed=4):
        client.post(ROWS, json=batch)
    from vedette.serve.access import LOCAL
    from vedette.serve.event_feed import EventFilter
    from vedette.serve.routes.events import read_on

    async def read():
        service = client.service
        service.is_stopping = True  # ends the stream after what there is
        found = [each async for each in read_on(service, LOCAL, service.live["alerts"].feed, EventFilter(), 3)]
        service.is_stopping = False
        return found

    start, gap, *events = client.run(read())
    oldest = client.service.live["alerts"].feed.oldest
    assert start is None
    assert gap == {"from": 4, "to": oldest - 1}
    assert [event.sequence for event in events] == list(range(oldest, client.service.live["alerts"].feed.next))
    assert 10 <= len(events) < 20


def test_a_feed_wakes_those_who_wait(alerts):
    feed_ = alerts.service.live["alerts"].feed

    async def wait():
        waiting = asyncio.create_task(feed_.wait(feed_.next - 1, 30))
        await asyncio.sleep(0)
        await alerts._client.post(ROWS, json=row("IBM", 35, 0))
        await asyncio.wait_for(waiting, 5)
        return feed_.after(0)

    assert [event.record["query"] for event in alerts.run(wait())] == ["cheap", "ibm"]


def test_a_client_that_has_seen_all_events_looks_at_few_of_them():
    n_read = 0

    class Counted(Chunk):
        @property
        def end(self):
            nonlocal n_read
            n_read += 1
            return self.first + 1

    feed_ = EventFeed(5000)
    for sequence in range(1, 5001):
        feed_.append(Counted(sequence, pa.table({"key": ["a"]})))
    n_read = 0

    assert [event.sequence for event in feed_.after(4998)] == [4999, 5000]
    assert [event.sequence for event in feed_.after(0, 2)] == [1, 2]
    assert [event.sequence for event in feed_.after(2500, 1)] == [2501]
    assert feed_.after(5000) == feed_.after(6000) == []
    assert n_read < 100


def test_saved_events_are_few_tables_and_are_restored_in_small_chunks():
    feed_, other = EventFeed(10_000), EventFeed(10_000)
    for sequence in range(1, 4001, 2):
        feed_.append(Chunk(sequence, pa.table({"key": [sequence, sequence + 1]})))
    feed_.append(Chunk(4001, pa.table({"key": ["a"], "price": [2.5]})))  # of a monitor that was created again

    saved = feed_.to_tables()
    other.restore(saved, feed_.next)

    assert [(first, table.num_rows) for first, table in saved] == [(1, 4000), (4001, 1)]
    assert other.after(0, 10_000) == feed_.after(0, 10_000)
    assert [event.sequence for event in other.after(2998, 3)] == [2999, 3000, 3001]
    assert max(chunk.table.num_rows for chunk in other._chunks) == 1000
    assert (other.oldest, other.next) == (1, 4002)


def test_versions_that_the_log_needs_are_not_forgotten(open_client, registry):
    client = with_alerts(open_client())
    rows = random_rows(40, seed=8)
    for place, batch in enumerate([rows[:20], rows[20:]]):
        client.post(ROWS, json=batch)
        client.post("/v1/sets/alerts/queries", json={"id": f"never{place}", "where": "price > 1000"})
    (pinned,) = registry.pins("alerts")
    assert pinned.stream.startswith("serve:")

    registry.forget("alerts", registry.set("alerts").version)
    client.close()

    client = open_client()
    client.run(asyncio.sleep(0))
    client.post(ROWS, json=[])
    assert feed(client) == oracle(client, [rows[:20], rows[20:]])
    assert client.delete("/v1/sets/alerts/monitor").status_code == 204
    assert registry.pins("alerts") == []


def test_a_damaged_state_is_reported_and_matching_goes_on(open_client, tmp_path):
    client = with_alerts(open_client())
    client.post(ROWS, json=random_rows(20, seed=9))
    client.close()
    (snapshot,) = (tmp_path / "state").glob("*/snapshot-*")
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 1
    snapshot.write_bytes(data)

    client = open_client()

    refused = client.post(ROWS, json=row("IBM", 35, 100))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "damaged_state")
    assert "is damaged; restore it from a backup" in refused.json()["error"]["message"]
    assert client.post(MATCH, json={"symbol": "IBM", "price": 35}).json()["queries"]
