"""Moving objects over HTTP: their motions, and the pairs that they will be in."""

from __future__ import annotations

import random

import pytest
from oracles_moving import Motion, meet

from vedette.registry.tokens import create_token
from vedette.serve import moving_objects

ZONES = {"port": (0, 5, 0, 5), "bay": (4, 9, -3, 3), "far": (90, 99, 90, 99)}
INTERVAL = 60


@pytest.fixture
def sea(client):
    assert client.post("/v1/sets", json={"name": "sea", "kind": "moving join"}).status_code == 201
    for name, sides in ZONES.items():
        zone = dict(zip(("x_low", "x_high", "y_low", "y_high"), sides, strict=True))
        body = {"id": name, **zone, "metadata": {"owner": "ann"}}
        assert client.post("/v1/sets/sea/queries", json=body).status_code == 201
    assert client.put("/v1/sets/sea/monitor", json={"max_update_interval": INTERVAL}).status_code == 201
    return client


def send(client, *rows):
    answer = client.post("/v1/sets/sea/rows", json=list(rows))
    assert answer.status_code == 200, answer.text


def get(client, **params):
    answer = client.get("/v1/sets/sea/objects", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_pages(client, limit):
    after = -1
    while after is not None:
        page = get(client, limit=limit, after=after)
        yield page
        after = page["next"]


def test_pairs_are_those_of_exact_fractions_for_any_size_of_pages(sea):
    some, motions = random.Random(5), {}
    for moment in (0, 7, 7.5):
        for number in some.sample(range(12), 8):
            low_x, low_y = (some.randint(-40, 40) / 2 for _ in "xy")
            vx, vy = (some.randint(-4, 4) / 4 for _ in "xy")
            row = {
                "id": f"v{number}",
                "time": moment,
                "x_low": low_x,
                "x_high": low_x + 1,
                "y_low": low_y,
                "y_high": low_y + 2,
            }
            send(sea, {**row, "vx": vx, "vy": vy})
            motions[f"v{number}"] = Motion(moment, ((low_x, low_x + 1, vx, vx), (low_y, low_y + 2, vy, vy)))
    expected = {}
    for name, motion in motions.items():
        for zone, (x_low, x_high, y_low, y_high) in ZONES.items():
            still = Motion(0, ((x_low, x_high, 0, 0), (y_low, y_high, 0, 0)))
            when = meet(motion, still, motion.time, motion.time + INTERVAL)
            if when and when[1] >= 7.5:
                expected[name, zone] = [float(each) for each in when], when[1] < motion.time + INTERVAL

    for limit in (1, 5, 100):
        pages = list(read_pages(sea, limit))
        assert {page["time"] for page in pages} == {7.5}
        assert {page["total"] for page in pages} == {len(motions)}
        objects = [each for page in pages for each in page["objects"]]
        assert sorted(each["id"] for each in objects) == sorted(motions)
        for each in objects:
            names = [(f"{axis}_low", f"{axis}_high", f"v{axis}_low", f"v{axis}_high") for axis in "xy"]
            sides = tuple(tuple(each[name] for name in own) for own in names)
            assert Motion(each["time"], sides) == motions[each["id"]]
            assert each["until"] == each["time"] + INTERVAL
        found = {(e["a"], e["b"]): ([e["start"], e["end"]], e["ends"]) for page in pages for e in page["pairs"]}
        assert found.keys() == expected.keys()
        for pair, (times, ends) in expected.items():
            assert found[pair] == (pytest.approx(times), ends)
        for page in pages:
            assert [each["start"] for each in page["pairs"]] == sorted(each["start"] for each in page["pairs"])
            zones = {
                each["id"]: (each["x_low"], each["x_high"], each["y_low"], each["y_high"]) for each in page["zones"]
            }
            assert zones == {name: ZONES[name] for name in {each["b"] for each in page["pairs"]}}
    assert len(expected) > 3


def test_before_the_first_row_there_is_nothing_and_removed_objects_are_gone(sea):
    nothing = {"objects": [], "pairs": [], "zones": [], "more_pairs": 0, "next": None, "total": 0}
    assert get(sea) == {"time": None, "interval": 60.0, **nothing}

    send(sea, {"id": "Ada", "time": 1, "x": 1, "y": 1, "vx": 0, "vy": 0})
    assert [each["b"] for each in get(sea)["pairs"]] == ["port"]
    send(sea, {"id": "Ada", "time": 2, "removed": True})
    assert get(sea) == {"time": 2.0, "interval": 60.0, **nothing}


def test_a_change_of_zones_changes_the_pairs_without_rows(sea):
    send(sea, {"id": "Ada", "time": 1, "x": 50, "y": 50, "vx": 0, "vy": 0})
    assert get(sea)["pairs"] == []
    sea.post("/v1/sets/sea/queries", json={"id": "new", "x_low": 49, "x_high": 51, "y_low": 49, "y_high": 51})
    sea.run(sea.service.poll())

    assert [(each["a"], each["b"], each["ends"]) for each in get(sea)["pairs"]] == [("Ada", "new", False)]


def test_objects_are_found_by_a_part_of_their_id(sea):
    send(sea, *({"id": f"van {number}", "time": 1, "x": 1, "y": 1, "vx": 0, "vy": 0} for number in range(12)))

    page = get(sea, search="VAN 1", limit=2)
    assert [each["id"] for each in page["objects"]] == ["van 1", "van 10"]
    assert [each["id"] for each in get(sea, search="VAN 1", limit=2, after=page["next"])["objects"]] == ["van 11"]


def test_an_answer_has_a_bounded_number_of_pairs(sea, monkeypatch):
    monkeypatch.setattr(moving_objects, "_LISTED", 3)
    send(sea, *({"id": f"v{place}", "time": 0, "x": -place, "y": 1, "vx": 1, "vy": 0} for place in range(6)))
    page = get(sea)

    assert [(each["a"], each["b"]) for each in page["pairs"]] == [("v0", "port"), ("v1", "port"), ("v2", "port")]
    assert page["more_pairs"] == 9
    monkeypatch.setattr(moving_objects, "_FOUND", 3)
    refused = sea.get("/v1/sets/sea/objects")
    assert refused.status_code == 413
    assert "ask for fewer objects" in refused.json()["error"]["message"]


def test_objects_are_for_readers_of_the_set_and_of_all_owners(sea, registry):
    tokens = {
        "all": create_token(registry.database, "a", "read")[1],
        "own": create_token(registry.database, "b", "read", owner="ann")[1],
        "other": create_token(registry.database, "c", "read", sets=["alerts"])[1],
    }
    sea.run(sea.service.poll())
    headers = {name: {"authorization": f"Bearer {text}"} for name, text in tokens.items()}

    statuses = {name: sea.get("/v1/sets/sea/objects", headers=given).status_code for name, given in headers.items()}
    assert statuses == {"all": 200, "own": 403, "other": 404}


def test_sets_of_other_kinds_and_without_a_monitor_have_no_objects(alerts):
    other = alerts.get("/v1/sets/alerts/objects")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "other_kind")
    alerts.post("/v1/sets", json={"name": "idle", "kind": "moving join"})
    assert alerts.get("/v1/sets/idle/objects").json()["error"]["code"] == "no_monitor"
    assert alerts.get("/v1/sets/idle/objects", params={"limit": 1001}).status_code == 422
