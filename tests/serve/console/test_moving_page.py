"""Moving objects: pairs that will meet are listed, shown at their moment, played, and follow what is sent."""

from __future__ import annotations

import pytest
from serve.console.conftest import DESKTOP, PHONE, check_axe, shoot

from vedette.registry.registry import Registry
from vedette.registry.tokens import create_token

PIXELS = """canvas => {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--bad");
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
  pen.clearRect(0, 0, 1, 1);
  pen.drawImage(canvas, 0, 0);
  const { data } = pen.getImageData(0, 0, copy.width, copy.height);
  let n = 0;
  for (let at = 0; at < data.length; at += 4) {
    n += Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 60 && data[at + 3] > 150;
  }
  return n;
}"""  # how many have the colour of objects that meet a zone


def make_sea(api, name):
    zones = {"port": (10, 14, 8, 12), "storm": (30, 40, -5, 5), "reef": (20, 22, -9, -7)}
    assert api.post("/v1/sets", json={"name": name, "kind": "moving join"}).status_code == 201
    for zone, sides in zones.items():
        body = {"id": zone, **dict(zip(("x_low", "x_high", "y_low", "y_high"), sides, strict=True))}
        assert api.post(f"/v1/sets/{name}/queries", json=body).status_code == 201
    assert api.put(f"/v1/sets/{name}/monitor", json={"max_update_interval": 60}).status_code == 201


def send(api, name, vessel, time, x, y, vx, vy):
    row = {"id": vessel, "time": time, "x": x, "y": y, "vx": vx, "vy": vy}
    answer = api.post(f"/v1/sets/{name}/rows", json=row)
    assert answer.status_code == 200, answer.text


def cells(page):
    return [row.locator("td").all_inner_texts() for row in page.get_by_role("row").all()[1:]]


def wait_for_time(page, text):
    page.wait_for_function("text => document.querySelector('.scene-time output').textContent === text", arg=text)


def test_pairs_that_will_meet_are_listed_shown_and_follow_what_is_sent(server, api, open_page):
    make_sea(api, "sea")
    send(api, "sea", "Ada", 100, 0, 0, 1, 0)
    send(api, "sea", "Bea", 100, 12, 10, 0, 0)
    send(api, "sea", "Cid", 100, 0, -40, 0, 1)
    page = open_page(server).open("moving?set=sea")

    page.get_by_text("3 objects, 3 zones; 1 pair meets at this time").wait_for()
    assert cells(page) == [["Bea and port", "now", "after 160"], ["Ada and storm", "130", "140"]]
    wait_for_time(page, "100 (now)")
    alone = page.locator(".scene").evaluate(PIXELS)
    assert alone > 0

    page.get_by_role("button", name="Show Ada and storm").press("Enter")
    wait_for_time(page, "130 (+30)")
    page.get_by_text("3 objects, 3 zones; 2 pairs meet at this time").wait_for()
    assert page.locator(".scene").evaluate(PIXELS) > alone
    slider = page.get_by_label("Time ahead")
    assert (slider.input_value(), slider.get_attribute("aria-valuetext")) == ("60", "130 (+30)")
    slider.press("End")
    wait_for_time(page, "160 (+60)")
    slider.press("Home")
    wait_for_time(page, "100 (now)")

    send(api, "sea", "Ada", 105, 5, 0, 0, 1)  # it turns: another pair, and no more the storm
    send(api, "sea", "Cid", 105, 0, -35, -2, 2)
    page.get_by_role("button", name="Show Ada and storm").wait_for(state="detached")
    page.get_by_text("105 (now)").wait_for()
    assert cells(page) == [["Bea and port", "now", "after 160"]]
    zone = {"id": "new", "x_low": 4, "x_high": 6, "y_low": 20, "y_high": 30}
    assert api.post("/v1/sets/sea/queries", json=zone).status_code == 201
    page.get_by_role("button", name="Show Ada and new").wait_for()
    assert cells(page)[1] == ["Ada and new", "125", "135"]


def test_play_moves_to_the_end_and_can_be_paused(server, api, open_page):
    make_sea(api, "played")
    send(api, "played", "Ada", 100, 0, 0, 1, 0)
    page = open_page(server).open("moving?set=played")
    slider = page.get_by_label("Time ahead")
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("() => document.querySelector('.scene-time input').value > 10")
    page.get_by_role("button", name="Pause").click()
    stands = slider.input_value()
    page.get_by_text("1 object, 3 zones").wait_for()
    assert 10 < int(stands) < 120
    slider.fill("115")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => document.querySelector('.scene-time input').value === '120'")
    page.get_by_role("button", name="Play").wait_for()  # it has ended
    page.get_by_role("button", name="Now").click()
    wait_for_time(page, "100 (now)")


def test_objects_are_found_by_their_ids(server, api, open_page):
    make_sea(api, "searched")
    for place in range(3):
        send(api, "searched", f"Ada {place}", 100 + place, 0, place, 1, 0)
    page = open_page(server).open("moving?set=searched")
    page.get_by_text("3 objects, 3 zones").wait_for()
    page.get_by_label("Object contains").fill("a 2")
    page.get_by_label("Object contains").press("Enter")
    page.get_by_text("1 of 3 objects, 3 zones").wait_for()
    assert [each[0] for each in cells(page)] == ["Ada 2 and storm"]


def test_a_join_shows_its_events_as_pairs_and_links_to_its_objects(server, api, open_page):
    make_sea(api, "told")
    send(api, "told", "Ada", 100, 0, 0, 1, 0)
    page = open_page(server).open("sets/told/rows")
    page.get_by_text("Ada meets storm from 130 until 140").wait_for()
    page.get_by_role("link", name="See where its objects go.").click()
    page.get_by_role("button", name="Show Ada and storm").wait_for()


def test_a_token_that_is_confined_to_an_owner_sees_no_objects(start_server, open_page, tmp_path):
    registry = Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    _, text = create_token(registry.database, "ann", "read", owner="ann")
    registry.close()
    watched = open_page(start_server("--no-open"))
    watched.allowed = ["401"]
    page = watched.page
    page.goto(f"{watched.url}/#/moving")
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Objects are for all owners").wait_for()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_axe_finds_nothing_serious(server, api, open_page, viewport, theme):
    name = f"sea-{theme}-{viewport['width']}"
    make_sea(api, name)
    for place, vessel in enumerate(("Ada", "Bea", "Cid", "Dea")):
        send(api, name, vessel, 100 + place, 2 * place, place - 3, 1, place / 10)
    page = open_page(server, viewport=viewport, theme=theme).open(f"moving?set={name}")
    page.get_by_role("button", name="Show Ada and storm").click()
    page.get_by_text("(+").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    check_axe(page)
    if (viewport, theme) == (PHONE, "dark"):
        shoot(page, "moving-phone", full_page=False)
