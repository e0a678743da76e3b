"""The net change of rows on one side of a band join.

The value of an id before its first row is compared with the value after its last row. So a value that is inserted and
deleted again by the same rows changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import writable
from vedette.data.ids import item, take_ids
from vedette.operators.band_join.rows import SIDES, ValueRows, known_id_error
from vedette.operators.band_join.side import Side


@dataclass(frozen=True)
class NetChange:
    """Slots that lose their value, ids that get one, and ids of deletions that had none."""

    deleted: NDArray[np.int32]
    inserted: Any  # NDArray[np.int64] or pa.LargeStringArray, as `unknown`
    values: NDArray[np.float64]  # of the inserted ids
    unknown: Any
    inserted_rows: NDArray[np.int64]  # the last row of each inserted id
    same: NDArray[np.int32]  # slots whose value stays, although rows have set it
    same_rows: NDArray[np.int64]


def find_net_change(rows: ValueRows, side: Side, *, replaces: bool) -> NetChange:
    """What rows change on a side. An inserted id that has a value gets the new one, or raises RowError.

    A value that is replaced by an equal one does not change.
    """
    if not len(rows.ids):
        none, nothing = np.empty(0, np.int64), np.empty(0, np.int32)
        return NetChange(nothing, rows.ids, np.empty(0), rows.ids, none, nothing, none)
    ids, codes = _encode(rows.ids)
    order = np.arange(len(codes)) if len(ids) == len(codes) else np.argsort(codes, kind="stable")
    codes, values, inserts = codes[order], rows.values[order], ~rows.deletes[order]
    slots = side.find(ids)
    has_value = slots >= 0
    is_first = np.append(True, codes[1:] != codes[:-1])
    had_value = np.where(is_first, has_value[codes], np.roll(inserts, 1))
    again = codes[inserts & had_value]
    if len(again) and not replaces:
        raise known_id_error(item(ids, int(again[0])), SIDES[side.sign])
    lasts = np.flatnonzero(np.append(is_first[1:], True))  # the last row of each id, in the order of codes
    values, stays = values[lasts], inserts[lasts]
    old_values = np.full(len(slots), np.nan)
    old_values[has_value] = side.values[slots[has_value]]
    differs = ~stays | (values != old_values)
    put, same = np.flatnonzero(stays & differs), np.flatnonzero(stays & ~differs)
    return NetChange(
        deleted=slots[has_value & differs],
        inserted=take_ids(ids, put),
        values=values[put],
        unknown=take_ids(ids, codes[~inserts & ~had_value]),
        inserted_rows=order[lasts[put]],
        same=slots[same],
        same_rows=order[lasts[same]],
    )


def _encode(ids: Any) -> tuple[Any, NDArray[np.int32]]:
    """The distinct ids, and the place of each id among them."""
    encoded = pa.array(ids).dictionary_encode()
    found = encoded.dictionary
    distinct = writable(found.to_numpy()) if isinstance(ids, np.ndarray) else found
    return distinct, encoded.indices.to_numpy()
