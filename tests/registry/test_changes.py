"""A change is one transaction and one version, or nothing."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vedette as vd


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="symbol string, price double")
    return registry


def active(registry: vd.Registry) -> dict[Any, str | None]:
    return {each.id: each.text for each in registry.list("alerts", limit=None)}


def test_steps_of_one_change_are_one_version(alerts: vd.Registry) -> None:
    alerts.add_many("alerts", ["a", "b", "c"], ["price < 1", "price < 2", "price < 3"])

    with alerts.change("alerts") as change:
        change.add("d", "price < 4")
        change.replace("a", "price < 5")
        change.remove("b")
        change.remove("c")
        change.add("c", "price < 6")
        change.add("e", "price < 7")
        change.remove("e")

    assert change.version == 2
    assert active(alerts) == {"a": "price < 5", "c": "price < 6", "d": "price < 4"}
    changes = alerts.changes("alerts", since=1)
    assert changes.versions.tolist() == [2]
    assert sorted(changes.removed_ids) == ["a", "b", "c"]
    assert sorted(zip(changes.added_ids, changes.texts or [], strict=True)) == [
        ("a", "price < 5"),
        ("c", "price < 6"),
        ("d", "price < 4"),
    ]


@pytest.mark.parametrize(
    ("kind", "given", "columns"),
    [
        ("match", {"schema": "x double"}, {"texts": []}),
        ("window join", {"left": "x double", "right": "x double"}, {"texts": [], "windows": []}),
        ("band join", {}, {"lows": [], "highs": []}),
    ],
)
def test_changes_have_the_columns_of_the_kind_even_if_nothing_changed(
    registry: vd.Registry, kind: str, given: dict[str, Any], columns: dict[str, Any]
) -> None:
    registry.create("set", kind=kind, **given)

    changes = registry.changes("set", since=0)

    found = {name: getattr(changes, name) for name in ("texts", "windows", "lows", "highs")}
    assert {name: list(column) for name, column in found.items() if column is not None} == columns
    assert (changes.until, changes.n_added, changes.added_versions.tolist()) == (None, 0, [])


def test_replaced_queries_keep_what_is_not_given(alerts: vd.Registry) -> None:
    end = datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC)
    alerts.add_many("alerts", ["a", "b"], ["price < 1", "price < 2"], metadata={"owner": "z"}, expires_at=end)

    with alerts.change("alerts") as change:
        change.replace_many(["a", "b"], ["price < 3", "price < 4"])
        change.replace_many(["b"], metadata=[None], expires_at=[None])

    assert [(each.id, each.text, each.metadata, each.expires_at) for each in alerts.list("alerts")] == [
        ("a", "price < 3", {"owner": "z"}, end),
        ("b", "price < 4", {}, None),
    ]


def test_a_failed_change_changes_nothing(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1")

    with pytest.raises(vd.QueryError, match="id 'a' already exists in set 'alerts'; use replace"):
        alerts.add_many("alerts", ["b", "a"], ["price < 2", "price < 3"])
    with pytest.raises(vd.QueryError, match="query 'c': unknown field 'prize'; the schema has: price, symbol; did you"):
        alerts.add_many("alerts", ["b", "c"], ["price < 2", "prize < 3"])
    with pytest.raises(vd.QueryError, match="no query 'z' in set 'alerts'"):
        alerts.remove_many("alerts", ["a", "z"])
    with pytest.raises(vd.QueryError, match="no query 'z' in set 'alerts'"):
        alerts.replace("alerts", "z", "price < 1")
    with pytest.raises(ZeroDivisionError), alerts.change("alerts") as change:
        change.add("b", f"price < {len(active(alerts)) // 0}")

    assert active(alerts) == {"a": "price < 1"}
    assert alerts.set("alerts").version == 1


def test_an_empty_change_creates_no_version(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1")

    assert alerts.add_many("alerts", [], []) == 1
    assert alerts.remove_many("alerts", []) == 1
    with alerts.change("alerts"):
        pass

    assert alerts.set("alerts").version == 1


def test_a_change_that_expects_another_version_is_refused(open_registry: Callable[..., vd.Registry]) -> None:
    one, other = open_registry(), open_registry()
    one.create("alerts", schema="price double")
    seen = one.set("alerts").version

    assert other.add("alerts", "a", "price < 1", expect_version=seen) == 1
    with pytest.raises(vd.ConflictError, match="is at version 1, not at the expected version 0: another writer"):
        one.add("alerts", "b", "price < 2", expect_version=seen)
    with pytest.raises(vd.ConflictError), one.change("alerts", expect_version=0) as change:
        change.remove("a")

    assert active(one) == {"a": "price < 1"}
    assert one.remove("alerts", "a", expect_version=1) == 2


def test_a_replaced_query_keeps_what_is_not_given(alerts: vd.Registry) -> None:
    end = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
    alerts.add("alerts", "a", "price < 1", metadata={"owner": "ann"}, expires_at=end)

    alerts.replace("alerts", "a", "price < 2")
    first = alerts.get("alerts", "a")
    alerts.replace("alerts", "a", metadata={"owner": "bob"})
    second = alerts.get("alerts", "a")
    alerts.replace("alerts", "a", expires_at="never", metadata={})
    third = alerts.get("alerts", "a")

    assert (first.text, first.metadata, first.expires_at) == ("price < 2", {"owner": "ann"}, end)
    assert (second.text, second.metadata, second.expires_at) == ("price < 2", {"owner": "bob"}, end)
    assert (third.text, third.metadata, third.expires_at) == ("price < 2", {}, None)
    assert [each.state for each in alerts.history("alerts", "a")] == ["replaced"] * 3 + ["active"]
    with pytest.raises(vd.QueryError, match="replace needs at least one new value: a text"):
        alerts.replace("alerts", "a")


def test_a_query_that_is_removed_and_added_again_keeps_no_old_values(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1", metadata={"owner": "ann"})

    with alerts.change("alerts") as change:
        change.remove("a")
        change.add("a", "price < 2")

    assert alerts.get("alerts", "a").metadata == {}


def test_metadata_and_expiry_are_one_for_all_queries_or_one_per_query(alerts: vd.Registry) -> None:
    end = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))

    alerts.add_many("alerts", ["a", "b"], ["price < 1"] * 2, metadata={"k": [1, {"x": None}]}, ttl="1 day")
    alerts.add_many("alerts", ["c", "d"], ["price < 1"] * 2, metadata=[{"k": 1}, None], expires_at=[end, "never"])

    queries = {each.id: each for each in alerts.list("alerts")}
    assert [queries[each].metadata for each in "abcd"] == [{"k": [1, {"x": None}]}] * 2 + [{"k": 1}, {}]
    assert queries["a"].expires_at == queries["a"].created_at + datetime.timedelta(days=1)
    assert [queries[each].expires_at for each in "cd"] == [end, None]


def test_expiries_may_be_a_column_in_which_nat_means_never(alerts: vd.Registry) -> None:
    end = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
    frame = pd.DataFrame({"id": ["a", "b"], "text": ["price < 1"] * 2, "end": [pd.Timestamp(end), pd.NaT]})

    alerts.add_many("alerts", frame["id"], frame["text"], expires_at=frame["end"])
    for names, given in [
        ("cd", {"expires_at": np.array([end, "never"], object)}),
        ("ef", {"expires_at": pa.array([end, None], pa.timestamp("us", "UTC"))}),
        ("gh", {"ttl": pd.Series([pd.Timedelta("1 day"), pd.NaT])}),
    ]:
        alerts.add_many("alerts", list(names), ["price < 1"] * 2, **given)
    alerts.add("alerts", "i", "price < 1", expires_at=pd.Timestamp(end))
    alerts.replace("alerts", "i", expires_at=pd.NaT)

    queries = {each.id: each for each in alerts.list("alerts")}
    day_later = queries["g"].created_at + datetime.timedelta(days=1)
    assert [queries[each].expires_at for each in "abcdefghi"] == [end, None] * 3 + [day_later, None, None]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (
            pd.Series(pd.to_datetime(["2100-01-01", None])),
            "query 'a': expires_at must be a datetime.*00 without one",
        ),
        (
            np.array(["2100-01-01", "NaT"], "M8[ns]"),
            r"query 'a': expires_at must be a.*got np.datetime64\(",
        ),
        (np.array([5.0, np.nan]), "query 'a': expires_at must be a datetime with"),
        (pd.Series([pd.NaT]), "got 1 expiries for 2 queries; give one for all queries, or one per query"),
        ({"a": None, "b": None}, "expires_at must be a datetime with a time zone"),
    ],
    ids=["naive", "NumPy", "numbers", "one", "dict"],
)
def test_an_invalid_column_of_expiries_is_refused(alerts: vd.Registry, ends: Any, message: str) -> None:
    with pytest.raises(vd.QueryError, match=message):
        alerts.add_many("alerts", ["a", "b"], ["price < 1"] * 2, expires_at=ends)

    assert alerts.set("alerts").version == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metadata": "x"}, "metadata must be one dict for all queries or a list with one dict per query; got 'x'"),
        ({"metadata": {1: 2}}, "metadata must be a dict with string keys, such as"),
        ({"metadata": {"x": float("nan")}}, "metadata must be valid JSON"),
        ({"metadata": {"x": object()}}, "metadata must be valid JSON"),
        ({"metadata": {"x": "\0"}}, "metadata contains the character NUL"),
        ({"metadata": {"x": "\ud800"}}, "metadata must be valid JSON"),
        (
            {"expires_at": datetime.datetime(2100, 1, 1)},
            "expires_at must be a datetime with a.*00:00 without one",
        ),
        ({"expires_at": "tomorrow"}, "expires_at must be a datetime with a time zone.*got 'tomorrow'"),
        ({"ttl": "soon"}, "ttl must be a duration such as '5 minutes'; got 'soon'"),
        ({"ttl": "1 day", "expires_at": "never"}, "expires_at and ttl are both given; give one"),
        ({"low": 1.0}, "set 'alerts' is of kind match; its queries have no 'low'"),
        ({"within": "1 s"}, "set 'alerts' is of kind match; its queries have no 'within'"),
    ],
)
def test_an_invalid_argument_is_named(alerts: vd.Registry, given: dict[str, Any], message: str) -> None:
    with pytest.raises(vd.QueryError, match=message):
        alerts.add("alerts", "a", "price < 1", **given)

    assert alerts.set("alerts").version == 0


@pytest.mark.parametrize(
    ("ids", "texts", "message"),
    [
        (["a", "a"], ["price < 1"] * 2, "id 'a' is given twice"),
        (["a", None], ["price < 1"] * 2, "an id is null"),
        (["a", 1], ["price < 1"] * 2, "ids must be all strings or all 64-bit integers"),
        ([2**70], ["price < 1"], "ids must be all strings or all 64-bit integers"),
        (["a\0"], ["price < 1"], "an id contains the character NUL"),
        (["ä" * 501], ["price < 1"], "an id can have at most 1,000 bytes"),
        (["a", "b"], ["price < 1"], "got 2 ids but 1 texts"),
        (["a"], "price < 1", "got one string"),
        (["a"], None, "set 'alerts' is of kind match: a query needs a text"),
        (["a"], [5], "query 'a': a query must be a string, not int"),
        (["a"], ["symbol = '\0'"], "NUL"),
        (["a"], ["symbol = '\ud800'"], "surrogate"),
    ],
)
def test_invalid_ids_and_texts_are_refused(alerts: vd.Registry, ids: Any, texts: Any, message: str) -> None:
    with pytest.raises(vd.QueryError, match=message):
        alerts.add_many("alerts", ids, texts)

    assert alerts.set("alerts").version == 0


def test_the_first_id_decides_the_type_of_all_ids_of_a_set(open_registry: Callable[..., vd.Registry]) -> None:
    one, other = open_registry(), open_registry()
    one.create("alerts", schema="price double")
    early = other.change("alerts")
    early.add("a", "price < 1")

    one.add_many("alerts", np.array([5, -7]), pa.array(["price < 5", "price < 7"]))

    assert one.set("alerts").id_kind == "integer"
    with pytest.raises(vd.QueryError, match="the ids of set 'alerts' are integers; got the string 'a'"):
        early.commit()
    with pytest.raises(vd.QueryError, match="the ids of this set are integers; got the string 'b'"):
        one.add("alerts", "b", "price < 1")
    mixed = one.change(one.create("names", schema="price double").name)
    mixed.add("b", "price < 1")
    with pytest.raises(vd.QueryError, match="are strings; got the integer 3"):
        mixed.add(3, "price < 1")
    assert [each.id for each in one.list("alerts")] == [-7, 5]


def test_ids_texts_and_metadata_may_contain_any_character(alerts: vd.Registry) -> None:
    strange = ["", " ", "a\tb\nc\\N\\.", "\\.", "ü€😀", "'quoted' \"so\"", "%s ? :x {}", "NULL", "\r\n"]
    texts = [f"symbol = '{each}'" if "'" not in each and "\\" not in each else "price < 1" for each in strange]

    alerts.add_many("alerts", strange, texts, metadata=[{each: each} for each in strange])

    assert {each.id: (each.text, each.metadata) for each in alerts.list("alerts")} == {
        each: (text, {each: each}) for each, text in zip(strange, texts, strict=True)
    }
    assert sorted(alerts.changes("alerts", since=0).added_ids) == sorted(strange)
    for each in strange:
        assert alerts.get("alerts", each).id == each
    alerts.remove_many("alerts", strange)
    assert alerts.set("alerts").n_active == 0


def test_a_pickled_registry_works(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1")

    again = pickle.loads(pickle.dumps(alerts))

    assert [each.id for each in again.list("alerts")] == ["a"]
    again.close()


def test_unknown_versions_are_refused(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1")

    for since in (2, -1):
        with pytest.raises(vd.RegistryError, match=f"set 'alerts' has no version {since}; it is at version 1"):
            alerts.changes("alerts", since=since)
    with pytest.raises(vd.RegistryError, match="since must be a version, an integer; got 'x'"):
        alerts.changes("alerts", since="x")  # type: ignore[arg-type]
    assert len(alerts.changes("alerts", since=1)) == 0


def test_a_change_is_checked_again_if_the_schema_has_changed(
    open_registry: Callable[..., vd.Registry],
) -> None:
    one, other = open_registry(), open_registry()
    one.create("alerts", schema="price double")
    early = one.change("alerts")
    early.add("a", "price < 1")
    late = one.change("alerts")
    late.add("b", "cost < 1")

    other.alter("alerts", "cost double")

    with pytest.raises(vd.QueryError, match="query 'a': unknown field 'price'"):
        early.commit()
    assert late.commit() == 2
    assert active(one) == {"b": "cost < 1"}
