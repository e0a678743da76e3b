"""Arrow dictionary arrays over codes, and the memory that decoding would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def encode_distinct(codes: NDArray[np.int32], values: pa.Array) -> pa.DictionaryArray:
    """A dictionary array of `values[codes]` with distinct values; `values` may repeat.

    Only values that occur are read, each once, so memory grows with the codes and not with their strings.
    """
    import pyarrow as pa

    is_used = np.zeros(len(values), np.bool_)
    is_used[codes] = True
    used = np.flatnonzero(is_used)
    distinct = values.take(pa.array(used)).dictionary_encode()
    new_codes = np.empty(len(values), np.int32)
    new_codes[used] = distinct.indices.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(new_codes[codes]), distinct.dictionary, safe=False)


def count_taken_bytes(values: Any, codes: NDArray[np.int32]) -> int:
    """The bytes of `values[codes]`."""
    from vedette.data.row_sizes import bytes_per_row

    if values is None:
        return 0
    return int(np.bincount(codes, minlength=len(values))[: len(values)] @ bytes_per_row(values))
