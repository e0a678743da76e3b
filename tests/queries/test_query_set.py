from __future__ import annotations

import datetime
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import vedette as vd
from vedette.queries import parts

NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
SCHEMA = "symbol string, price double, volume bigint, ts timestamp"


@pytest.fixture
def alerts():
    made = vd.QuerySet(SCHEMA)
    made.add("cheap-ibm", "symbol = 'IBM' AND price < 40")
    made.add_many(["mid", "busy"], ["price BETWEEN 3 AND 50", "volume > 100 OR price < 1"])
    return made


ROWS = {"symbol": ["IBM", "SAP", "SAP"], "price": [39.5, 0.5, 100.0], "volume": [10, 200, 3]}


def found(queries, rows):
    """By row, the sorted ids."""
    hits = queries.match(rows)
    ids = hits.ids.to_pylist()
    return [sorted(ids[hits.starts[i] : hits.starts[i + 1]]) for i in range(len(hits))]


def test_a_row_matches_the_queries_whose_condition_it_meets(alerts):
    assert found(alerts, ROWS) == [["cheap-ibm", "mid"], ["busy"], []]
    assert alerts.match(pa.table(ROWS)).to_arrow().sort_by(
        [("row", "ascending"), ("query", "ascending")]
    ).to_pylist() == [
        {"row": 0, "query": "cheap-ibm"},
        {"row": 0, "query": "mid"},
        {"row": 1, "query": "busy"},
    ]


def test_one_row_matches_as_in_a_batch(alerts):
    assert sorted(alerts.match_one({"symbol": "IBM", "price": 39.5, "volume": None})) == ["cheap-ibm", "mid"]
    assert alerts.match_one({"price": 0.5}) == ["busy"]


def test_an_empty_list_of_ids_changes_nothing():
    queries = vd.QuerySet("x double")
    joins = vd.JoinQuerySet(left="x double", right="x double")
    queries.add_many([], [])
    queries.add_boxes([], {"x": ([], [])})
    joins.add_many([], [], rows=3)

    assert (queries.version, joins.version) == (0, 0)


def test_every_change_is_a_version(alerts):
    assert (alerts.version, len(alerts)) == (2, 3)
    alerts.replace("cheap-ibm", "symbol = 'IBM' AND price <= 38")
    assert (alerts.version, len(alerts)) == (3, 3)
    assert found(alerts, ROWS) == [["mid"], ["busy"], []]
    alerts.remove("mid")
    assert (alerts.version, len(alerts)) == (4, 2)
    assert "mid" not in alerts
    assert "busy" in alerts
    alerts.add("mid", "price > 99")
    assert found(alerts, ROWS) == [[], ["busy"], ["mid"]]


