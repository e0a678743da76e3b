"""Queries that match nearly every row are flagged, and refused above a limit; other owners' answers are the same."""

from __future__ import annotations

import json
from itertools import pairwise

import pyarrow as pa
import pytest
from serve.conftest import ARROW as ARROW_TYPE
from serve.conftest import LINES, with_alerts

import vedette as vd
from vedette.registry.tokens import create_token
from vedette.serve.arrow_streams import write_stream
from vedette.serve.bodies import ARROW, JSON, RowsOf
from vedette.serve.match_shares import BroadQueries
from vedette.serve.recent_rows import RecentRows
from vedette.serve.row_log import Body

QUERIES, ROWS = "/v1/sets/alerts/queries", "/v1/sets/alerts/rows"


def rows(n, *, first=0):
    """Rows of n keys, with the prices 0 to n - 1."""
    return [{"symbol": f"k{i}", "price": i, "ts": f"2026-01-01T00:{first:02}:00Z"} for i in range(n)]


def add(client, query_id, text, **more):
    return client.post(QUERIES, json={"id": query_id, "where": text}, **more)


@pytest.fixture
def busy(alerts):
    """A set with 200 recent rows, of the prices 0 to 199."""
    assert alerts.post(ROWS, json=rows(200)).status_code == 200
    return alerts


def test_the_answer_to_a_change_has_the_share_of_the_recent_rows_that_the_query_matches(busy):
    narrow = add(busy, "narrow", "price < 10").json()
    assert narrow == {"version": 3, "match_share": 0.05}

    broad = add(busy, "broad", "price >= 50").json()
    assert (broad["version"], broad["match_share"]) == (4, 0.75)
    assert broad["warnings"] == ["the query matches 75% of 200 rows of the last ones; narrow it if that is not meant"]
    changed = busy.patch(f"{QUERIES}/narrow", json={"where": "symbol IS NOT NULL"}).json()
    assert (changed["match_share"], len(changed["warnings"])) == (1.0, 1)
    assert busy.patch(f"{QUERIES}/narrow", json={"metadata": {"a": 1}}).json() == {"version": 6}


def test_the_report_of_many_changes_has_shares_by_line(busy):
    texts = {"a": "price < 10", "b": "price >= 0", "c": "prise > 1", "d": "length(symbol) > 2"}
    lines = "\n".join(json.dumps({"id": name, "where": text}) for name, text in texts.items())

    report = busy.post(f"{QUERIES}/bulk?skip_invalid=true", content=lines, headers=LINES).json()

    assert [line.get("match_share") for line in report["lines"]] == [0.05, 1.0, None, 0.95]
    assert ["warnings" in line for line in report["lines"]] == [False, True, False, True]


def test_few_rows_say_nothing_about_a_query(alerts):
    alerts.post(ROWS, json=rows(99))

    assert add(alerts, "all", "price >= 0").json() == {"version": 3}
    alerts.post(ROWS, json=rows(1, first=1))
    assert add(alerts, "all too", "price >= 0").json()["match_share"] == 1.0


def test_broad_queries_are_in_the_list_the_plan_and_the_status(busy):
    add(busy, "broad", "price >= 50")

    busy.get("/v1/status")  # measures soon
    plan = busy.get("/v1/sets/alerts/explain").json()

    assert plan["broad"] == [
        {"id": "broad", "match_share": 0.75}, {"id": "cheap", "match_share": 0.2}
    ]  # fmt: skip
    (state,) = busy.get("/v1/status").json()["sets"]
    assert state["broad"] == 2
    listed = {query["id"]: query.get("match_share") for query in busy.get(QUERIES).json()["queries"]}
    assert listed == {"broad": 0.75, "cheap": 0.2, "ibm": None}
    assert busy.get(f"{QUERIES}/broad").json()["match_share"] == 0.75


