"""Where several ids or texts are needed, one string is an error, and so is a container without an order."""

from __future__ import annotations

import pytest

import vedette as vd


def query_set():
    queries = vd.QuerySet("x double")
    queries.add_many(["a", "b"], ["x > 1", "x > 2"])
    return queries


def joins():
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add_many(["a", "b"], ["left.x = right.x"] * 2, rows=10)
    return pairs


def bands():
    made = vd.BandQuerySet()
    made.add_many(["a", "b"], 0, 1)
    return made


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path}/queries.db")
    made.create("q", schema="x double")
    made.create("w", "window join", windows="rows", left="x double", right="x double")
    made.create("b", "band join")
    made.add_many("q", ["a", "b"], ["x > 1", "x > 2"])
    return made


ADDS = {
    "QuerySet.add_many": lambda registry, ids: query_set().add_many(ids, ["x > 3", "x > 4"]),
    "QuerySet.add_boxes": lambda registry, ids: query_set().add_boxes(ids, {"x": ([1.0, 2.0], [3.0, 4.0])}),
    "JoinQuerySet.add_many": lambda registry, ids: joins().add_many(ids, ["left.x = right.x"] * 2, rows=10),
    "BandQuerySet.add_many": lambda registry, ids: bands().add_many(ids, [0, 0], [1, 1]),
    "Registry.add_many": lambda registry, ids: registry.add_many("q", ids, ["x > 3", "x > 4"]),
    "Registry.add_many of joins": lambda registry, ids: registry.add_many("w", ids, ["left.x = right.x"] * 2, rows=9),
    "Registry.add_many of bands": lambda registry, ids: registry.add_many("b", ids, lows=[0, 0], highs=[1, 1]),
}
OTHERS = {
    "QuerySet.remove_many": lambda registry, ids: query_set().remove_many(ids),
    "JoinQuerySet.remove_many": lambda registry, ids: joins().remove_many(ids),
    "BandQuerySet.remove_many": lambda registry, ids: bands().remove_many(ids),
    "Registry.remove_many": lambda registry, ids: registry.remove_many("q", ids),
    "Registry.find_ids": lambda registry, ids: registry.find_ids("q", ids),
}


@pytest.mark.parametrize("wrong", ["ab", b"ab", bytearray(b"ab"), {"a": 1, "b": 2}, 5, None])
@pytest.mark.parametrize("call", ADDS | OTHERS)
def test_one_string_is_never_read_as_many_ids(registry, call, wrong):
    with pytest.raises(vd.QueryError, match=r"ids must be a list or an array; got .*; for one id, give a list of one"):
        (ADDS | OTHERS)[call](registry, wrong)


@pytest.mark.parametrize("call", ADDS)
def test_a_set_of_ids_has_no_order_to_belong_to_queries_by(registry, call):
    with pytest.raises(vd.QueryError, match="ids must be a list or an array, in the order of their queries; got a set"):
        ADDS[call](registry, {"c", "d"})


@pytest.mark.parametrize("call", OTHERS)
def test_ids_without_texts_may_be_a_set(registry, call):
    OTHERS[call](registry, {"a", "b"})


TEXTS = {
    "QuerySet.add_many": lambda registry, texts: query_set().add_many(["c", "d"], texts),
    "JoinQuerySet.add_many": lambda registry, texts: joins().add_many(["c", "d"], texts, rows=10),
    "Registry.add_many": lambda registry, texts: registry.add_many("q", ["c", "d"], texts),
}


@pytest.mark.parametrize("wrong", ["ab", b"ab", {"x > 1", "x > 2"}, {"x > 1": 1, "x > 2": 2}, 5])
@pytest.mark.parametrize("call", TEXTS)
def test_one_string_is_never_read_as_many_texts(registry, call, wrong):
    with pytest.raises(vd.QueryError, match="texts must be a sequence of strings; got"):
        TEXTS[call](registry, wrong)