def test_removing_many_is_one_change(alerts):
    alerts.remove_many(["mid", "busy"])

    assert (alerts.version, len(alerts)) == (3, 1)
    assert found(alerts, ROWS) == [["cheap-ibm"], [], []]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.add("busy", "price > 1"), "id 'busy' already exists; use replace"),
        (lambda a: a.add(7, "price > 1"), "the ids of this set are strings; got the integer 7"),
        (lambda a: a.add(None, "price > 1"), "an id is null"),
        (lambda a: a.add(1.5, "price > 1"), "ids must be all strings or all 64-bit integers"),
        (lambda a: a.add("new", "prise > 1"), "query 'new': unknown field 'prise'.*did you mean 'price'"),
        (lambda a: a.add_many(["a", "a"], ["price > 1", "price > 2"]), "id 'a' is given twice"),
        (lambda a: a.add_many(["a"], ["price > 1", "price > 2"]), "got 1 ids but 2 texts"),
        (lambda a: a.add_many(["a", "b"], ["price > 1", "price >"]), "query 'b'"),
        (lambda a: a.add_many(["a", "b"], "xy"), "one string"),
        (lambda a: a.add_many("ab", ["price > 1", "price > 2"]), "ids must be a list or an array; got 'ab'"),
        (lambda a: a.add_many({"a", "b"}, ["price > 1", "price > 2"]), "got a set, which has no order"),
        (lambda a: a.add_many(["a", "b"], {"price > 1", "price > 2"}), "texts must be a sequence of strings; got set"),
        (lambda a: a.add_many(["a", "b"], b"xy"), "texts must be a sequence of strings; got one string"),
        (lambda a: a.add_boxes("ab", {"price": ([1.0, 2.0], [3.0, 4.0])}), "ids must be a list or an array"),
        (lambda a: a.remove_many("ab"), "ids must be a list or an array; got 'ab'"),
        (lambda a: a.replace("none", "price > 1"), "no query 'none' in this set"),
        (lambda a: a.replace("busy", "price >"), "query 'busy'"),
        (lambda a: a.add_many(["a"], None), "texts must be a sequence of strings; got NoneType"),
        (lambda a: a.add_many(iter(["a", "b"]), ["price > 1", "price >"]), "query 'b'"),
        (lambda a: a.add_many(pd.Series(["a", "b"], index=[7, 8]), ["price > 1", "price >"]), "query 'b'"),
        (lambda a: a.remove_many(["busy", "busy"]), "id 'busy' is given twice"),
        (lambda a: a.remove("none"), "no query 'none' in this set"),
        (lambda a: a.remove_many(["busy", "none"]), "no query 'none' in this set"),
        (lambda a: a.add_boxes(["b"], {"prize": (1, 2)}), "unknown field 'prize'.*did you mean 'price'"),
        (lambda a: a.add_boxes(["b"], {"price": ([1.0, 2.0], [2.0, 3.0])}), "2 bounds but there are 1 ids"),
        (lambda a: a.add_boxes(["b"], {"price": ([np.nan], [2.0])}), "bound 0 of field 'price' is NaN"),
        (lambda a: a.add_boxes(["b"], {"price": ([1.0], [2.0])}, closed="up"), "closed must be one of both"),
        (lambda a: a.add_boxes(["b"], [1.0]), "bounds must be a dict of pairs by field"),
        (lambda a: a.add_boxes(["b"], {7: (1, 2)}), "unknown field '7'"),
        (lambda a: a.add_boxes(["b"], {"price": (1, 2), "PRICE": (3, 4)}), "field 'price' has bounds twice"),
        (lambda a: a.add_boxes(["b", "c"], {"volume": ([1.0, "a"], 2)}), "invalid bound: "),
        (lambda a: a.add_boxes(["b", "c"], {"volume": ([1, [2]], 2)}), "invalid bound: "),
        (lambda a: a.add_boxes(["b"], {"volume": ([2**70], None)}), "invalid bound: "),
        (lambda a: a.add_boxes(["b"], {"price": (np.zeros((1, 2)), None)}), "an array of 2 dimensions"),
        (lambda a: a.add_boxes(["b"], {"symbol": (np.inf, None)}), "its bounds cannot be floating-point numbers"),
        (lambda a: a.add_boxes(["b"], {"price": [1.0]}), r"must be a pair: \(lows, highs\)"),
        (lambda a: a.add_boxes(["b"], {"symbol": ([1.0], [2.0])}), "its bounds cannot be floating-point numbers"),
        (lambda a: a.check("prise > 1"), "unknown field 'prise'"),
        (lambda a: a.remove(["busy", "mid"]), "remove takes one id; use remove_many"),
    ],
)
def test_a_refused_change_says_why_and_changes_nothing(alerts, change, words):
    before = found(alerts, ROWS), alerts.version, len(alerts), alerts.ids.to_pylist()

    with pytest.raises(vd.QueryError, match=f"(?s){words}"):
        change(alerts)

    assert (found(alerts, ROWS), alerts.version, len(alerts), alerts.ids.to_pylist()) == before


