"""Rows that are sent to border monitoring: which are dropped, and which are errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

import vedette as vd
from vedette.spark.workers.border import check_rows


def test_null_keys_are_an_error_or_dropped():
    batch = pa.record_batch([pa.array(["a", None, None]), pa.array([1, 2, None])], names=["key", "at"])

    with pytest.raises(
        vd.RowError,
        match=r"null_key is 'error', and the key, column 'key', is null in 2 rows; filter .*, or use 'drop'$",
    ):
        check_rows(batch, {"null_key": "error"})
    assert check_rows(batch, {"null_key": "drop"}).to_pylist() == [{"key": "a", "at": 1}]


def test_a_row_without_a_time_is_an_error():
    batch = pa.record_batch([pa.array(["a", "b"]), pa.array([None, 1])], names=["key", "at"])

    with pytest.raises(vd.RowError, match="the time, column 'at', is null in 1 row; filter such rows out"):
        check_rows(batch, {"null_key": "drop"})
