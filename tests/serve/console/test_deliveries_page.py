"""Deliveries are added, watched, changed and removed; dead letters are read, sent again and dropped."""

from __future__ import annotations

import pytest
from delivery.receiver import answer, serve
from serve.console.conftest import check_axe, make_alerts

from vedette.registry.registry import Registry
from vedette.registry.tokens import create_token


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def send(api, name, symbol, price):
    row = {"symbol": symbol, "price": price, "ts": "2026-03-02T14:00:00Z"}
    answered = api.post(f"/v1/sets/{name}/rows", json=row)
    assert answered.status_code == 200, answered.text
    return [event["event_id"] for event in answered.json()["events"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_delivery_is_added_shown_changed_and_removed(server, api, open_page, theme):
    name = f"sent-{theme}"
    make_alerts(api, name)
    with serve() as receiver:
        page = open_page(server, theme=theme).open("deliveries")
        click(page, "New delivery")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("Which events").click()
        dialog.get_by_text("Requests", exact=True).click()
        dialog.get_by_label("Set", exact=True).select_option(name)
        dialog.get_by_label("Name").fill("hook")
        dialog.get_by_label("URL").fill(f"{receiver.url}?token=x4k2")
        dialog.get_by_label("Events", exact=True).fill("enter")
        check_axe(page)
        click(page, "Add delivery")
        shown = page.get_by_role("row").filter(has_text=name)
        shown.get_by_text("up to date").wait_for()
        ids = send(api, name, "SAP", 10)
        shown.locator("td:nth-child(5)").filter(has_text=str(len(ids))).wait_for()  # sent
        assert receiver.ids == ids

        click(page, f"Edit hook of {name}")
        assert "x4k2" not in page.content()
        assert "x4k2" not in page.evaluate("[...document.querySelectorAll('input')].map(each => each.value).join()")
        page.get_by_role("dialog").get_by_label("Events", exact=True).fill("enter, exit")
        click(page, "Save")
        shown.get_by_text("enter, exit").wait_for()
        changed = api.get(f"/v1/sets/{name}/deliveries/hook").json()
        assert (changed["url"], changed["events"]) == (f"{receiver.url}?token=x4k2", ["enter", "exit"])

        click(page, "New delivery")
        page.get_by_role("dialog").get_by_label("Set", exact=True).select_option(name)
        page.get_by_role("dialog").get_by_label("Name").fill("hook")
        page.get_by_role("dialog").get_by_label("URL").fill(receiver.url)
        click(page, "Add delivery")
        page.get_by_text(f"{name} has a delivery hook.").wait_for()  # it is not replaced by mistake
        page.keyboard.press("Escape")

        click(page, f"Remove hook of {name}")
        click(page, "Remove delivery")
        shown.wait_for(state="detached")
        assert api.get(f"/v1/sets/{name}/deliveries").json() == []


def test_a_dead_letter_is_shown_sent_again_and_dropped(server, api, open_page):
    make_alerts(api, "dead")
    with serve(lambda number: answer(500)) as receiver:
        put = api.put("/v1/sets/dead/deliveries/hook", json={"url": receiver.url + "?token=x4k2", "attempts": 1})
        assert put.status_code == 200
        [first] = send(api, "dead", "SAP", 10)
        [second] = send(api, "dead", "BMW", 10)
        page = open_page(server).open("deliveries")
        failing = page.get_by_role("row").filter(has_text="failing since")
        failing.filter(has_text="dead").filter(has_text="answered 500").wait_for()
        page.get_by_label("Source").select_option("serve/dead/hook")
        click(page, f"Show {first} of serve/dead/hook")
        page.get_by_role("dialog").get_by_text('"SAP"').wait_for()
        check_axe(page)
        click(page, "Close")
        assert "x4k2" not in page.content()

        click(page, f"Retry {first} of serve/dead/hook")
        page.get_by_text("0 letters delivered, 1 failed.").wait_for()
        receiver.behave = lambda number: None
        click(page, f"Retry {first} of serve/dead/hook")
        page.get_by_text("1 letter delivered, 0 failed.").wait_for()
        page.get_by_role("button", name=f"Show {first}").wait_for(state="detached")
        assert receiver.ids == [first]

        click(page, f"Drop {second} of serve/dead/hook")
        page.get_by_role("dialog").get_by_text("cannot be taken back").wait_for()
        click(page, "Cancel")
        letters = api.get("/v1/dead-letters", params={"source": "serve/dead/hook"}).json()
        assert [each["id"] for each in letters] == [second]
        click(page, "Drop all")
        click(page, "Drop")
        page.get_by_text("None: every event was delivered.").wait_for()
        assert api.get("/v1/dead-letters", params={"source": "serve/dead/hook"}).json() == []


def test_only_admins_see_the_page(start_server, open_page, tmp_path):
    registry = Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    _, text = create_token(registry.database, "ann", "write")
    registry.close()
    watched = open_page(start_server("--no-open"))
    watched.allowed = ["401"]
    page = watched.page
    page.goto(watched.url)
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Home").wait_for()

    assert page.get_by_role("link", name="Backtest").count() == 1
    assert page.get_by_role("link", name="Deliveries").count() == 0
