"""Named sets of each kind: create, list, alter, drop and forget."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vedette as vd
from vedette.registry.read import retention


def test_a_set_has_a_kind_schema_and_version(registry: vd.Registry) -> None:
    registry.create("alerts", schema="symbol string, price double", time_zone="Europe/Berlin")
    registry.create("fences", "border", vd.Schema.parse("x double"))
    registry.create("pairs", "window join", left="x double", right="y double, z bigint", windows="any")
    registry.create("bands", "band join")

    infos = registry.sets()

    assert [(each.name, each.kind, each.schema, each.time_zone, each.windows) for each in infos] == [
        ("alerts", "match", {"": "symbol string, price double"}, "Europe/Berlin", None),
        ("bands", "band join", {}, "UTC", None),
        ("fences", "border", {"": "x double"}, "UTC", None),
        ("pairs", "window join", {"left": "x double", "right": "y double, z bigint"}, "UTC", "any"),
    ]
    assert {(each.version, each.n_active, each.id_kind) for each in infos} == {(0, 0, None)}
    assert len({each.uid for each in infos}) == 4
    assert registry.set("pairs").streams == ["left", "right"]


@pytest.mark.parametrize(
    ("kind", "given", "error", "message"),
    [
        ("mach", {"schema": "x double"}, vd.RegistryError, "unknown kind of set: 'mach'.*did you mean 'match'"),
        ("match", {}, vd.SchemaError, "a set of kind match needs one schema"),
        ("match", {"left": "x double"}, vd.SchemaError, "a set of kind match needs one schema"),
        ("match", {"schema": "x dubel"}, vd.SchemaError, "unknown type 'dubel'"),
        ("match", {"schema": "x double", "time_zone": "Mars"}, vd.SchemaError, "unknown time zone 'Mars'"),
        ("match", {"schema": "x double", "windows": "rows"}, vd.RegistryError, "a set of kind match has no windows"),
        ("window join", {"schema": "x double"}, vd.SchemaError, "a window join has one schema per stream"),
        ("window join", {"left": "x double"}, vd.SchemaError, "a join needs two or more streams"),
        ("window join", {"left": "x double", "right": "y double", "windows": "row"}, vd.RegistryError, "mean 'rows'"),
        ("band join", {"schema": "x double"}, vd.SchemaError, "a band join has no schema; create the set without one"),
    ],
)
def test_an_invalid_set_is_refused(
    registry: vd.Registry, kind: str, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        registry.create("set", kind, **given)

    assert registry.sets() == []


def test_names_of_sets_are_unique(registry: vd.Registry) -> None:
    registry.create("alerts", schema="x double")

    with pytest.raises(vd.RegistryError, match="set 'alerts' already exists; use another name, or drop it first"):
        registry.create("alerts", schema="x double")
    for name in ("", None, "a\0", "ü" * 501):
        with pytest.raises(vd.RegistryError, match="the name of a set must be 1 to 1,000 bytes"):
            registry.create(name, schema="x double")  # type: ignore[arg-type]


def test_the_error_about_an_unknown_set_lists_the_existing_ones(registry: vd.Registry) -> None:
    with pytest.raises(vd.RegistryError, match=r"no set 'alert' in the registry .*; it has no sets yet"):
        registry.set("alert")
    registry.create("alerts", schema="x double")

    with pytest.raises(vd.RegistryError, match=r"its sets are: alerts; did you mean 'alerts'\?"):
        registry.add("alert", "a", "x < 1")


def test_a_dropped_set_leaves_nothing(registry: vd.Registry) -> None:
    first = registry.create("alerts", schema="x double")
    registry.create("others", schema="x double")
    for name in ("alerts", "others"):
        registry.add(name, "a", "x < 1")
        registry.pin("job", 1, name)
    waiting = registry.change("alerts")
    waiting.add("b", "x < 2")

    registry.drop("alerts")
    second = registry.create("alerts", schema="x double")

    assert second.uid != first.uid
    assert (registry.set("alerts").version, registry.list("alerts")) == (0, [])
    assert [each.id for each in registry.list("others")] == ["a"]
    with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped by another process; nothing was changed"):
        waiting.commit()
    assert registry.verify() == []


def test_window_joins_store_their_windows(registry: vd.Registry) -> None:
    registry.create("pairs", "window join", left="x double", right="x double", windows="any")
    text = "left.x = right.x"

    registry.add("pairs", "a", text, within="10 seconds")
    registry.add("pairs", "b", text, rows={"left": 5, "right": 7})
    registry.add("pairs", "c", text, within={"left": datetime.timedelta(minutes=1)}, rows={"right": 3})
    registry.add_many("pairs", ["d", "e"], [text] * 2, within=[np.float64(1.5), 2])
    registry.add_many("pairs", ["f", "g"], [text] * 2, rows={"left": [1, 2], "right": 3})
    registry.replace("pairs", "a", "left.x < right.x")
    registry.replace("pairs", "b", rows=9)

    wanted = {
        "a": {"within": "10 seconds"},
        "b": {"rows": 9},
        "c": {"within": {"left": "60000000 microseconds"}, "rows": {"right": 3}},
        "d": {"within": 1.5},
        "e": {"within": 2},
        "f": {"rows": {"left": 1, "right": 3}},
        "g": {"rows": {"left": 2, "right": 3}},
    }
    assert {each.id: each.window for each in registry.list("pairs")} == wanted
    queries = vd.JoinQuerySet(left="x double", right="x double")
    for piece in registry.active("pairs"):
        for query_id, each, window in zip(piece.added_ids, piece.texts or [], piece.windows or [], strict=True):
            queries.add(query_id, each, **window)
    assert len(queries) == 7
    with pytest.raises(vd.QueryError, match="the window of the left stream is missing"):
        registry.add("pairs", "h", text)
    with pytest.raises(vd.QueryError, match="two windows"):
        registry.add("pairs", "h", text, within="1 s", rows=5)
    with pytest.raises(vd.QueryError, match="query 'h': unknown field"):
        registry.add("pairs", "h", "left.y = right.x", rows=5)


def test_a_window_join_accepts_only_its_sort_of_windows(registry: vd.Registry) -> None:
    registry.create("by time", "window join", left="x double", right="x double")
    registry.create("by rows", "window join", left="x double", right="x double", windows="rows")

    with pytest.raises(vd.QueryError, match="of kind window join over windows of time; its queries have no 'rows'"):
        registry.add("by time", "a", "left.x = right.x", rows=5)
    with pytest.raises(vd.QueryError, match="of kind window join over windows of rows; its queries have no 'within'"):
        registry.add("by rows", "a", "left.x = right.x", within="1 s")


def test_band_joins_store_their_ends(registry: vd.Registry) -> None:
    registry.create("bands", "band join")

    registry.add("bands", 1, low=-0.5, high=0.1 + 0.2)
    registry.add_many("bands", [2, 3], lows=[-math.inf, 5e-324], highs=np.array([0.0, math.inf]))
    registry.replace("bands", 1, low=1, high=2, metadata={"owner": "ann"})
    registry.replace("bands", 1, metadata={"owner": "bob"})

    bands = {each.id: (each.low, each.high, each.text) for each in registry.list("bands")}
    assert bands == {1: (1.0, 2.0, None), 2: (-math.inf, 0.0, None), 3: (5e-324, math.inf, None)}
    changes = registry.changes("bands", since=0)
    assert changes.lows is not None
    assert changes.highs is not None
    assert changes.lows.tolist() == [-0.5, -math.inf, 5e-324, 1.0, 1.0]
    assert changes.highs.tolist() == [0.1 + 0.2, 0.0, math.inf, 2.0, 2.0]
    assert (changes.texts, changes.windows) == (None, None)
    for given, message in [
        ({"low": 1.0}, "a query needs low and high; one may be None"),
        ({"low": 2.0, "high": 1.0}, "low 2 of band 4 is above its high 1"),
        ({"low": math.nan, "high": 1.0}, "is NaN"),
        ({"text": "x < 1", "low": 1, "high": 2}, "its queries have no 'text'"),
    ]:
        with pytest.raises(vd.QueryError, match=message):
            registry.add("bands", 4, **given)  # type: ignore[arg-type]


def test_an_unbounded_band_is_read_as_in_a_band_query_set(registry: vd.Registry) -> None:
    registry.create("bands", "band join")
    held = vd.BandQuerySet()
    for query, low, high in (("below", None, 1.0), ("above", 2.0, None), ("all", None, None)):
        registry.add("bands", query, low=low, high=high)
        held.add(query, low, high)
    registry.add_many("bands", ["a", "b"], lows=[None, 1.0], highs=None)
    held.add_many(["a", "b"], [None, 1.0], None)
    registry.replace("bands", "above", low=None, high=3.0)
    held.replace("above", None, 3.0)
    registry.replace("bands", "below", metadata={"owner": "ann"})

    assert {each.id: (each.low, each.high) for each in registry.list("bands")} == {
        "a": (-math.inf, math.inf),
        "above": (-math.inf, 3.0),
        "all": (-math.inf, math.inf),
        "b": (1.0, math.inf),
        "below": (-math.inf, 1.0),
    }
    followed = registry.follow("bands")
    joins = [bands.monitor() for bands in (held, followed.open(followed.current_version()))]
    values = {"left": {"id": [1], "value": [2.5]}, "right": {"id": [1], "value": [0.0]}}
    found = [sorted(join.insert(**values).column("query").to_pylist()) for join in joins]
    assert found[0] == found[1] == ["a", "above", "all", "b"]
    registry.create("alerts", schema="price double")
    registry.add("alerts", "cheap", "price < 1", low=None)  # None means not given, except in bands
    with pytest.raises(vd.QueryError, match="its queries have no 'low'"):
        registry.add("alerts", "dear", "price > 1", low=1.0)


@pytest.mark.parametrize("ids", [["first", "second"], [7, 8]])
def test_an_error_of_add_many_names_the_query_with_the_wrong_window_band_zone_or_expiry(
    registry: vd.Registry, ids: list[Any]
) -> None:
    registry.create("pairs", "window join", left="x double", right="x double", windows="any")
    registry.create("bands", "band join")
    registry.create("zones", "moving join")
    texts, second = ["left.x = right.x"] * 2, re.escape(repr(ids[1]))

    for given, message in [
        ({"within": ["1 s", "soon"]}, f"^query {second}: .*'soon'"),
        ({"rows": {"left": 3, "right": [1, 0]}}, f"^query {second}: rows must be a whole number above 0"),
        ({"rows": 3, "metadata": [{}, {"owner": math.nan}]}, f"^query {second}: metadata must be valid JSON"),
        ({"rows": 3, "ttl": ["1 day", "soon"]}, f"^query {second}: ttl must be a duration"),
    ]:
        with pytest.raises(vd.QueryError, match=message) as caught:
            registry.add_many("pairs", ids, texts, **given)
        assert caught.value.query == ids[1]
    for given, message in [
        ({"lows": [0, 2], "highs": 1}, f"^low 2 of band {second} is above its high 1"),
        ({"lows": 0, "highs": [1, math.nan]}, f"^high of band {second} is NaN"),
        ({"lows": [0, "x"], "highs": 1}, f"^low of band {second} must be a number; got 'x'"),
    ]:
        with pytest.raises(vd.QueryError, match=message) as caught:
            registry.add_many("bands", ids, **given)
        assert caught.value.query == ids[1]
    for wrong, message in (
        ([0, 2], f"^x_low 2 of zone {second} is above"),
        ([0, "x"], f"^x_low of zone {second} must be"),
    ):
        with pytest.raises(vd.QueryError, match=message) as caught:
            registry.add_many("zones", ids, x_low=wrong, x_high=1, y_low=0, y_high=1)
        assert (caught.value.query, caught.value.field) == (ids[1], "x_low")

    assert [registry.set(name).version for name in ("pairs", "bands", "zones")] == [0, 0, 0]


def test_a_schema_that_makes_queries_invalid_is_refused_with_their_list(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double, volume bigint")
    registry.add_many("alerts", ["a", "b", "c"], ["price < 1", "volume > 5", "volume > price"])

    with pytest.raises(
        vd.RegistryError, match="2 active queries are invalid under the new schema of set 'alerts'"
    ) as caught:
        registry.alter("alerts", "price double, symbol string")

    assert [query_id for query_id, _ in caught.value.broken] == ["b", "c"]
    assert "query 'b': unknown field 'volume'" in str(caught.value)
    assert (registry.set("alerts").version, registry.set("alerts").n_active) == (1, 3)
    assert registry.alter("alerts", "price double, volume bigint, symbol string") == 2
    assert registry.add("alerts", "d", "symbol = 'x'") == 3


def test_a_forced_schema_parks_invalid_queries_until_they_are_replaced_or_removed(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double, volume bigint")
    registry.add_many("alerts", ["a", "b", "c"], ["price < 1", "volume > 5", "volume > 6"], metadata={"owner": "ann"})

    assert registry.alter("alerts", "price double", force=True) == 2

    assert [each.id for each in registry.list("alerts")] == ["a"]
    assert [(each.id, each.state) for each in registry.list("alerts", state="parked")] == [
        ("b", "parked"),
        ("c", "parked"),
    ]
    info = registry.set("alerts")
    assert (info.n_active, info.n_parked, info.schema, info.schema_version) == (1, 2, {"": "price double"}, 2)
    assert registry.changes("alerts", since=1).removed_ids == ["b", "c"]
    assert registry.get("alerts", "b").state == "parked"
    for wrong in (
        lambda: registry.add("alerts", "b", "price < 2"),
        lambda: registry.replace("alerts", "b", metadata={"owner": "bob"}),
    ):
        with pytest.raises(vd.QueryError, match=r"query 'b' is parked in set 'alerts'.*replace it with another text"):
            wrong()
    with pytest.raises(vd.QueryError, match="no query 'z' in set 'alerts'"):
        registry.remove_many("alerts", ["a", "b", "z"])
    assert registry.set("alerts").n_parked == 2
    registry.replace("alerts", "b", "price < 2")
    assert registry.get("alerts", "b").metadata == {"owner": "ann"}
    registry.remove("alerts", "c")
    assert registry.list("alerts", state="parked") == []
    assert (registry.set("alerts").n_active, registry.set("alerts").n_parked) == (2, 0)
    assert [each.state for each in registry.history("alerts", "b")] == ["parked", "active"]
    with pytest.raises(vd.QueryError, match="no query 'c' in set 'alerts'"):
        registry.remove("alerts", "c")
    assert registry.verify() == []


def test_a_removed_parked_query_is_listed_as_removed(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double, volume bigint")
    registry.add_many("alerts", ["a", "b"], ["volume > 5", "volume > 6"])
    registry.alter("alerts", "price double", force=True)
    with registry.change("alerts") as change:
        change.remove("a")
        change.replace("b", "price < 1")

    assert [each.id for each in registry.list("alerts", state="removed")] == ["a"]
    assert [each.state for each in registry.history("alerts", "b")] == ["parked", "active"]
    with pytest.raises(vd.QueryError, match="no query 'a' in set 'alerts': it was removed"):
        registry.get("alerts", "a")
    assert registry.changes("alerts", since=1, until=2).removed_ids == ["a", "b"]


@pytest.mark.parametrize(("kind", "oldest"), [("match", 6), ("border", 3), ("band join", 3)])
def test_versions_that_state_of_pipelines_may_refer_to_are_not_forgotten(
    registry: vd.Registry, monkeypatch: pytest.MonkeyPatch, kind: str, oldest: int
) -> None:
    monkeypatch.setattr(retention, "RETAINED_VERSIONS", 3)
    registry.create("alerts", kind, None if kind == "band join" else "price double")
    given = {"low": 0, "high": 1} if kind == "band join" else {"text": "price < 1"}
    for i in range(6):
        registry.add("alerts", i, **given)
    registry.pin("job", 0, "alerts")

    assert registry.forget("alerts", before=6) == oldest


def test_the_schema_of_each_version_is_known(registry: vd.Registry) -> None:
    registry.create("pairs", "window join", left="x double", right="x double")
    registry.alter("pairs", {"left": "x double, y double", "right": "x double"})
    registry.alter("pairs", time_zone="Asia/Tokyo")

    assert [registry.schema_at("pairs", version) for version in range(3)] == [
        ({"left": "x double", "right": "x double"}, "UTC"),
        ({"left": "x double, y double", "right": "x double"}, "UTC"),
        ({"left": "x double, y double", "right": "x double"}, "Asia/Tokyo"),
    ]
    with pytest.raises(vd.RegistryError, match="joins the streams left, right; the new schema names left, other"):
        registry.alter("pairs", {"left": "x double", "other": "x double"})
    registry.create("bands", "band join")
    with pytest.raises(vd.RegistryError, match="of kind band join, which has no schema to alter"):
        registry.alter("bands", None)


def test_a_schema_change_checks_queries_that_are_added_concurrently(
    open_registry: Callable[..., vd.Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vedette.registry.write import alteration

    one, other = open_registry(), open_registry()
    one.create("alerts", schema="price double, volume bigint")
    one.add_many("alerts", ["a", "b", "c"], ["volume > 1", "volume > 2", "price < 3"])
    read_active = alteration.read_active

    def read_slowly(*arguments: Any) -> Any:
        yield from read_active(*arguments)
        with other.change("alerts") as change:
            change.remove("a")
            change.replace("b", "price < 2")
            change.replace("c", "volume > 3")
            change.add("d", "volume > 4")

    monkeypatch.setattr(alteration, "read_active", read_slowly)

    with pytest.raises(vd.RegistryError, match="2 active queries are invalid under") as caught:
        one.alter("alerts", "price double")

    assert sorted(query_id for query_id, _ in caught.value.broken) == ["c", "d"]


def test_a_schema_change_does_not_undo_a_concurrent_one(
    open_registry: Callable[..., vd.Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vedette.registry.write import alteration

    one, other = open_registry(), open_registry()
    one.create("alerts", schema="price double")
    one.add("alerts", "a", "price < 1")
    read_active, concurrent = alteration.read_active, list[dict[str, Any]]()

    def read_slowly(*arguments: Any) -> Any:
        yield from read_active(*arguments)
        if concurrent:
            other.alter("alerts", **concurrent.pop())

    monkeypatch.setattr(alteration, "read_active", read_slowly)

    concurrent.append({"schema": "price double, volume bigint"})
    assert one.alter("alerts", time_zone="Europe/Paris") == 3
    concurrent.append({"time_zone": "Asia/Tokyo"})
    assert one.alter("alerts", "price double, size bigint") == 5
    concurrent.append({"schema": "price double"})
    assert one.alter("alerts", "price double, volume bigint") == 7  # if two writers give a schema, the last one applies

    assert [one.schema_at("alerts", version) for version in (3, 5, 7)] == [
        ({"": "price double, volume bigint"}, "Europe/Paris"),
        ({"": "price double, size bigint"}, "Asia/Tokyo"),
        ({"": "price double, volume bigint"}, "Asia/Tokyo"),
    ]
    assert one.verify() == []


def test_forgotten_versions_cannot_be_read_and_later_ones_can(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    for i in range(6):
        registry.add("alerts", f"q{i}", f"price < {i}")
        if i:
            registry.remove("alerts", f"q{i - 1}")
    wanted = {version: _at(registry, version) for version in range(12)}
    later = registry.changes("alerts", since=7)

    assert registry.forget("alerts", before=7) == 7

    assert {version: _at(registry, version) for version in range(7, 12)} == {v: wanted[v] for v in range(7, 12)}
    again = registry.changes("alerts", since=7)
    assert (again.removed_ids, again.added_ids, again.marks.tolist()) == (
        later.removed_ids,
        later.added_ids,
        later.marks.tolist(),
    )
    with pytest.raises(
        vd.RegistryError, match="version 6 of set 'alerts' is forgotten; the oldest readable version is 7"
    ):
        registry.changes("alerts", since=6)
    with pytest.raises(vd.RegistryError, match="is forgotten"):
        _at(registry, 3)
    assert registry.set("alerts").oldest == 7
    assert registry.marks("alerts")[0].tolist() == [7, 8, 9, 10, 11]
    with pytest.raises(vd.QueryError, match="no query 'q0' in set 'alerts', and its history has none either"):
        registry.history("alerts", "q0")
    assert registry.verify() == []


def test_forget_takes_a_time_or_an_age_and_keeps_pinned_versions(registry: vd.Registry, clock: Any) -> None:
    registry.create("alerts", schema="price double")
    moments = []
    for i in range(5):
        clock.advance(60)
        registry.add("alerts", i, "price < 1")
        moments.append(registry.get("alerts", i).created_at)
    registry.pin("job", 0, "alerts")
    clock.advance(60)
    registry.remove("alerts", 0)

    assert registry.forget("alerts", before=moments[1] + datetime.timedelta(seconds=1)) == 2
    assert registry.forget("alerts", before="150 seconds") == 3
    assert registry.forget("alerts", before=6) == 5
    registry.pin("job", 1, "alerts")
    assert registry.forget("alerts", before=6) == 6
    clock.advance(8 * 86_400)
    registry.add("alerts", 9, "price < 1")
    assert registry.forget("alerts", before=7) == 6  # the stream may restart
    registry.unpin("job")
    assert registry.forget("alerts", before=7) == 7
    with pytest.raises(vd.RegistryError, match="has no version 8"):
        registry.forget("alerts", before=8)


def test_a_version_that_a_sql_query_has_pinned_is_kept_for_a_day(registry: vd.Registry, clock: Any) -> None:
    registry.create("alerts", schema="price double")
    for i in range(5):
        registry.add("alerts", i, "price < 1")
        registry.pin("sql:some session", 2 * i, "alerts")
    assert registry.pin("sql:some session", 2, "alerts") == 2
    assert registry.forget("alerts", before=5) == 1
    clock.advance(86_399)
    assert registry.forget("alerts", before=5) == 1

    clock.advance(2)

    assert registry.forget("alerts", before=5) == 5
    registry.pin("sql:another session", 1, "alerts")
    assert [(each.stream, each.first_batch) for each in registry.pins()] == [("sql:another session", 1)]


def test_stats_count_queries_versions_and_pins(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    registry.add_many("alerts", ["a", "b"], ["price < 1"] * 2)
    registry.remove("alerts", "a")
    registry.pin("job", 1, "alerts")

    stats = registry.stats()

    assert stats.database_bytes > 0
    (alerts,) = stats.sets
    assert (alerts.info.n_active, alerts.n_remembered, alerts.n_versions, alerts.n_pins) == (1, 1, 3, 1)


def test_verify_reports_inconsistent_tables(registry: vd.Registry) -> None:
    from sqlalchemy import text

    registry.create("alerts", schema="price double")
    registry.add_many("alerts", ["a", "b"], ["price < 1"] * 2)
    for statement in (
        "UPDATE vedette_sets SET n_active = 7",
        "UPDATE vedette_revisions SET text = 'prize < 1' WHERE name = 'a'",
        "UPDATE vedette_revisions SET removed = 9 WHERE name = 'b'",
        "DELETE FROM vedette_versions WHERE version = 0",
    ):
        registry.database.write(lambda connection, statement=statement: connection.execute(text(statement)))  # type: ignore[misc]

    assert registry.verify() == [
        "set 'alerts': 1 active query, but its row says 7",
        "set 'alerts': 1 revision with impossible versions",
        "set 'alerts': 1 version since version 0, but it is at 1",
        "set 'alerts': query 'a': unknown field 'prize'; the schema has: price; did you mean 'price'?",
    ]


def _at(registry: vd.Registry, version: int) -> dict[Any, str]:
    pieces = list(registry.active("alerts", at=version))
    return {query: text for piece in pieces for query, text in zip(piece.added_ids, piece.texts or [], strict=True)}
