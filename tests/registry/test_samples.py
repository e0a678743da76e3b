"""The sample of a set: every writer refuses queries that match too much of it."""

from __future__ import annotations

import datetime
import gc
import weakref
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import vedette as vd
from vedette.errors import QueryError, RegistryError, RowError

SAMPLE = {"x": [1.0, 2.0, 3.0, 4.0], "s": ["a", "b", None, "d"]}
BROAD = r"matches 100% of the 4 rows of the sample, more than 50%"


@pytest.fixture
def guarded(registry: vd.Registry) -> vd.Registry:
    made = registry.create("alerts", schema="x double, s string", sample=SAMPLE, max_match_share=0.5)
    assert made.max_match_share == registry.set("alerts").max_match_share == 0.5
    return registry


def test_a_registry_refuses_queries_that_match_too_much_of_the_sample(guarded, open_registry):
    guarded.add("alerts", "half", "x < 3")

    for registry in (guarded, open_registry()):
        with pytest.raises(QueryError, match=f"query 'all' {BROAD}"):
            registry.add("alerts", "all", "x > 0")
        with pytest.raises(QueryError, match=f"query 'half' {BROAD}"):
            registry.replace("alerts", "half", "x IS NOT NULL")
        with pytest.raises(QueryError, match=r"query 'b' .*so do 1 other query"):
            registry.add_many("alerts", ["a", "b", "c"], ["x = 1", "x > 1", "x > 0 OR s = 'a'"])
    assert guarded.set("alerts").version == 1
    guarded.replace("alerts", "half", metadata={"owner": "me"})


def test_the_sample_and_the_share_of_a_set_are_altered_and_cleared(guarded):
    guarded.alter("alerts", max_match_share=0.9)
    guarded.add("alerts", "most", "x < 4")
    with pytest.raises(QueryError, match="more than 90%"):
        guarded.add("alerts", "all", "x > 0")
    guarded.alter("alerts", sample=pd.DataFrame({"x": [-1.0, 5.0]}))
    guarded.add("alerts", "all", "x > 0")
    with pytest.raises(QueryError, match="query 'named' uses field 's', which the sample lacks"):
        guarded.add("alerts", "named", "s = 'a'")
    guarded.alter("alerts", "x double, s string, y double")
    guarded.add("alerts", "one", "x > 2")
    guarded.alter("alerts", max_match_share="none")
    guarded.add("alerts", "any", "TRUE OR s = 'a'")

    assert guarded.set("alerts").max_match_share is None
    with pytest.raises(RegistryError, match="set 'alerts' has no sample yet"):
        guarded.alter("alerts", max_match_share=0.5)


def test_a_schema_that_the_sample_does_not_fit_is_refused_without_force(guarded):
    message = r"the sample of set 'alerts' does not fit its schema .* give the set another sample"

    with pytest.raises(RegistryError, match=message):
        guarded.alter("alerts", "x string, s string")
    assert guarded.set("alerts").version == 0
    assert guarded.verify("alerts") == []

    guarded.alter("alerts", "x string, s string", force=True)
    with pytest.raises(RegistryError, match=message):
        guarded.add("alerts", "a", "x = '1'")
    (fault,) = guarded.verify("alerts")
    assert fault.startswith("the sample of set 'alerts' does not fit its schema")


def test_a_sample_may_be_a_stream_that_can_be_read_only_once(registry):
    registry.create("alerts", schema="x double", sample=pa.table(SAMPLE).to_reader(), max_match_share=0.5)
    with pytest.raises(QueryError, match=BROAD):
        registry.add("alerts", "all", "x > 0")

    registry.alter("alerts", sample=pa.table({"x": [9.0, -9.0]}).to_reader())
    registry.add("alerts", "all", "x > 0")


def test_giving_and_clearing_a_sample_in_one_call_is_refused(guarded):
    with pytest.raises(RegistryError, match=r'"none" clears the sample, but a sample is given; give only one'):
        guarded.alter("alerts", sample={"x": [1.0]}, max_match_share="none")
    assert guarded.set("alerts").max_match_share == 0.5


def test_a_first_sample_needs_a_share(registry):
    registry.create("alerts", schema="x double")

    with pytest.raises(RegistryError, match="set 'alerts' has no max_match_share yet; give one with the sample"):
        registry.alter("alerts", sample={"x": [1.0]})


def test_sample_values_of_every_type_are_stored_exactly(registry):
    schema = "b boolean, d date, t timestamp, m decimal(20,2), i bigint"
    sample = {
        "b": [True, None], "d": [datetime.date(2024, 1, 2), None], "m": [Decimal("1.25"), None], "i": [2**62, None],
        "t": [datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), None],
    }  # fmt: skip
    registry.create("typed", schema=schema, sample=sample, max_match_share=0.4)
    texts = ["b", "d = DATE '2024-01-02'", "t = TIMESTAMP '2024-01-02 03:00:00'", "m = 1.25", f"i = {2**62}"]

    for text in texts:
        with pytest.raises(QueryError, match="matches 50% of the 2 rows"):
            registry.add("typed", "q", text)
    registry.add_many("typed", list("abcde"), ["NOT b", "d < DATE '2024-01-02'", "t IS NULL AND b", "m > 2", "i = 1"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "band join"}, RegistryError, "only sets of kind match or border have a sample"),
        ({"schema": "x double", "max_match_share": 2}, QueryError, "max_match_share must be a number above 0"),
        ({"schema": "x double", "sample": None}, QueryError, "max_match_share needs sample"),
        ({"schema": "x double", "sample": {"x": ["a"]}}, RowError, "x"),
        ({"schema": "x double", "sample": 5}, RowError, "int"),
    ],
)
def test_an_invalid_sample_is_refused(registry, options, error, message):
    with pytest.raises(error, match=message):
        registry.create("alerts", **{"sample": SAMPLE, "max_match_share": 0.5} | options)
    assert registry.sets() == []


def test_a_set_with_a_sample_is_dropped(guarded):
    guarded.drop("alerts")
    guarded.create("alerts", schema="x double")
    guarded.add("alerts", "all", "TRUE")


def test_a_cached_sample_does_not_keep_the_database_open(tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'registry.db'}")
    registry.create("alerts", schema="x double, s string", sample=SAMPLE, max_match_share=0.5)
    registry.add("alerts", "half", "x < 3")
    database = weakref.ref(registry._database)
    registry.close()
    del registry
    gc.collect()

    assert database() is None


MIXED = {
    "categories": (pd.DataFrame({"x": pd.Categorical([3, True, 2.5])}), "its categories cannot be read"),
    "objects": (pd.DataFrame({"x": pd.Series([1.0, True, 2.5], dtype=object)}), "it has booleans and numbers"),
    "a list": ({"x": [1.0, True, 2.5]}, "it has booleans and numbers"),
    "lengths": ({"x": [1.0], "s": ["a", "b"]}, "differ in length"),
    "names": ({"x": [1.0], "X": [2.0]}, "2 columns named"),
    "other fields": ({"y": [1.0]}, r"the sample has no field of the schema \(x, s\); it has: y"),
    "no rows": (5, "rows must be an Arrow table or batch, a pandas or polars frame, or a dict of arrays; got int"),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_sample_is_read_like_rows_with_the_same_errors(guarded, name):
    sample, words = MIXED[name]

    with pytest.raises(RowError, match=words):
        guarded.alter("alerts", sample=sample)
    with pytest.raises(RowError, match=words):
        guarded.create("other", schema="x double, s string", sample=sample, max_match_share=0.5)
