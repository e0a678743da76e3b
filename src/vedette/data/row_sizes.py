"""How many bytes each row of an Arrow array takes, so that a copy can be cut before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import string_buffers
from vedette.native.budget import cut_by_bytes

ROWS_AT_ONCE = 1 << 19  # in one part of a table
_OFFSET = 8  # of a string or a list, with its share of the null bits
_types: Any = pa.types


def bytes_per_row(array: pa.Array) -> NDArray[np.int64]:
    """The approximate bytes that `array.take` copies for each row: values, offsets and nulls."""
    type_ = array.type
    if _types.is_dictionary(type_):
        return np.full(len(array), type_.index_type.bit_width // 8 + 1, np.int64)
    if _types.is_string_view(type_) or _types.is_binary_view(type_):
        array = array.cast(pa.large_string() if _types.is_string_view(type_) else pa.large_binary())
        type_ = array.type
    if is_string(type_) or _types.is_binary(type_) or _types.is_large_binary(type_):
        return _to_numpy(pc.binary_length(array)) + _OFFSET
    if _types.is_map(type_):
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
        array = pa.ListArray.from_arrays(array.offsets, entries)
        type_ = array.type
    if _types.is_list(type_) or _types.is_large_list(type_) or _types.is_fixed_size_list(type_):
        ends = np.cumsum(_to_numpy(pc.list_value_length(array)))
        done = np.concatenate([[0], np.cumsum(bytes_per_row(array.flatten()))])
        sizes: NDArray[np.int64] = np.diff(done[np.concatenate([[0], ends])]) + _OFFSET
        return sizes
    if _types.is_struct(type_):
        whole = np.ones(len(array), np.int64)
        for column in array.flatten():
            whole += bytes_per_row(column)
        return whole
    try:
        return np.full(len(array), type_.bit_width // 8 + 1, np.int64)
    except ValueError:
        return np.full(len(array), array.nbytes // max(1, len(array)) + 1, np.int64)


def is_string(type_: pa.DataType) -> bool:
    return bool(_types.is_string(type_) or _types.is_large_string(type_))


def _to_numpy(lengths: pa.Array) -> NDArray[np.int64]:
    return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def decoded_bytes_per_row(array: pa.Array) -> NDArray[np.int64]:
    """The approximate bytes of each row after its dictionary, if any, is decoded."""
    if not _types.is_dictionary(array.type):
        return bytes_per_row(array)
    codes, values = array.indices.fill_null(0).to_numpy(zero_copy_only=False), array.dictionary
    if not len(values):
        return np.ones(len(array), np.int64)
    sizes: NDArray[np.int64]
    if _types.is_large_string(values.type):
        offsets, _ = string_buffers(values)  # only those of used codes are read
        sizes = offsets[codes.astype(np.int64) + 1] - offsets[codes] + _OFFSET
    else:
        sizes = bytes_per_row(values)[codes]
    return sizes


def cut_table(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """A table in parts of at most `most` decoded bytes and ROWS_AT_ONCE rows; no part if it has no rows."""
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        chunk = table.slice(start, ROWS_AT_ONCE).combine_chunks()
        n_bytes = np.zeros(chunk.num_rows, np.int64)
        for column in chunk.columns:
            n_bytes += decoded_bytes_per_row(column.combine_chunks())
        cuts = cut_by_bytes(n_bytes, most)
        for first, last in zip([0, *cuts], [*cuts, chunk.num_rows], strict=True):
            yield chunk.slice(first, last - first).combine_chunks()
