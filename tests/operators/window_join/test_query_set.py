"""Window joins as users see them: windows, rows of all kinds, and queries that are added and removed."""

from __future__ import annotations

import datetime
import random
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.operators.window_join import bundles as join_bundles
from vedette.operators.window_join import group as join_group
from vedette.operators.window_join import join as window_join
from vedette.operators.window_join import monitor as join_monitor
from vedette.operators.window_join import ordered_lists
from vedette.operators.window_join import query_set as join_query_set

from .join_model import Model, Predicates, Query, in_time, make_rows
from .test_monitor import add, cut, make_query, make_set, merged, open_join, step

TWO = ["left", "right"]
seeds = st.integers(0, 2**32)
FIELDS = "k string, x double, n bigint"


def pairs_of(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


def join_set(**queries):
    """A set of queries by id: a text, and its window."""
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    for query, (text, window) in queries.items():
        pairs.add(query, text, **window)
    return pairs


def timed(pairs, **options):
    return pairs.window(left_time="at", right_time="at", left_id="id", right_id="id", **options)


def rows_of(*rows):
    """Rows as (id, n, at)."""
    ids, numbers, times = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return {"id": ids, "n": numbers, "at": times}


# Windows.


def test_both_ends_of_a_window_of_time_belong_to_it():
    join = timed(join_set(q=("left.n < right.n", {"within": 10})))
    found = join.step(left=rows_of(("a", 1, 0), ("b", 1, 1)), right=rows_of(("x", 2, 10), ("y", 2, 11), ("z", 2, 12)))
    assert pairs_of(found) == [("q", "a", "x"), ("q", "b", "x"), ("q", "b", "y")]


@pytest.mark.parametrize(
    "within",
    ["10 seconds", "10s", "10000 ms", datetime.timedelta(seconds=10), np.timedelta64(10, "s"), pd.Timedelta("10s")],
)
def test_a_window_of_time_can_be_given_in_many_ways(within):
    join = timed(join_set(q=("left.n < right.n", {"within": within})))
    start = datetime.datetime(2024, 2, 29, 23, 59, 55, tzinfo=datetime.UTC)
    times = [start, *(start + datetime.timedelta(microseconds=10**7 + more) for more in (0, 1))]
    found = join.step(left=rows_of(("a", 1, times[0])), right=rows_of(("x", 2, times[1]), ("y", 2, times[2])))
    assert pairs_of(found) == [("q", "a", "x")]


def test_a_part_of_a_number_counts_where_times_are_doubles_and_not_where_they_are_whole():
    queries = {"q": ("left.n < right.n", {"within": 2.5}), "small": ("left.n < right.n", {"within": 0.5})}
    doubles, integers = timed(join_set(**queries)), timed(join_set(**queries))
    found = doubles.step(left=rows_of(("a", 1, 0.0)), right=rows_of(("x", 2, 0.5), ("y", 2, 2.5), ("z", 2, 2.75)))
    assert pairs_of(found) == [("q", "a", "x"), ("q", "a", "y"), ("small", "a", "x")]
    found = integers.step(left=rows_of(("a", 1, 0)), right=rows_of(("x", 2, 0), ("y", 2, 2), ("z", 2, 3)))
    assert pairs_of(found) == [("q", "a", "x"), ("q", "a", "y"), ("small", "a", "x")]


def test_a_window_of_rows_counts_all_rows_of_the_stream_before_selections():
    join = join_set(q=("left.n > 5", {"rows": 2})).window(left_id="id", right_id="id")
    found = join.step(left={"id": ["a", "b", "c"], "n": [9, 9, 1]}, right={"id": ["x"], "n": [0]})
    assert pairs_of(found) == [("q", "b", "x")]


def test_each_stream_has_its_own_window_if_so_given():
    within, rows = {"left": 5, "right": 2}, {"left": 1, "right": 3}
    pairs = join_set(
        time=("true", {"within": within}),
        rows=("true", {"rows": rows}),
        mixed=("true", {"within": {"left": 5}, "rows": {"right": 1}}),
    )
    join = timed(pairs)
    left, right = [("a", 0, 0), ("b", 0, 3)], [("x", 0, 4), ("y", 0, 6)]
    expected = [("time", "a", "x"), ("time", "b", "x"), ("time", "b", "y"), ("rows", "b", "x"), ("rows", "b", "y")]
    expected += [("mixed", "a", "x"), ("mixed", "b", "x"), ("mixed", "b", "y")]
    assert pairs_of(join.step(left=rows_of(*left), right=rows_of(*right))) == sorted(expected)
    # x and y came before: by time only those at 8 or later count, of rows all three, and mixed the last.
    found = pairs_of(join.step(left=rows_of(("c", 0, 8))))
    assert found == [("mixed", "c", "y"), ("rows", "c", "x"), ("rows", "c", "y"), ("time", "c", "y")]


def test_many_windows_are_given_as_a_list_an_array_or_a_column():
    left, right = rows_of(("a", 0, 0)), rows_of(("x", 0, 1), ("y", 0, 3))
    for within in (
        [1, 2, 3],
        (1, 2, 3),
        np.array([1, 2, 3]),
        pa.array([1, 2, 3]),
        pd.Series([1, 2, 3]),
        pl.Series([1, 2, 3]),
    ):
        pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
        pairs.add_many(["one", "two", "three"], ["true"] * 3, within=within)
        found = pairs_of(timed(pairs).step(left=left, right=right))
        assert found == [("one", "a", "x"), ("three", "a", "x"), ("three", "a", "y"), ("two", "a", "x")]
    for within in (["1 s", "2 s"], pd.Series(["1 s", "2 s"]), pd.to_timedelta(["1s", "2s"]), np.array([1, 2], "m8[s]")):
        pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
        pairs.add_many(["one", "two"], ["true"] * 2, within=within)
        times = np.array([0, 2], "datetime64[s]")
        found = timed(pairs).step(left={"id": ["a"], "at": times[:1]}, right={"id": ["x"], "at": times[1:]})
        assert pairs_of(found) == [("two", "a", "x")]


def test_windows_of_very_different_sizes_work_together():
    sizes = [1, 2, 3, 7, 50, 1000]
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    pairs.add_many(sizes, ["left.n < right.n"] * len(sizes), within=sizes)
    pairs.add_many([-size for size in sizes], ["left.n < right.n"] * len(sizes), rows=sizes)
    join = timed(pairs)
    found = []
    for number in range(0, 300, 10):
        left = [(f"l{k}", 0, k) for k in range(number, number + 10)]
        found += pairs_of(join.step(left=rows_of(*left), right=rows_of((f"r{number + 9}", 1, number + 9))))
    ends = range(9, 300, 10)
    expected = [
        (size, f"l{k}", f"r{end}") for size in sizes for end in ends for k in range(max(0, end - size), end + 1)
    ]
    expected += [
        (size, f"l{k}", f"r{end}") for size in sizes for end in ends for k in range(end + 1, end + size + 1) if k < 300
    ]
    expected += [
        (-size, f"l{k}", f"r{end}") for size in sizes for end in ends for k in range(max(0, end - size + 1), end + 1)
    ]
    expected += [
        (-size, f"l{k}", f"r{end}") for size in sizes for k in range(300) for end in [e for e in ends if e < k][-size:]
    ]
    assert sorted(found) == sorted(expected)


# Order.


def test_rows_of_a_step_are_processed_by_time_then_stream_then_id():
    join = timed(join_set(q=("true", {"rows": 1})))
    left = rows_of(("c", 0, 5), ("b", 0, 5), ("a", 0, 9), ("d", 0, 1))
    right = rows_of(("z", 0, 9), ("y", 0, 5), ("x", 0, 0))
    # x, d, b, c, y, a, z
    expected = [("q", "d", "x"), ("q", "b", "x"), ("q", "c", "x"), ("q", "c", "y"), ("q", "a", "y"), ("q", "a", "z")]
    assert pairs_of(join.step(left=left, right=right)) == sorted(expected)


def test_ids_that_are_numbers_are_in_the_order_of_numbers():
    join = timed(join_set(q=("true", {"rows": 1})))
    left = {"id": [10, 9, -1], "at": [0, 0, 0]}
    assert pairs_of(join.step(left=left, right={"id": [7], "at": [1]})) == [("q", 10, 7)]


def test_without_times_rows_are_processed_stream_by_stream_in_their_order():
    join = join_set(q=("true", {"rows": 1})).window(left_id="id", right_id="id")
    found = join.step(left={"id": ["b", "c", "a"]}, right={"id": ["y", "x"]})
    assert pairs_of(found) == [("q", "a", "x"), ("q", "a", "y")]
    assert pairs_of(join.step(left={"id": ["d"]})) == [("q", "d", "x")]


def test_rows_of_one_time_in_different_steps_are_processed_in_order_of_arrival():
    join = timed(join_set(q=("true", {"rows": 1})))
    assert pairs_of(join.step(right=rows_of(("x", 0, 5)))) == []
    assert pairs_of(join.step(left=rows_of(("b", 0, 5)))) == [("q", "b", "x")]
    assert pairs_of(join.step(left=rows_of(("a", 0, 5)))) == [("q", "a", "x")]
    assert pairs_of(join.step(right=rows_of(("w", 0, 5)))) == [("q", "a", "w")]
    assert join.n_late == 0


# Late rows.


class LateModel(Model):
    """Rows as they arrive, also late ones: a row expires once the others are later by more than its window."""

    def __init__(self, streams):
        super().__init__(streams)
        self.clocks = dict.fromkeys(streams)

    def step(self, batch, queries):
        passed = {}
        for stream in self.streams:
            others = [self.clocks[other] for other in self.streams if other != stream]
            passed[stream] = None if None in others else min(others)
        found = []
        for stream, row in batch:
            for line in self.arrive(stream, row, queries):
                query = next(query for query in queries if query.id == line[0])
                names = dict(zip(self.streams, line[1:], strict=True))
                others = [other for other in self.streams if other != stream]
                kept = [self.is_kept(query, other, names[other], passed[other]) for other in others]
                found += [line] * all(kept)
        for stream, row in batch:
            self.clocks[stream] = max(row["at"], row["at"] if self.clocks[stream] is None else self.clocks[stream])
        return found

    def is_kept(self, query, stream, name, passed):
        (row,) = [row for row in self.seen[stream] if row["id"] == name]
        within = query.within.get(stream)
        return within is None or passed is None or passed - row["at"] <= within


@pytest.mark.parametrize("index", [None, "SJ-Join", "IBS-JS"])
@examples(0.6)
@given(seeds)
def test_applied_late_rows_join_with_rows_in_the_window(index, seed):
    """For any other queries, any internal limits, and with or without a saved state in between."""
    random_ = random.Random(seed)
    streams = ["left", "right"] if index or random_.random() < 0.6 else ["a", "b", "c"]
    queries = [make_query(random_, number, streams) for number in range(random_.choice([1, 3, 8]))]
    n_rows = 25 if len(streams) == 2 else 8
    rows = [(stream, row) for stream in streams for row in make_rows(random_, n_rows, stream)]
    rows.sort(key=lambda pair: pair[1]["at"] + random_.choice([0, 0, 0, random_.randint(0, 40)]))
    pairs = vd.JoinQuerySet(**dict.fromkeys(streams, "s string, x double, y double, n bigint"), index=index)
    for query in queries:
        add(pairs, query)
    if random_.random() < 0.5:  # one that keeps everything, and finds nothing
        pairs.add("long", " AND ".join(f"{stream}.n = -99" for stream in streams), within=1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_bundles, "MIN_BUNDLE", random_.choice([1, 64]))
        patch.setattr(join_bundles, "PAIR_COST", 0)
        join, model = open_join(pairs, late="apply"), LateModel(streams)
        for batch in cut(random_, rows):
            batch.sort(key=lambda pair: (pair[1]["at"], streams.index(pair[0]), pair[1]["id"]))
            assert sorted(step(join, batch)) == sorted(model.step(batch, queries)), [query.text for query in queries]
            if random_.random() < 0.2:
                state, join = join.save(), open_join(pairs, late="apply")
                join.load(state)
    assert join.n_late == 0


def test_late_rows_are_dropped_and_counted_or_applied():
    pairs = join_set(q=("left.n < right.n", {"within": 10}))
    drops, applies = timed(pairs), timed(pairs, late="apply")
    for join in (drops, applies):
        join.step(left=rows_of(("a", 1, 0), ("b", 1, 5)))
    late = rows_of(("c", 1, 4), ("d", 1, 5), ("e", 1, 6), ("f", 1, 3))
    for join in (drops, applies):
        join.step(left=late)
    assert (drops.n_late, drops.n_rows) == (2, 4)
    assert (applies.n_late, applies.n_rows) == (0, 6)
    right = rows_of(("x", 2, 14))
    assert pairs_of(drops.step(right=right)) == [("q", each, "x") for each in "bde"]
    assert pairs_of(applies.step(right=right)) == [("q", each, "x") for each in "bcde"]


def test_rows_that_are_dropped_keep_their_numbers():
    pairs = vd.JoinQuerySet(left="n bigint", right="n bigint")
    pairs.add("q", "true", within=100)
    join = pairs.window(left_time="at", right_time="at")
    join.step(left={"n": [1, 1, 1], "at": [10, 11, 12]})
    join.step(left={"n": [1, 1, 1], "at": [5, 13, 6]})
    assert join.n_late == 2
    assert pairs_of(join.step(right={"n": [1], "at": [20]})) == [("q", number, 0) for number in (0, 1, 2, 4)]


# Streams that lag, or are silent.


def test_a_stream_that_lags_finds_what_was_kept_for_it():
    join = timed(join_set(q=("left.n < right.n", {"within": 3})))
    assert pairs_of(join.step(left=rows_of(*((f"l{t}", 0, t) for t in range(100))))) == []
    assert join.n_rows == 100
    assert pairs_of(join.step(right=rows_of(("x", 1, 50)))) == [("q", f"l{t}", "x") for t in range(47, 54)]
    assert join.n_rows == 53  # those from 47 on; left ones that x could meet have all been there


def test_advance_lets_rows_go_and_makes_earlier_ones_late():
    join = timed(join_set(q=("left.n < right.n", {"within": 10})))
    join.step(left=rows_of(("a", 0, 0), ("b", 0, 50)))
    assert join.n_rows == 2
    join.advance(right=11)
    assert join.n_rows == 1
    assert pairs_of(join.step(right=rows_of(("x", 1, 10), ("y", 1, 45)))) == [("q", "b", "y")]
    assert join.n_late == 1
    join.advance(56)
    assert join.n_rows == 1  # b, for which right ones may come until 60
    join.advance(61)
    assert join.n_rows == 0
    join.advance(5)  # back is nowhere
    join.step(left=rows_of(("c", 0, 60)))
    assert (join.n_rows, join.n_late) == (0, 2)


def test_advance_works_from_the_start_if_the_schema_has_the_type_of_times():
    pairs = vd.JoinQuerySet(left="n bigint, at bigint", right="n bigint, at bigint")
    pairs.add("q", "true", within=5)
    join = pairs.window(left_time="at", right_time="at")
    join.advance(100)
    join.step(left={"n": [1, 1], "at": [99, 100]})
    assert (join.n_late, join.n_rows) == (1, 1)


def test_advance_may_go_as_far_as_numbers_go():
    for times, end in (([-5, 5], 2**63 - 1), ([-5.0, 5.0], float("inf")), ([-(2**62) + 1, 5], 2**63 - 1)):
        join = timed(join_set(q=("true", {"within": 10})))
        join.step(left=rows_of(("a", 0, times[0])), right=rows_of(("x", 0, times[1])))
        join.advance(end)
        assert join.n_rows == 0
        join.step(left=rows_of(("b", 0, times[1])))
        assert (join.n_rows, join.n_late) == (0, 1)


def test_times_may_be_as_far_apart_as_doubles_go():
    join = timed(join_set(q=("true", {"within": 10})))
    found = join.step(
        left=rows_of(("a", 0, -1.7e308), ("b", 0, 1.7e308)), right=rows_of(("x", 0, -1.7e308), ("y", 0, 1.7e308))
    )
    assert pairs_of(found) == [("q", "a", "x"), ("q", "b", "y")]
    assert join.n_rows == 2


# Rows.

VALUES = {"id": ["a", "b", "c"], "k": ["p", None, "q"], "x": [1.5, None, 2.5], "n": [3, 1, None], "at": [1, 2, 3]}
ARROW = pa.table(VALUES, schema=pa.schema({"id": "string", "k": "string", "x": "double", "n": "int64", "at": "int64"}))
HOLDERS = {
    "Arrow": lambda: ARROW,
    "Arrow batch": lambda: ARROW.to_batches()[0],
    "Arrow in chunks": lambda: pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1, 0), ARROW.slice(1)]),
    "Arrow dictionaries": lambda: ARROW.set_column(0, "id", ARROW["id"].dictionary_encode()).set_column(
        1, "k", ARROW["k"].dictionary_encode()
    ),
    "Arrow large strings": lambda: ARROW.set_column(0, "id", ARROW["id"].cast(pa.large_string())),
    "Arrow narrow numbers": lambda: ARROW.set_column(3, "n", ARROW["n"].cast(pa.int8())).set_column(
        4, "at", ARROW["at"].cast(pa.int32())
    ),
    "pandas": lambda: ARROW.to_pandas().astype({"n": "Int64"}),
    "pandas categories": lambda: ARROW.to_pandas().astype({"id": "category", "k": "category", "n": "Int64"}),
    "pandas Arrow": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(ARROW),
    "polars categories": lambda: pl.from_arrow(ARROW).with_columns(pl.col("id").cast(pl.Categorical)),
    "dict": lambda: VALUES,
    "dict of names in capitals": lambda: {name.upper(): values for name, values in VALUES.items()},
    "a slice": lambda: pa.concat_tables([ARROW, ARROW]).combine_chunks().slice(3),
    "more columns": lambda: ARROW.append_column("list", pa.array([[1], [], None])),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_rows_of_any_container_are_accepted(holder):
    pairs = join_set(
        equal=("left.k = right.k", {"within": 10}),
        near=("abs(left.x - right.x) <= 1", {"within": 10}),
        null=("left.n IS NULL AND right.x IS NULL", {"rows": 10}),
    )
    expected = [("equal", "a", "a"), ("equal", "c", "c"), ("null", "c", "b")]
    expected += [("near", left, right) for left in "ac" for right in "ac"]
    join = timed(pairs)
    assert pairs_of(join.step(left=HOLDERS[holder](), right=HOLDERS[holder]())) == sorted(expected)
    assert pairs_of(timed(pairs).step(left=HOLDERS[holder](), right=ARROW)) == sorted(expected)


