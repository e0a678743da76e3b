"""The rows of the pairs of a band join, for the columns that answers carry.

A pair has the last row of each of its ids. Retracted pairs have the rows before the change, new ones those after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.operators.band_join.join import Change, PairChanges
from vedette.operators.band_join.rows import SIDES
from vedette.operators.band_join.side import Side
from vedette.operators.carried_rows import concat_carried
from vedette.operators.side_columns import PairRows


def find_rows(found: PairChanges, change: Change, left: Side, right: Side) -> dict[str, PairRows]:
    """By side that has columns, the rows of pairs. The change has not been made yet."""
    rows = {}
    for side, slots in ((left, found.lefts), (right, found.rights)):
        if side.carried:
            after = _RowsAfter(side, change)
            n_slots = max(len(side.ids), after.n_slots)
            rows[SIDES[side.sign]] = PairRows.at(slots, n_slots, after.at if found.sees_new else side.carried.at)
    return rows


class _RowsAfter:
    """The rows of a side after a change."""

    def __init__(self, side: Side, change: Change) -> None:
        self._side = side
        self._slots, self._tables = change.rows_after(side)
        self.n_slots = int(self._slots.max(initial=-1)) + 1

    def at(self, slots: NDArray[Any]) -> pa.Table:
        if not len(self._slots):
            return self._side.carried.at(slots)
        order = np.argsort(self._slots)
        places = np.minimum(np.searchsorted(self._slots, slots, sorter=order), len(order) - 1)
        places = order[places]
        is_old = self._slots[places] != slots
        old = self._side.carried.at(slots[is_old])
        n = len(self._slots)
        lengths = [table.num_rows for table in (*self._tables, old)]
        every = concat_carried([*self._tables, old], lengths).combine_chunks()
        return every.take(pa.array(np.where(is_old, n + np.cumsum(is_old) - 1, places)))
