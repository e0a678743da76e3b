"""Open pairs of a key and a query, stored in addition to the last rows of the keys.

A query is identified by its id, so pairs stay valid when the set changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.ids import Ids


@dataclass(frozen=True)
class KeyQueryPairs:
    """Columns of one length: the slot of a key, a query's id, the time since when, and the reason of entering.

    The ordinal is that of the row with which the key entered (see `event_ids`).
    """

    slots: NDArray[np.int32]
    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    times: NDArray[Any]
    reasons: NDArray[np.int8]
    ordinals: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.slots)


class PairTable:
    """Open pairs, by the slots of their keys."""

    def __init__(self, time_type: Any) -> None:
        self._slots = np.empty(0, np.int32)
        self._codes = np.empty(0, np.int32)
        self._times = np.empty(0, time_type)
        self._reasons = np.empty(0, np.int8)
        self._ordinals = np.empty(0, np.int64)
        self._pool = Ids()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        arrays = self._slots, self._codes, self._times, self._reasons, self._ordinals
        return self._pool.nbytes + sum(array.nbytes for array in arrays)

    def at(self, is_chosen: NDArray[np.bool_]) -> KeyQueryPairs:
        """The pairs of some keys, given by slot."""
        return self._pairs(is_chosen[self._slots])

    def take(self, is_chosen: NDArray[np.bool_]) -> KeyQueryPairs:
        """Remove and return the pairs of some keys, given by slot."""
        return self.take_pairs(is_chosen[self._slots])

    def take_pairs(self, chosen: NDArray[np.bool_]) -> KeyQueryPairs:
        taken = self._pairs(chosen)
        kept = ~chosen
        self._slots, self._codes = self._slots[kept], self._codes[kept]
        self._times, self._reasons, self._ordinals = self._times[kept], self._reasons[kept], self._ordinals[kept]
        return taken

    def put(self, pairs: KeyQueryPairs) -> None:
        """Add new pairs."""
        if not len(pairs):
            return
        if len(self._pool) > 2 * len(self) + 1024:
            everything = self.take_pairs(np.ones(len(self), np.bool_))
            self._pool = Ids()
            self.put(everything)
        codes = self._pool.find(pairs.ids)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            some: Any = pairs.ids[unknown] if isinstance(pairs.ids, np.ndarray) else pairs.ids.take(pa.array(unknown))
            self._pool.append(_distinct(some) if isinstance(some, np.ndarray) else pc.unique(some))
            codes[unknown] = self._pool.find(some)
        self._slots, self._codes = np.append(self._slots, pairs.slots), np.append(self._codes, codes)
        self._times = np.append(self._times, pairs.times.astype(self._times.dtype))
        self._reasons = np.append(self._reasons, pairs.reasons)
        self._ordinals = np.append(self._ordinals, pairs.ordinals)

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        """Update the slots of the keys."""
        self._slots = moved[self._slots]

    def _pairs(self, chosen: NDArray[np.bool_]) -> KeyQueryPairs:
        ids: Any = self._pool.take(self._codes[chosen])
        times, reasons, ordinals = self._times[chosen], self._reasons[chosen], self._ordinals[chosen]
        return KeyQueryPairs(self._slots[chosen], ids, times, reasons, ordinals)


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers. np.unique takes several times as long."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])])
