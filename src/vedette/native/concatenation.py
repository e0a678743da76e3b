"""Columns of consecutive pieces as whole columns, copied by several threads if they are long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.native.buffers import SMALL
from vedette.native.threads import at_most, run_pieces

COPIED_AT_ONCE = 1 << 20  # bytes, by one thread


def concat_columns(pieces: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Each piece has the same columns, of one length."""
    if len(pieces) == 1:
        return list(pieces[0])
    places = np.cumsum([0, *(len(columns[0]) for columns in pieces)]).tolist()
    whole = [_empty(places[-1], column.dtype) for column in pieces[0]]

    def copy(piece: int) -> None:
        for column, part in zip(whole, pieces[piece], strict=True):
            column[places[piece] : places[piece + 1]] = part

    with at_most(1 + sum(column.nbytes for column in whole) // COPIED_AT_ONCE):
        run_pieces(copy, len(pieces))
    return whole


def _empty(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Arbitrary values, in memory of Arrow's pool if they are many."""
    n_bytes = n * dtype.itemsize
    return np.empty(n, dtype) if n_bytes <= SMALL else np.frombuffer(pa.allocate_buffer(n_bytes), dtype)