def test_boxes_have_the_given_bounds():
    for closed, inside in [("both", [1, 2]), ("left", [1]), ("right", [2]), ("neither", [])]:
        boxes = vd.QuerySet("x double")
        boxes.add_boxes([1], {"x": ([1.0], [2.0])}, closed=closed)
        hits = boxes.match({"x": np.array([0.9, 1.0, 1.5, 2.0, 2.1])})
        assert hits.counts.tolist() == [0, 1 in inside, 1, 2 in inside, 0], closed


def test_a_bound_that_is_infinite_or_null_is_none():
    boxes = vd.QuerySet("x double, n bigint, s string")
    boxes.add_boxes(
        [0, 1, 2], {"x": ([-np.inf, 1.0, -np.inf], [1.0, np.inf, np.inf]), "n": ([None, None, 5], [3, None, None])}
    )
    boxes.add_boxes([3], {"n": (np.array([1.5]), np.array([np.inf]))}, closed="neither")
    boxes.add_boxes([4], {"s": (["b"], [None])})
    rows = {"x": [0.5, 1.0, None, None, np.nan], "n": [3, 4, 5, 2, 1], "s": ["a", None, "b", "c", ""]}

    assert found(boxes, rows) == [[0, 3], [1, 3], [2, 3, 4], [3, 4], [1]]


def test_an_infinite_bound_is_none_on_a_field_of_any_type():
    for name, value in [("s", "b"), ("d", Decimal("1.5")), ("t", NOON), ("day", NOON.date()), ("n", 3)]:
        boxes = vd.QuerySet("s string, d decimal(10,2), t timestamp, day date, n bigint")
        boxes.add_boxes([0, 1], {name: (-np.inf, [value, value])})
        boxes.add_boxes([2], {name: (np.array([-np.inf]), np.array([np.inf]))})
        assert sorted(boxes.match_one({name: value})) == [0, 1, 2]
        assert boxes.match_one({}) == [2]


def test_a_missing_bound_in_pandas_is_none():
    boxes = vd.QuerySet("n bigint")
    boxes.add_boxes([0, 1], {"n": (pd.Series([2, None]), pd.array([3.5, None], "Float64"))})

    assert found(boxes, {"n": [1, 3, None]}) == [[1], [0, 1], [1]]


def test_boxes_may_have_more_fields_than_bits_in_a_word():
    names = [f"f{i}" for i in range(70)]
    boxes = vd.QuerySet(", ".join(f"{name} double" for name in names))
    boxes.add_boxes([0, 1], {name: ([None if name == "f0" else 0.0, 0.0], [1.0, 1.0]) for name in names[1:]})
    boxes.add_boxes([2, 3], {name: ([None if name == "f0" else 0.0, 0.0], [None, None]) for name in names})

    assert sorted(boxes.match_one(dict.fromkeys(names[1:], 0.5))) == [0, 1, 2]
    assert sorted(boxes.match_one(dict.fromkeys(names, 0.5))) == [0, 1, 2, 3]


def test_a_bound_that_no_integer_meets_leaves_nothing():
    boxes = vd.QuerySet("n bigint")
    boxes.add_boxes([0, 1, 2], {"n": (np.array([np.inf, -1e30, 1e30]), np.array([np.inf, 1e30, np.inf]))})

    assert found(boxes, {"n": [0, 2**63 - 1, None]}) == [[1], [1], [1]]


def test_a_contradiction_is_kept_and_never_matches():
    queries = vd.QuerySet("x double")
    queries.add("never", "x > 5 AND x < 3")
    queries.add("always", "x > 5 OR TRUE")

    assert len(queries) == 2
    assert found(queries, {"x": [4.0, None]}) == [["always"], ["always"]]


def test_rows_need_only_the_fields_that_queries_use(alerts):
    assert alerts.fields == ["symbol", "price", "volume"]
    with pytest.raises(vd.RowError, match="the rows lack field 'volume', which queries use; they have: price, symbol"):
        alerts.match({"symbol": ["IBM"], "price": [1.0]})


