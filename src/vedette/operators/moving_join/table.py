"""The answers of a moving join as Arrow tables: ids as dictionaries, the rest as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import INTEGER, Ids
from vedette.operators.moving_join.meetings import Meetings
from vedette.operators.moving_join.moving_set import MovingSet


def to_change_table(changes: Sequence[tuple[int, Meetings]], a: MovingSet, b: MovingSet) -> pa.Table:
    """One row per change, in the order of the changes: sign, a, b, start, end."""
    nonempty = [each for each in changes if len(each[1])]
    signs = np.repeat(np.array([sign for sign, _ in nonempty], np.int8), [len(each) for _, each in nonempty])
    every = Meetings.concat([each for _, each in nonempty])
    arrays = [
        pa.array(signs),
        *_names(every.a, every.b, a, b),
        pa.array(every.starts),
        pa.array(every.ends),
    ]
    return pa.Table.from_arrays(arrays, ["sign", "a", "b", "start", "end"])


def to_pair_table(a_slots: NDArray[np.int32], b_slots: NDArray[np.int32], a: MovingSet, b: MovingSet) -> pa.Table:
    """One row per pair: a, b."""
    return pa.Table.from_arrays(_names(a_slots, b_slots, a, b), ["a", "b"])


def to_event_table(
    times: NDArray[np.float64], enters: NDArray[np.bool_], pairs: Meetings, a: MovingSet, b: MovingSet
) -> pa.Table:
    """One row per event: time, event ("enter" or "exit"), a, b."""
    events = pa.DictionaryArray.from_arrays(pa.array(enters.astype(np.int8)), pa.array(["exit", "enter"]))
    arrays = [pa.array(times), events, *_names(pairs.a, pairs.b, a, b)]
    return pa.Table.from_arrays(arrays, ["time", "event", "a", "b"])


def to_overdue_table(
    slots: tuple[NDArray[np.int32], NDArray[np.int32]], deadlines: tuple[NDArray[Any], NDArray[Any]],
    a: MovingSet, b: MovingSet,
) -> pa.Table:  # fmt: skip
    """One row per object: set ("a" or "b"), id, deadline. If the ids of the sets have two types: set, a, b, deadline.

    Objects of a static set are never overdue, so the type of their ids does not matter.
    """
    codes = np.repeat(np.array([0, 1], np.int8), [len(slots[0]), len(slots[1])])
    sets = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["a", "b"]))
    ids = [pa.array(of.ids.take(each)) for of, each in zip((a, b), slots, strict=True)]
    kinds = {of.ids.kind for of in (a, b) if of.ids.kind is not None and not of.is_static}
    if len(kinds) > 1:
        nulls = [pa.nulls(len(ids[1 - k]), ids[k].type) for k in range(2)]
        names = {"a": pa.concat_arrays([ids[0], nulls[0]]), "b": pa.concat_arrays([nulls[1], ids[1]])}
    else:
        some = [each for each in ids if len(each)] or [pa.array([], _type(next(iter(kinds), a.ids.kind or b.ids.kind)))]
        names = {"id": pa.concat_arrays(some)}
    return pa.table({"set": sets, **names, "deadline": pa.array(np.concatenate(deadlines))})


def _names(a_slots: NDArray[np.int32], b_slots: NDArray[np.int32], a: MovingSet, b: MovingSet) -> list[Any]:
    return [
        _dictionary(a_slots, a.ids, a.ids.kind or b.ids.kind),
        _dictionary(b_slots, b.ids, b.ids.kind or a.ids.kind),
    ]


def _dictionary(codes: NDArray[np.int32], ids: Ids, kind: str | None) -> pa.DictionaryArray:
    """Ids by their slots. `kind` is their type if there are none yet."""
    values = ids.to_arrow() if ids.kind == kind else pa.array([], _type(kind))
    type_ = pa.dictionary(pa.int32(), values.type)
    return pa.DictionaryArray.from_buffers(type_, len(codes), [None, pa.py_buffer(codes)], values)


def _type(kind: str | None) -> pa.DataType:
    return pa.int64() if kind == INTEGER else pa.large_string()