def test_ids_are_strings_numbers_or_the_number_of_the_row():
    pairs = join_set(q=("left.n < right.n", {"rows": 10}))
    numbers, strings = {"id": [7, -3], "n": [1, 2]}, {"id": ["é", ""], "n": [2, 3]}
    named = pairs.window(left_id="id", right_id="id").step(left=numbers, right=strings)
    assert pairs_of(named) == [("q", -3, ""), ("q", 7, ""), ("q", 7, "é")]
    assert named.schema.field("left").type == pa.dictionary(pa.int32(), pa.int64())
    assert named.schema.field("right").type == pa.dictionary(pa.int32(), pa.large_string())
    join = pairs.window(right_id="id")
    assert pairs_of(join.step(left=numbers, right=strings)) == [("q", 0, ""), ("q", 0, "é"), ("q", 1, "")]
    assert {left for _, left, _ in pairs_of(join.step(left=numbers, right=strings))} == {0, 1, 2, 3}


def test_answers_have_one_schema_from_the_start_if_the_schema_has_the_type_of_ids():
    pairs = vd.JoinQuerySet(left="id bigint, n bigint", right="id string, n bigint")
    pairs.add("q", "left.n < right.n", rows=5)
    join = pairs.window(left_id="id", right_id="id")
    steps = [{}, {"left": {"id": [7], "n": [1]}}, {"right": {"id": ["x"], "n": [2]}}]
    found = pa.concat_tables([join.step(**rows) for rows in steps])
    assert pairs_of(found) == [("q", 7, "x")]


