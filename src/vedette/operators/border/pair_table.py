"""Open pairs of a key and a query, stored in addition to the last rows of the keys.

A query is identified by its id, so pairs stay valid when the set changes. Ids are codes in a pool. It may be that of
the query set itself, which only grows: codes are then positions, and numbers of events, without any lookup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.native.kernels import kernel

if TYPE_CHECKING:
    from vedette.queries.set_view import SetView

Columns = TypeVar("Columns", bound=tuple[Any, ...])


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


class NumberedPairs(NamedTuple):
    """As `KeyQueryPairs`, with the number that a query has in events."""

    slots: NDArray[np.int32]
    queries: NDArray[np.int32]
    times: NDArray[Any]
    reasons: NDArray[np.int8]
    ordinals: NDArray[np.int64]

    def first(self, n: int) -> NumberedPairs:
        """The first pairs. If they are not most of all, the others do not stay in memory."""
        is_most = 4 * n >= 3 * len(self.slots)
        return take_rows(self, slice(n) if is_most else np.arange(n))


def take_rows(columns: Columns, chosen: Any) -> Columns:
    """Some rows of columns of one length."""
    made: Any = type(columns)
    return made(*(column[chosen] for column in columns))  # type: ignore[no-any-return]


class PairTable:
    """Open pairs, by the slots of their keys."""

    def __init__(self, time_type: Any) -> None:
        self._slots = np.empty(0, np.int32)
        self._codes = np.empty(0, np.int32)
        self._times = np.empty(0, time_type)
        self._reasons = np.empty(0, np.int8)
        self._ordinals = np.empty(0, np.int64)
        self._pool = Ids()
        self._shares = False  # the pool is that of a query set
        self._tried: Ids | None = None  # the pool of a set that does not have all ids

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        arrays = self._slots, self._codes, self._times, self._reasons, self._ordinals
        return (0 if self._shares else self._pool.nbytes) + sum(array.nbytes for array in arrays)

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
        if self._shares or len(self._pool) > 2 * len(self) + 1024:
            everything = self.take_pairs(np.ones(len(self), np.bool_))
            self._pool, self._shares, self._tried = Ids(), False, None
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

    def take_numbered(self, view: SetView, is_chosen: NDArray[np.bool_]) -> NumberedPairs:
        """Remove and return the pairs of some keys, given by slot, without those of forgotten queries."""
        chosen, taken = is_chosen[self._slots], self._columns
        if chosen.all():
            self._columns = take_rows(taken, slice(0))
        else:
            self._columns, taken = take_rows(taken, ~chosen), take_rows(taken, np.flatnonzero(chosen))
        if self._pool is view.ids and not view.versions.n_removed:
            return taken
        queries = self._number(view, taken.queries)
        known = np.flatnonzero(view.is_known(queries))
        return take_rows(taken._replace(queries=queries), known)

    def put_numbered(self, view: SetView, pairs: NumberedPairs) -> None:
        """Add new pairs, ordered by slot. Pairs of a table that has no others stay in this order."""
        if not len(pairs.slots):
            return
        if self._pool is not view.ids and self._tried is not view.ids:
            self._share(view.ids)
        if self._pool is not view.ids or int(pairs.queries.max()) >= view.first_retained:
            slots, queries, *others = pairs
            self.put(KeyQueryPairs(slots, view.ids_of(queries), *others))
        elif len(self):
            room: Any = (np.empty(len(self) + len(pairs.slots), each.dtype) for each in pairs)
            merged = NumberedPairs(*room)
            _merge(self._columns, pairs, merged)
            self._columns = merged
        else:
            self._columns = pairs

    def _number(self, view: SetView, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of queries in events, given by their codes; or -1."""
        if self._pool is not view.ids:
            return view.number(self._pool.take(codes)) if len(codes) else codes
        numbers, removed = codes.copy(), np.flatnonzero(view.versions.is_removed[codes])
        if len(removed):
            numbers[removed] = view.number(self._pool.take(codes[removed]))
        return numbers

    def _share(self, ids: Ids) -> None:
        """Use the ids of a query set as codes, if it has them all."""
        codes = ids.find(self._pool.take(self._codes)) if len(self) else self._codes
        if (codes >= 0).all():
            self._pool, self._codes, self._shares = ids, codes, True
        self._tried = ids

    @property
    def _columns(self) -> NumberedPairs:
        """The pairs, with the codes of queries as numbers."""
        return NumberedPairs(self._slots, self._codes, self._times, self._reasons, self._ordinals)

    @_columns.setter
    def _columns(self, pairs: NumberedPairs) -> None:
        self._slots, self._codes, self._times, self._reasons, self._ordinals = pairs

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


@kernel
def _merge(one: NumberedPairs, other: NumberedPairs, merged: NumberedPairs) -> None:
    """Pairs of two tables by slot, if both are in this order."""
    slots, queries, times, reasons, ordinals = one
    other_slots, other_queries, other_times, other_reasons, other_ordinals = other
    all_slots, all_queries, all_times, all_reasons, all_ordinals = merged
    a = b = 0
    for place in range(len(all_slots)):
        if b == len(other_slots) or (a < len(slots) and slots[a] <= other_slots[b]):
            all_slots[place], all_queries[place], all_times[place] = slots[a], queries[a], times[a]
            all_reasons[place], all_ordinals[place] = reasons[a], ordinals[a]
            a += 1
        else:
            all_slots[place], all_queries[place], all_times[place] = other_slots[b], other_queries[b], other_times[b]
            all_reasons[place], all_ordinals[place] = other_reasons[b], other_ordinals[b]
            b += 1
