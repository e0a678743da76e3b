from __future__ import annotations

import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.data.axes import build_axis, to_cells, to_values
from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, Nulls, Ranges
from vedette.data.columns import Column, large_strings
from vedette.data.schema import Type

# Few distinct values, so that shared ends and exact hits happen often; and the ones that are easily got wrong.
doubles = st.integers(-4, 4).map(float) | st.floats(allow_nan=False) | st.sampled_from([-0.0, math.inf, -math.inf])
whole = st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 3, 2**53 + 3)
wide = st.integers(-4, 4) | st.integers(-(10**30), 10**30)
words = st.sampled_from(["", "a", "ab", "b", "é", "zz", "\U0001f600", "￿"]) | st.text(max_size=3)
ends = st.sampled_from([CLOSED, OPEN, UNBOUNDED])

CASES = {
    "double": (Type("double"), doubles, np.float64),
    "bigint": (Type("bigint"), whole, np.int64),
    "wide decimal": (Type("decimal", 38, 0), wide, object),
    "string": (Type("string"), words, object),
}


def column(type_, values, dtype):
    if type_.name == "string":
        return Column(large_strings(values))
    array = np.empty(len(values), dtype)
    array[:] = values
    return Column(array)


def make_ranges(boxes, dtype):
    columns = [np.empty(len(boxes), dtype) for _ in range(2)]
    columns[0][:] = [box[0] for box in boxes]
    columns[1][:] = [box[1] for box in boxes]
    return Ranges(*columns, np.array([box[2] for box in boxes], np.int8), np.array([box[3] for box in boxes], np.int8))


def order(value):
    """Spark's order: strings by their bytes, NaN above all."""
    if isinstance(value, str):
        return value.encode()
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def holds(box, value):
    low, high, low_end, high_end = box
    above = low_end == UNBOUNDED or order(value) > order(low) or (low_end == CLOSED and order(value) == order(low))
    below = high_end == UNBOUNDED or order(value) < order(high) or (high_end == CLOSED and order(value) == order(high))
    return above and below


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_a_value_is_in_a_cell_range_exactly_when_it_is_in_the_value_range(case, data):
    type_, values, dtype = CASES[case]
    boxes = data.draw(st.lists(st.tuples(values, values, ends, ends), max_size=8))
    rows = data.draw(st.lists(values | st.sampled_from([box[0] for box in boxes]) if boxes else values, max_size=8))
    if case == "double":
        rows.append(math.nan)
    ranges = make_ranges(boxes, dtype)
    axis = pickle.loads(pickle.dumps(build_axis(type_, [ranges])))
    firsts, lasts = to_cells(axis, ranges)
    cells = axis.locate(column(type_, rows, dtype))

    found = [[bool(firsts[i] <= cell <= lasts[i]) for i in range(len(boxes))] for cell in cells]

    assert found == [[holds(box, value) for box in boxes] for value in rows]


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_cell_ranges_lead_back_to_the_values_they_came_from(case, data):
    type_, values, dtype = CASES[case]
    boxes = data.draw(st.lists(st.tuples(values, values, ends, ends), min_size=1, max_size=8))
    ranges = make_ranges(boxes, dtype)
    axis = build_axis(type_, [ranges])
    firsts, lasts = to_cells(axis, ranges)

    again = to_values(axis, firsts, lasts)

    assert [holds(box, value) for box in boxes for value in (box[0], box[1])] == [
        holds(each, value)
        for each, box in zip(
            zip(again.lows, again.highs, again.low_ends, again.high_ends, strict=True), boxes, strict=True
        )
        for value in (box[0], box[1])
    ]
    for before, after in zip(to_cells(axis, again), (firsts, lasts), strict=True):
        np.testing.assert_array_equal(before, after)


@given(st.lists(st.text("ab", max_size=12)), st.lists(st.text("ab", max_size=12) | st.none()))
def test_strings_that_are_cuts_are_found_without_their_gaps(cuts, rows):
    axis = build_axis(Type("string"), [make_ranges([(cut, cut, CLOSED, CLOSED) for cut in cuts], object)])
    strings = Column(pa.array(rows, pa.large_string()).fill_null(""), np.array([row is not None for row in rows], bool))

    cells, found = axis.locate(strings), axis.locate_cuts(strings)

    is_cut = [row is None or row in cuts for row in rows]
    assert found.tolist() == [cell if known else 0 for cell, known in zip(cells.tolist(), is_cut, strict=True)]


def test_null_is_a_cell_of_its_own():
    ranges = make_ranges([(1.0, 2.0, CLOSED, CLOSED), (0.0, 0.0, UNBOUNDED, UNBOUNDED)], np.float64)
    axis = build_axis(Type("double"), [ranges, Nulls(1)])
    cells = axis.locate(Column(np.array([1.5, 1.5]), np.array([True, False])))
    firsts, lasts = to_cells(axis, ranges)

    assert cells[1] == axis.n_cells - 1
    assert (lasts < cells[1]).all()
    assert to_cells(axis, Nulls(1))[0].tolist() == [cells[1]]
    assert firsts[1] == 0
    assert lasts[1] == axis.n_cells - 2


def test_integers_beyond_doubles_stay_apart():
    big = 2**53
    ranges = make_ranges([(big + 1, big + 1, CLOSED, CLOSED)], np.int64)
    axis = build_axis(Type("bigint"), [ranges])
    (first,), (last,) = to_cells(axis, ranges)
    cells = axis.locate(Column(np.array([big, big + 1, big + 2])))

    assert [first <= cell <= last for cell in cells] == [False, True, False]


def test_skewed_cuts_are_found_too():
    cuts = np.concatenate([np.arange(10_000.0), [1e300, math.inf]])
    axis = build_axis(Type("double"), [Ranges(cuts, cuts, np.zeros(10_002, np.int8), np.zeros(10_002, np.int8))])

    np.testing.assert_array_equal(axis.locate(Column(cuts)), 2 * np.arange(10_002) + 1)
    np.testing.assert_array_equal(axis.locate(Column(np.array([-5.0, 0.5, 1e299, math.nan]))), [0, 2, 20_000, 20_004])


def test_nan_as_a_constant_is_the_last_cut():
    values = np.array([math.nan, 1.0])
    axis = build_axis(Type("double"), [Ranges(values, values, np.zeros(2, np.int8), np.zeros(2, np.int8))])

    assert axis.locate(Column(np.array([math.nan, math.inf, 1.0]))).tolist() == [3, 2, 1]
