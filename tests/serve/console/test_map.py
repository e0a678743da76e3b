"""The map and the charts: a zone is drawn, a van enters it, and the event is explained."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from serve.console.conftest import DESKTOP, PHONE, TICKS, check_axe

SCHEMA = "van string, lon double, lat double, ts timestamp"
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
RING = "ST_Within(ST_Point(lon, lat), ST_GeomFromText('POLYGON ((4 50, 6 50, 6 52, 4 52, 4 50))'))"


def request(api, method, path, body):
    answer = api.request(method, path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def make_fleet(api, name):
    request(api, "POST", "/v1/sets", {"name": name, "kind": "border", "schema": SCHEMA})
    request(api, "POST", f"/v1/sets/{name}/queries", {"id": "ring", "where": RING, "metadata": {"owner": "ann"}})
    request(api, "PUT", f"/v1/sets/{name}/monitor", {"key": "van", "time": "ts", "columns": ["lon", "lat"]})


def drive(api, name, van, lon, lat, minute):
    ts = (START + timedelta(minutes=minute)).isoformat()
    return request(api, "POST", f"/v1/sets/{name}/rows", {"van": van, "lon": lon, "lat": lat, "ts": ts})["events"]


def wait_for_counts(page, text):
    page.wait_for_function("text => document.querySelector('.with-side [role=status]')?.textContent === text", arg=text)


def point(page, x, y):
    """A point of the map, by its share of the width and height."""
    box = page.locator(".map").bounding_box()
    return {"x": box["width"] * x, "y": box["height"] * y}


def test_a_zone_is_drawn_a_van_enters_and_the_event_is_explained(server, api, open_page):
    make_fleet(api, "drawn")
    watched = open_page(server)
    page = watched.open("map?set=drawn")
    wait_for_counts(page, "0 keys, 1 zone")
    page.get_by_role("button", name="Draw polygon").click()
    for x, y in ((0.1, 0.1), (0.3, 0.1), (0.3, 0.3), (0.1, 0.3)):
        page.locator(".map").click(position=point(page, x, y))
    page.get_by_label("Id", exact=True).fill("new zone")
    page.get_by_label("Owner").fill("bob")
    page.get_by_label("Dwell").fill("1 minute")
    page.get_by_role("button", name="Add zone").click()
    wait_for_counts(page, "0 keys, 2 zones")

    query = api.get("/v1/sets/drawn/queries/new zone").json()
    assert query["metadata"] == {"owner": "bob"}
    assert query["dwell"] == "1 minute"
    [feature] = [each for each in api.get("/v1/sets/drawn/zones").json()["features"] if each["id"] == "new zone"]
    ring = feature["geometry"]["coordinates"][0]
    lon, lat = (sum(each[axis] for each in ring[:4]) / 4 for axis in (0, 1))

    drive(api, "drawn", "van 1", 5, 51, 0)
    wait_for_counts(page, "1 key, 2 zones")
    page.get_by_role("button", name="van 1 entered ring: why?").wait_for()
    drive(api, "drawn", "van 1", lon, lat, 1)
    page.get_by_role("button", name="van 1 left ring: why?").wait_for()
    drive(api, "drawn", "van 1", lon, lat, 3)
    page.get_by_role("button", name="van 1 entered new zone: why?").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Why did van 1 enter new zone?").wait_for()
    assert "true" in dialog.locator(".mark").first.inner_text()
    check_axe(page)


def test_a_circle_is_drawn_and_its_edge_is_dragged(server, api, open_page):
    make_fleet(api, "circled")
    page = open_page(server).open("map?set=circled")
    wait_for_counts(page, "0 keys, 1 zone")
    page.get_by_role("button", name="Draw circle").click()
    for x, y in ((0.8, 0.8), (0.85, 0.8)):
        page.locator(".map").click(position=point(page, x, y))
    page.get_by_label("Id", exact=True).fill("disc")
    page.get_by_role("button", name="Add zone").click()
    wait_for_counts(page, "0 keys, 2 zones")
    before = radius(api)

    page.locator(".map").click(position=point(page, 0.82, 0.8))
    edge = page.locator(".handle[title=Edge]")
    edge.wait_for()
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 7, box["y"] + 7)
    page.mouse.down()
    page.mouse.move(box["x"] + 67, box["y"] + 7, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Save zone").click()
    page.get_by_text("Zone disc is saved.").last.wait_for()
    page.get_by_role("button", name="Save zone").wait_for(state="detached")
    assert radius(api) > 1.3 * before


def radius(api):
    text = api.get("/v1/sets/circled/queries/disc").json()["where"]
    assert text.startswith("ST_DWithin(ST_Point(lon, lat), ST_Point(")
    return float(text.rsplit(",", 2)[1])


def test_values_are_a_chart_with_the_range_and_the_events_of_an_alert(server, api, open_page):
    request(api, "POST", "/v1/sets", {"name": "prices", "kind": "border", "schema": TICKS})
    request(
        api, "POST", "/v1/sets/prices/queries", {"id": "cheap", "where": "symbol = 'IBM' AND price BETWEEN 10 AND 20"}
    )
    request(api, "PUT", "/v1/sets/prices/monitor", {"key": "symbol", "time": "ts", "columns": ["price"]})

    def tick(price, minute):
        ts = (START + timedelta(minutes=minute)).isoformat()
        request(api, "POST", "/v1/sets/prices/rows", {"symbol": "IBM", "price": price, "ts": ts})

    for minute, price in enumerate((30, 25, 18, 22)):
        tick(price, minute)
    page = open_page(server).open("values?set=prices&key=IBM&field=price&query=cheap")
    page.locator(".value-chart .event").nth(1).wait_for(state="attached")
    assert page.locator(".value-chart .range").count() == 1
    assert page.locator(".value-chart .line").get_attribute("d").count("L") == 3
    tick(15, 9)
    page.get_by_text("Now 15").wait_for()
    page.locator(".value-chart .event").nth(2).wait_for(state="attached")
    page.get_by_role("button", name="cheap: why?").first.click()
    page.get_by_role("dialog").get_by_text("price is 15").first.wait_for()
    check_axe(page)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_map_and_the_chart_fit_and_axe_finds_nothing_serious(server, api, open_page, viewport, theme):
    name = f"fit-{theme}-{viewport['width']}"
    make_fleet(api, name)
    drive(api, name, "van 1", 5, 51, 0)
    watched = open_page(server, viewport=viewport, theme=theme)
    for address in (f"map?set={name}", f"values?set={name}"):
        page = watched.open(address)
        page.get_by_role("button", name="why?").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        check_axe(page)