def test_an_empty_set_and_an_empty_batch_match_nothing(alerts):
    empty = vd.QuerySet(SCHEMA)

    assert empty.match({}).counts.tolist() == []
    assert empty.match({"price": [1.0]}).counts.tolist() == [0]
    assert empty.explain().startswith("0 queries at version 0")
    assert empty.match_one({}) == []
    assert len(alerts.match({"symbol": [], "price": [], "volume": []})) == 0


def test_ids_may_be_integers():
    queries = vd.QuerySet("x double")
    queries.add_many([2**62, -5], ["x > 1", "x > 2"])

    assert found(queries, {"x": [3.0]}) == [[-5, 2**62]]
    assert queries.match({"x": [3.0]}).ids.type.value_type == pa.int64()
    assert -5 in queries
    assert "x" not in queries


@pytest.mark.parametrize("way", ["pickle", "bytes", "file"])
def test_a_pickled_set_keeps_its_versions_and_can_change(alerts, way, tmp_path):
    alerts.remove("mid")
    alerts.add("odd", "length(symbol) = 3 AND price * 2 > volume")
    if way == "file":
        alerts.save(tmp_path / "alerts.vedette")
        again = vd.QuerySet.load(tmp_path / "alerts.vedette")
    else:
        again = pickle.loads(pickle.dumps(alerts)) if way == "pickle" else vd.QuerySet.from_bytes(alerts.to_bytes())

    assert (again.version, len(again), again.schema, again.time_zone) == (4, 3, alerts.schema, "UTC")
    assert found(again, ROWS) == found(alerts, ROWS) == [["cheap-ibm", "odd"], ["busy"], ["odd"]]
    again.add("more", "price > 99")
    again.remove("odd")
    assert found(again, ROWS) == [["cheap-ibm"], ["busy"], ["more"]]
    assert found(alerts, ROWS) == [["cheap-ibm", "odd"], ["busy"], ["odd"]]


def test_explain_shows_which_index_and_why():
    queries = vd.QuerySet("x double, y double", index="Scan")
    queries.add_boxes(np.arange(1000), {"x": (np.arange(1000.0), np.arange(1000.0) + 2)})
    reported = queries.explain()

    assert "1,000 boxes on x: Scan" in reported
    assert "instead of Lists: 1,000 boxes are few enough" in reported
    assert "ns per row" in reported
    assert "axis x: 1,002 cuts" in reported


def test_an_unknown_index_is_refused():
    with pytest.raises(
        vd.QueryError, match=r"unknown index 'Bucket'; indexes are: Scan, Lists, Buckets,.*did you mean 'Buckets'"
    ):
        vd.QuerySet("x double", index="Bucket")


def test_comparisons_that_spark_would_fail_over_are_null_and_counted():
    queries = vd.QuerySet("a bigint, b bigint")
    queries.add("ratio", "a / b > 2")

    hits = queries.match({"a": [5, 5, 1], "b": [0, 1, 1]})

    assert hits.counts.tolist() == [0, 1, 0]
    assert hits.n_failed == 1


def test_threads_that_read_a_changed_set_at_once_get_whole_answers():
    lows = np.arange(3000.0)
    queries = vd.QuerySet("x double")
    queries.add_boxes(np.arange(3000), {"x": (lows, lows + 1)})
    queries.match_one({"x": 10.5})
    with ThreadPoolExecutor(4) as threads:
        for n in range(1, 6):
            queries.add_boxes(np.arange(3000) + 3000 * n, {"x": (lows, lows + 1)})
            found = list(threads.map(lambda _: sorted(queries.match_one({"x": 10.5})), range(4)))
            assert found == [[10 + 3000 * k for k in range(n + 1)]] * 4


