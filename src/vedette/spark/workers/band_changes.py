"""What the rows of a micro-batch change on one side of a band join, in the end.

Rows are insertions and deletions of values by id, in the order of arrival. What an id has before the first of its rows
and after the last is compared, so that a value that comes and goes within a micro-batch makes no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import writable
from vedette.data.ids import take_ids
from vedette.errors import RowError
from vedette.operators.band_join.side import Side


@dataclass(frozen=True)
class BandChanges:
    """Ids that lose a value, ids that get one, and ids that were to lose one but had none."""

    deleted: Any  # an array of numbers, or of Arrow's strings
    inserted: Any
    values: NDArray[np.float64]  # of those inserted
    unknown: Any


def find_changes(rows: pa.Table, side: Side, name: str, replaces: bool) -> BandChanges:
    """The changes of rows with columns of ids, of values, and of whether they are deletions.

    An insertion of an id that has a value replaces it where that is wanted, and raises RowError else.
    """
    encoded = rows.column(0).combine_chunks().dictionary_encode()
    codes, ids = encoded.indices.to_numpy(), _to_ids(encoded.dictionary)
    order = np.arange(len(codes)) if len(ids) == len(codes) else np.argsort(codes, kind="stable")
    codes = codes[order]
    values = rows.column(1).to_numpy()[order]
    inserts = ~rows.column(2).to_numpy()[order]
    slots = side.find(ids)
    has_value = slots >= 0
    is_first = np.append(True, codes[1:] != codes[:-1])
    had_value = np.where(is_first, has_value[codes], np.roll(inserts, 1))
    again = codes[inserts & had_value]
    if len(again) and not replaces:
        (known,) = take_ids(ids, again[:1]).tolist()
        raise RowError(
            f"{name} id {known!r} comes again and has a value already; delete it first, use another id, or pass "
            f'known_id="replace"'
        )
    lasts = np.flatnonzero(np.append(is_first[1:], True))  # of each id, in the order of codes
    values, stays = values[lasts], inserts[lasts]
    old_values = np.full(len(slots), np.nan)
    old_values[has_value] = side.values[slots[has_value]]
    moves = ~stays | (values != old_values)
    put = np.flatnonzero(stays & moves)
    return BandChanges(
        deleted=take_ids(ids, np.flatnonzero(has_value & moves)),
        inserted=take_ids(ids, put),
        values=values[put],
        unknown=take_ids(ids, codes[~inserts & ~had_value]),
    )


def _to_ids(array: pa.Array) -> Any:
    """Ids in the form that a side takes."""
    return writable(array.to_numpy()) if pa.types.is_integer(array.type) else array.cast(pa.large_string())
