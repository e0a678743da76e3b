"""The ids of queries by position, and the lookup from an id to its position.

Ids are strings or 64-bit integers, one kind per set. They are stored in Arrow's layout and only appended, so an Arrow
array over them costs nothing and stays valid. A hash table finds positions: 8 to 16 bytes per id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.arrow_values import to_arrow
from vedette.data.columns import check_strings, decode, large_strings, string_buffers, strings_over, writable
from vedette.errors import QueryError, RowError, shown
from vedette.native.buffers import grown
from vedette.native.damage import check, check_type
from vedette.native.hashing import (
    add_strings,
    check_slots,
    empty_slots,
    find_numbers,
    find_strings,
    has_room,
    insert_numbers,
    insert_strings,
    leads_to_numbers,
    leads_to_strings,
)
from vedette.native.kernels import kernel
from vedette.native.threads import count_pieces, cut, run_pieces

STRING, INTEGER = "string", "integer"
FEW_IDS = 1 << 12  # new ones that are added without finding the distinct ones first
PIECE_IDS = 1 << 15  # at least, of those that a thread finds


class Ids:
    """A growing column of ids. `find` returns the newest position of an id."""

    def __init__(self) -> None:
        self.kind: str | None = None  # fixed by the first ids
        self._n = 0
        self._numbers = np.empty(0, np.int64)
        self._offsets = np.zeros(1, np.int64)
        self._data = np.empty(0, np.uint8)
        self._slots = empty_slots(0)

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        own = self._numbers.nbytes if self.kind == INTEGER else self._offsets.nbytes + self._data.nbytes
        return own + self._slots.nbytes

    def to_arrow(self) -> pa.Array:
        """All ids by position: int64, or large_string."""
        if self.kind == INTEGER:
            return pa.Array.from_buffers(pa.int64(), self._n, [None, pa.py_buffer(self._numbers)])
        return strings_over(self._offsets, self._data, self._n)

    def at(self, positions: NDArray[np.int32]) -> list[str] | list[int]:
        """The ids at some positions, as Python objects."""
        if self.kind == INTEGER:
            return self._numbers[positions].tolist()  # type: ignore[no-any-return]
        offsets, data = self._offsets, self._data
        return [data[offsets[p] : offsets[p + 1]].tobytes().decode() for p in positions.tolist()]

    def pick(self, positions: NDArray[np.int32]) -> pa.Array:
        """The ids at some positions, as `to_arrow` has them. For a few, Arrow takes several times as long."""
        if self.kind == INTEGER:
            return pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(self._numbers[positions])])
        return strings_over(*_gather(self._offsets, self._data, positions), len(positions))

    def read_all(self) -> NDArray[np.int64] | pa.LargeStringArray:
        """All ids by position, in the form for `find` and `append`."""
        return self._numbers[: self._n] if self.kind == INTEGER else self.to_arrow()

    def take(self, positions: NDArray[Any]) -> NDArray[np.int64] | pa.LargeStringArray:
        """Some ids, in the form for `find` and `append`."""
        return take_ids(self.read_all(), positions)

    def find(self, ids: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        """The newest position of each id, or -1."""
        if self.kind is None or not len(ids):
            return np.full(len(ids), -1, np.int32)
        n_pieces = count_pieces(len(ids), PIECE_IDS)
        if n_pieces == 1:
            return self._find(ids)
        cuts = cut(len(ids), n_pieces)
        return np.concatenate(run_pieces(lambda piece: self._find(ids[cuts[piece] : cuts[piece + 1]]), n_pieces))

    def _find(self, ids: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        if self.kind == INTEGER:
            return find_numbers(ids, self._numbers, self._slots)
        offsets, data = string_buffers(ids)
        return find_strings(offsets, data, self._offsets, self._data, self._slots)

    def find_one(self, wanted: str | int) -> int:
        """The newest position of an id of the set's kind, or -1."""
        if self.kind == INTEGER:
            return int(find_numbers(np.array([wanted], np.int64), self._numbers, self._slots)[0])
        text = bytearray(str(wanted).encode())  # writable, so that the kernel is not compiled twice
        offsets, data = np.array([0, len(text)], np.int64), np.frombuffer(text or bytearray(1), np.uint8)
        return int(find_strings(offsets, data, self._offsets, self._data, self._slots)[0])

    def find_or_append(self, ids: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        """The newest position of each id of the set's kind. Unknown ones are added, each once."""
        found = self.find(ids)
        unknown = np.flatnonzero(found < 0)
        if not len(unknown):
            return found
        if isinstance(ids, np.ndarray) or len(unknown) > FEW_IDS:  # many: the room for distinct ones is found first
            some = take_ids(ids, unknown)
            self.append(np.unique(some) if isinstance(some, np.ndarray) else pc.unique(some))
            found[unknown] = self.find(some)
            return found
        self.kind = STRING
        offsets, data = string_buffers(ids)
        most, used = self._n + len(unknown), int(self._offsets[self._n])
        self._offsets = grown(self._offsets, self._n + 1, most + 1)
        self._data = grown(self._data, used, used + int((offsets[unknown + 1] - offsets[unknown]).sum()))
        if not has_room(self._slots, most):
            self._slots = empty_slots(most)
            insert_strings(self._offsets, self._data, 0, self._n, self._slots)
        self._n = int(add_strings(offsets, data, found, self._n, self._offsets, self._data, self._slots))
        return found

    def append(self, ids: NDArray[np.int64] | pa.LargeStringArray) -> None:
        """Add distinct ids of the set's kind at the next positions."""
        if len(ids) == 0:
            return
        n_before, n_after = self._n, self._n + len(ids)
        if isinstance(ids, np.ndarray):
            self.kind = INTEGER
            self._numbers = grown(self._numbers, n_before, n_after)
            self._numbers[n_before:n_after] = ids
        else:
            self.kind = STRING
            offsets, data = string_buffers(ids)
            used = self._offsets[n_before]
            added = offsets[-1] - offsets[0]
            self._offsets = grown(self._offsets, n_before + 1, n_after + 1)
            self._data = grown(self._data, int(used), int(used + added))
            self._data[used : used + added] = data[offsets[0] : offsets[-1]]
            self._offsets[n_before + 1 : n_after + 1] = offsets[1:] + (used - offsets[0])
        self._n = n_after
        if not has_room(self._slots, n_after):
            self._slots = empty_slots(n_after)
            n_before = 0
        if self.kind == INTEGER:
            insert_numbers(self._numbers, n_before, n_after, self._slots)
        else:
            insert_strings(self._offsets, self._data, n_before, n_after, self._slots)

    def read(self, ids: Any) -> NDArray[np.int64] | pa.LargeStringArray:
        """Check the ids of a caller: strings or integers, of the set's kind, not null, distinct."""
        read = self.read_repeated(ids)
        twice = _find_twice(read)
        if twice >= 0:
            raise QueryError(f"id {item(read, twice)!r} is given twice; ids must be distinct")
        return read

    def read_repeated(self, ids: Any) -> NDArray[np.int64] | pa.LargeStringArray:
        """As `read`, but an id may occur several times."""
        read = _read_ids(ids)
        kind = INTEGER if isinstance(read, np.ndarray) else STRING
        if self.kind not in (None, kind) and len(read):
            raise QueryError(f"the ids of this set are {self.kind}s; got the {kind} {item(read, 0)!r}")
        return read

    def to_parts(self, room: int = 0) -> tuple[str | None, list[NDArray[Any]], int]:
        """The kind, the arrays and the number of ids, for a file.

        `room` reserves space, so that a process that maps the file can add ids without copying all of them.
        """
        n, n_bytes = self._n, int(self._offsets[self._n]) if self.kind != INTEGER else 0
        if self.kind == INTEGER:
            return self.kind, [_with_room(self._numbers, n, n + room), self._slots], n
        more = n_bytes * room // max(1, n)
        offsets, data = _with_room(self._offsets, n + 1, n + 1 + room), _with_room(self._data, n_bytes, n_bytes + more)
        return self.kind, [offsets, data, self._slots], n

    @classmethod
    def from_parts(cls, kind: str | None, arrays: Sequence[NDArray[Any]], n: int) -> Ids:
        ids = cls()
        ids.kind, ids._n = kind, n
        if kind == INTEGER:
            ids._numbers, ids._slots = arrays
        else:
            ids._offsets, ids._data, ids._slots = arrays
        return ids

    def validate(self) -> None:
        """Raise DamageError unless ids from a file and their hash table are valid."""
        check_type(self.kind, str | None, "the kind of ids")
        check(self.kind in (None, STRING, INTEGER), "ids are of an unknown kind")
        check_type(self._n, int, "the number of ids")
        check(0 <= self._n < 1 << 31 and (self.kind is not None or not self._n), "there are too many ids")
        if self.kind == INTEGER:
            check_type(self._numbers, NDArray[np.int64], "the array of ids")
            check(self._numbers.ndim == 1 and len(self._numbers) >= self._n, "ids are missing")
        else:
            check_type(self._offsets, NDArray[np.int64], "the array of ids")
            check_type(self._data, NDArray[np.uint8], "the array of ids")
            check_strings(self._offsets, self._data, self._n)
        check_type(self._slots, NDArray[np.int32], "the hash table of ids")
        check_slots(self._slots, self._n)

    def check_distinct(self, is_active: NDArray[np.bool_]) -> None:
        """Raise DamageError unless `find` returns the position of each active id. So no two active ids are equal."""
        if self.kind == INTEGER:
            leads = leads_to_numbers(self._numbers[: self._n], self._slots, is_active)
        else:
            leads = leads_to_strings(self._offsets[: self._n + 1], self._data, self._slots, is_active)
        check(leads, "the hash table is not that of the ids")


def _with_room(array: NDArray[Any], used: int, n: int) -> NDArray[Any]:
    """The used part of an array, in an array of `n` elements."""
    if n == used:
        return array[:used]
    made = np.zeros(n, array.dtype)
    made[:used] = array[:used]
    return made


def check_in_order(ids: Any) -> None:
    """Raise QueryError if ids that belong to texts or bounds are a set, which has no order."""
    if isinstance(ids, (set, frozenset)):
        raise QueryError("ids must be a list or an array, in the order of their queries; got a set, which has no order")


def _read_ids(ids: Any) -> NDArray[np.int64] | pa.LargeStringArray:
    if isinstance(ids, (str, bytes, bytearray, Mapping)) or not isinstance(ids, Iterable):
        raise QueryError(f"ids must be a list or an array; got {shown(ids)}; for one id, give a list of one")
    try:
        array = decode(to_arrow(ids if hasattr(ids, "__len__") else list(ids), "ids"))
        if array.null_count:
            raise QueryError("an id is null; ids must be strings or integers")
        if pa.types.is_integer(array.type):
            return writable(array.cast(pa.int64()).to_numpy())
        if (
            pa.types.is_string(array.type)
            or pa.types.is_large_string(array.type)
            or pa.types.is_string_view(array.type)
        ):
            if isinstance(ids, (pa.Array, pa.ChunkedArray)):
                array.validate(full=True)  # its bytes are not trusted
            return array.cast(pa.large_string())
        if len(array) == 0:
            return large_strings([])
        kind: Any = array.type
    except (RowError, pa.ArrowException) as error:
        kind = error
    raise QueryError(f"ids must be all strings or all 64-bit integers; got {kind}")


def take_ids(ids: Any, places: NDArray[Any]) -> Any:
    """Some of the ids that `read` returned."""
    return ids[places] if isinstance(ids, np.ndarray) else ids.take(pa.array(places))


def item(ids: NDArray[np.int64] | pa.LargeStringArray, place: int) -> str | int:
    return int(ids[place]) if isinstance(ids, np.ndarray) else str(ids[place])


def _find_twice(ids: NDArray[np.int64] | pa.LargeStringArray) -> int:
    """The index of an id that occurs earlier, or -1."""
    if len(ids) < 2:
        return -1
    slots = empty_slots(len(ids))
    if isinstance(ids, np.ndarray):
        return int(insert_numbers(ids, 0, len(ids), slots))
    offsets, data = string_buffers(ids)
    return int(insert_strings(offsets, data, 0, len(ids), slots))


@kernel
def _gather(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], positions: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The offsets and bytes of the strings at these positions."""
    starts = np.zeros(len(positions) + 1, np.int64)
    for i in range(len(positions)):
        starts[i + 1] = starts[i] + offsets[positions[i] + 1] - offsets[positions[i]]
    found = np.empty(starts[-1], np.uint8)
    for i in range(len(positions)):
        first = offsets[positions[i]] - starts[i]
        for place in range(starts[i], starts[i + 1]):
            found[place] = data[first + place]
    return starts, found
