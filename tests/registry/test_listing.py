"""Queries by id, by prefix, by metadata and by state, in pages; and the history of one."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, event

import vedette as vd


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="price double")
    return registry


def ids(queries: list[Any]) -> list[Any]:
    return [each.id for each in queries]


def test_all_pages_together_are_all_queries_in_order(alerts: vd.Registry) -> None:
    names = sorted([f"q{i}" for i in range(25)] + ["Q", "é", "z", "😀"], key=lambda name: name.encode())
    alerts.add_many("alerts", names[::-1], ["price < 1"] * len(names))

    pages, after = [], None
    while page := alerts.list("alerts", after=after, limit=7):
        pages.append(ids(page))
        after = page[-1].id

    assert [each for page in pages for each in page] == names
    assert [len(page) for page in pages] == [7, 7, 7, 7, 1]
    assert ids(alerts.list("alerts", limit=None)) == names
    assert alerts.list("alerts", limit=0) == []


def test_integer_ids_are_in_numeric_order(alerts: vd.Registry) -> None:
    alerts.add_many("alerts", [10, 9, -3, 2**62], ["price < 1"] * 4)

    assert ids(alerts.list("alerts")) == [-3, 9, 10, 2**62]
    assert ids(alerts.list("alerts", after=9)) == [10, 2**62]
    with pytest.raises(vd.QueryError, match=r"prefix must be .* got '1', and the ids of set 'alerts' are integers"):
        alerts.list("alerts", prefix="1")
    with pytest.raises(
        vd.QueryError, match="after must be the last id of the previous page; the ids of set 'alerts' are integers"
    ):
        alerts.list("alerts", after="9")


def test_a_prefix_finds_the_ids_that_begin_with_it(alerts: vd.Registry) -> None:
    names = ["", "a", "a%b", "a_b", "ab", "abc", "b", "\ud7ff", "\ud7ffx", "\ue000", "\U0010ffff", "\U0010ffffz"]
    alerts.add_many("alerts", names, ["price < 1"] * len(names))

    for prefix in ["", "a", "ab", "a%", "a_", "c", "\ud7ff", "\U0010ffff"]:
        assert set(ids(alerts.list("alerts", prefix=prefix))) == {name for name in names if name.startswith(prefix)}
    assert ids(alerts.list("alerts", prefix="a", after="a_b", limit=1)) == ["ab"]


def test_search_finds_characters_of_texts_in_any_case(alerts: vd.Registry) -> None:
    alerts.add("alerts", "search-a", "price < 77.125")
    alerts.add("alerts", "search-b", "CAST(price AS STRING) = '100%_x'")

    def found(search: str) -> list[Any]:
        return [query.id for query in alerts.list("alerts", search=search)]

    assert found("77.125") == ["search-a"]
    assert found("'100%_X") == ["search-b"]
    assert found("1%x") == []
    with pytest.raises(vd.QueryError, match="search must be characters of a query's text"):
        alerts.list("alerts", search="\0")


def test_a_version_has_the_author_of_its_change(alerts: vd.Registry) -> None:
    with alerts.change("alerts", author="ann (1)") as change:
        change.add("by-ann", "price < 1")
    alerts.add("alerts", "by-nobody", "price < 2")
    version = alerts.set("alerts").version

    assert alerts.authors("alerts", [version - 1, version]) == {version - 1: "ann (1)"}
    assert alerts.count_by_author("alerts", "ann (1)") == 1
    alerts.remove("alerts", "by-ann")
    assert alerts.count_by_author("alerts", "ann (1)") == 0


def test_metadata_finds_equal_values_of_equal_type(alerts: vd.Registry) -> None:
    values = [
        {"k": 1},
        {"k": 1.0},
        {"k": True},
        {"k": "1"},
        {"k": None},
        {"x": 1},
        None,
        {"k": 1, "a\"b'": "ü"},
        {"k": [1]},
    ]
    alerts.add_many("alerts", [f"q{i}" for i in range(len(values))], ["price < 1"] * len(values), metadata=values)

    def found(metadata: dict[str, Any]) -> list[str]:
        return ids(alerts.list("alerts", metadata=metadata))

    assert found({"k": 1}) == ["q0", "q1", "q7"]
    assert found({"k": True}) == ["q2"]
    assert found({"k": "1"}) == ["q3"]
    assert found({"k": None}) == ["q4"]
    assert found({"k": 1, "a\"b'": "ü"}) == ["q7"]
    assert found({"nothing": 1}) == []
    assert ids(alerts.list("alerts", metadata={})) == [f"q{i}" for i in range(len(values))]
    with pytest.raises(vd.QueryError, match="metadata values to look up must be strings, numbers, booleans or None"):
        found({"k": [1]})


def test_a_state_lists_the_last_revision_of_each_query(alerts: vd.Registry, clock: Any) -> None:
    alerts.add_many("alerts", ["a", "b", "c"], ["price < 1"] * 3)
    alerts.add("alerts", "d", "price < 1", ttl="1 second")
    alerts.remove_many("alerts", ["a", "b"])
    alerts.add("alerts", "b", "price < 2")
    alerts.add("alerts", "a", "price < 2")
    alerts.remove("alerts", "a")
    clock.advance(2)

    assert ids(alerts.list("alerts")) == ["b", "c"]
    assert [(each.id, each.text, each.removed_version) for each in alerts.list("alerts", state="removed")] == [
        ("a", "price < 2", 6)
    ]
    assert ids(alerts.list("alerts", state="expired")) == ["d"]
    assert alerts.list("alerts", state="parked") == []
    with pytest.raises(vd.RegistryError, match=r"unknown state 'activ'.*did you mean 'active'"):
        alerts.list("alerts", state="activ")


def test_a_history_lists_each_revision_and_why_it_ended(alerts: vd.Registry, clock: Any) -> None:
    began = datetime.datetime.fromtimestamp(clock.microseconds / 1e6, datetime.UTC)
    alerts.add("alerts", "a", "price < 1")
    clock.advance(10)
    alerts.replace("alerts", "a", "price < 2", ttl="5 seconds")
    clock.advance(7)
    alerts.end_due("alerts")
    alerts.add("alerts", "a", "price < 3")
    alerts.remove("alerts", "a")

    revisions = alerts.history("alerts", "a")

    assert [(each.text, each.state, each.added_version, each.removed_version) for each in revisions] == [
        ("price < 1", "replaced", 1, 2),
        ("price < 2", "expired", 2, 3),
        ("price < 3", "removed", 4, 5),
    ]
    seconds = [(each.created_at - began).total_seconds() for each in revisions]
    assert seconds == [0, 10, 17]
    assert [(each.ended_at - began).total_seconds() for each in revisions if each.ended_at] == [10, 17, 17]
    with pytest.raises(vd.QueryError, match="no query 'a' in set 'alerts': it was removed with version 5"):
        alerts.get("alerts", "a")
    for unknown in ("b", 7, None, True):
        with pytest.raises(vd.QueryError, match=f"no query {unknown!r} in set 'alerts', and its history"):
            alerts.history("alerts", unknown)  # type: ignore[arg-type]


def test_active_queries_are_read_in_pieces_while_they_change(alerts: vd.Registry) -> None:
    for i in range(10):
        alerts.add_many("alerts", [f"{i}-{j}" for j in range(3)], [f"price < {i}"] * 3)
    wanted = {each.id: each.text for each in alerts.list("alerts")}

    found: dict[Any, str] = {}
    for number, piece in enumerate(alerts.active("alerts", each=4)):
        found |= dict(zip(piece.added_ids, piece.texts or [], strict=True))
        alerts.remove("alerts", f"{number}-0")
        alerts.replace("alerts", f"{number}-1", "price < 99")
        alerts.add("alerts", f"new-{number}", "price < 98")

    assert found == wanted


@pytest.mark.parametrize("as_id", ["q{:02}".format, int], ids=["strings", "integers"])
def test_pages_at_a_version_do_not_see_changes_between_them(
    alerts: vd.Registry, clock: Any, as_id: Callable[[int], Any]
) -> None:
    alerts.add_many("alerts", [as_id(2 * i) for i in range(20)], [f"price < {i}" for i in range(20)], ttl="1 hour")
    alerts.remove("alerts", as_id(6))
    wanted = alerts.list("alerts", limit=None)
    at = alerts.set("alerts").version

    found: list[Any] = []
    while page := alerts.list("alerts", at=at, after=found[-1].id if found else None, limit=3):
        found += page
        following = alerts.list("alerts", after=page[-1].id, limit=2)
        with alerts.change("alerts") as change:
            change.remove_many(ids(following[:1]))
            for each in following[1:]:
                change.replace(each.id, "price < 99")
            change.add(as_id(2 * len(found) + 3), "price < 98")
        clock.advance(900)  # at the end all have expired

    assert [(each.id, each.text) for each in found] == [(each.id, each.text) for each in wanted]
    assert alerts.list("alerts", at=at, limit=0) == []
    assert alerts.list("alerts", at=0) == []


def test_only_active_queries_are_listed_at_a_version(alerts: vd.Registry) -> None:
    alerts.add("alerts", "a", "price < 1")
    alerts.remove("alerts", "a")
    alerts.forget("alerts", before=2)

    with pytest.raises(vd.RegistryError, match="version 1 of set 'alerts' is forgotten"):
        alerts.list("alerts", at=1)
    with pytest.raises(vd.RegistryError, match="has no version 9; it is at version 2"):
        alerts.list("alerts", at=9)
    with pytest.raises(vd.RegistryError, match="with at, only active queries are listed; got state='removed'"):
        alerts.list("alerts", at=2, state="removed")


@pytest.mark.parametrize("names", [["a", "b", "é'", "none", "gone"], [7, -8, 2**62, 1, 2]])
def test_active_and_parked_ids_are_found_together(alerts: vd.Registry, names: list[Any]) -> None:
    assert alerts.find_ids("alerts", names) == {}
    kept, parked, other, never, gone = names
    texts = ["price < 1", "price < 2 AND NOT price < 1", "price < 3", "price < 4"]
    alerts.add_many("alerts", [kept, parked, other, gone], texts)
    alerts.remove("alerts", gone)
    alerts.alter("alerts", "price double, size double")
    alerts.replace("alerts", parked, "size < 2")
    alerts.alter("alerts", "price double", force=True)

    assert alerts.get("alerts", parked).state == "parked"
    assert alerts.find_ids("alerts", names) == {kept: "active", parked: "parked", other: "active"}
    assert alerts.find_ids("alerts", [kept, never, gone]) == {kept: "active"}
    assert alerts.find_ids("alerts", []) == {}


def test_many_ids_are_looked_up_in_one_statement(alerts: vd.Registry) -> None:
    ids_ = [f"q{number}" for number in range(5000)]
    alerts.add_many("alerts", ids_[::2], ["price < 1"] * 2500)
    message: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        message.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        found = alerts.find_ids("alerts", ids_)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert found == dict.fromkeys(ids_[::2], "active")
    assert len(message) < 12


def test_an_id_may_be_a_numpy_integer_or_string(alerts: vd.Registry) -> None:
    alerts.add_many("alerts", np.array([5, 7, 9]), ["price < 1"] * 3)
    alerts.create("names", schema="price double")
    alerts.add("names", "a", "price < 1")

    assert alerts.get("alerts", np.int64(5)).id == 5  # type: ignore[arg-type]
    assert ids(alerts.history("alerts", np.uint8(7))) == [7]  # type: ignore[arg-type]
    assert ids(alerts.list("alerts", after=np.int32(5))) == [7, 9]  # type: ignore[arg-type]
    assert alerts.get("names", np.str_("a")).id == "a"


@pytest.mark.parametrize(
    ("name", "unknown"), [("alerts", "\udcff"), ("alerts", "a\0"), ("numbers", 2**70), ("numbers", -(2**63) - 1)]
)
def test_an_id_that_no_database_can_store_is_unknown(alerts: vd.Registry, name: str, unknown: Any) -> None:
    alerts.create("numbers", schema="price double")
    alerts.add("alerts", "a", "price < 1")
    alerts.add("numbers", 1, "price < 1")
    escaped = re.escape(repr(unknown))

    with pytest.raises(vd.QueryError, match=f"no query {escaped} in set"):
        alerts.get(name, unknown)
    with pytest.raises(vd.QueryError, match=f"after must be the last id of the previous page.* got {escaped}"):
        alerts.list(name, after=unknown)
    for work in (alerts.find_ids, alerts.remove_many):
        with pytest.raises(vd.QueryError, match=r"ids must be all strings or all 64-bit integers|the character NUL"):
            work(name, [unknown])


@pytest.mark.parametrize("strange", ["\udcff", "a\0"])
def test_a_string_that_no_database_can_store_is_refused(alerts: vd.Registry, strange: str) -> None:
    alerts.add("alerts", "a", "price < 1")

    with pytest.raises(vd.RegistryError, match=r"no set .* in the registry .* its sets are: alerts"):
        alerts.set(strange)
    with pytest.raises(vd.RegistryError, match="the name of a set must be 1 to 1,000 bytes of UTF-8 without NUL"):
        alerts.create(strange, schema="price double")
    with pytest.raises(vd.QueryError, match="prefix contains NUL or half a surrogate pair, which no id can"):
        alerts.list("alerts", prefix=strange)
    for metadata in ({strange: 1}, {"owner": strange}):
        with pytest.raises(vd.QueryError, match="metadata cannot contain NUL or half a surrogate pair"):
            alerts.list("alerts", metadata=metadata)


def test_numbers_that_no_database_can_store_are_refused_or_act_as_the_largest(alerts: vd.Registry) -> None:
    alerts.add_many("alerts", ["a", "b"], ["price < 1"] * 2, metadata=[{"k": 2**70}, {"k": 1}])

    for value in (float("nan"), float("-inf"), 10**400):
        with pytest.raises(vd.QueryError, match="metadata must be valid JSON: "):
            alerts.list("alerts", metadata={"k": value})
    assert ids(alerts.list("alerts", metadata={"k": 2**70})) == ["a"]
    assert ids(alerts.list("alerts", limit=2**70)) == ["a", "b"]


def test_a_version_may_be_a_numpy_integer(alerts: vd.Registry) -> None:
    alerts.add("alerts", "first", "price < 1")
    alerts.add("alerts", "second", "price < 2")
    alerts.remove("alerts", "first")
    versions = alerts.changes("alerts", since=np.int64(0)).versions

    assert [ids(alerts.list("alerts", at=version)) for version in versions] == [
        ["first"],
        ["first", "second"],
        ["second"],
    ]
    assert len(alerts.changes("alerts", since=np.int64(1)).versions) == 2
    assert len(alerts.follow("alerts", version=np.int64(2)).open(2).ids) == 2
