"""Checks that the saved states of all monitors share: before any of it is applied, all of it is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.ids import Ids
from vedette.data.keyed_rows import FARTHEST, TIME_TYPES
from vedette.data.schema import Type
from vedette.language.vectors import filler
from vedette.native.damage import check, check_shape, check_type, check_within


def check_history(history: Any) -> None:
    """The version of the queries, and its mark."""
    check_type(history, list[int | None], "the history of a state")
    check(len(history) == 2 and history[0] is not None and history[0] >= 0, "the history of a state is none")


def check_count(value: Any, name: str) -> None:
    check_type(value, int, name)
    check(value >= 0, f"{name} is below nothing")


def check_distinct_ids(ids: Any, known: Ids | None, name: str) -> int:
    """Ids that are distinct, and of the kind of those that are known; how many."""
    check(isinstance(ids, pa.LargeStringArray) or _is_numbers(ids), f"{name} are neither strings nor integers")
    read = (Ids() if known is None else known).read(ids)  # raises QueryError where they are twice, or of another kind
    return len(read)


def check_ids(ids: Any, n: int, name: str) -> None:
    """So many ids."""
    check(isinstance(ids, pa.LargeStringArray) or _is_numbers(ids), f"{name} are neither strings nor integers")
    check(len(ids) == n, f"{name} are missing")


def _is_numbers(ids: Any) -> bool:
    return isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1


def check_times(times: Any, time_type: Any, n: int) -> None:
    """So many times of a type; without one there are none."""
    check(time_type in ("", *TIME_TYPES), "times are of no type")
    check_type(times, NDArray[Any], "the times of a state")
    check_shape(times, (n,), "the times of a state")
    if n:
        check(time_type and times.dtype == TIME_TYPES[time_type], "times are of another type")
        if time_type == "double":
            check(np.isfinite(times).all(), "a time is not finite")
        else:
            check_within(times, 1 - FARTHEST, FARTHEST - 1, "the times of a state")


def check_clock(clock: Any, time_type: str) -> None:
    """None, or a time of the type that a row could have."""
    if clock is not None:
        check(time_type in TIME_TYPES, "there is a clock without times")
        check_type(clock, float if time_type == "double" else int, "the clock of a state")
        check(not np.isnan(clock), "the clock of a state is no time")
        farthest = np.inf if time_type == "double" else FARTHEST
        check(-farthest < clock < farthest, "the clock of a state is too far")


def read_column(values: Any, valid: Any, type_: Type, n: int) -> Column:
    """So many values of a type."""
    like = filler(type_, 0)
    if isinstance(like, pa.Array):
        check(isinstance(values, pa.LargeStringArray), "a column is of another type")
    else:
        check(isinstance(values, np.ndarray) and values.dtype == like.dtype, "a column is of another type")
        check_shape(values, (n,), "a column")
    check(len(values) == n, "values of a column are missing")
    if valid is not None:
        check_type(valid, NDArray[np.bool_], "which values of a column are null")
        check_shape(valid, (n,), "which values of a column are null")
    return Column(values, valid)
