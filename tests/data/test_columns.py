"""Columns and the Arrow arrays that they are read from and written to."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.data.columns import null_column, read_column, to_array
from vedette.data.schema import Schema, arrow_type

VALUES = {
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(datetime.UTC)),
    "decimal(18,2)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
}


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_a_column_becomes_the_array_that_it_was_read_from(type_, data):
    (field,) = Schema.parse(f"a {type_}")
    values = data.draw(st.lists(st.none() | VALUES[type_], max_size=8))
    array = pa.array(values, arrow_type(field.type))

    assert to_array(read_column(array, field), field.type).equals(array)
    assert to_array(read_column(array[1:], field), field.type).equals(array[1:])
    assert to_array(null_column(field.type, 2), field.type).equals(pa.nulls(2, arrow_type(field.type)))
