"""The state of each key of a stream: its last row, its time, and the version under which it was seen.

Keys have slots, and everything else is columns by slot. Each distinct string is stored once. A freed key keeps its slot
until most slots are free; then the others move up. Nothing depends on compiled queries, so a state stays valid when
they change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import INT64_DECIMAL_PRECISION, Column, flat_dtype, large_strings, null_column
from vedette.data.ids import Ids
from vedette.data.list_texts import read_lists, write_lists
from vedette.data.schema import Field, Type, is_nested
from vedette.native.buffers import grown
from vedette.native.kernels import kernel

FEW_FREED = 1024  # up to this number, freed slots are kept
_EMPTY = pa.scalar("", pa.large_string())


class KeyState:
    """The last row of each key, by slot."""

    def __init__(self, time_type: Any) -> None:
        self.keys = Ids()
        self.times = np.zeros(0, time_type)
        self.versions = np.zeros(0, np.int32)
        self.has_row = np.zeros(0, np.bool_)  # the key has a last row
        self.columns: dict[str, SlotColumn] = {}
        self.n_with_row = 0

    def __len__(self) -> int:
        """The number of slots."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        arrays = self.times.nbytes + self.versions.nbytes + self.has_row.nbytes
        return arrays + self.keys.nbytes + sum(column.nbytes for column in self.columns.values())

    def use_fields(self, fields: list[Field]) -> None:
        """Keep these fields of every row from now on. Fields that were not kept before are null."""
        wanted = {field.name: field for field in fields}
        self.columns = {name: column for name, column in self.columns.items() if name in wanted}
        for name, field in wanted.items():
            if name not in self.columns:
                self.columns[name] = SlotColumn(field.type, len(self.times))

    def find_slots(self, keys: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        """The slot of each key. New keys get one."""
        slots = self.keys.find_or_append(keys)
        if len(self.keys) > len(self.has_row):
            self._grow(len(self.keys))
        return slots

    def add(self, keys: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        """The slots of keys that are distinct and have none yet."""
        n = len(self.keys)
        self.keys.append(keys)
        self._grow(len(self.keys))
        return np.arange(n, len(self.keys), dtype=np.int32)

    def rows(self, slots: NDArray[np.int32]) -> dict[str, Column]:
        """The last rows of these keys."""
        return {name: column.at(slots) for name, column in self.columns.items()}

    def put(
        self, slots: NDArray[np.int32], times: NDArray[Any], versions: NDArray[np.int32], rows: dict[str, Column]
    ) -> None:
        """Set the last rows of these keys, each of which occurs once."""
        self.n_with_row += _put_rows(slots, times, versions, self.has_row, self.times, self.versions)
        places = slots.astype(np.int64)  # NumPy would convert other types for every column
        for name, column in self.columns.items():
            column.put(places, rows[name])

    def put_some(
        self, slots: NDArray[np.int32], times: NDArray[Any], versions: NDArray[np.int32], rows: dict[str, Column]
    ) -> None:
        """As `put`. Missing fields are null."""
        missing = {name: null_column(self.columns[name].type, len(slots)) for name in self.columns.keys() - rows.keys()}
        self.put(slots, times, versions, {**rows, **missing})

    def free(self, slots: NDArray[np.int32]) -> None:
        """Forget the last rows of these keys."""
        self.n_with_row -= int(np.count_nonzero(self.has_row[slots]))
        self.has_row[slots] = False

    def pack(self) -> NDArray[np.int32] | None:
        """Remove the slots of freed keys if most slots are free. Returns the new slot of each old one, or -1."""
        if len(self) <= 2 * self.n_with_row + FEW_FREED:
            return None
        living = np.flatnonzero(self.has_row[: len(self)]).astype(np.int32)
        fresh = KeyState(self.times.dtype)
        fresh.columns = {name: SlotColumn(column.type, 0) for name, column in self.columns.items()}
        moved = np.full(len(self), -1, np.int32)
        moved[living] = fresh.find_slots(self.keys.take(living))
        fresh.put(moved[living], self.times[living], self.versions[living], self.rows(living))
        fresh.keys.kind = self.keys.kind
        vars(self).update(vars(fresh))
        return moved

    def _grow(self, n: int) -> None:
        used = len(self.has_row)
        self.times, self.versions = grown(self.times, used, n), grown(self.versions, used, n)
        self.has_row = grown(self.has_row, used, n)
        for column in self.columns.values():
            column.grow(len(self.has_row))


class SlotColumn:
    """One field of the last rows, by slot. Strings are codes of a pool, -1 for null; so are arrays, as texts."""

    def __init__(self, type_: Type, n: int) -> None:
        self.type = type_
        self.is_list = is_nested(type_)
        self.is_text = type_.is_text or self.is_list
        if self.is_text:
            dtype: Any = np.int32
        elif type_.name == "decimal" and type_.precision > INT64_DECIMAL_PRECISION:
            dtype = object
        else:
            dtype = flat_dtype(type_)
        self.values = np.zeros(n, dtype)
        self.valid = np.zeros(n, np.bool_)
        self.pool = Ids()

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.valid.nbytes + self.pool.nbytes

    def grow(self, n: int) -> None:
        self.values, self.valid = grown(self.values, len(self.values), n), grown(self.valid, len(self.valid), n)

    def at(self, slots: NDArray[np.int32]) -> Column:
        """The values of these slots."""
        column = self._at(slots)
        return read_lists(column, self.type) if self.is_list else column

    def _at(self, slots: NDArray[np.int32]) -> Column:
        values, valid = self.values[slots], self.valid[slots]
        if self.is_text:
            if len(self.pool) == 0:
                return Column(large_strings(["[]" if self.is_list else ""] * len(slots)), valid)
            return Column(self.pool.to_arrow().take(pa.array(np.where(valid, values, 0))), valid)
        return Column(values, None if valid.all() else valid)

    def put(self, slots: NDArray[np.int64], column: Column) -> None:
        if self.is_list:
            column = write_lists(column)
        values = column.values
        if self.is_text:
            is_whole = column.valid is None or self.is_list
            values = self._intern(values if is_whole else pc.if_else(pa.array(column.valid), values, _EMPTY))
        self.values[slots] = values
        self.valid[slots] = True if column.valid is None else column.valid

    def _intern(self, texts: pa.LargeStringArray) -> NDArray[np.int32]:
        if len(self.pool) > 2 * len(self.values) + FEW_FREED:
            kept = self._at(np.arange(len(self.values), dtype=np.int32)).values
            self.pool = Ids()
            self.values[:] = self._intern(kept)
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        return self.pool.find_or_append(texts)


@kernel
def _put_rows(
    slots: NDArray[np.int32],
    new_times: NDArray[Any],
    new_versions: NDArray[np.int32],
    has_row: NDArray[np.bool_],
    times: NDArray[Any],
    versions: NDArray[np.int32],
) -> int:
    """Set times and versions. Returns how many slots had no row."""
    n_new = 0
    for i in range(len(slots)):
        slot = slots[i]
        n_new += not has_row[slot]
        has_row[slot] = True
        times[slot] = new_times[i]
        versions[slot] = new_versions[i]
    return n_new
