"""Sets and queries over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from serve.conftest import LINES, SCHEMA

import vedette as vd
from vedette.registry.tokens import create_token
from vedette.serve.routes import queries


def ids_of(page):
    return [query["id"] for query in page.json()["queries"]]


def test_a_set_is_created_shown_altered_and_dropped(client):
    made = client.post("/v1/sets", json={"name": "a", "schema": "x double"})
    assert (made.status_code, made.json()["kind"], made.json()["version"]) == (201, "match", 0)
    again = client.post("/v1/sets", json={"name": "a", "schema": "x double"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "existing_set")

    assert client.patch("/v1/sets/a", json={"schema": "x double, y double"}).json() == {"version": 1}
    assert client.get("/v1/sets/a").json()["schema"] == "x double, y double"
    assert [each["name"] for each in client.get("/v1/sets").json()] == ["a"]

    assert client.delete("/v1/sets/a").status_code == 204
    gone = client.get("/v1/sets/a")
    assert (gone.status_code, gone.json()["error"]["message"]) == (404, "no set 'a'")


def test_other_kinds_of_sets_are_managed_too(client):
    for new in (
        {"name": "joins", "kind": "window join", "schema": {"left": "x double, t bigint", "right": "y double"}},
        {"name": "bands", "kind": "band join"},
        {"name": "zones", "kind": "moving join"},
    ):  # fmt: skip
        assert client.post("/v1/sets", json=new).status_code == 201
    assert client.post("/v1/sets/bands/queries", json={"id": 1, "low": -1, "high": 2.5}).status_code == 201
    joined = {"id": "near", "where": "left.x < right.y", "within": "10 seconds"}
    assert client.post("/v1/sets/joins/queries", json=joined).status_code == 201
    zone = {"id": "z", "x_low": 0, "x_high": 1, "y_low": 0, "y_high": 2}
    assert client.post("/v1/sets/zones/queries", json=zone).status_code == 201

    assert client.get("/v1/sets/bands/queries/1").json()["high"] == 2.5
    refused = client.post("/v1/sets/bands/match", json={"x": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "other_kind")


def test_the_position_of_a_mistake_is_in_the_error(alerts):
    refused = alerts.post("/v1/sets/alerts/queries", json={"id": "bad", "where": "price < 3 AND prise > 1"})
    error = refused.json()["error"]

    assert (refused.status_code, error["code"], error["query"]) == (400, "invalid_query", "bad")
    assert (error["position"], error["end"]) == (14, 19)
    assert "did you mean 'price'?" in error["message"]
    checked = alerts.post("/v1/sets/alerts/check", json={"where": "price < 3 AND prise > 1"}).json()
    assert (checked["valid"], checked["error"]["position"]) == (False, 14)
    checked = alerts.post("/v1/sets/alerts/check", json={"where": "price > 5 AND price < 3"}).json()
    assert checked == {"valid": True, "warnings": ["never matches: no value of price lies in all its ranges"]}


def test_queries_are_listed_by_cursor_metadata_and_search(alerts):
    lines = "\n".join(json.dumps({"id": f"q{i:03}", "where": f"price > {i}"}) for i in range(25))
    assert alerts.post("/v1/sets/alerts/queries/bulk", content=lines, headers=LINES).json()["added"] == 25

    pages, after = [], {}
    while True:
        page = alerts.get("/v1/sets/alerts/queries", params={"limit": 10, **after})
        pages.append(ids_of(page))
        if page.json()["next"] is None:
            break
        after = {"after": page.json()["next"]}

    assert [len(page) for page in pages] == [10, 10, 7]
    assert [each for page in pages for each in page] == ["cheap", "ibm", *(f"q{i:03}" for i in range(25))]
    assert ids_of(alerts.get("/v1/sets/alerts/queries", params={"metadata": '{"owner": "bob"}'})) == ["ibm"]
    assert ids_of(alerts.get("/v1/sets/alerts/queries", params={"search": "SYMBOL ="})) == ["ibm"]
    assert ids_of(alerts.get("/v1/sets/alerts/queries", params={"search": "%"})) == []
    assert ids_of(alerts.get("/v1/sets/alerts/queries", params={"prefix": "q00", "limit": 3})) == [
        "q000",
        "q001",
        "q002",
    ]


def test_a_query_is_replaced_removed_and_restored_with_its_history(alerts):
    path = "/v1/sets/alerts/queries/cheap"
    assert alerts.patch(path, json={"where": "price < 38"}).json() == {"version": 3}
    assert alerts.get(path).json()["metadata"] == {"owner": "ann"}
    assert alerts.delete(path).json() == {"version": 4}
    assert alerts.get(path).status_code == 404

    assert alerts.post(f"{path}/restore", json={"version": 2}).json() == {"version": 5}

    found = alerts.get(path).json()
    assert (found["where"], found["metadata"]) == ("price < 40", {"owner": "ann"})
    states = [(each["state"], each["where"], each["added"]) for each in alerts.get(f"{path}/history").json()]
    assert states == [("replaced", "price < 40", 1), ("removed", "price < 38", 3), ("active", "price < 40", 5)]


def test_two_versions_are_compared_and_a_set_is_restored(alerts):
    alerts.patch("/v1/sets/alerts/queries/cheap", json={"where": "price < 38"})
    alerts.delete("/v1/sets/alerts/queries/ibm")
    alerts.post("/v1/sets/alerts/queries", json={"id": "new", "where": "price > 90"})

    diff = alerts.get("/v1/sets/alerts/diff", params={"before": 2}).json()
    changes = {line["id"]: (line["change"], *(side and side["where"] for side in (line["before"], line["after"])))
               for line in diff["queries"]}  # fmt: skip
    assert changes == {
        "cheap": ("changed", "price < 40", "price < 38"),
        "ibm": ("removed", "symbol = 'IBM' AND price > 30", None),
        "new": ("added", None, "price > 90"),
    }

    assert alerts.post("/v1/sets/alerts/restore", json={"version": 2}).json() == {"version": 6}
    assert ids_of(alerts.get("/v1/sets/alerts/queries")) == ["cheap", "ibm"]
    back = alerts.get("/v1/sets/alerts/diff", params={"before": 2, "after": 6}).json()
    assert all(line["before"]["where"] == line["after"]["where"] for line in back["queries"] if line["id"] != "new")
    assert alerts.get("/v1/sets/alerts/diff", params={"before": 9}).status_code == 400


def test_many_changes_are_one_version_with_a_report_per_line(alerts):
    lines = [
        {"id": "a", "where": "price < 1"},
        {"op": "replace", "id": "cheap", "where": "price < 2"},
        {"op": "remove", "id": "ibm"},
        {"op": "put", "id": "b", "where": "price < 3"},
    ]
    body = "\n".join(map(json.dumps, lines))

    report = alerts.post("/v1/sets/alerts/queries/bulk", content=body, headers=LINES).json()

    assert [report[name] for name in ("version", "added", "replaced", "removed", "invalid")] == [3, 2, 1, 1, 0]
    assert [(line["line"], line["did"]) for line in report["lines"]] == [
        (1, "added"), (2, "replaced"), (3, "removed"), (4, "added")
    ]  # fmt: skip


def test_one_invalid_line_changes_nothing_unless_it_is_skipped(alerts):
    good, unknown, taken = (
        b'{"id": "a", "where": "price < 1"}',
        b'{"id": "b", "where": "prise < 1"}',
        b'{"id": "cheap"}',
    )
    body = b"\n".join([good, b"", b"not json", unknown, taken])

    refused = alerts.post("/v1/sets/alerts/queries/bulk", content=body, headers=LINES)

    assert refused.status_code == 400
    assert [(line["line"], line["id"]) for line in refused.json()["error"]["lines"]] == [
        (3, None),
        (4, "b"),
        (5, "cheap"),
    ]
    assert refused.json()["error"]["lines"][1]["error"]["position"] == 0
    assert alerts.get("/v1/sets/alerts").json()["version"] == 2
    report = alerts.post("/v1/sets/alerts/queries/bulk?skip_invalid=true", content=body, headers=LINES).json()
    assert (report["version"], report["added"], report["invalid"]) == (3, 1, 3)
    assert alerts.post("/v1/sets/alerts/queries/bulk", content=body).status_code == 415


def test_many_queries_are_not_read_in_the_event_loop(alerts, monkeypatch):
    threads = []
    monkeypatch.setattr(queries, "read_lines", lambda body: threads.append(threading.current_thread()) or [])

    assert alerts.post("/v1/sets/alerts/queries/bulk", content=b"{}", headers=LINES).status_code == 200
    assert threads != [threading.current_thread()]


def test_two_writers_conflict_only_if_they_say_so(alerts, registry):
    registry.add("alerts", "other", "price = 7")

    late = alerts.post("/v1/sets/alerts/queries?expect_version=2", json={"id": "x", "where": "price = 1"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    assert alerts.post("/v1/sets/alerts/queries", json={"id": "x", "where": "price = 1"}).json() == {"version": 4}


def test_ids_with_slashes_and_integers_are_found(client):
    client.post("/v1/sets", json={"name": "a", "schema": "x double"})
    client.post("/v1/sets", json={"name": "n", "schema": "x double", "ids": "integer"})
    assert client.post("/v1/sets/a/queries", json={"id": "eu/de/1", "where": "x > 1"}).status_code == 201
    assert client.post("/v1/sets/n/queries", json={"id": 7, "where": "x > 1"}).status_code == 201

    assert client.get("/v1/sets/a/queries/eu/de/1").json()["where"] == "x > 1"
    assert client.get("/v1/sets/n/queries/7").json()["id"] == 7
    assert client.get("/v1/sets/n/queries/seven").status_code == 404


@pytest.mark.parametrize("name", ["a/b", "a\nb", ".", ".."])
def test_a_set_whose_name_cannot_be_in_an_address_is_not_created(client, name):
    refused = client.post("/v1/sets", json={"name": name, "schema": "x double"})

    assert (refused.status_code, "is a part of addresses" in refused.text) == (400, True)
    assert client.get("/v1/sets").json() == []


def test_why_explain_and_backtest_answer(alerts):
    why = alerts.post("/v1/sets/alerts/why", json={"query": "cheap", "row": {"price": 41.5}}).json()
    assert (why["holds"], why["condition"]["detail"]) == (False, "price is 41.5, 1.5 above 40")
    assert "2 queries at version 2" in alerts.get("/v1/sets/alerts/explain").json()["explanation"]
    history = "\n".join(
        json.dumps({"symbol": "IBM", "price": price, "ts": f"2026-03-02T14:0{i}:00Z"})
        for i, price in enumerate([41, 39, 42])
    )
    query = {"time": "ts", "key": "symbol"}
    result = alerts.post("/v1/sets/alerts/backtest", params=query, content=history, headers=LINES).json()
    assert (result["rows"], result["matches"]) == (3, 4)
    csv = b"symbol,price,ts\nIBM,39,2026-03-02T14:00:00Z\n"
    one = alerts.post(
        "/v1/sets/alerts/backtest", params={**query, "where": "price < 40", "against": "price < 1"}, content=csv,
        headers={"content-type": "text/csv"},
    ).json()  # fmt: skip
    assert (one["change"], one["matches_before"], one["matches_after"]) == (True, 1, 0)


def test_a_backtest_over_recent_rows_is_one_over_the_same_rows_in_a_body(alerts):
    prices = [41, 39, 42, 38, 12]
    rows = [{"symbol": "IBM", "price": price, "ts": f"2026-03-02T14:0{i}:00Z"} for i, price in enumerate(prices)]
    assert alerts.post("/v1/sets/alerts/rows", json=rows[:2]).status_code == 200
    lines = "\n".join(map(json.dumps, rows[2:]))
    assert alerts.post("/v1/sets/alerts/rows", content=lines, headers=LINES).status_code == 200
    query = {"time": "ts", "key": "symbol", "where": "price < 40"}

    sent = alerts.post("/v1/sets/alerts/backtest", params=query, json=rows)
    recent = alerts.post("/v1/sets/alerts/backtest", params={**query, "recent": True})
    assert recent.status_code == 200, recent.text
    assert (recent.json(), recent.json()["rows"]) == (sent.json(), 5)
    assert recent.json()["events"] == 3


def test_recent_rows_are_those_of_a_border_monitor_and_for_all_owners(alerts, registry):
    path = "/v1/sets/alerts/backtest?time=ts&recent=true&where=price<1"
    alerts.post("/v1/sets", json={"name": "plain", "schema": "price double, ts timestamp"})
    alerts.post("/v1/sets", json={"name": "idle", "kind": "border", "schema": "price double, ts timestamp"})
    codes = [alerts.post(path.replace("alerts", name)).json()["error"]["code"] for name in ("plain", "idle")]
    assert codes == ["other_kind", "no_monitor"]
    _, text = create_token(registry.database, "ann", "read", owner="ann")
    alerts.run(alerts.service.poll())
    assert alerts.post(path, headers={"authorization": f"Bearer {text}"}).status_code == 403


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_change_of_another_process_is_followed(database, request, tmp_path, open_client):
    if database == "postgres":
        from tests.postgres import UnavailableError, cluster

        try:
            url = cluster().new_database()
        except UnavailableError as reason:
            pytest.skip(str(reason))
    else:
        url = f"sqlite:///{tmp_path / 'followed.db'}"
    from serve.conftest import Client

    from vedette.serve.options import ServeOptions

    with_other = vd.Registry(url)
    with_other.create("a", "border", SCHEMA)
    own = vd.Registry(url)
    client = Client(own, ServeOptions(state=tmp_path / "other", poll_seconds=0.05))
    try:
        assert client.post("/v1/sets/a/match", json={"price": 3}).json()["queries"] == []
        with_other.add("a", "low", "price < 5")

        for _ in range(100):
            found = client.post("/v1/sets/a/match", json={"price": 3}).json()
            if found["queries"]:
                break
            client.run(asyncio.sleep(0.02))

        assert found == {"version": 1, "queries": ["low"]}
    finally:
        client.close()
        own.close()
        with_other.close()


@pytest.mark.parametrize("name", ["dwell", "expire_after", "cooldown"])
def test_a_duration_that_does_not_fit_the_times_of_the_monitor_is_refused_and_rows_are_not(alerts, name):
    row, new = {"symbol": "IBM", "price": 5, "ts": "2026-01-01T00:00:00Z"}, {"id": "bad", "where": "price > 1", name: 5}
    line = {**new, "id": "worse"}

    answers = [
        alerts.post("/v1/sets/alerts/queries", json=new),
        alerts.patch("/v1/sets/alerts/queries/cheap", json={name: 5}),
        alerts.post("/v1/sets/alerts/queries/bulk", content=json.dumps(line), headers=LINES),
    ]

    assert [answer.status_code for answer in answers] == [400] * 3
    assert all(f"{name} must be a duration such as '5 minutes'; got 5" in answer.text for answer in answers[:2])
    assert alerts.post("/v1/sets/alerts/rows", json=row).status_code == 200
    assert alerts.post("/v1/sets/alerts/queries", json={**new, name: "5 minutes"}).status_code == 201