def test_rows_with_the_same_id_are_different_rows():
    join = timed(join_set(q=("left.n < right.n", {"within": 10})))
    found = join.step(left=rows_of(("a", 1, 0), ("a", 2, 0)), right=rows_of(("x", 3, 1), ("x", 3, 1)))
    assert pairs_of(found) == [("q", "a", "x")] * 4


def test_rows_need_no_fields_but_those_that_queries_use():
    join = timed(join_set(q=("left.n > 1", {"within": 10})))
    found = join.step(left={"id": ["a", "b"], "n": [1, 2], "at": [0, 0]}, right={"id": ["x"], "at": [1]})
    assert pairs_of(found) == [("q", "b", "x")]


def test_steps_may_be_empty_and_streams_may_be_missing():
    pairs = join_set(q=("left.n < right.n", {"within": 10}))
    join = timed(pairs)
    for rows in ({}, {"left": None}, {"left": rows_of()}, {"left": ARROW.slice(0, 0), "right": ARROW.slice(0, 0)}):
        found = join.step(**rows)
        assert found.column_names == ["query", "left", "right"]
        assert len(found) == 0
    join.step(left=rows_of(("a", 1, 0)))
    assert pairs_of(join.step()) == []
    assert pairs_of(join.step(left=rows_of(), right=rows_of(("x", 2, 5)))) == [("q", "a", "x")]
    assert join.n_rows == 2


