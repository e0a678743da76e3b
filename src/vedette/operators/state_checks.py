"""Checks of values that saved states of several operators contain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.ids import Ids
from vedette.data.keyed_rows import MAX_TIME, TIME_TYPES
from vedette.data.list_texts import load_column
from vedette.data.schema import Type
from vedette.errors import SnapshotError
from vedette.language.vectors import filler
from vedette.native.damage import check, check_shape, check_type, check_within


def check_count(value: Any, name: str) -> None:
    check_type(value, int, name)
    check(value >= 0, f"{name} is negative")


def check_distinct_ids(ids: Any, known: Ids | None, name: str) -> int:
    """Check that ids are distinct, and strings or integers as the known ones; their number."""
    check_is_ids(ids, name)
    read = (Ids() if known is None else known).read(ids)  # raises QueryError for duplicates and for another kind
    return len(read)


def check_ids(ids: Any, n: int, name: str) -> None:
    """Check that there are `n` ids."""
    check_is_ids(ids, name)
    check(len(ids) == n, f"{name} are incomplete")


def check_is_ids(ids: Any, name: str) -> None:
    is_integers = isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1
    check(isinstance(ids, pa.LargeStringArray) or is_integers, f"{name} are neither strings nor integers")


def check_times(times: Any, time_type: Any, n: int) -> None:
    """Check that there are `n` times of a type, or none where the type is not known yet."""
    check(time_type in ("", *TIME_TYPES), "the type of times is invalid")
    check_type(times, NDArray[Any], "the times of a state")
    check_shape(times, (n,), "the times of a state")
    if n:
        check(time_type and times.dtype == TIME_TYPES[time_type], "times have the wrong type")
        if time_type == "double":
            check(np.isfinite(times).all(), "a time is not finite")
        else:
            check_within(times, 1 - MAX_TIME, MAX_TIME - 1, "the times of a state")


def check_clock(clock: Any, time_type: str) -> None:
    """Check that a clock is None, or a time of the type that a row could have."""
    if clock is not None:
        check(time_type in TIME_TYPES, "a clock has no type of times")
        check_type(clock, float if time_type == "double" else int, "the clock of a state")
        check(not np.isnan(clock), "the clock of a state is NaN")
        farthest = np.inf if time_type == "double" else MAX_TIME
        check(-farthest < clock < farthest, "the clock of a state is out of range")


def check_time_type(saved: str, own: str) -> None:
    """Raise SnapshotError where both types of times are known and differ."""
    if saved and own not in ("", saved):
        raise SnapshotError(f"the state was saved with times of type {saved}; here they are of type {own}")


def read_column(values: Any, valid: Any, type_: Type, n: int) -> Column:
    """A column of `n` values of a type; raises DamageError if it is not."""
    like = filler(type_, 0)
    if isinstance(like, pa.Array):
        check(isinstance(values, pa.LargeStringArray), "a column has the wrong type")
    else:
        check(isinstance(values, np.ndarray) and values.dtype == like.dtype, "a column has the wrong type")
        check_shape(values, (n,), "a column")
    check(len(values) == n, "a column is incomplete")
    if valid is not None:
        check_type(valid, NDArray[np.bool_], "the nulls of a column")
        check_shape(valid, (n,), "the nulls of a column")
    return load_column(values, valid, type_)
