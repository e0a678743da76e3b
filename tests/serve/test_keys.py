"""What maps and charts ask for: the last rows of keys, recent values, and zones."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from serve.conftest import ARROW, LINES, Socket

from vedette.data.schema import Schema
from vedette.registry.tokens import create_token
from vedette.serve import recent_rows
from vedette.serve.arrow_streams import write_stream
from vedette.serve.bodies import JSON, RowsOf
from vedette.serve.recent_rows import RecentRows
from vedette.serve.row_log import Body
from vedette.serve.zones import read_zones

SCHEMA = "truck string, lon double, lat double, load bigint, ts timestamp"
RING = "ST_Within(ST_Point(lon, lat), ST_GeomFromText('POLYGON ((4 50, 6 50, 6 52, 4 52, 4 50))'))"
DISC = "ST_DWithin(ST_Point(lon, lat), ST_Point(10.0, 50.0), 20000, TRUE)"


@pytest.fixture
def fleet(client):
    assert client.post("/v1/sets", json={"name": "fleet", "kind": "border", "schema": SCHEMA}).status_code == 201
    for query in (
        {"id": "ring", "where": RING, "metadata": {"owner": "ann"}},
        {"id": "disc", "where": f"load > 3 AND {DISC}", "metadata": {"owner": "bob"}},
        {"id": "heavy", "where": "load > 9"},
    ):
        assert client.post("/v1/sets/fleet/queries", json=query).status_code == 201
    monitor = {"key": "truck", "time": "ts", "columns": ["lon", "lat"]}
    assert client.put("/v1/sets/fleet/monitor", json=monitor).status_code == 201
    return client


def row(truck, lon, lat, second, load=1):
    moment = datetime(2026, 3, 2) + timedelta(seconds=second)
    return {"truck": truck, "lon": lon, "lat": lat, "load": load, "ts": f"{moment.isoformat()}Z"}


def send(client, *rows):
    answer = client.post("/v1/sets/fleet/rows", json=list(rows))
    assert answer.status_code == 200
    return answer.json()["events"]


def get(client, path, **params):
    answer = client.get(f"/v1/sets/fleet/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def zones(client, **params):
    return [feature["id"] for feature in get(client, "zones", **params)["features"]]


def test_the_last_row_of_each_key_is_listed_by_pages_and_search(fleet):
    send(fleet, *(row(f"van {number}", number, 50, 0) for number in range(25)))
    send(fleet, row("van 3", 33, 51, 1, load=7))

    pages, after = [], -1
    while after is not None:
        page = get(fleet, "keys", limit=10, after=after)
        pages.append(page["keys"])
        after = page["next"]

    assert [len(page) for page in pages] == [10, 10, 5]
    found = {each["key"]: each for page in pages for each in page}
    assert len(found) == page["total"] == 25
    last = {"lon": 33.0, "lat": 51.0, "load": 7}
    assert found["van 3"] == {"key": "van 3", "time": "2026-03-02T00:00:01Z", "row": last}
    assert found["van 4"]["row"]["lon"] == 4.0
    assert [each["key"] for each in get(fleet, "keys", search="N 24")["keys"]] == ["van 24"]


def test_recent_values_are_those_that_were_sent_in_every_form(fleet):
    send(fleet, row("a", 1, 50, 0), row("b", 2, 50, 0))
    fleet.post("/v1/sets/fleet/rows", json=row("a", 3, 50, 1))
    lines = "\n".join(json.dumps(each) for each in (row("a", 4, 50, 2), row("b", 5, 50, 2)))
    assert fleet.post("/v1/sets/fleet/rows", content=lines, headers=LINES).status_code == 200
    times = pa.array([datetime(2026, 3, 2, 0, 0, 3)], pa.timestamp("us", "UTC"))
    table = pa.table({"truck": ["a"], "lon": [6.0], "lat": [50.0], "load": [1], "ts": times})
    assert fleet.post("/v1/sets/fleet/rows", content=write_stream(table), headers=ARROW).status_code == 200
    fleet.post("/v1/sets/fleet/rows", json=[])

    found = get(fleet, "values", key="a", field="lon")
    assert found["values"] == [1, 3, 4, 6]
    assert found["times"][-1] == "2026-03-02T00:00:03Z"
    send(fleet, row("a", 7, 50, 4))
    assert get(fleet, "values", key="a", field="LON", limit=2)["values"] == [6, 7]
    assert get(fleet, "values", key="nobody", field="lon")["values"] == []
    assert fleet.get("/v1/sets/fleet/values", params={"key": "a", "field": "speed"}).status_code == 400


def test_arrow_streams_of_other_types_and_names_are_in_charts_with_json(fleet):
    send(fleet, row("a", 1, 50, 0))
    for second, zone in enumerate([None, "Europe/Paris"], 1):
        moment = datetime(2026, 3, 2, 0, 0, second)
        times = pa.array([moment if zone is None else moment.replace(tzinfo=UTC)], pa.timestamp("ms", zone))
        numbers = pa.array([second], pa.int32())
        table = pa.table({"TRUCK": ["a"], "lon": numbers, "lat": numbers, "load": numbers, "ts": times})
        assert fleet.post("/v1/sets/fleet/rows", content=write_stream(table), headers=ARROW).status_code == 200
    send(fleet, row("a", 4, 50, 3))

    found = get(fleet, "values", key="a", field="lon")
    assert found["values"] == [1.0, 1.0, 2.0, 4.0]
    assert found["times"] == [f"2026-03-02T00:00:0{second}Z" for second in range(4)]


def test_rows_are_accepted_while_a_chart_is_read(monkeypatch):
    recent, has_begun, may_end = RecentRows(), threading.Event(), threading.Event()

    def read(form, bodies, rows_of):
        has_begun.set()
        may_end.wait(20)
        return []

    monkeypatch.setattr(recent_rows, "_read", read)
    recent.append([Body(JSON, b"{}")])
    reader = threading.Thread(target=recent.tables, args=[RowsOf(Schema.parse(SCHEMA), "UTC", 10)])
    reader.start()
    assert has_begun.wait(10)
    writer = threading.Thread(target=recent.append, args=[[Body(JSON, b"{}")]])
    writer.start()
    writer.join(5)
    was_waiting = writer.is_alive()
    may_end.set()
    reader.join(10)
    writer.join(10)
    assert not was_waiting


def test_parts_of_structs_have_charts(client):
    schema = "truck string, place struct<lon double, lat double>, ts timestamp"
    assert client.post("/v1/sets", json={"name": "fleet", "kind": "border", "schema": schema}).status_code == 201
    assert client.put("/v1/sets/fleet/monitor", json={"key": "truck", "time": "ts"}).status_code == 201
    for second in range(2):
        sent = {"truck": "a", "place": {"lon": second, "lat": 0}, "ts": f"2026-03-02T00:00:0{second}Z"}
        assert client.post("/v1/sets/fleet/rows", json=sent).status_code == 200

    assert get(client, "values", key="a", field="place.lon")["values"] == [0.0, 1.0]


def test_time_that_passes_is_no_row_of_a_chart(fleet):
    send(fleet, row("a", 1, 50, 0))
    assert fleet.post("/v1/sets/fleet/advance", json={"time": "2026-03-02T00:00:05Z"}).status_code == 200
    send(fleet, row("a", 2, 50, 9))

    assert [body.form for body in fleet.service.live["fleet"].recent._bodies] == [JSON, JSON]
    assert get(fleet, "values", key="a", field="lon")["values"] == [1.0, 2.0]


def test_the_ranges_of_a_query_are_those_of_its_text(fleet):
    texts = {"between": "load BETWEEN 3 AND 5 AND lon > 2", "or": "load < 1 OR load >= 8", "none": "truck = 'a'"}
    for name, text in texts.items():
        fleet.post("/v1/sets/fleet/queries", json={"id": name, "where": text})
    send(fleet, row("a", 1, 50, 0))

    def ranges(query):
        return get(fleet, "values", key="a", field="load", query=query)["ranges"]

    assert ranges("between") == [[3, 5]]
    assert sorted(ranges("or"), key=str) == sorted([[None, 1], [8, None]], key=str)
    assert ranges("none") == []
    assert fleet.get("/v1/sets/fleet/values?key=a&field=load&query=nosuch").status_code == 404


def test_zones_are_found_by_area_and_follow_changes(fleet):
    features = {each["id"]: each for each in get(fleet, "zones")["features"]}
    assert features.keys() == {"ring", "disc"}
    assert features["ring"]["geometry"]["coordinates"] == [[[4, 50], [6, 50], [6, 52], [4, 52], [4, 50]]]
    assert (features["disc"]["geometry"]["coordinates"], features["disc"]["properties"]["radius"]) == ([10, 50], 20000)
    own = features["disc"]["properties"]
    assert f"load > 3 AND {DISC}"[own["start"] : own["end"]] == DISC
    assert (own["x"], own["y"], own["owner"]) == ("lon", "lat", "bob")

    assert zones(fleet, bbox="0,0,4,50") == ["ring"]
    assert zones(fleet, bbox="10.2,50,11,51") == ["disc"]
    assert zones(fleet, bbox="10.4,50,11,51") == []
    assert get(fleet, "zones", limit=1)["more"] == 1
    moved = DISC.replace("10.0", "-70")
    fleet.patch("/v1/sets/fleet/queries/disc", json={"where": moved})
    fleet.delete("/v1/sets/fleet/queries/ring")
    fleet.post("/v1/sets/fleet/queries", json={"id": "two", "where": f"{DISC} OR NOT {RING}"})
    assert sorted(zones(fleet)) == ["disc", "two", "two"]
    assert zones(fleet, bbox="-71,49,-69,51") == ["disc"]


@pytest.mark.parametrize("bbox", ["", "1,2,3", "a,b,c,d", "5,0,4,1", "nan,0,1,1"])
def test_a_bbox_that_is_not_one_is_refused(fleet, bbox):
    answer = fleet.get("/v1/sets/fleet/zones", params={"bbox": bbox})
    assert answer.status_code == 400
    assert "west,south,east,north" in answer.json()["error"]["message"]


def test_all_forms_of_a_zone_are_read():
    shape = "ST_GeomFromText('POLYGON ((0 0, 4 0, 4 3, 0 0))')"
    for text in (
        f"ST_Contains({shape}, ST_Point(lon, lat))",
        f"st_within( st_point( lon , lat ),{shape})",
        f"ST_Intersects({shape}, ST_Point(lon, lat))",
        f"ST_Intersects(ST_Point(lon, lat), {shape})",
    ):
        [zone] = read_zones("a", text, None)
        assert zone.bounds == (0, 0, 4, 3)
        assert (zone.start, zone.end) == (0, len(text))
    assert read_zones("a", "name = 'x' AND ST_DWithin(ST_Point(x, y), ST_Point(1, 2), 3)", None) == []  # not metres
    assert read_zones("a", "ST_Within(ST_Point(x, y), ST_GeomFromText('nothing'))", None) == []


def test_confined_tokens_see_their_zones_and_no_keys(fleet, registry):
    send(fleet, row("a", 5, 51, 0))
    _, text = create_token(registry.database, "ann", "read", owner="ann")
    fleet.run(fleet.service.poll())
    fleet.headers = {"authorization": f"Bearer {text}"}

    assert zones(fleet) == ["ring"]
    for path in ("keys", "values?key=a&field=lon"):
        assert fleet.get(f"/v1/sets/fleet/{path}").status_code == 403


def follow(client, query):
    return Socket(client, f"/v1/sets/fleet/keys/ws?{query}")


def messages(socket):
    return [json.loads(each["text"]) for each in socket.sent if each["type"] == "websocket.send"]


def test_keys_are_followed_in_an_area(fleet):
    send(fleet, row("a", 5, 51, 0), row("b", 50, 51, 0))

    async def run():
        socket = follow(fleet, "fields=lon,lat&bbox=0,40,20,60")
        await socket.wait_for(2)
        for place, rows in enumerate(([row("a", 6, 51, 1)], [row("b", 7, 51, 2)], [row("a", 60, 51, 3)]), 3):
            [answer] = await fleet.together(("POST", "/v1/sets/fleet/rows", {"json": rows}))
            assert answer.status_code == 200
            await socket.wait_for(place)
        socket.put("disconnect")
        await socket.end()
        return messages(socket)

    first, moved, entered, left = fleet.run(run())
    assert (first["keys"], first["fields"], first["again"]) == (["a"], {"lon": [5.0], "lat": [51.0]}, True)
    assert (moved["keys"], moved["fields"]["lon"], moved["gone"]) == (["a"], [6.0], [])
    assert (entered["keys"], entered["shown"], entered["total"]) == (["b"], 2, 2)
    assert (left["keys"], left["gone"]) == ([], ["a"])
    assert fleet.service.n_streams == 0


def test_one_key_is_followed_with_its_time(fleet):
    send(fleet, row("a", 5, 51, 0), row("b", 50, 51, 0))

    async def run():
        socket = follow(fleet, "fields=lon,ts&key=b")
        await socket.wait_for(2)
        socket.put("disconnect")
        await socket.end()
        return messages(socket)

    assert fleet.run(run())[0]["fields"] == {"lon": [50.0], "ts": ["2026-03-02T00:00:00Z"]}


@pytest.mark.parametrize("query", ["fields=speed", "fields=lon&bbox=1,2,3", "fields=lon&bbox=0,0,1,1&x=speed"])
def test_a_stream_of_keys_that_cannot_be_is_refused(fleet, query):
    send(fleet, row("a", 5, 51, 0))

    async def run():
        socket = follow(fleet, query)
        await socket.end()
        return socket.sent

    assert fleet.run(run())[0]["code"] == 4400
