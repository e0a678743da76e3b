"""What a person does who has no programs: create a set, add an alert, send rows, see the event, ask why, go back."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from serve.console.conftest import TICKS, make_alerts, shoot


def fill(page, **values):
    for label, value in values.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(value)


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_a_person_without_programs_makes_an_alert_and_sees_it_fire(server, open_page):
    page = open_page(server).open()
    click(page, "New set")
    fill(page.get_by_role("dialog"), Name="flow", Fields=TICKS)
    click(page, "Create set")

    page.get_by_role("heading", name="flow").wait_for()
    click(page, "New query")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Id", exact=True).fill("low")
    editor = dialog.get_by_label("Condition")
    editor.fill("prise < 40")
    page.locator(".editor-layer mark").get_by_text("prise").wait_for()  # the mistake is underlined
    page.get_by_text("did you mean 'price'").wait_for()
    shoot(page, "editor", full_page=False)
    editor.fill("")
    editor.press_sequentially("pri")
    page.get_by_role("option", name="price double").wait_for()
    editor.press("Enter")
    editor.press_sequentially(" < 40 AND symbol = 'IBM'")
    page.locator(".editor-said").get_by_text("Valid").wait_for()
    dialog.get_by_text("Options of reports").click()
    dialog.get_by_label("Cooldown").fill("1 minute")
    dialog.get_by_label("Metadata").fill("owner: ann")
    click(page, "Add query")
    page.get_by_role("row").filter(has_text="price < 40 AND symbol = 'IBM'").get_by_text("owner: ann").wait_for()

    page.get_by_role("link", name="Rows and events").click()
    click(page, "Start monitoring")
    page.get_by_role("heading", name="Send rows").wait_for()
    fill(page, symbol="IBM", price="39.5", ts="2026-03-02T14:00:00Z")
    click(page, "Send")
    page.get_by_text("1 row accepted, 1 event.").wait_for()
    event = page.get_by_role("listitem").filter(has_text="IBM entered low")
    event.get_by_role("link", name="Why").click()

    page.get_by_role("heading", name="IBM is inside low").wait_for()
    page.get_by_text("price is 39.5, 0.5 below 40").wait_for()
    fill(page, symbol="IBM", price="41", ts="2026-03-02T14:01:00Z")
    click(page, "Explain")
    page.get_by_role("heading", name="The next row: the key leaves").wait_for()


def test_a_query_is_changed_compared_restored_and_removed(server, api, open_page):
    make_alerts(api, "edits")
    page = open_page(server).open("sets/edits")
    click(page, "Edit cheap")
    page.get_by_role("dialog").get_by_label("Condition").fill("price < 25")
    click(page, "Save")
    page.get_by_role("row").filter(has_text="price < 25").wait_for()
    assert api.get("/v1/sets/edits/queries/cheap").json()["metadata"] == {"owner": "ann"}

    page.get_by_role("link", name="History").click()
    page.get_by_text("changed", exact=True).wait_for()
    assert (page.locator("del").inner_text(), page.locator("ins").inner_text()) == ("20", "25")
    page.get_by_role("link", name="cheap").click()
    click(page, "Restore version 1")
    page.get_by_text("Restored as version 4.").wait_for()
    assert api.get("/v1/sets/edits/queries/cheap").json()["where"] == "price < 20"

    click(page, "Remove cheap")
    click(page, "Remove query")
    page.get_by_text("cheap is removed").wait_for()
    assert api.get("/v1/sets/edits/queries/cheap").status_code == 404


def test_a_window_join_is_explained_for_a_row_of_each_stream(server, api, open_page):
    schema = {"left": "price double, ts timestamp", "right": "price double, ts timestamp"}
    api.post("/v1/sets", json={"name": "spreads", "kind": "window join", "schema": schema, "windows": "time"})
    query = {"id": "near", "where": "left.price - right.price BETWEEN -1 AND 1", "within": "10 minutes"}
    assert api.post("/v1/sets/spreads/queries", json=query).status_code == 201
    row = {"left": {"price": 20}, "right": {"price": 20.5}}
    page = open_page(server).open(f"why?set=spreads&query=near&row={quote(json.dumps(row))}")

    page.get_by_role("heading", name="The rows match near").wait_for()
    page.get_by_label("right.price").fill("25")
    click(page, "Explain")
    page.get_by_role("heading", name="The rows do not match near").wait_for()


def test_many_queries_are_listed_by_pages_and_found(server, api, open_page):
    api.post("/v1/sets", json={"name": "many", "schema": TICKS})
    lines = [
        {"id": f"q{each:04}", "where": f"price > {each}", "metadata": {"owner": f"o{each % 7}"}} for each in range(120)
    ]
    body = "\n".join(map(json.dumps, lines))
    sent = api.post("/v1/sets/many/queries/bulk", content=body, headers={"content-type": "application/x-ndjson"})
    assert sent.status_code == 200
    page = open_page(server).open("sets/many")

    def shown():
        return page.locator("tbody tr td:first-child").all_inner_texts()

    assert shown() == [f"q{each:04}" for each in range(50)]
    click(page, "Next")
    page.get_by_role("link", name="q0099").wait_for()
    click(page, "Next")
    page.get_by_role("link", name="q0119").wait_for()
    assert len(shown()) == 20
    assert page.get_by_role("button", name="Next").is_disabled()
    click(page, "Previous")
    page.get_by_role("link", name="q0050").wait_for()
    fill(page, Text_contains="> 77")
    page.get_by_role("link", name="q0050").wait_for(state="detached")
    page.get_by_role("link", name="q0077").wait_for()
    assert shown() == ["q0077"]
    fill(page, Text_contains="", Metadata="owner: o3")
    page.get_by_role("link", name="q0003").wait_for()
    assert shown() == [f"q{each:04}" for each in range(3, 120, 7)]


def test_a_condition_is_tested_over_the_last_rows_that_were_accepted(server, api, open_page):
    make_alerts(api, "lately")
    for place, price in enumerate((10, 30, 15, 40)):
        row = {"symbol": "SAP", "price": price, "ts": f"2026-03-02T14:0{place}:00Z"}
        assert api.post("/v1/sets/lately/rows", json=row).status_code == 200
    page = open_page(server).open("backtest?set=lately")
    page.get_by_label("Condition").fill("price > 25")
    page.get_by_label("Rows", exact=True).select_option(label="The last rows that the service has accepted")
    click(page, "Run backtest")
    page.get_by_role("img", name="By day: rows that match 2, notifications 2").wait_for()
    assert page.locator(".tile dd").first.inner_text() == "4"


def test_a_condition_is_tested_over_a_file_and_added(server, api, open_page, tmp_path):
    api.post("/v1/sets", json={"name": "past", "kind": "border", "schema": TICKS})
    rows = tmp_path / "rows.csv"
    days = [(day, price) for day in range(1, 8) for price in (30 + day, 50 - 2 * day)]
    rows.write_text(
        "symbol,price,ts\n" + "".join(f"IBM,{price},2026-03-0{day}T0{hour}:00:00Z\n" for hour, (day, price) in
                                      ((place % 2, each) for place, each in enumerate(days)))
    )  # fmt: skip
    page = open_page(server).open("backtest?set=past")
    page.get_by_label("Condition").fill("price < 34")
    page.get_by_label("File").set_input_files(rows)
    click(page, "Run backtest")
    page.get_by_role("img", name="By day").wait_for()
    expected = sum(price < 34 for _, price in days)
    tiles = dict(
        zip(page.locator(".tile dt").all_inner_texts(), page.locator(".tile dd").all_inner_texts(), strict=True)
    )
    assert (tiles["Rows"], tiles["Rows that match"]) == ("14", str(expected))

    shoot(page, "backtest-result")

    click(page, "Add it")
    page.get_by_role("dialog").get_by_label("Id", exact=True).fill("found")
    click(page, "Add query")
    page.get_by_role("heading", name="found").wait_for()
    assert api.get("/v1/sets/past/queries/found").json()["where"] == "price < 34"


def test_texts_of_queries_are_never_read_as_html(server, api, open_page):
    hostile = "<img src=x onerror=alert(1)>"
    api.post("/v1/sets", json={"name": "html", "schema": TICKS})
    added = api.post(
        "/v1/sets/html/queries",
        json={"id": hostile, "where": f"symbol = '{hostile}'", "metadata": {hostile: hostile}},
    )
    assert added.status_code == 201
    page = open_page(server).open("sets/html")

    page.get_by_role("link", name=hostile).click()
    page.get_by_role("heading", name=hostile).wait_for()
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("path", ["nosuch", "sets/nosuch", "sets/%ff", "sets/nosuch/queries/x", "backtest?set=nosuch"])
def test_an_address_of_nothing_says_so(server, open_page, path):
    watched = open_page(server)
    watched.allowed = ["404"]
    page = watched.open(path)

    assert page.get_by_role("heading").first.inner_text() in ("No such page", "This did not work", "Backtest")


def test_tokens_are_created_shown_once_and_revoked(start_server, open_page):
    server = start_server("--no-open")
    watched = open_page(server)
    watched.allowed = ["401"]
    page = watched.open("tokens")
    click(page, "New token")
    fill(page.get_by_role("dialog"), Name="ann")
    click(page, "Create token")
    text = page.get_by_role("dialog").get_by_label("Token", exact=True).input_value()
    assert text.startswith("vdt_")
    click(page, "Close")
    page.get_by_text("yours").wait_for()  # signed in with it
    assert text not in page.content()

    click(page, "New token")
    fill(page.get_by_role("dialog"), Name="bob", Only_sets="alerts")
    click(page, "Create token")
    click(page, "Close")
    click(page, "Revoke bob")
    click(page, "Revoke token")
    page.get_by_text("revoked", exact=True).wait_for()
    click(page, "Revoke ann")
    click(page, "Revoke token")
    page.get_by_role("heading", name="Sign in").wait_for()
