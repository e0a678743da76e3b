"""What window joins refuse: each with its sentence, and without a change."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd

FIELDS = "k string, x double, n bigint, d date, at bigint"


def join_set(text="left.n < right.n", **window):
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    pairs.add("q", text, **(window or {"within": 10}))
    return pairs


def pairs_of(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


# Sets.


@pytest.mark.parametrize(
    ("streams", "sentence"),
    [
        ({}, "a join needs two or more streams with different names, such as JoinQuerySet("),
        ({"left": FIELDS}, "two or more streams with different names"),
        ({"left": FIELDS, "LEFT": FIELDS}, "with different names"),
        ({"left": FIELDS, "query": FIELDS}, "and must not be 'query', which is a column of answers; got 'query'"),
        ({"left": FIELDS, "Query": FIELDS}, "and must not be 'query', which is a column of answers; got 'Query'"),
        ({"left": FIELDS, "a.b": FIELDS}, "a stream's name must consist of letters, digits and _"),
        ({"left": FIELDS, "": FIELDS}, "a stream's name must consist of letters, digits and _"),
        ({"left": FIELDS, "right": "x"}, "stream 'right': cannot read the schema at 'x'"),
        ({"left": FIELDS, "right": ""}, "stream 'right': a schema needs at least one field"),
        ({"left": FIELDS, "right": "x flote"}, "stream 'right': field 'x' has unknown type 'flote'"),
        ({"left": FIELDS, "right": 5}, "stream 'right': a schema must be a text such as"),
    ],
)
def test_streams_that_make_no_join_are_refused(streams, sentence):
    with pytest.raises(vd.SchemaError) as caught:
        vd.JoinQuerySet(**streams)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n < right.n", "field 'n' needs its stream; write left.n or right.n"),
        ("left.n < price", "unknown field 'price'; the schema has: left.at, left.d, left.k"),
        ("lft.n < right.n", "unknown stream 'lft'; the streams are: left, right; did you mean 'left'?"),
        ("middle.n < right.n", "unknown stream 'middle'; the streams are: left, right"),
        ("left.m < right.n", "unknown field 'left.m'; the schema has: left.at"),
        ("left.nn < right.n", "did you mean 'left.n'?"),
        ("left < right", "unknown field 'left'"),
        ("left.n.x < right.n", ""),
        ("left.n < right.d - 1", "cannot compare"),
        ("left.n - right.k BETWEEN DATE '2020-01-01' AND 5", "cannot compare"),
        ("left.n", "a query is a condition, but this is field 'left.n' (bigint)"),
        ("left.n <", "syntax error"),
        ("", ""),
        ("left.n < (SELECT 1)", ""),
        ("left.n < rand()", ""),
    ],
)
def test_a_text_that_is_wrong_is_refused_with_its_place(text, sentence):
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    for change in (lambda: pairs.check(text), lambda: pairs.add("q", text, rows=5)):
        with pytest.raises(vd.QueryError) as caught:
            change()
        assert sentence in str(caught.value)
    assert (len(pairs), pairs.version) == (0, 0)


def test_a_bad_text_among_many_is_named_by_its_id():
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    with pytest.raises(vd.QueryError, match="query 'b': field 'n' needs its stream") as caught:
        pairs.add_many(["a", "b"], ["left.n < right.n", "n < right.n"], rows=5)
    assert "n < right.n\n  ^" in str(caught.value)
    assert len(pairs) == 0


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            {},
            "the window of the left stream is missing; give a length of time, within='10 seconds', or a number of rows",
        ),
        ({"within": {"left": 5}}, "the window of the right stream is missing"),
        ({"within": {"left": 5, "right": None}}, "the window of the right stream is missing"),
        ({"rows": {}}, "the window of the left stream is missing"),
        ({"within": 5, "rows": 5}, "the left stream has two windows, within=5 and rows=5; give one"),
        ({"within": {"right": 5}, "rows": 5}, "the right stream has two windows, within=5 and rows=5; give one"),
        (
            {"within": {"lft": 5}},
            "within names an unknown stream 'lft'; the streams are: left, right; did you mean 'left'?",
        ),
        ({"rows": {"up": 5, "left": 3}}, "rows names an unknown stream 'up'; the streams are: left, right"),
        ({"rows": 0}, "rows must be a whole number above 0, and at most 2^40; got 0"),
        ({"rows": -5}, "rows must be a whole number above 0, and at most 2^40; got -5"),
        ({"rows": 1.5}, "rows must be a whole number above 0, and at most 2^40; got 1.5"),
        ({"rows": "5"}, "rows must be a whole number above 0, and at most 2^40; got '5'"),
        ({"rows": True}, "rows must be a whole number above 0, and at most 2^40; got True"),
        ({"rows": 2**41}, "rows must be a whole number above 0, and at most 2^40; got 2199023255552"),
        ({"rows": {"left": 5, "right": 0}}, "rows must be a whole number above 0, and at most 2^40; got 0"),
        ({"within": 0}, "within must be a number above 0, in the unit of the time column; got 0"),
        ({"within": -1.5}, "within must be a number above 0, in the unit of the time column; got -1.5"),
        ({"within": float("nan")}, "within must be a number above 0, in the unit of the time column; got nan"),
        ({"within": float("inf")}, "within must be a number above 0, in the unit of the time column; got inf"),
        (
            {"within": 1e18},
            "within must be a number above 0 and at most 1e+17, in the unit of the time column; got 1e+18",
        ),
        ({"within": "0 seconds"}, "within must be a duration above 0, such as '5 minutes'; got '0 seconds'"),
        ({"within": "-5 seconds"}, "within must be a duration above 0, such as '5 minutes'; got '-5 seconds'"),
        ({"within": "- 5"}, "within must be a duration such as '5 minutes'; got '- 5'; units are"),
        (
            {"within": "999999 weeks"},
            "within must be a duration of 3,000 years at most, such as '5 minutes'; got '999999 weeks'",
        ),
        (
            {"within": "2 fortnights"},
            "within must be a duration such as '5 minutes'; got '2 fortnights'; units are microseconds (us), "
            "milliseconds (ms), seconds (s), minutes (m), hours (h), days (d), weeks (w)",
        ),
        ({"within": "5"}, "within must be a duration such as '5 minutes'; got '5'"),
        ({"within": ""}, "within must be a duration such as '5 minutes'; got ''"),
        (
            {"within": datetime.timedelta(0)},
            "within must be a duration above 0, such as '5 minutes'; got datetime.timedelta(0)",
        ),
        (
            {"within": datetime.timedelta(-1)},
            "within must be a duration above 0, such as '5 minutes'; got datetime.timedelta(days=-1)",
        ),
        ({"within": np.timedelta64("NaT")}, "within must be a duration such as '10 seconds', or a number"),
        (
            {"within": True},
            "within must be a duration such as '10 seconds', or a number if the time column is a number; got True",
        ),
        ({"within": [1, True]}, "within has 2 windows for 1 queries; give one for all, or one per query"),
        ({"within": [True]}, "or a number if the time column is a number; got True"),
        ({"within": [[1]]}, "or a number if the time column is a number; got [1]"),
        ({"within": [None]}, "or a number if the time column is a number; got None"),
        ({"within": np.array(5)}, "or a number if the time column is a number; got array(5)"),
        ({"within": b"5 s"}, "or a number if the time column is a number; got b'5 s'"),
        ({"within": {1, 2}}, "or a number if the time column is a number; got {1, 2}"),
        ({"within": []}, "within has 0 windows for 1 queries"),
        ({"rows": [1, 2]}, "rows has 2 windows for 1 queries"),
        ({"rows": {"left": [1, 2], "right": 5}}, "rows has 2 windows for 1 queries"),
    ],
)
def test_a_window_that_is_none_is_refused(window, sentence):
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    with pytest.raises(vd.QueryError) as caught:
        pairs.add("q", "left.n < right.n", **window)
    assert sentence in str(caught.value)
    assert (len(pairs), pairs.version) == (0, 0)


@pytest.mark.parametrize(
    ("windows", "sentence"),
    [
        (
            {"within": ["5 s", "0 s", "soon"]},
            "query 'b': within must be a duration above 0, such as '5 minutes'; got '0 s'",
        ),
        ({"within": [1, 2, -3]}, "query 'c': within must be a number above 0, in the unit of the time column; got -3"),
        (
            {"rows": {"left": 5, "right": [1, 2, 0]}},
            "query 'c': rows must be a whole number above 0, and at most 2^40; got 0",
        ),
        ({"within": "soon"}, "within must be a duration such as '5 minutes'; got 'soon'"),
    ],
)
def test_an_invalid_window_among_many_is_reported_with_the_id_of_its_query(windows, sentence):
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    for ids in (["a", "b", "c"], pa.array(["a", "b", "c"])):
        with pytest.raises(vd.QueryError) as caught:
            pairs.add_many(ids, ["left.n < right.n"] * 3, **windows)
        assert str(caught.value).startswith(sentence)
    assert (len(pairs), pairs.version) == (0, 0)


@pytest.mark.parametrize("first", [1, "1 second"])
def test_a_window_is_read_independently_of_earlier_ones(first):
    pairs = vd.JoinQuerySet(left=FIELDS, right=FIELDS)
    with pytest.raises(vd.QueryError, match="got True"):
        pairs.add_many(["a", "b"], ["true"] * 2, within=[first, True])


# Joins.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"left_time": "at"},
            "right_time is missing: the left stream has a time column; give one for each stream, or",
        ),
        ({"right_time": "at"}, "left_time is missing: the right stream has a time column; give one for each stream"),
        (
            {},
            "left_time is missing: query 'q' has a window of time; name the time column, or use windows",
        ),
        ({"time": "at"}, "unknown option 'time' of window; the options are: left_time, left_id, right_time, right_id"),
        (
            {"lft_time": "at"},
            "unknown option 'lft_time' of window; the options are: left_time, left_id, right_time, right_id; did you",
        ),
        ({"left_time": 5, "right_time": "at"}, "left_time must be the name of a column of the rows; got 5"),
        ({"left_time": "", "right_time": "at"}, "left_time must be the name of a column of the rows; got ''"),
        ({"left_time": "k", "right_time": "at"}, "left_time 'k' is string; a time must be a timestamp or a number"),
        ({"left_time": "at", "right_time": "d"}, "right_time 'd' is date; a time must be a timestamp or a number"),
        ({"left_time": "at", "right_time": "x"}, "right_time 'x' is"),
        (
            {"left_time": "at", "right_time": "at", "left_id": "x"},
            "left_id 'x' is double; an id must be a string or a whole",
        ),
        ({"left_time": "at", "right_time": "at", "late": "keep"}, "late must be one of: 'drop', 'apply'; got 'keep'"),
        (
            {"left_time": "at", "right_time": "at", "max_state_rows": 0},
            "max_state_rows must be a whole number above 0, or None",
        ),
        ({"left_time": "at", "right_time": "at", "max_state_rows": True}, "or None; got True"),
        ({"left_time": "at", "right_time": "at", "max_state_rows": 1.5}, "or None; got 1.5"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_the_door(options, sentence):
    with pytest.raises(vd.QueryError) as caught:
        join_set().window(**options)
    assert sentence in str(caught.value)


def test_a_window_of_time_needs_the_kind_of_length_that_its_times_have():
    for within, known in (("10 seconds", "times of the left stream are of type bigint, so within must be a number"),):
        with pytest.raises(vd.QueryError) as caught:
            join_set(within=within).window(left_time="at", right_time="at")
        assert known in str(caught.value)
        assert "query 'q' has a duration" in str(caught.value)
    join = join_set(within="10 seconds").window(left_time="when", right_time="when")
    with pytest.raises(vd.QueryError, match="times of the left stream are of type double, so within must be a number"):
        join.step(left={"n": [1], "when": [0.5]})
    join.step(left={"n": [1], "when": np.array([0], "datetime64[us]")})
    assert join.n_rows == 1
    join = join_set(within=10).window(left_time="when", right_time="when")
    moments = np.array([0], "datetime64[us]")
    with pytest.raises(
        vd.QueryError, match="so within must be a duration such as '10 seconds'; query 'q' has a number"
    ):
        join.step(left={"n": [1], "when": moments})
    assert join.n_rows == 0


def test_a_query_whose_window_does_not_fit_a_running_join_stops_it_until_removed():
    pairs = join_set(within=10)
    join = pairs.window(left_time="at", right_time="at")
    join.step(left={"n": [1], "at": [0]})
    pairs.add("odd", "true", within="10 seconds")
    for _ in range(2):
        with pytest.raises(vd.QueryError, match="query 'odd' has a duration"):
            join.step(right={"n": [2], "at": [1]})
    pairs.remove("odd")
    assert pairs_of(join.step(right={"n": [2], "at": [1]})) == [("q", 0, 0)]
    counting = join_set(rows=10)
    join = counting.window()
    counting.add("timed", "true", within=10)
    with pytest.raises(vd.QueryError, match="left_time is missing: query 'timed' has a window of time"):
        join.step(left={"n": [1]})


ROWS = {"id": ["a", "b"], "n": [1, 2], "when": [5, 6]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"when": [5, None]}, "left rows: time 'when' is missing in row 1; every row needs one"),
        ({"when": [None, None]}, "left rows: time 'when' is missing in row 0; every row needs one"),
        ({"when": np.array([5.0, np.nan])}, "left rows: time 'when' is missing in row 1; every row needs one"),
        ({"when": [5.0, float("inf")]}, "left rows: time 'when' is infinite in row 1"),
        ({"when": [5.0, float("-inf")]}, "left rows: time 'when' is infinite in row 1"),
        ({"when": [5, 2**62]}, "left rows: time 'when' is beyond 2^62 in row 1"),
        ({"when": [-(2**63), 5]}, "left rows: time 'when' is beyond 2^62 in row 0"),
        ({"when": np.array([5, 2**62], "datetime64[us]")}, "left rows: time 'when' is beyond 2^62 in row 1"),
        ({"when": ["5", "6"]}, "left rows: time 'when' is string; a time must be a timestamp or a number"),
        ({"when": [datetime.date(2020, 1, 1)] * 2}, "left rows: time 'when' is date32"),
        ({"when": [5]}, "left rows: the arrays of the rows differ in length"),
        ({"id": ["a", None]}, "left rows: id 'id' is null in row 1; every row needs one"),
        ({"id": pa.array(["a", None]).dictionary_encode()}, "left rows: id 'id' is null in row 1; every row needs one"),
        ({"id": [None, None]}, "left rows: id 'id' is null in row 0; every row needs one"),
        ({"id": [1.5, 2.5]}, "left rows: id 'id' is double; an id must be a string or a whole number"),
        ({"id": ["a", 5]}, "left rows: id 'id' cannot be read: "),
        ({"n": [1.5, 2.5]}, "left rows: field 'n' is bigint in the schema but double in the rows"),
        ({"n": ["a", "b"]}, "left rows: field 'n' is bigint in the schema"),
        ({"n": None}, "left rows: the rows lack field 'n', which queries use; they have: id, when"),
        ({"id": None}, "left rows: the rows have no column 'id' for the id; they have: n, when"),
        ({"when": None}, "left rows: the rows have no column 'when' for the time; they have: id, n"),
    ],
)
def test_rows_that_are_wrong_are_refused_as_a_whole(change, sentence):
    join = join_set().window(left_time="when", right_time="when", left_id="id", right_id="id")
    right = {"id": ["x"], "n": [9], "when": [6]}
    wrong = {name: values for name, values in (ROWS | change).items() if values is not None}
    with pytest.raises(vd.RowError) as caught:
        join.step(right=right, left=wrong)
    assert sentence in str(caught.value)
    assert (join.n_rows, join.n_late) == (0, 0)
    assert pairs_of(join.step(left=ROWS, right=right)) == [("q", "a", "x"), ("q", "b", "x")]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"lft": ROWS}, "unknown stream 'lft'; the streams are: left, right; did you mean 'left'?"),
        (
            {"left": 5},
            "left rows: rows must be an Arrow table or batch, a pandas or polars frame, or a dict of arrays; got int",
        ),
        ({"left": [ROWS]}, "left rows: rows must be an Arrow table or batch"),
        ({"left": ROWS | {"n": 1}}, "left rows: field 'n' is 1, not an array; give arrays of one value"),
        ({"left": {"id": "a", "n": 1, "when": 5}}, "left rows: field 'id' is 'a', not an array"),
        (
            {"left": ROWS, "right": ROWS | {"when": [0.5, 1.5]}},
            "the times of the streams have different types: bigint, double",
        ),
    ],
)
def test_steps_that_make_no_sense_are_refused(rows, sentence):
    join = join_set().window(left_time="when", right_time="when", left_id="id", right_id="id")
    with pytest.raises(vd.RowError) as caught:
        join.step(**rows)
    assert sentence in str(caught.value)
    assert join.n_rows == 0


def test_a_join_has_no_match_one_to_refer_to():
    with pytest.raises(vd.RowError, match=r"^left rows: field 'n' is 1\.0, not an array; give arrays of one value$"):
        join_set().window(left_time="when", right_time="when").step(left={"n": 1.0, "when": [5]})


def test_a_join_has_a_useful_repr():
    join = join_set().window(left_time="when", right_time="when", left_id="id", right_id="id")
    assert repr(join) == "JoinMonitor(left, right; 1 query, 0 rows kept)"
    join.step(left=ROWS)
    assert repr(join) == "JoinMonitor(left, right; 1 query, 2 rows kept)"


def test_types_of_ids_and_times_stay_as_they_began():
    join = join_set().window(left_time="when", right_time="when", left_id="id", right_id="id")
    join.step(left=ROWS)
    with pytest.raises(vd.RowError, match="left rows: ids were of type string so far; 'id' now has bigint"):
        join.step(left=ROWS | {"id": [1, 2]})
    with pytest.raises(vd.RowError, match="times were bigint so far; these are double"):
        join.step(left=ROWS | {"when": [7.0, 8.0]})
    with pytest.raises(vd.RowError, match="times were bigint so far; these are timestamp"):
        join.step(right=ROWS | {"when": np.array([1, 2], "datetime64[us]")})
    assert join.n_rows == 2
    assert pairs_of(join.step(right={"id": [7], "n": [2], "when": [6]})) == [("q", "a", 7)]


def test_a_step_that_would_keep_too_much_changes_nothing():
    join = join_set().window(left_time="when", right_time="when", max_state_rows=3)
    rows = {"n": [1, 2], "when": [5, 6]}
    join.step(left=rows)
    state = join.save()
    sentence = (
        "max_state_rows is 3, but the join keeps 2 rows and would keep 4; shorten the windows, allow more rows, or call"
    )
    for step in ({"left": {"n": [0, 1, 2], "when": [1, 7, 8]}}, {"right": rows}):  # the first with a late row
        with pytest.raises(vd.RowError, match=re.escape(sentence)):
            join.step(**step)
    assert (join.n_rows, join.n_late) == (2, 0)
    assert join.save() == state
    assert pairs_of(join.step(right={"n": [9], "when": [7]})) == [("q", 0, 0), ("q", 1, 0)]


def test_the_row_limit_counts_rows_after_a_step():
    join = join_set().window(left_time="when", right_time="when", max_state_rows=30)
    for start in range(0, 200, 20):
        rows = {"n": list(range(20)), "when": list(range(start, start + 20))}
        join.step(left=rows, right=rows)
    assert join.n_rows == 22


def test_the_type_of_times_is_open_until_the_first_step():
    join = join_set().window(left_time="when", right_time="when", max_state_rows=1)
    with pytest.raises(vd.RowError, match="max_state_rows is 1"):
        join.step(left={"n": [1, 2], "when": [5, 6]})
    join.step(left={"n": [1], "when": [5.5]})
    assert join.n_rows == 1
    with pytest.raises(vd.RowError, match="times were double so far; these are bigint"):
        join.step(left={"n": [1], "when": [6]})


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"lft": 5}, "unknown stream 'lft'; the streams are: left, right; did you mean 'left'?"),
        ({"left": "noon"}, "a time must be a whole number; got 'noon'"),
        ({"left": 5.5}, "a time must be a whole number; got 5.5"),
        ({"left": float("nan")}, "a time must be a whole number; got nan"),
        ({"left": 2**63}, "a time must be a whole number; got 9223372036854775808"),
        (
            {"left": datetime.datetime(2020, 1, 1)},
            "a time must be a whole number; got datetime.datetime(2020, 1, 1, 0, 0)",
        ),
    ],
)
def test_advance_takes_times_as_the_rows_have_them(times, sentence):
    join = join_set().window(left_time="at", right_time="at")
    join.step(left={"n": [1], "at": [0]}, right={"n": [0], "at": [0]})
    with pytest.raises(vd.RowError) as caught:
        join.advance(**{"right": 100} | times)
    assert sentence in str(caught.value)
    assert join.n_rows == 2
