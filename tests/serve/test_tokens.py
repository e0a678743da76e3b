"""Tokens: who may do what, whose queries they see, and what every route answers without one."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import httpx
import pytest
from serve.conftest import LINES, Socket
from serve.test_rows import MATCH, ROWS, row

from vedette.registry.tokens import create_token, list_tokens, revoke_token
from vedette.serve import access, bulk
from vedette.serve.event_feed import EventFilter
from vedette.serve.problems import Problem
from vedette.serve.rates import Rates
from vedette.serve.routes.events import read_on

OPEN = ("/healthz", "/readyz")


def bearer(text):
    return {"authorization": f"Bearer {text}"}


@pytest.fixture
def token(alerts, registry):
    """Creates a token; returns its headers."""

    def create(role, **options):
        _, text = create_token(registry.database, f"the {role}", role, **options)
        alerts.run(alerts.service.poll())
        return bearer(text)

    return create


def every_route(client):
    document = client.get("/openapi.json", headers=client.headers).json()
    for path, operations in document["paths"].items():
        for method in operations:
            yield method.upper(), path.replace("{set}", "alerts").replace("{id}", "cheap")
    yield "GET", "/openapi.json"


def test_every_route_needs_a_token_once_there_is_one(alerts, token):
    admin = token("admin")
    routes = list(every_route(type("Asks", (), {"get": alerts.get, "headers": admin})))

    assert len(routes) > 25
    for method, path in routes:
        for headers in ({}, bearer("vdt_abc_def"), {"authorization": "Basic eDp5"}, bearer("")):
            answer = alerts.request(method, path, headers=headers)
            expected = 200 if path in OPEN else 401
            assert answer.status_code == expected, (method, path)
            if expected == 401:
                assert answer.json()["error"]["code"] == "unauthorized"
                assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/v1/sets/alerts/events/ws", "/v1/sets/alerts/rows/ws"])
def test_sockets_need_a_token_too(alerts, token, path):
    token("admin")
    socket = Socket(alerts, path)
    alerts.run(socket.end())

    assert [(each["type"], each["code"]) for each in socket.sent] == [("websocket.close", 4401)]


def revoke_all(alerts, registry):
    for known in list_tokens(registry.database):
        revoke_token(registry.database, known.id)
    alerts.run(alerts.service.poll())


def test_rows_of_a_token_that_was_revoked_meanwhile_are_not_accepted(alerts, token, registry):
    socket = Socket(alerts, f"{ROWS}/ws", token("write"))
    alerts.run(socket.wait_for(1))
    revoke_all(alerts, registry)

    socket.put("receive", text=json.dumps(row("IBM", 35, 0)))
    alerts.run(socket.end())

    assert [(each["type"], each.get("code")) for each in socket.sent[1:]] == [("websocket.close", 4401)]
    live = alerts.service.live["alerts"]
    assert alerts.run(live.call(lambda: live.feed.next)) == 1  # after all that was accepted


def test_a_revoked_token_gets_no_further_events(alerts, token, registry):
    alerts.post(ROWS, json=row("IBM", 35, 0))
    caller = alerts.service.tokens.find(token("read")["authorization"])
    revoke_all(alerts, registry)

    async def read():
        feed = alerts.service.live["alerts"].feed
        return [each async for each in read_on(alerts.service, caller, feed, EventFilter(), 0)]

    assert alerts.run(asyncio.wait_for(read(), 10)) == [None]


def test_an_older_read_of_the_tokens_does_not_replace_a_newer_one(alerts, registry, monkeypatch):
    is_reading, is_newer_read = threading.Event(), threading.Event()

    def read_slowly(database):
        found = list_tokens(database)
        if not is_reading.is_set():
            is_reading.set()
            is_newer_read.wait(0.2)
        return found

    monkeypatch.setattr(access, "list_tokens", read_slowly)
    older = threading.Thread(target=alerts.service.tokens.refresh)
    older.start()
    is_reading.wait(10)
    create_token(registry.database, "new", "read")
    alerts.service.tokens.refresh()
    is_newer_read.set()
    older.join()

    assert alerts.service.tokens.has_active


def test_a_revoked_or_expired_token_is_refused_and_the_service_stays_closed(alerts, token, registry):
    headers = token("read")
    assert alerts.get("/v1/sets", headers=headers).status_code == 200
    (known,) = list_tokens(registry.database)

    revoke_token(registry.database, known.id)
    alerts.run(alerts.service.poll())

    assert alerts.get("/v1/sets", headers=headers).json()["error"]["message"] == "the token is revoked"
    assert alerts.get("/v1/sets").status_code == 401
    short = token("read", ttl="1 millisecond")
    time.sleep(0.01)
    assert alerts.get("/v1/sets", headers=short).json()["error"]["message"] == "the token has expired"


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [
        ("write", "POST", "/v1/sets/alerts/queries", {"id": "x", "where": "price > 1"}),
        ("write", "PATCH", "/v1/sets/alerts/queries/cheap", {"where": "price > 1"}),
        ("write", "DELETE", "/v1/sets/alerts/queries/cheap", None),
        ("write", "POST", "/v1/sets/alerts/restore", {"version": 1}),
        ("write", "POST", ROWS, row("IBM", 3, 1)),
        ("write", "POST", "/v1/sets/alerts/advance", {"time": "2026-03-02T00:00:00Z"}),
        ("admin", "POST", "/v1/sets", {"name": "n", "schema": "x double"}),
        ("admin", "PATCH", "/v1/sets/alerts", {"time_zone": "Europe/Berlin"}),
        ("admin", "DELETE", "/v1/sets/alerts/monitor", None),
        ("admin", "DELETE", "/v1/sets/alerts", None),
        ("admin", "PUT", "/v1/sets/alerts/deliveries/hook", {"url": "https://example.com"}),
        ("admin", "GET", "/v1/sets/alerts/deliveries", None),
        ("admin", "GET", "/v1/dead-letters", None),
        ("admin", "POST", "/v1/dead-letters/retry", {}),
        ("admin", "POST", "/v1/dead-letters/drop", {"ids": ["x"]}),
        ("admin", "GET", "/v1/tokens", None),
        ("admin", "POST", "/v1/tokens", {"name": "n", "role": "admin"}),
    ],
)
def test_a_role_includes_the_lesser_ones_and_no_more(alerts, token, role, method, path, body):
    roles = ["read", "write", "admin"]
    tokens = {each: token(each) for each in roles}

    for each in roles:
        answer = alerts.request(method, path, json=body, headers=tokens[each])
        is_allowed = roles.index(each) >= roles.index(role)
        assert (answer.status_code < 300) == is_allowed, answer.text
        if not is_allowed:
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        elif each == role:
            break


def test_a_token_of_some_sets_does_not_see_the_others(alerts, token):
    alerts.post("/v1/sets", json={"name": "secret", "schema": "x double"})
    headers = token("write", sets=["alerts"])

    assert [each["name"] for each in alerts.get("/v1/sets", headers=headers).json()] == ["alerts"]
    for method, path in (("GET", "/v1/sets/secret"), ("POST", "/v1/sets/secret/match"), ("GET", "/v1/sets/nosuch")):
        answer = alerts.request(method, path, json={"x": 1} if method == "POST" else None, headers=headers)
        assert answer.status_code == 404
        assert answer.json()["error"]["message"].endswith("or the token is not for it")
    assert alerts.get("/metrics", headers=headers).status_code == 403


def test_a_token_of_an_owner_sees_and_edits_only_what_is_theirs(alerts, token):
    ann = token("write", owner="ann")
    queries = "/v1/sets/alerts/queries"

    assert [each["id"] for each in alerts.get(queries, headers=ann).json()["queries"]] == ["cheap"]
    assert alerts.post(MATCH, json={"symbol": "IBM", "price": 35}, headers=ann).json()["queries"] == ["cheap"]
    both = alerts.post(MATCH, json=[{"symbol": "IBM", "price": 35}, {"symbol": "IBM", "price": 45}], headers=ann).json()
    assert both["matches"] == [["cheap"], []]
    for method, path, body in (
        ("GET", f"{queries}/ibm", None),
        ("GET", f"{queries}/ibm/history", None),
        ("PATCH", f"{queries}/ibm", {"where": "price > 1"}),
        ("DELETE", f"{queries}/ibm", None),
        ("POST", f"{queries}/ibm/restore", {"version": 2}),
        ("POST", "/v1/sets/alerts/why", {"query": "ibm", "row": {"price": 1}}),
    ):
        refused = alerts.request(method, path, json=body, headers=ann)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_query"), path
    for path, body in (
        (queries, {"id": "x", "where": "price > 1", "metadata": {"owner": "bob"}}),
        (ROWS, row("IBM", 3, 1)),
        ("/v1/sets/alerts/restore", {"version": 1}),
        ("/v1/sets/alerts/backtest?time=ts", {}),
    ):
        assert alerts.post(path, json=body, headers=ann).status_code == 403
    assert alerts.get("/v1/sets/alerts/explain", headers=ann).status_code == 403
    assert alerts.get("/v1/sets/alerts/events?owner=bob", headers=ann).status_code == 403

    assert alerts.post(queries, json={"id": "mine", "where": "price > 1"}, headers=ann).status_code == 201
    assert alerts.get(f"{queries}/mine", headers=ann).json()["metadata"] == {"owner": "ann"}
    lines = [
        {"id": "more", "where": "price > 2"},
        {"op": "remove", "id": "ibm"},
        {"op": "put", "id": "ibm", "where": "1=1"},
    ]
    body = "\n".join(map(json.dumps, lines))
    report = alerts.post(f"{queries}/bulk?skip_invalid=true", content=body, headers={**ann, **LINES}).json()
    assert [line["did"] for line in report["lines"]] == ["added", "nothing", "nothing"]
    assert alerts.patch(f"{queries}/mine", json={"metadata": {"owner": "bob"}}, headers=ann).status_code == 403
    diff = alerts.get("/v1/sets/alerts/diff?before=0", headers=ann).json()
    assert sorted(line["id"] for line in diff["queries"]) == ["cheap", "mine", "more"]


def change_many(alerts, headers, *lines):
    body = "\n".join(map(json.dumps, lines))
    return alerts.post("/v1/sets/alerts/queries/bulk", content=body, headers={**headers, **LINES})


def test_a_token_of_an_owner_asks_why_about_keys_inside_its_queries_only(alerts, token):
    row = {"symbol": "IBM", "price": 39.0, "ts": "2026-03-02T14:00:00Z"}
    assert alerts.post("/v1/sets/alerts/rows", json=[row, row | {"symbol": "SAP", "price": 41.0}]).status_code == 200
    ann = token("read", owner="ann")

    def ask(key):
        return alerts.post("/v1/sets/alerts/why", json={"query": "cheap", "key": key}, headers=ann)

    assert ask("IBM").json()["holds"]
    for key in ("SAP", "unknown"):
        refused = ask(key)
        assert (refused.status_code, "keys inside its queries" in refused.text) == (403, True)
        assert "41" not in refused.text


def test_many_queries_of_an_owner_stay_theirs(alerts, token):
    ann = token("write", owner="ann")
    queries = "/v1/sets/alerts/queries"

    given_away = change_many(alerts, ann, {"op": "replace", "id": "cheap", "metadata": {"owner": "bob"}})
    assert given_away.json()["error"]["code"] == "invalid_lines"
    assert change_many(alerts, ann, {"op": "replace", "id": "cheap", "metadata": {}}).status_code == 200
    assert alerts.get(f"{queries}/cheap", headers=ann).json()["metadata"] == {"owner": "ann"}

    alerts.patch(f"{queries}/cheap", json={"metadata": {"team": "eu"}}, headers=ann)
    report = change_many(alerts, ann, {"op": "put", "id": "cheap", "where": "price < 1"}).json()
    assert (report["replaced"], report["lines"][0]["did"]) == (1, "replaced")
    assert alerts.get(f"{queries}/cheap", headers=ann).json()["metadata"] == {"owner": "ann", "team": "eu"}


def test_put_replaces_a_query_that_another_writer_has_just_added(alerts, token, registry, monkeypatch):
    ann = token("write", owner="ann")
    add_step = bulk._add_step

    def add_after_another_writer(*given):
        if not registry.find_ids("alerts", ["new"]):
            registry.add("alerts", "new", "price = 7", metadata={"owner": "ann"})
        add_step(*given)

    monkeypatch.setattr(bulk, "_add_step", add_after_another_writer)

    report = change_many(alerts, ann, {"op": "put", "id": "new", "where": "price = 8"}).json()

    assert [line["did"] for line in report["lines"]] == ["replaced"]
    assert alerts.get("/v1/sets/alerts/queries/new", headers=ann).json()["where"] == "price = 8"


def test_differences_of_an_owner_are_filtered_before_they_are_limited(alerts, token):
    bob = token("read", owner="bob")

    diff = alerts.get("/v1/sets/alerts/diff?before=0&limit=1", headers=bob).json()

    assert ([line["id"] for line in diff["queries"]], diff["more"]) == (["ibm"], 0)


def test_an_owner_that_is_a_number_is_the_same_everywhere(alerts, token):
    for query_id, owner in (("number", 7), ("text", "7"), ("other", 70), ("nobody", None)):
        new = {"id": query_id, "where": "price = 1", "metadata": {"owner": owner}}
        assert alerts.post("/v1/sets/alerts/queries", json=new).status_code == 201
    own, other = token("write", owner="7"), token("read", owner="7.0")
    alerts.headers = token("admin")

    def ids(headers, **more):
        return [
            query["id"]
            for query in alerts.get("/v1/sets/alerts/queries", headers=headers, params=more).json()["queries"]
        ]

    assert (ids(own), ids(own, limit=1), ids(own, after="number"), ids(other)) == (
        ["number", "text"], ["number"], ["text"], []
    )  # fmt: skip
    assert alerts.post(MATCH, json={"price": 1}, headers=own).json()["queries"] == ["number", "text"]
    assert alerts.get("/v1/sets/alerts/queries/number", headers=own).status_code == 200
    assert alerts.get("/v1/sets/alerts/queries/other", headers=own).status_code == 404
    assert alerts.patch("/v1/sets/alerts/queries/number", json={"where": "price = 2"}, headers=own).status_code == 200
    events = alerts.post(ROWS, json=row("IBM", 1, 0)).json()["events"]
    assert {event["query"]: event["owner"] for event in events}["text"] == "7"
    new = {"id": "new", "where": "price = 1", "metadata": {"owner": 7}}
    assert alerts.post("/v1/sets/alerts/queries", json=new, headers=own).status_code == 201
    assert alerts.get("/v1/sets/alerts/queries/new", headers=own).json()["metadata"] == {"owner": "7"}


@pytest.mark.parametrize("owner", ["NaN", "-Infinity", "[1]", "{}", '"x"', "null", "true", "1e999", "9" * 200])
def test_an_owner_may_have_any_name(alerts, token, owner):
    own = token("write", owner=owner)
    new = {"id": "own", "where": "price = 1"}
    assert alerts.post("/v1/sets/alerts/queries", json=new, headers=own).status_code == 201

    listed = alerts.get("/v1/sets/alerts/queries", headers=own)

    assert [query["id"] for query in listed.json()["queries"]] == ["own"]


def test_the_history_names_the_author_of_each_change(alerts, token):
    writer = token("write")
    alerts.patch("/v1/sets/alerts/queries/cheap", json={"where": "price < 3"}, headers=writer)

    first, second = alerts.get("/v1/sets/alerts/queries/cheap/history", headers=writer).json()

    assert first["added_by"] is None
    assert first["removed_by"] == second["added_by"]
    assert second["added_by"].startswith("the write (")


def test_a_token_has_a_limit_on_its_queries(alerts, token):
    writer = token("write", max_queries=2)
    for number in (1, 2):
        new = {"id": f"n{number}", "where": "price > 1"}
        assert alerts.post("/v1/sets/alerts/queries", json=new, headers=writer).status_code == 201

    refused = alerts.post("/v1/sets/alerts/queries", json={"id": "n3", "where": "price > 1"}, headers=writer)

    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_queries")
    body = json.dumps({"id": "n3", "where": "price > 1"})
    bulk = alerts.post("/v1/sets/alerts/queries/bulk", content=body, headers={**writer, **LINES})
    assert bulk.status_code == 429
    assert alerts.delete("/v1/sets/alerts/queries/n1", headers=writer).status_code == 200
    assert (
        alerts.post("/v1/sets/alerts/queries", json={"id": "n3", "where": "price > 1"}, headers=writer).status_code
        == 201
    )


def test_a_restore_is_within_the_limit_on_queries(alerts, token):
    writer = token("write", max_queries=1)
    new = [{"id": f"n{number}", "where": "price > 1"} for number in (1, 2)]
    alerts.post("/v1/sets/alerts/queries", json=new[0], headers=writer)
    alerts.delete("/v1/sets/alerts/queries/n1", headers=writer)
    alerts.post("/v1/sets/alerts/queries", json=new[1], headers=writer)

    refused = alerts.post("/v1/sets/alerts/queries/n1/restore", json={"version": 3}, headers=writer)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_queries")
    assert alerts.post("/v1/sets/alerts/queries/n2/restore", json={"version": 5}, headers=writer).status_code == 200


def test_tokens_are_created_listed_and_revoked_over_http_and_shown_once(alerts):
    made = alerts.post("/v1/tokens", json={"name": "root", "role": "admin"})
    assert made.status_code == 201
    root = bearer(made.json()["token"])
    assert alerts.get("/v1/tokens").status_code == 401  # from now on

    reader = alerts.post("/v1/tokens", json={"name": "r", "role": "read", "sets": ["alerts"]}, headers=root).json()
    listed = alerts.get("/v1/tokens", headers=root)
    assert [each["name"] for each in listed.json()] == ["root", "r"]
    assert "digest" not in listed.text
    assert reader["token"].split("_", 2)[2] not in listed.text
    assert alerts.delete(f"/v1/tokens/{reader['id']}", headers=root).json()["revoked_at"] is not None
    assert alerts.get("/v1/sets", headers=bearer(reader["token"])).status_code == 401
    assert alerts.delete("/v1/tokens/nosuch", headers=root).status_code == 404
    confined = alerts.post("/v1/tokens", json={"name": "x", "role": "admin", "owner": "ann"}, headers=root)
    assert "give the role read or write to confine a token" in confined.json()["error"]["message"]


def test_the_database_has_no_token_in_it(alerts, registry, tmp_path):
    _, text = create_token(registry.database, "x", "read")
    secret = text.split("_", 2)[2].encode()

    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]

    assert files
    assert not any(secret in data for data in files)


def test_tokens_are_managed_by_commands(run, tmp_path):
    url = f"sqlite:///{tmp_path / 'tokens.db'}"
    code, out, err = run("serve", "token", "create", "ann", "--role", "write", "--owner", "ann", "--ttl", "30 days",
                         "--registry", url)  # fmt: skip
    assert (code, out[:4], err) == (0, "vdt_", "")
    token_id = out.split("_")[1]

    code, out, _ = run("serve", "token", "list", "--registry", url, "--json")
    (listed,) = json.loads(out)
    assert (listed["id"], listed["role"], listed["owner"], listed["revoked_at"]) == (token_id, "write", "ann", None)
    code, out, _ = run("serve", "token", "revoke", token_id, "--registry", url, "--json")
    assert json.loads(out)["revoked_at"]
    code, _, err = run("serve", "token", "revoke", "nosuch", "--registry", url)
    assert (code, err) == (2, "vedette: no token 'nosuch'; `vedette serve token list` shows their ids\n")
    code, _, err = run("serve", "token", "create", "ann", "--role", "owner", "--registry", url)
    assert (code, err) == (2, "vedette: --role must be one of: read, write, admin; got 'owner'\n")


def test_pages_of_other_hosts_cannot_use_a_service_without_tokens(alerts):
    assert alerts.get("/v1/sets", headers={"host": "evil.example"}).json()["error"]["code"] == "foreign_host"
    crossed = alerts.post("/v1/sets", json={"name": "x"}, headers={"origin": "https://evil.example"})
    assert (crossed.status_code, crossed.json()["error"]["code"]) == (403, "foreign_origin")
    assert alerts.get("/v1/sets", headers={"origin": "http://["}).json()["error"]["code"] == "foreign_origin"
    assert alerts.get("/v1/sets", headers={"origin": "http://localhost"}).status_code == 200
    for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080"):
        assert alerts.get("/v1/sets", headers={"host": host}).status_code == 200


def test_limits_are_refused_with_a_sentence(open_client):
    from serve.conftest import with_alerts

    client = with_alerts(
        open_client(max_body_bytes=1000, max_rows=3, rows_per_second=2, max_text_length=50, max_streams=1)
    )

    large = client.post(MATCH, content=b" " * 1001, headers={"content-type": "application/json"})
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")
    many = client.post(MATCH, json=[{"price": 1}] * 4)
    assert (many.status_code, many.json()["error"]["code"]) == (413, "too_many_rows")
    long = client.post("/v1/sets/alerts/queries", json={"id": "x", "where": "price > 1" + " " * 50})
    assert "the text has 59 characters; the limit is 50 (setting max_text_length)" in long.json()["error"]["message"]
    client.service.n_streams = 1
    assert client.get("/v1/sets/alerts/events").status_code == 429
    client.service.n_streams = 0
    answers = [client.post(ROWS, json=row("IBM", 35, minute)) for minute in range(8)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert "more than 2 rows a second" in refused[0].json()["error"]["message"]
    assert int(refused[0].headers["retry-after"]) >= 1


def test_the_limit_on_rates_covers_rows_that_are_matched(open_client):
    from serve.conftest import with_alerts

    client = with_alerts(open_client(rows_per_second=1))

    assert [client.post(MATCH, json=[{"price": 1}] * n).status_code for n in (2, 2)] == [200, 429]


def test_a_body_without_a_length_is_bounded_too(open_client):
    client = open_client(max_body_bytes=1000)

    async def endless():
        while True:
            yield b"x" * 100

    async def send():
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as other:
            headers = {"content-type": "application/json"}
            return [
                await other.post(path, content=endless(), headers=headers) for path in ("/v1/sets", "/v1/sets/a/match")
            ]

    assert [answer.status_code for answer in client.run(send())] == [413, 413]


def test_rates_are_by_caller_and_refill():
    rates = Rates(10)
    rates.take("a", 20, now=0.0)
    rates.take("b", 20, now=0.0)
    rates.take("c", 40, own=20, now=0.0)
    rates.take("d", 999, own=0, now=0.0)
    with pytest.raises(Problem, match="wait 1 s"):
        rates.take("a", 5, now=0.0)
    rates.take("a", 5, now=0.5)
    with pytest.raises(Problem, match="at most 20 can be sent at once"):
        rates.take("a", 21, now=99.0)