def test_a_set_without_queries_keeps_no_rows():
    pairs = join_set()
    join = timed(pairs)
    assert len(join.step(left=rows_of(("a", 1, 0)), right=rows_of(("x", 2, 1)))) == 0
    assert join.n_rows == 0
    pairs.add("q", "true", within=10)
    join.step(left=rows_of(("b", 1, 2)))
    assert pairs_of(join.step(right=rows_of(("y", 2, 3)))) == [("q", "b", "y")]


def test_a_query_that_is_never_true_finds_nothing_and_can_be_removed():
    pairs = join_set(never=("false", {"rows": 5}), neither=("left.n < 1 AND left.n > 2", {"rows": 5}))
    join = pairs.window()
    assert len(join.step(left={"n": [1]}, right={"n": [1]})) == 0
    pairs.remove_many(["never", "neither"])
    assert len(pairs) == 0


def test_what_fails_for_a_pair_or_a_row_is_null_and_counted():
    pairs = join_set(pair=("left.n / right.n > 1", {"rows": 5}), row=("left.n DIV left.n = 1", {"rows": 5}))
    join = pairs.window()
    assert pairs_of(join.step(left={"n": [0, 4]}, right={"n": [0, 2]})) == [
        ("pair", 1, 1),
        ("row", 1, 0),
        ("row", 1, 1),
    ]
    assert join.n_failed == 3


