"""Sessions of the console: a cookie that stands for a token, and requests that another page cannot make."""

from __future__ import annotations

import time

import pytest
from serve.conftest import Socket
from serve.test_rows import ROWS, row
from serve.test_tokens import bearer

from vedette.registry.tokens import create_token, list_tokens, revoke_token
from vedette.serve import sessions

SESSION = "/v1/session"
PAGE = {"x-vedette-console": "1"}
CHANGE = ("POST", "/v1/sets/alerts/queries", {"id": "new", "where": "price > 1"})


@pytest.fixture
def text(alerts, registry):
    """The text of a token that may write."""
    _, made = create_token(registry.database, "ann", "write")
    alerts.run(alerts.service.poll())
    return made


@pytest.fixture
def signed_in(alerts, text):
    """A client with a cookie and no token."""
    answer = alerts.post(SESSION, headers=bearer(text))
    assert answer.status_code == 201, answer.text
    alerts.headers = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    alerts._client.cookies.clear()
    return alerts


def test_a_cookie_stands_for_the_token_and_does_not_contain_it(alerts, text):
    answer = alerts.post(SESSION, headers=bearer(text))

    name, *rest = answer.headers["set-cookie"].split("; ")
    assert {each.lower() for each in rest} == {"httponly", "samesite=strict", "max-age=43200", "path=/"}
    assert text.split("_", 2)[2] not in answer.headers["set-cookie"] + answer.text
    assert answer.json()["role"] == "write"
    assert alerts.get(SESSION, headers={"cookie": name}).json()["name"].startswith("ann (")


def test_the_cookie_is_secure_over_https(alerts, text):
    answer = alerts.post(f"https://localhost{SESSION}", headers=bearer(text))

    assert "; Secure" in answer.headers["set-cookie"]


def test_a_session_does_what_its_token_may_do(signed_in):
    method, path, body = CHANGE
    assert signed_in.request(method, path, json=body, headers=PAGE).status_code == 201
    assert signed_in.post(ROWS, json=row("IBM", 5, 0), headers=PAGE).status_code == 200
    assert signed_in.get("/v1/tokens").status_code == 403
    history = signed_in.get(f"{path}/new/history").json()
    assert history[0]["added_by"].startswith("ann (")


def test_answers_to_a_session_are_not_kept_by_browsers(signed_in):
    assert signed_in.get("/v1/sets").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "headers", [{}, {**PAGE, "sec-fetch-site": "cross-site"}, {**PAGE, "sec-fetch-site": "same-site"}]
)
def test_another_page_cannot_change_anything_with_the_cookie(signed_in, headers):
    method, path, body = CHANGE
    answer = signed_in.request(method, path, json=body, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_page")
    assert signed_in.get(f"{path}/new").status_code == 404


def test_pages_of_another_port_of_this_host_are_refused(signed_in):
    method, path, body = CHANGE
    answer = signed_in.request(method, path, json=body, headers={**PAGE, "origin": "http://localhost:3000"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize(("origin", "code"), [({}, 4403), ({"origin": "http://evil.example"}, 4403)])
def test_sockets_with_a_cookie_need_the_origin_of_the_console(signed_in, origin, code):
    socket = Socket(signed_in, f"{ROWS}/ws", {**signed_in.headers, **origin})
    signed_in.run(socket.end())

    assert [(each["type"], each["code"]) for each in socket.sent] == [("websocket.close", code)]


def test_sockets_of_the_console_are_accepted_and_end_when_it_signs_out(signed_in):
    socket = Socket(signed_in, f"{ROWS}/ws", {**signed_in.headers, "origin": "http://localhost"})
    signed_in.run(socket.wait_for(1))
    assert socket.sent[0]["type"] == "websocket.accept"

    assert signed_in.delete(SESSION, headers=PAGE).status_code == 204
    socket.put("receive", text='{"symbol": "IBM", "price": 5}')
    signed_in.run(socket.end())
    assert socket.sent[-1]["code"] == 4401


def test_programs_with_a_token_need_no_header(alerts, text):
    method, path, body = CHANGE
    assert alerts.request(method, path, json=body, headers=bearer(text)).status_code == 201


def test_a_token_precedes_a_cookie(signed_in, registry):
    _, other = create_token(registry.database, "bob", "read")
    signed_in.run(signed_in.service.poll())
    method, path, body = CHANGE

    answer = signed_in.request(method, path, json=body, headers=PAGE | bearer(other))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert signed_in.get(SESSION, headers=bearer("vdt_0_wrong")).status_code == 401


def test_signing_out_ends_the_session_also_for_a_copy_of_the_cookie(signed_in):
    answer = signed_in.delete(SESSION, headers=PAGE)

    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert signed_in.get(SESSION).status_code == 401


def test_revoking_the_token_ends_its_sessions(signed_in, registry):
    revoke_token(registry.database, list_tokens(registry.database)[0].id)
    signed_in.run(signed_in.service.poll())

    assert signed_in.get(SESSION).status_code == 401


def test_a_session_ends_after_its_time(signed_in, monkeypatch):
    monkeypatch.setattr(sessions.time, "time", lambda: later)
    later = time.monotonic() + 1e10

    assert signed_in.get(SESSION).status_code == 401


def test_a_session_does_not_extend_itself(signed_in):
    answer = signed_in.post(SESSION, headers=PAGE)

    assert answer.status_code == 409
    assert "set-cookie" not in answer.headers
    assert answer.json()["error"]["code"] == "signed_in"


def test_a_length_of_many_digits_is_too_large(alerts, text):
    answer = alerts.post(SESSION, headers={**bearer(text), "content-length": "9" * 5000})

    assert answer.status_code == 413


def test_cookies_that_are_no_session_are_nobody(alerts, text):
    name = alerts.service.tokens.sessions.cookie
    for cookie in ("", "x", f"{name}=", f"{name}=abc", f"{name}={text}", f"{name}=\xff", "a=b; " * 500):
        assert alerts.get(SESSION, headers={"cookie": cookie.encode("latin-1")}).status_code == 401


def test_without_tokens_everybody_on_this_host_is_an_admin(client):
    assert client.get(SESSION).json() == {"token": None, "name": None, "role": "admin", "sets": None, "owner": None}
    assert client.post(SESSION).json()["error"]["code"] == "no_tokens"


def test_only_so_many_sessions_are_kept(monkeypatch):
    monkeypatch.setattr(sessions, "_MOST", 3)
    kept = sessions.Sessions()
    values = [kept.create("t") for _ in range(5)]

    found = [kept.find(f"{kept.cookie}={value}") is not None for value in values]
    assert found == [False, False, True, True, True]