def test_a_query_that_matches_more_than_the_limit_is_refused_and_one_at_the_limit_is_not(open_client):
    client = with_alerts(open_client(max_match_share=0.5))
    client.post(ROWS, json=rows(200))

    assert add(client, "half", "price >= 100").json()["match_share"] == 0.5
    refused = add(client, "more", "price >= 99")
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        {
            "code": "broad_query",
            "message": "query 'more' matches 50.5% of 200 rows of the last ones; at most 50% are allowed "
            "(--max-match-share); narrow it",
            "query": "more",
        },
    )
    assert client.patch(f"{QUERIES}/half", json={"where": "price >= 99"}).status_code == 400
    lines = "\n".join(json.dumps({"id": str(low), "where": f"price >= {low}"}) for low in (99, 101))
    bulk = client.post(f"{QUERIES}/bulk", content=lines, headers=LINES)
    assert (bulk.status_code, [line["id"] for line in bulk.json()["error"]["lines"]]) == (400, ["99"])
    assert client.post(f"{QUERIES}/bulk?skip_invalid=true", content=lines, headers=LINES).json()["added"] == 1
    assert client.get(f"{QUERIES}/half").json()["where"] == "price >= 100"


def test_one_owners_query_for_every_row_is_refused_and_others_answers_are_the_same(open_client, registry):
    client = with_alerts(open_client(max_match_share=0.5))
    owners = {
        name: {"authorization": f"Bearer {create_token(registry.database, name, 'write', owner=name)[1]}"}
        for name in ("greedy", "bob")
    }
    client.headers = {"authorization": f"Bearer {create_token(registry.database, 'root', 'admin')[1]}"}
    client.run(client.service.poll())
    client.post(ROWS, json=rows(200))
    own = {"symbol": "IBM", "price": 50, "ts": "2026-01-02T00:00:00Z"}

    def matched(row):
        return client.post("/v1/sets/alerts/match", json=row, headers=owners["bob"]).json()["queries"]

    before = matched(own)
    refused = [add(client, f"all-{n}", "symbol IS NOT NULL OR price > 0", headers=owners["greedy"]) for n in range(20)]

    assert {answer.status_code for answer in refused} == {400}
    assert matched(own) == before == ["ibm"]
    events = client.post(ROWS, json=own).json()["events"]
    assert [(event["query"], event["event"]) for event in events] == [("ibm", "enter")]
    assert add(client, "mine", "price = 7", headers=owners["bob"]).status_code == 201


def test_an_uploaded_sample_is_kept_with_the_set_and_bounds_its_queries(client):
    sample = [{"price": price, "ts": "2026-01-01T00:00:00Z"} for price in range(4)]
    new = {"name": "alerts", "schema": "price double, ts timestamp", "sample": sample, "max_match_share": 0.5}
    assert client.post("/v1/sets", json=new).json()["max_match_share"] == 0.5

    assert add(client, "half", "price < 2").json()["match_share"] == 0.5
    refused = add(client, "more", "price < 3")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_query")
    assert "matches 75% of the 4 rows of the sample, more than 50%" in refused.json()["error"]["message"]
    assert client.patch("/v1/sets/alerts", json={"sample": [{"price": 9}]}).status_code == 200
    assert add(client, "more", "price < 3").json()["match_share"] == 0.0
    assert client.patch("/v1/sets/alerts", json={"max_match_share": "none"}).status_code == 200
    assert add(client, "all", "price = 9").json() == {"version": 3}
    alone = client.post("/v1/sets", json={**new, "name": "alone", "max_match_share": None})
    assert (alone.status_code, "sample needs max_match_share" in alone.text) == (400, True)
    zones = client.post("/v1/sets", json={"name": "z", "kind": "moving join", "sample": sample, "max_match_share": 1})
    assert zones.status_code == 400


def test_queries_cannot_use_a_field_that_no_row_of_a_sample_has(client):
    new = {"name": "alerts", "schema": "price double, size int", "sample": [{"Price": 1}], "max_match_share": 0.5}
    assert client.post("/v1/sets", json=new).status_code == 201

    refused = add(client, "large", "size > 1")
    assert (refused.status_code, "uses field 'size', which the sample lacks" in refused.text) == (400, True)
    assert add(client, "cheap", "price < 1").status_code == 201
    misspelt = client.patch("/v1/sets/alerts", json={"sample": [{"prise": 1}]})
    assert (misspelt.status_code, misspelt.json()["error"]["message"]) == (
        400, "the sample has no field of the set; its fields are: price, size"
    )  # fmt: skip


