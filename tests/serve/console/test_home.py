"""The first page, and signing in."""

from __future__ import annotations

import pytest
from serve.console.conftest import make_alerts

from vedette.registry.registry import Registry
from vedette.registry.tokens import create_token, revoke_token


@pytest.mark.fast
def test_home_shows_sets_and_events_as_they_happen(server, api, open_page):
    make_alerts(api, "home-alerts")
    page = open_page(server).open()

    assert page.get_by_role("row").filter(has_text="home-alerts").inner_text().split()[1:4] == [
        "border",
        "monitored",
        "2",
    ]
    row = {"symbol": "IBM", "price": 35, "ts": "2026-03-02T14:00:00Z"}
    assert api.post("/v1/sets/home-alerts/rows", json=row).status_code == 200
    page.get_by_role("listitem").filter(has_text="IBM entered ibm").wait_for()


def test_queries_that_match_nearly_every_row_need_attention(server, api, open_page):
    make_alerts(api, "broad-alerts")
    rows = [{"symbol": f"k{n}", "price": n, "ts": "2026-03-02T14:00:00Z"} for n in range(200)]
    assert api.post("/v1/sets/broad-alerts/rows", json=rows).status_code == 200
    assert api.post("/v1/sets/broad-alerts/queries", json={"id": "all", "where": "price >= 0"}).status_code == 201
    page = open_page(server).open()

    needs = page.get_by_text("broad-alerts: 1 query matches more than a tenth of the recent rows.")
    needs.get_by_role("link", name="Show the plan").click()
    page.get_by_role("heading", name="broad-alerts").wait_for()


def test_signing_in_takes_a_token_and_lasts_until_it_is_revoked(start_server, open_page, tmp_path):
    server = start_server("--no-open")
    registry = Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    token, text = create_token(registry.database, "ann", "read")
    watched = open_page(server)
    watched.allowed = ["401"]  # browsers log each
    page = watched.page
    page.wait_for_timeout(700)  # the service reads tokens each half a second
    page.goto(server.url)

    page.get_by_label("Token").fill("vdt_0_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("the token is unknown").wait_for()
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Home").wait_for()
    assert page.get_by_role("button", name="New set").count() == 0  # read only
    cookies = page.context.cookies()
    assert [(each["httpOnly"], each["sameSite"], each["secure"]) for each in cookies] == [(True, "Strict", False)]
    assert text not in page.content() + page.url + str(cookies) + page.evaluate("JSON.stringify(localStorage)")

    page.reload()
    page.get_by_role("heading", name="Home").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_label("Token").fill(text)
    page.get_by_label("Token").press("Enter")
    page.get_by_role("heading", name="Home").wait_for()

    revoke_token(registry.database, token.id)
    page.get_by_role("heading", name="Sign in").wait_for()  # the next refresh is refused
    registry.close()
    server.stop()
    assert text not in server.log.read_text()