# Limits inside, made small.

SMALL_LIMITS = [
    (join_monitor, "ROWS_AT_ONCE", (1, 3)),
    (join_monitor, "PAIRS_AT_ONCE", (1, 4)),
    (join_monitor, "_MAX_NUMBER", (30, 100)),
    (join_query_set, "FEW_REMOVED", (0, 3)),
    (join_group, "PROBES_AT_ONCE", (1, 7)),
    (window_join, "CANDIDATES_AT_ONCE", (1, 9)),
    (window_join, "FEW_CODES", (-1000, 0)),
    (ordered_lists, "SMALL_ARENA", (0,)),
    (join_bundles, "MIN_BUNDLE", (1, 2)),
    (join_bundles, "PAIR_COST", (0,)),
]


@examples(0.8)
@given(seeds)
def test_no_answer_depends_on_internal_limits_or_on_changes_of_other_queries(seed):
    random_ = random.Random(seed)
    streams = random_.choice([TWO, TWO, ["a", "b", "c"]])
    rows = {stream: make_rows(random_, 30 if streams == TWO else 8, stream) for stream in streams}
    pairs = make_set(streams)
    # A query that keeps every row with all its fields, so that the model need not drop rows.
    every = " AND ".join(f"{stream}.{field} = -99" for stream in streams for field in "xyn")
    same = " AND ".join(f"{first}.s = {second}.s" for first, second in pairwise(streams))
    add(pairs, Query("all", f"{every} AND {same}", None, dict.fromkeys(streams, 1000), {}))
    with pytest.MonkeyPatch.context() as patch:
        for module, name, values in SMALL_LIMITS:
            if random_.random() < 0.5:
                patch.setattr(module, name, random_.choice(values))
        join, model, active, epochs = open_join(pairs), Model(streams), {}, set()
        for batch in cut(random_, merged(rows, streams)):
            for _ in range(random_.choice([0, 1, 3])):
                query = make_query(random_, random_.randint(0, 9), streams)
                window = {"within": query.within or None, "rows": query.rows or None}
                (pairs.replace if query.id in active else pairs.add)(query.id, query.text, **window)
                active[query.id] = query
            removed = random_.sample(sorted(active), random_.randint(0, len(active)) // 2)
            pairs.remove_many(removed)
            for each in removed:
                del active[each]
            epochs.add(pairs.epoch)
            expected = [found for stream, row in batch for found in model.arrive(stream, row, list(active.values()))]
            assert sorted(step(join, batch)) == sorted(expected), [query.text for query in active.values()]
    assert len(pairs) == len(active) + 1


@examples(0.3)
@given(seeds)
def test_a_step_much_larger_than_the_windows_finds_what_row_by_row_does(seed):
    random_ = random.Random(seed)
    queries = [make_query(random_, number, TWO) for number in range(4)]
    rows = {stream: make_rows(random_, 60, stream) for stream in TWO}
    pairs = make_set(TWO)
    for query in queries:
        add(pairs, query)
    one_by_one, at_once = open_join(pairs), open_join(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_monitor, "ROWS_AT_ONCE", random_.choice([1, 5, 20]))
        everything = merged(rows, TWO)
        expected = [found for row in everything for found in step(one_by_one, [row])]
        assert sorted(step(at_once, everything)) == sorted(expected)
    assert at_once.n_rows == one_by_one.n_rows


def test_row_numbers_restart_before_32_bits_overflow(monkeypatch):
    monkeypatch.setattr(join_monitor, "_MAX_NUMBER", 50)
    pairs = vd.JoinQuerySet(left="n bigint", right="n bigint")
    pairs.add("q", "left.n = right.n", within=3)
    join = pairs.window(left_time="at", right_time="at")
    for number in range(0, 400, 4):
        numbers = list(range(number, number + 4))
        found = join.step(left={"n": numbers, "at": numbers}, right={"n": numbers, "at": numbers})
        assert pairs_of(found) == [("q", each, each) for each in numbers]
        assert join.join.streams[0].end <= 50


def test_codes_of_dropped_values_are_forgotten(monkeypatch):
    monkeypatch.setattr(window_join, "FEW_CODES", 10)
    pairs = vd.JoinQuerySet(left="k string", right="k string")
    pairs.add("q", "left.k = right.k", rows=2)
    join = pairs.window()
    sizes = []
    for number in range(0, 600, 2):
        names = [f"name {number}", f"name {number + 1}"]
        assert pairs_of(join.step(left={"k": names}, right={"k": names})) == [
            ("q", number, number),
            ("q", number + 1, number + 1),
        ]
        sizes.append(join.nbytes)
    assert max(sizes) <= 2 * max(sizes[:60])


# Many queries.


def test_thousands_of_texts_of_one_shape_are_one_group_and_answer_as_one_by_one():
    random_ = random.Random(4)
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    bands = [(random_.choice("pqr"), random_.randint(-50, 50) / 4, random_.randint(0, 8) / 4) for _ in range(3000)]
    texts = [f"left.k = '{k}' AND left.x - right.x BETWEEN {low} AND {low + width}" for k, low, width in bands]
    pairs.add_many(np.arange(3000), texts, rows=50)
    assert len(pairs.groups()) == 1
    rows = [
        {"k": [random_.choice("pqrs") for _ in range(40)], "x": [random_.randint(-40, 40) / 4 for _ in range(40)]}
        for _ in TWO
    ]
    found = pairs.window().step(left=rows[0], right=rows[1])
    expected = [
        (query, left, right)
        for query, (k, low, width) in enumerate(bands)
        for left in range(40)
        for right in range(40)
        if rows[0]["k"][left] == k and low <= rows[0]["x"][left] - rows[1]["x"][right] <= low + width
    ]
    assert pairs_of(found) == sorted(expected)


def test_texts_of_strings_of_one_shape_select_each_its_own():
    words = ["", "a", "ab", "b", "é", "\U0010ffff"]
    for template, keeps in (
        ("left.k >= '{}' AND right.n = 1", lambda value, word: value >= word),
        ("left.k LIKE '{}%' AND right.n = 1", lambda value, word: value.startswith(word)),
        ("left.k NOT IN ('{}', 'b') AND right.n = 1", lambda value, word: value not in (word, "b")),
        ("left.k <> '{}'", lambda value, word: value != word),
    ):
        pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
        pairs.add_many(words, [template.format(word) for word in words], rows=50)
        found = pairs.window().step(left={"k": [*words, None]}, right={"n": [1]})
        expected = [(word, place, 0) for word in words for place, value in enumerate(words) if keeps(value, word)]
        assert pairs_of(found) == sorted(expected)


def test_sets_that_change_much_are_renumbered_while_a_join_runs():
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    pairs.add("stays", "left.n < right.n", within=1000)
    join = timed(pairs)
    for number in range(6):
        ids = [f"{number}-{k}" for k in range(400)]
        pairs.add_many(ids, [f"left.n - right.n = {k} AND left.n * 2 < right.n + 5000" for k in range(400)], within=5)
        found = pairs_of(
            join.step(left=rows_of((f"l{number}", 10 + number, number)), right=rows_of((f"r{number}", 3, number)))
        )
        assert ("stays", f"l{number}", f"r{number}") not in found
        assert set(found) == {
            (f"{number}-{7 + k}", f"l{k}", f"r{j}")
            for k in range(number + 1)
            for j in range(number + 1)
            if max(k, j) == number and abs(k - j) <= 5
        }
        pairs.remove_many(ids)
    assert pairs.epoch > 0
    assert len(pairs.ids) < 1400
    assert pairs_of(join.step(right=rows_of(("last", 13, 6)))) == [("stays", f"l{k}", "last") for k in range(3)]


def test_the_memory_of_a_set_that_changes_stays_bounded(monkeypatch):
    monkeypatch.setattr(join_query_set, "FEW_REMOVED", 16)
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    join = timed(pairs)
    sizes = []
    for number in range(120):
        pairs.add_many([number, -1 - number], ["left.n < 3 AND left.x > right.x * 1.01", "left.k = right.k"], within=5)
        join.step(
            left=rows_of(("a", 1, number)) | {"x": [1.0], "k": ["p"]},
            right=rows_of(("x", 1, number)) | {"x": [1.0], "k": ["p"]},
        )
        pairs.remove_many([number, -1 - number])
        sizes.append(pairs.nbytes + join.nbytes)
    assert max(sizes[60:]) <= 2 * max(sizes[:60])


def test_a_change_that_is_refused_changes_nothing():
    pairs = join_set(q=("left.n < right.n", {"rows": 5}))
    before = pairs.to_bytes()
    for change in (
        lambda: pairs.add("q", "true", rows=5),
        lambda: pairs.add("p", "left.m < right.n", rows=5),
        lambda: pairs.add("p", "true"),
        lambda: pairs.add_many(["p", "r"], ["true", "left.n <"], rows=5),
        lambda: pairs.add_many(["p", "p"], ["true", "true"], rows=5),
        lambda: pairs.add_many(["p"], ["true", "true"], rows=5),
        lambda: pairs.replace("q", "left.n <", rows=5),
        lambda: pairs.replace("q", "true", rows=0),
        lambda: pairs.replace("p", "true", rows=5),
        lambda: pairs.remove("p"),
        lambda: pairs.remove_many(["q", "p"]),
        lambda: pairs.remove_many(["q", "q"]),
    ):
        with pytest.raises(vd.QueryError):
            change()
        assert pairs.to_bytes() == before


def test_a_set_reports_its_active_queries():
    pairs = join_set(q=("left.n < right.n", {"rows": 5}), p=("true", {"within": 5}))
    assert (len(pairs), pairs.version, "q" in pairs, "r" in pairs, 5 in pairs) == (2, 2, True, False, False)
    assert pairs.streams == TWO
    assert repr(pairs) == f"JoinQuerySet(left='{FIELDS}', right='{FIELDS}', 2 queries, version 2)"
    pairs.replace("q", "left.n > right.n", rows=7)
    pairs.remove("p")
    assert (len(pairs), pairs.version, "p" in pairs) == (1, 4, False)
    assert pairs_of(pairs.window().step(left={"n": [1, 3]}, right={"n": [2]})) == [("q", 1, 0)]
    assert pairs.fields_of("left") == ["n"]
    assert pairs.check("left.n < 5 AND left.n > 7") != []
    assert len(pairs) == 1


def test_explain_names_the_edges_and_what_is_checked():
    pairs = join_set(
        near=("left.k = right.k AND left.x - right.x BETWEEN 0 AND 1 AND left.n < right.n AND left.x > 3", {"rows": 5}),
        odd=("left.x > right.x * 1.01", {"within": 5}),
    )
    words = pairs.explain()
    assert "2 queries at version 2 over left, right" in words
    assert "lists by left.k = right.k, then ordered by left.x - right.x" in words
    assert "checked on pairs: left.n with right.n" in words
    assert "1 query has a residual" in words
    assert "nothing to join yet" in join_set().explain()


def test_the_shared_equality_is_that_of_all_active_queries():
    pairs = join_set(
        q=("left.k = right.k AND left.n = right.n", {"within": 5}), p=("right.k = left.k AND left.x < 3", {"within": 5})
    )
    assert pairs.shared_equality() == {"left": "k", "right": "k"}
    assert not pairs.has_counts
    pairs.add("r", "left.n < right.n", rows=5)
    assert pairs.shared_equality() is None
    assert pairs.has_counts
    pairs.remove("r")
    assert pairs.shared_equality() == {"left": "k", "right": "k"}
    assert not pairs.has_counts


def test_three_streams_meet_only_where_all_are_in_time():
    pairs = vd.JoinQuerySet(a="n bigint", b="n bigint", c="n bigint")
    pairs.add("q", "a.n < b.n AND b.n < c.n", within={"a": 10, "b": 5, "c": 1})
    join = pairs.window(a_time="at", b_time="at", c_time="at")
    rows = {"a": {"n": [1], "at": [0]}, "b": {"n": [2, 2], "at": [4, 6]}, "c": {"n": [3, 3, 3], "at": [9, 10, 11]}}
    assert pairs_of(join.step(**rows)) == [("q", 0, 0, 0), ("q", 0, 1, 0), ("q", 0, 1, 1)]
    found = []
    join = pairs.window(a_time="at", b_time="at", c_time="at")
    for stream in ("c", "a", "b"):
        found += pairs_of(join.step(**{stream: rows[stream]}))
    assert sorted(found) == [("q", 0, 0, 0), ("q", 0, 1, 0), ("q", 0, 1, 1)]


def test_a_residual_may_be_of_three_streams():
    pairs = vd.JoinQuerySet(a="n bigint", b="n bigint", c="n bigint")
    pairs.add("sum", "a.n + b.n = c.n", rows=5)
    pairs.add("some", "a.n * 2 = b.n AND (a.n + b.n < c.n OR c.n IS NULL)", rows=5)
    join = pairs.window()
    found = join.step(a={"n": [1, 2]}, b={"n": [2, 4, 2**63 - 1]}, c={"n": [3, 7, None]})
    assert pairs_of(found) == [
        ("some", 0, 0, 1),
        ("some", 0, 0, 2),
        ("some", 1, 1, 1),
        ("some", 1, 1, 2),
        ("sum", 0, 0, 0),
    ]
    assert join.n_failed == 6  # where a sum is beyond 64 bits


@examples(0.4)
@given(seeds)
def test_three_streams_in_time_order_join_the_same_for_any_steps(seed):
    random_ = random.Random(seed)
    streams = ["a", "b", "c"]
    queries = []
    for number in range(3):
        text, test = Predicates(random_, streams).make()
        queries.append(Query(number, text, test, {stream: random_.choice([1, 3, 10, 40]) for stream in streams}, {}))
    rows = {stream: make_rows(random_, 8, stream) for stream in streams}
    pairs = make_set(streams)
    for query in queries:
        add(pairs, query)
    join, found = open_join(pairs), []
    waiting = {stream: cut(random_, [(stream, row) for row in rows[stream]]) for stream in streams}
    while any(waiting.values()):
        stream = random_.choice([stream for stream in streams if waiting[stream]])
        found += step(join, waiting[stream].pop(0))
    expected = [
        (query.id, a["id"], b["id"], c["id"])
        for query in queries
        for a in rows["a"]
        for b in rows["b"]
        for c in rows["c"]
        if in_time(query, {"a": a, "b": b, "c": c}) and query.test({"a": a, "b": b, "c": c}) is True
    ]
    assert sorted(found) == sorted(expected)
