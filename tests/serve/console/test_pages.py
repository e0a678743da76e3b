"""Every page, in both themes and at two widths: axe reports nothing serious, and nothing is wider than the screen.

VEDETTE_SCREENSHOTS=docs/console writes the pictures of docs/console.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from delivery.receiver import answer, serve
from serve.console.conftest import DESKTOP, PHONE, check_axe, make_alerts, shoot

PAGES = {
    "home": "",
    "set": "sets/alerts",
    "rows": "sets/alerts/rows",
    "plan": "sets/alerts/plan",
    "history": "sets/alerts/history?before=0",
    "query": "sets/alerts/queries/cheap",
    "why": "why?set=alerts&query=ibm&key=IBM",
    "backtest": "backtest?set=alerts&query=ibm",
    "deliveries": "deliveries",
    "tokens": "tokens",
}


@pytest.fixture(scope="module")
def alerts(server):
    import httpx

    with (
        httpx.Client(base_url=server.url, timeout=30) as api,
        serve() as fine,
        serve(lambda number: answer(500)) as broken,
    ):
        make_alerts(api, "alerts")
        for query in (
            {"id": "calm", "where": "symbol IN ('SAP', 'BMW') AND price > 80 AND price < 120"},
            {"id": "round", "where": "price % 10 = 0 OR length(symbol) > 4", "metadata": {"owner": "bob"}},
        ):  # fmt: skip
            api.post("/v1/sets/alerts/queries", json=query)
        api.patch("/v1/sets/alerts/queries/cheap", json={"where": "price < 22"})
        for name, options in (
            ("archive", {"url": fine.url}),
            ("pager", {"url": broken.url, "events": ["enter"], "owner": "ann", "attempts": 1}),
        ):
            assert api.put(f"/v1/sets/alerts/deliveries/{name}", json=options).status_code == 200
        start = datetime.now(UTC) - timedelta(minutes=10)
        for place, (symbol, price) in enumerate(
            [("IBM", 35.5), ("SAP", 99.0), ("IBM", 21.0), ("BMW", 84.5), ("SAP", 130.0)]
        ):
            row = {"symbol": symbol, "price": price, "ts": (start + timedelta(minutes=place)).isoformat()}
            assert api.post("/v1/sets/alerts/rows", json=row).status_code == 200
        yield


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_usable_by_all_and_fit_the_screen(server, alerts, open_page, theme):
    watched = open_page(server, theme=theme)
    for name, address in PAGES.items():
        page = watched.open(address)
        if name in ("home", "rows", "why"):
            page.get_by_text("ibm", exact=True).first.wait_for()
        if name == "deliveries":
            page.get_by_role("button", name="Drop").first.wait_for()
        if name == "home":
            page.get_by_text("/s", exact=False).first.wait_for()
        check_axe(page)
        for width, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], (name, width)
            if (width, theme) in (("desktop", "light"), ("phone", "dark")):
                shoot(page, f"{name}-{width}", full_page=width == "desktop")
        page.set_viewport_size(DESKTOP)


def test_dialogs_and_the_menu_of_phones_work_with_the_keyboard(server, alerts, open_page):
    watched = open_page(server, viewport=PHONE)
    page = watched.open("sets/alerts")
    page.get_by_role("button", name="Menu").press("Enter")
    page.get_by_role("link", name="Backtest").press("Enter")
    page.get_by_role("heading", name="Backtest").wait_for()
    assert not page.get_by_role("link", name="Tokens").is_visible()  # the menu has closed

    page = watched.open("sets/alerts")
    page.get_by_role("button", name="New query").press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.get_by_label("Condition").fill("pri")
    check_axe(page)
    page.get_by_label("Condition").press("Tab")  # takes the completion
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