def test_an_interrupted_match_loses_no_query(alerts, monkeypatch):
    alerts.match_one({})
    alerts.add("new", "price < 1")
    with monkeypatch.context() as patch:
        patch.setattr(parts, "compile_part", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            alerts.match(ROWS)

    assert found(alerts, ROWS) == [["cheap-ibm", "mid"], ["busy", "new"], []]


def test_rows_need_no_field_that_only_removed_queries_used():
    queries = vd.QuerySet("x double, n bigint, s string")
    queries.add_many(range(100), [f"x > {i}" for i in range(100)])
    queries.add_many([100, 101], ["n > 5 AND x > 1", "length(s) > 2"])
    assert queries.fields == ["x", "n", "s"]
    queries.remove_many([100, 101])

    assert queries.fields == ["x"]
    assert queries.match({"x": [3.5]}).counts.tolist() == [4]


def test_a_query_replaced_without_end_takes_no_more_memory():
    queries = vd.QuerySet("x double")
    for i in range(5000):
        queries.replace("a", f"x > {i}") if i else queries.add("a", "x > 0")

    assert len(queries.ids) < 2000
    assert len(queries._parts._blocks) < 2000
    assert queries.version == 5000
    assert queries.match_one({"x": 4999.5}) == ["a"]
    assert queries.match_one({"x": 4999.0}) == []


def test_the_constants_of_residuals_count_as_memory():
    short, long = vd.QuerySet("s string"), vd.QuerySet("s string")
    for queries, end in ((short, ""), (long, "x" * 100)):
        queries.add_many(range(1000), [f"upper(s) <> '{i:03}{end}'" for i in range(1000)])

    assert long.nbytes - short.nbytes == 100_000


def test_a_loaded_set_is_not_compiled_again(monkeypatch):
    queries = vd.QuerySet("x double")
    queries.add_many(range(100), [f"x > {i}" for i in range(100)])
    queries.match_one({})
    queries.remove_many(range(40))
    data = queries.to_bytes()
    monkeypatch.setattr(parts, "compile_part", None)

    assert found(vd.QuerySet.from_bytes(data), {"x": [41.5]}) == [[40, 41]]


def test_forty_fields_and_more_are_compiled_again_unchanged():
    names = [f"f{i}" for i in range(60)]
    queries = vd.QuerySet(", ".join(f"{name} double" for name in names))
    queries.add_many(names, [f"{name} > 1" for name in names])
    before = found(queries, {name: np.array([2.0, 0.0]) for name in names})
    queries.remove_many(names[:20])
    queries.add("more", "f0 > 1")

    after = found(queries, {name: np.array([2.0, 0.0]) for name in names})

    assert before == [sorted(names), []]
    assert after == [sorted([*names[20:], "more"]), []]


def test_a_set_that_was_emptied_keeps_the_kind_of_its_ids():
    queries = vd.QuerySet("x double")
    queries.add(1, "x > 1")
    queries.remove(1)
    queries.compact()

    assert queries.ids.type == pa.int64()
    assert queries.match({"x": [2.0]}).ids.to_pylist() == []


def test_ids_of_matches_are_a_plain_dictionary_after_a_replacement_too(alerts):
    alerts.replace("busy", "volume > 150")
    hits = alerts.match(ROWS)

    assert hits.ids.to_pandas().tolist() == hits.to_arrow().column("query").to_pylist()
    assert len(set(hits.ids.dictionary.to_pylist())) == len(hits.ids.dictionary)


def test_a_row_with_a_misspelt_field_is_refused(alerts):
    with pytest.raises(vd.RowError, match="the row lacks field 'price', which queries use, but has 'prize'"):
        alerts.match_one({"symbol": "IBM", "prize": 39.5})
    assert alerts.match_one({"symbol": "IBM", "price": None, "exchange": "N"}) == []


def test_explain_counts_queries_that_never_match():
    queries = vd.QuerySet("x double")
    queries.add_many([1, 2], ["x > 5 AND x < 3", "x > 1"])

    assert "1 query never matches: its condition contradicts itself" in queries.explain()
