"""Options and metadata of queries in a registry: with history, in compiled sets, and in imported and exported files."""

from __future__ import annotations

import json

import pytest

import vedette as vd
from vedette.cli.jobs.query_import import import_queries

SCHEMA = "k string, lon double, lat double, x double, t bigint"
NO_END = {"expires_at": None, "ttl": None}


@pytest.fixture
def registry(open_registry):
    made = open_registry()
    made.create("alerts", kind="border", schema=SCHEMA)
    return made


def test_a_replaced_query_keeps_the_options_that_are_not_given(registry):
    registry.add("alerts", "low", "x < 1", cooldown=5, dwell=2, metadata={"owner": "ann"})
    registry.replace("alerts", "low", cooldown=7, once=True)
    with registry.change("alerts") as change:
        change.replace("low", margin=0.5)
        change.replace("low", dwell=3)
    options = [each.options for each in registry.history("alerts", "low")]
    assert options == [
        {"cooldown": 5, "dwell": 2},
        {"cooldown": 7, "dwell": 2, "once": True},
        {"cooldown": 7, "dwell": 3, "once": True, "margin": 0.5},
    ]


def test_a_followed_set_answers_with_the_options_and_metadata_of_each_version(registry):
    registry.add_many(
        "alerts", ["low", "high"], ["x < 1", "x > 5"], cooldown=[10, None], metadata=[{"owner": "ann"}, None]
    )
    followed = registry.follow("alerts")
    queries = followed.open(followed.current_version())
    monitor = queries.border(key="k", time="t", metadata=["owner"], columns=["x"])

    def step(x, t):
        events = monitor.step({"k": ["a"], "x": [x], "t": [t]}).to_pylist()
        return [(e["query"], e["event"], e["held_back"], e["owner"], e["x"]) for e in events]

    assert step(0.0, 1) == [("low", "enter", 0, "ann", 0.0)]
    assert step(9.0, 2) == [("low", "exit", 0, "ann", 9.0), ("high", "enter", 0, None, 9.0)]
    assert step(0.0, 3) == [("high", "exit", 0, None, 0.0)]
    registry.replace("alerts", "low", metadata={"owner": "bob"})
    followed.advance(queries, followed.current_version())
    assert step(9.0, 4) == [("high", "enter", 0, None, 9.0)]
    assert step(0.0, 20) == [("high", "exit", 0, None, 0.0), ("low", "enter", 2, "bob", 0.0)]


def test_sets_of_other_kinds_and_unknown_options_are_refused(registry):
    registry.create("bands", kind="band join")
    with pytest.raises(vd.QueryError, match="'bands' is of kind band join; its queries have no 'cooldown'"):
        registry.add("bands", "b", low=0, high=1, cooldown=5)
    with pytest.raises(TypeError, match=r"unexpected argument 'coldown'.*did you mean 'cooldown'"):
        registry.add("alerts", "low", "x < 1", coldown=5)
    with pytest.raises(vd.QueryError, match="dwell must be a duration such as '5 minutes'; got 'soon'"):
        registry.add_many("alerts", ["a", "b"], ["x < 1"] * 2, dwell=[1, "soon"])
    assert registry.set("alerts").version == 0


def test_files_have_options_as_columns_and_geojson_as_properties(registry, tmp_path):
    csv = tmp_path / "queries.csv"
    csv.write_text("id,where,cooldown,once,margin,team\na,x < 1,1 hour,true,0.5,north\nb,x < 2,60,,,\n")
    lines = tmp_path / "queries.jsonl"
    lines.write_text(json.dumps({"id": "c", "where": "x < 3", "dwell": 5, "once": False}) + "\n")
    ring = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    zone = {
        "type": "Feature",
        "id": "d",
        "properties": {"cooldown": "5 minutes", "colour": "red"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    geojson = tmp_path / "zones.geojson"
    geojson.write_text(json.dumps({"type": "FeatureCollection", "features": [zone]}))
    for path in (csv, lines, geojson):
        import_queries(registry, registry.set("alerts"), str(path), "csv", NO_END, replace=False, skip_bad=False)
    found = {each.id: (each.options, each.metadata) for each in registry.list("alerts")}
    assert found == {
        "a": ({"cooldown": "1 hour", "once": True, "margin": 0.5}, {"team": "north"}),
        "b": ({"cooldown": 60}, {}),
        "c": ({"dwell": 5, "once": False}, {}),
        "d": ({"cooldown": "5 minutes"}, {"colour": "red"}),
    }