def test_broad_queries_are_those_that_plain_counting_finds():
    queries = vd.QuerySet("x double, s string")
    texts = {f"q{i}": f"x >= {i * 7} AND x < {i * 7 + i}" for i in range(60)} | {"all": "s IS NULL OR x > 3"}
    queries.add_many(list(texts), list(texts.values()))
    queries.remove("q40")
    xs = [float(i % 300) for i in range(500)]
    table = pa.table({"x": xs, "s": pa.array([None] * 500, pa.string())})

    found = BroadQueries.find(queries, table)

    counts = {f"q{i}": sum(i * 7 <= x < i * 7 + i for x in xs) for i in range(60) if i != 40} | {"all": 500}
    expected = {name: n / 500 for name, n in counts.items() if n > 50}
    assert found.shares == pytest.approx(expected)
    assert next(iter(found.shares)) == "all"
    assert found.n_queries == len(expected)


def test_a_sample_has_evenly_spaced_rows_of_the_newest_bodies_in_every_form():
    rows_of = RowsOf(vd.Schema.parse("x double"), "UTC", 0)
    recent = RecentRows()
    assert recent.sample(rows_of) is None
    recent.append([Body(JSON, b'{"x": -1}')])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("x", pa.float64())])) as stream:
        stream.write_table(pa.table({"x": [float(x) for x in range(10_000)]}))
    recent.append([Body(ARROW, sink.getvalue().to_pybytes())])

    xs = recent.sample(rows_of)["x"].to_pylist()

    assert (len(xs), xs[0], xs[-1]) == (1000, -1.0, 9999.0)
    assert max(after - before for before, after in pairwise(xs)) <= 11


@pytest.mark.parametrize("form", [JSON, ARROW])
def test_a_sample_has_rows_that_charts_have_read_before(form):
    rows_of, recent = RowsOf(vd.Schema.parse("x double"), "UTC", 0), RecentRows()
    for first in (0, 50, 100):
        table = pa.table({"x": [float(x) for x in range(first, first + 50)]})
        body = json.dumps(table.to_pylist()).encode() if form == JSON else write_stream(table)
        recent.append([Body(form, body)])
        recent.tables(rows_of)

    assert recent.sample(rows_of)["x"].to_pylist() == [float(x) for x in range(150)]


def test_a_field_that_rows_of_arrow_lack_is_null_and_hides_no_other_query_from_the_limit(open_client):
    client = with_alerts(open_client(max_match_share=0.5))
    client.patch("/v1/sets/alerts", json={"schema": "symbol string, price double, ts timestamp, size int"})
    client.delete("/v1/sets/alerts/monitor")
    client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts"})
    table = RowsOf(vd.Schema.parse("symbol string, price double, ts timestamp"), "UTC", 0).to_table(rows(200))
    assert client.post(ROWS, content=write_stream(table), headers=ARROW_TYPE).status_code == 200

    texts = {"a": "size > 1", "b": "price >= 0", "c": "size IS NULL", "d": "price < 10"}
    lines = "\n".join(json.dumps({"id": name, "where": text}) for name, text in texts.items())
    report = client.post(f"{QUERIES}/bulk?skip_invalid=true", content=lines, headers=LINES).json()

    assert [line["did"] for line in report["lines"]] == ["added", "nothing", "nothing", "added"]
    assert [line.get("match_share") for line in report["lines"]] == [0.0, None, None, 0.05]


def test_small_bodies_are_counted_with_the_objects_around_them():
    recent = RecentRows(most=100_000)
    recent.append(Body(JSON, b"{}") for _ in range(10_000))

    assert len(recent._bodies) * 200 <= 100_000
