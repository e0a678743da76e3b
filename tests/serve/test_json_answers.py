"""Columns of events as JSON."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.json_answers import dump, to_values

times = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)).map(
    lambda t: t.replace(tzinfo=UTC)
)
whole_seconds = times.map(lambda time: time.replace(microsecond=0))


@given(st.lists(st.none() | times | whole_seconds))
def test_times_are_written_as_json_writes_them(values):
    column = pa.chunked_array([pa.array(values, pa.timestamp("us", "UTC"))])

    assert dump(to_values(column)) == orjson.dumps(values, option=orjson.OPT_UTC_Z)


@given(st.lists(st.none() | times))
def test_times_without_a_zone_keep_none(values):
    plain = [None if value is None else value.replace(tzinfo=None) for value in values]
    column = pa.chunked_array([pa.array(plain, pa.timestamp("us"))])

    assert dump(to_values(column)) == orjson.dumps(plain)
