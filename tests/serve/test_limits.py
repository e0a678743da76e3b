"""Limits of the service: each can be set, is refused with one sentence just above it, and is not just below it."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from datetime import UTC, datetime

import httpx
import pyarrow as pa
import pytest
from serve.conftest import ARROW, LINES, Socket, with_alerts

from vedette.errors import FileError, PipelineError
from vedette.registry.tokens import create_token
from vedette.serve.arrow_streams import write_stream
from vedette.serve.limits import LIMITS, limits_of_queries, read_limits
from vedette.serve.options import ServeOptions
from vedette.settings import Settings

QUERIES, MATCH = "/v1/sets/alerts/queries", "/v1/sets/alerts/match"
TIME = datetime(2026, 1, 1, tzinfo=UTC)
SQUARE = "0 0, 0 9, 9 9, 9 0, 0 0"  # five vertices
FIFTH = "0 0, 0 9, 5 9, 9 9, 9 0, 0 0"

# By limit: its value, a text within it, one above it, and what the sentence says.
TEXTS = {
    "max_text_length": (12, "price > 1000", "price > 10000", "the text has 13 characters; the limit is 12"),
    "max_terms": (2, "price > 1 AND symbol = 'a'", "price > 1 AND symbol = 'a' AND price < 9", "has 3 terms"),
    "max_list_values": (2, "price IN (1, 2)", "price IN (1, 2, 3)", "the IN lists have 3 values; the limit is 2"),
    "max_nesting": (2, "((price > 1))", "(((price > 1)))", "nests 3 levels deep; the limit is 2"),
    "max_boxes": (
        2,
        "price < 1 OR price > 2",
        "price < 1 OR price > 2 OR symbol = 'a'",
        "makes 3 boxes; the limit is 2",
    ),
    "max_polygon_vertices": (
        5,
        f"ST_Contains(ST_GeomFromText('POLYGON (({SQUARE}))'), ST_Point(price, price))",
        f"ST_Contains(ST_GeomFromText('POLYGON (({FIFTH}))'), ST_Point(price, price))",
        "the polygons have 6 vertices; the limit is 5",
    ),
    "max_residual_cost": (
        5,
        "length(symbol) % 2 = length(trim(symbol))",
        "length(symbol) % 2 = length(trim(upper(symbol)))",
        "the part of the condition that no index answers has 6 operations; the limit is 5",
    ),
}


def error_of(answer):
    return answer.json()["error"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_query_above_a_limit_is_refused_everywhere(open_client, name):
    most, fits, exceeds, words = TEXTS[name]
    client = open_client(**{name: most})
    assert client.post("/v1/sets", json={"name": "alerts", "schema": "symbol string, price double"}).status_code == 201

    added = client.post(QUERIES, json={"id": "fits", "where": fits})
    assert added.status_code == 201, added.text
    refused = client.post(QUERIES, json={"id": "exceeds", "where": exceeds})
    assert (refused.status_code, error_of(refused)["code"]) == (400, "invalid_query")
    assert words in error_of(refused)["message"]
    assert f"(setting {name})" in error_of(refused)["message"]
    assert error_of(client.patch(f"{QUERIES}/fits", json={"where": exceeds}))["code"] == "invalid_query"
    lines = "\n".join(json.dumps({"id": name, "where": text}) for name, text in (("a", fits), ("b", exceeds)))
    report = client.post(f"{QUERIES}/bulk?skip_invalid=true", content=lines, headers=LINES).json()
    assert [line["did"] for line in report["lines"]] == ["added", "nothing"]
    assert client.post("/v1/sets/alerts/check", json={"where": fits}).json()["valid"] is True
    assert client.post("/v1/sets/alerts/check", json={"where": exceeds}).json()["valid"] is False
    listed = client.get(QUERIES).json()["queries"]
    assert [query["id"] for query in listed] == ["a", "fits"]


def test_a_text_to_backtest_is_limited(open_client):
    client = with_alerts(open_client(max_terms=2))

    rows = [{"symbol": "a", "price": 1, "ts": "2026-01-01T00:00:00Z"}]
    answers = [
        client.post("/v1/sets/alerts/backtest", params={"time": "ts", "where": text}, json=rows)
        for text in ("price > 1", "price > 1 AND price < 3 AND symbol = 'a'")
    ]

    assert [answer.status_code for answer in answers] == [200, 400]
    assert "setting max_terms" in error_of(answers[1])["message"]


@pytest.mark.parametrize(
    ("name", "code"), [("max_body_bytes", "body_too_large"), ("max_rows", "too_many_rows")]
)  # fmt: skip
def test_a_body_at_its_limit_is_accepted_and_one_above_it_is_not(open_client, name, code):
    client = with_alerts(open_client(**{name: 200 if name == "max_body_bytes" else 4}))

    def send(n):
        body = b"[" + b",".join([b'{"price": 1}'] * (n if name == "max_rows" else 4)) + b"]"
        return client.post(MATCH, content=body.ljust(n), headers={"content-type": "application/json"})

    answers = [send(n) for n in ((200, 201) if name == "max_body_bytes" else (4, 5))]
    assert [answer.status_code for answer in answers] == [200, 413]
    assert error_of(answers[1])["code"] == code


def test_a_token_has_as_many_queries_as_the_service_allows_unless_it_has_its_own_limit(open_client, registry):
    client = with_alerts(open_client(max_queries_per_token=2))
    plain, own = (
        {"authorization": f"Bearer {create_token(registry.database, name, 'write', max_queries=most)[1]}"}
        for name, most in (("plain", None), ("own", 3))
    )
    client.run(client.service.poll())

    def add(headers, n):
        new = [{"id": f"{id(headers)}-{each}", "where": "price > 1"} for each in range(n)]
        return [client.post(QUERIES, json=each, headers=headers).status_code for each in new]

    assert add(plain, 3) == [201, 201, 429]
    assert add(own, 4) == [201, 201, 201, 429]


def test_queries_that_a_change_removes_make_room_for_those_that_it_adds(alerts, registry):
    _, text = create_token(registry.database, "writer", "write", max_queries=1)
    alerts.headers = {"authorization": f"Bearer {text}"}
    alerts.run(alerts.service.poll())
    assert alerts.post(QUERIES, json={"id": "a", "where": "price > 1"}).json()["version"] == 3

    def change(*lines):
        content = "\n".join(json.dumps(line) for line in lines)
        return alerts.post(f"{QUERIES}/bulk", content=content, headers=LINES).status_code

    new = {"id": "b", "where": "price > 2"}
    assert change({"op": "remove", "id": "cheap"}, new) == 429  # it is somebody else's
    assert change({"op": "remove", "id": "a"}, new) == 200
    assert change({"op": "add", "id": "c", "where": "price > 3"}, {"op": "remove", "id": "c"}) == 200
    assert alerts.post("/v1/sets/alerts/restore", json={"version": 3}).status_code == 200
    assert [query["id"] for query in alerts.get(QUERIES).json()["queries"]] == ["a", "cheap", "ibm"]


def test_a_token_may_have_its_own_rate(open_client, registry):
    client = with_alerts(open_client(rows_per_second=1))
    _, text = create_token(registry.database, "fast", "read", rows_per_second=3)
    client.headers = {"authorization": f"Bearer {text}"}
    client.run(client.service.poll())

    assert [client.post(MATCH, json=[{"price": 1}] * 6).status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("between", ["\n", "\r", "\r\n"])
def test_every_line_counts_towards_the_rate_however_lines_end(open_client, between):
    client = with_alerts(open_client(rows_per_second=2))

    def send(n):
        return client.post(MATCH, content=between.join(['{"price": 1}'] * n + [""]), headers=LINES).status_code

    assert [send(5), send(4), send(1)] == [429, 200, 429]


def test_rows_of_arrow_count_towards_the_rate_once_they_are_read(open_client):
    client = with_alerts(open_client(rows_per_second=100))

    def send(table, path="/v1/sets/alerts/rows"):
        return client.post(path, content=write_stream(table), headers=ARROW).status_code

    wide = pa.table({"symbol": [f"{n}" * 5000 for n in range(3)], "price": [1.0] * 3, "ts": [TIME] * 3})
    assert [send(wide) for _ in range(10)] == [200] * 10
    narrow = pa.table({"symbol": ["a"] * 1000, "price": [1.0] * 1000})
    assert [send(narrow, MATCH), send(wide)] == [200, 429]


def test_rows_of_a_socket_count_towards_the_rate_once_they_are_read(open_client):
    client = with_alerts(open_client(rows_per_second=100))
    rows = pa.table({"symbol": ["a"] * 500, "price": [1.0] * 500, "ts": [TIME] * 500})

    async def send():
        socket = Socket(client, "/v1/sets/alerts/rows/ws")
        for n_sent in (2, 3):
            socket.put("receive", bytes=write_stream(rows))
            await socket.wait_for(n_sent)
        socket.put("disconnect")
        await socket.end()
        return [json.loads(message["text"]) for message in socket.sent[1:]]

    accepted, refused = client.run(send())
    assert (accepted["rows"], refused["error"]["code"]) == (500, "too_many_rows")


def test_one_token_cannot_take_all_streams(open_client, registry):
    client = with_alerts(open_client(max_streams=3, max_streams_per_token=2))
    heads = [
        {"authorization": f"Bearer {create_token(registry.database, name, 'read')[1]}"} for name in ("greedy", "other")
    ]
    client.run(client.service.poll())

    async def open_all():
        opened = []
        for place in (0, 0, 0, 1, 1):
            opened.append(Socket(client, "/v1/sets/alerts/events/ws", heads[place]))
            await opened[-1].wait_for(1)
        kinds = [each.sent[0]["type"] for each in opened]
        for each in opened:
            each.put("disconnect")
            await each.end()
        return kinds

    assert client.run(open_all()) == [
        "websocket.accept", "websocket.accept", "websocket.close", "websocket.accept", "websocket.close"
    ]  # fmt: skip
    assert (client.service.n_streams, dict(client.service._streams_of)) == (0, {})


def test_a_connection_above_the_limit_is_refused_with_429_and_a_closed_one_makes_room(start_server):
    server = start_server("--max-connections", "2")

    def is_answered():
        with httpx.Client() as client:
            answer = client.get(f"{server.url}/healthz")
            return answer.status_code, answer.json()

    with ExitStack() as stack:
        for _ in range(2):
            opened = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert opened.recv(100).startswith(b"HTTP/1.1 200")
        status, answer = is_answered()
        assert (status, answer["error"]["code"]) == (429, "too_many_connections")
        assert answer["error"]["message"] == "2 connections are open, the limit (--max-connections)"
    deadline = 100
    while is_answered()[0] != 200 and deadline:
        deadline -= 1
    assert is_answered()[0] == 200


@pytest.mark.parametrize("name", [name for name in LIMITS if name != "max_match_share"])
@pytest.mark.parametrize("value", [-1, 10**30, "many", True, 0.5, None])
def test_absurd_limits_are_refused_with_a_sentence(tmp_path, name, value):
    with pytest.raises(PipelineError, match=rf"{name} must be a whole number of \d[\d,]* to [\d,]+; got"):
        ServeOptions(state=tmp_path, **{name: value})
    with pytest.raises(FileError, match=rf"\[serve\]: {name} must be a whole number .*; got"):
        read_limits({name: value})


@pytest.mark.parametrize("value", [0, -0.5, 1.01, float("nan"), "half", True, None])
def test_an_absurd_share_is_refused_with_a_sentence(tmp_path, value):
    with pytest.raises(
        PipelineError, match=r"max_match_share must be a share above 0 and at most 1, such as 0\.5; got"
    ):
        ServeOptions(state=tmp_path, max_match_share=value)


def test_a_request_has_at_least_one_row(tmp_path):
    with pytest.raises(PipelineError, match=r"max_rows must be a whole number of 1 to [\d,]+; got 0"):
        ServeOptions(state=tmp_path, max_rows=0)


def test_a_misspelt_limit_of_the_file_is_named():
    with pytest.raises(FileError, match=r"\[serve\]: unknown limit 'max_row'; limits are: .*; did you mean 'max_rows'"):
        read_limits({"max_row": 5})


def test_limits_on_queries_are_at_most_those_of_the_settings(tmp_path, set_limits):
    set_limits(max_boxes=100, max_text_length=50)

    with pytest.raises(PipelineError, match="max_boxes must be at most 100, the setting max_boxes; got 101"):
        ServeOptions(state=tmp_path, max_boxes=101)
    limited = ServeOptions(state=tmp_path, max_boxes=100, max_terms=7).limits_of_queries
    assert (limited.max_boxes, limited.max_terms, limited.max_text_length) == (100, 7, 50)


def test_without_limits_of_the_service_those_of_the_settings_apply():
    given = {name: 0 for name, limit in LIMITS.items() if limit.is_setting}

    assert limits_of_queries(Settings(), given) == Settings()


@pytest.mark.parametrize(
    ("flags", "file", "said"),
    [
        (("--max-rows", "-3"), "", "vedette: --max-rows must be a whole number of 1 to 1,000,000,000,000; got -3\n"),
        (("--max-boxes", "9" * 30), "", "vedette: --max-boxes must be a whole number of 0 to"),
        ((), "[serve]\nmax_rows = 'many'\n", "vedette: [serve]: max_rows must be a whole number of 1 to"),
        ((), "[serve]\nmax_row = 1\n", "vedette: [serve]: unknown limit 'max_row'"),
        ((), "serve = 5\n", "setting 'serve' is 5; it must be a table of the settings file"),
    ],
)
def test_an_absurd_limit_is_refused_at_the_start(run, tmp_path, monkeypatch, set_limits, flags, file, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vedette.toml").write_text(file)
    set_limits()

    code, _, err = run("serve", "--registry", f"sqlite:///{tmp_path / 'a.db'}", *flags)

    assert code == 2
    assert said in err


def test_flags_precede_the_settings_file(tmp_path, monkeypatch, set_limits):
    from vedette.cli.serve.run import GivenLimits

    monkeypatch.chdir(tmp_path)
    (tmp_path / "vedette.toml").write_text("[serve]\nmax_rows = 5\nmax_streams = 6\n")
    set_limits()

    assert GivenLimits(max_rows=7).read() == {"max_rows": 7, "max_streams": 6}


def test_an_address_that_is_none_is_refused_at_the_start(run, tmp_path):
    code, _, err = run("serve", "--registry", f"sqlite:///{tmp_path / 'a.db'}", "--allow-address", "nonsense")

    assert code == 2
    assert "addresses or networks such as '127.0.0.1' and '10.0.0.0/8'; got 'nonsense'" in err
