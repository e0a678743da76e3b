"""The codes and keys by which rows of two streams are joined.

Equal values have equal codes, in one numbering for both streams. A key is an integer in the order of the values. A row
without a value on one of the links has the code -1 and joins with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column, string_buffers
from vedette.data.ids import INTEGER, STRING, Ids
from vedette.language import Typed
from vedette.language.evaluation import evaluate_rows
from vedette.native.ordering import keys_of_doubles
from vedette.operators.window_join.probes import RowKeyArrays
from vedette.operators.window_join.window_rows import GrowingArray

MAX_TEXT = 127  # bytes of a text that is kept; a longer one is replaced by a digest of 128 characters


class Codes:
    """Numbers values, or pairs of numbers. New values get the next numbers."""

    def __init__(self) -> None:
        self._values = Ids()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def number(self, values: NDArray[np.int64] | pa.LargeStringArray) -> NDArray[np.int32]:
        """The code of each value."""
        if self._values.kind is None:
            self._values.kind = INTEGER if isinstance(values, np.ndarray) else STRING
        if not isinstance(values, np.ndarray):
            values = _shorten(values)
        codes = self._values.find(values)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            if isinstance(values, np.ndarray):
                self._values.append(np.unique(values[unknown]))
            else:
                self._values.append(values.take(pa.array(unknown)).unique())
            codes = self._values.find(values)
        return codes


class EdgeCodes:
    """One code for all equalities between two streams: several values are numbered together."""

    def __init__(self, n_equalities: int) -> None:
        self._each = [Codes() for _ in range(n_equalities)]
        self._pairs = [Codes() for _ in range(n_equalities - 1)]

    def __len__(self) -> int:
        return max(map(len, [*self._each, *self._pairs]), default=0)

    @property
    def nbytes(self) -> int:
        return sum(codes.nbytes for codes in (*self._each, *self._pairs))

    def number(self, place: int, values: Any) -> NDArray[np.int32]:
        """The codes of values on one equality."""
        return self._each[place].number(_to_keys(values))

    def pair(self, place: int, codes: NDArray[np.int32], own: NDArray[np.int32]) -> NDArray[np.int32]:
        """The code of each row, from its code for the previous equalities and its code `own` for this one."""
        return self._pairs[place - 1].number(codes.astype(np.int64) << 32 | own) if place else own


class RowKeys:
    """The code and the key of each kept row of a stream, on its side of an edge."""

    def __init__(self, equalities: Sequence[Typed], codes: EdgeCodes, key: Typed | None, time_zone: str) -> None:
        self._equalities = equalities
        self._numbering = codes  # shared by both sides
        self._key = key
        self._time_zone = time_zone
        self.codes = GrowingArray(np.int32)
        self.keys = GrowingArray(np.int64)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.keys.nbytes

    @property
    def arrays(self) -> RowKeyArrays:
        return RowKeyArrays(self.codes.values, self.keys.values)

    def append(self, columns: dict[str, Column], n_rows: int) -> int:
        """Compute the codes and keys of new rows. Returns the number of failed evaluations."""
        keys, codes, n_failed = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int32), 0
        valid = np.ones(n_rows, np.bool_)
        if self._key is not None:
            keys, n_failed = self._evaluate(self._key, columns, valid, _to_keys)
        for place, side in enumerate(self._equalities):
            own, failed = self._evaluate(side, columns, valid, partial(self._numbering.number, place))
            codes = self._numbering.pair(place, codes, own)
            n_failed += failed
        codes[~valid] = -1
        self.codes.append(codes)
        self.keys.append(keys)
        return n_failed

    def _evaluate(
        self, side: Typed, columns: dict[str, Column], valid: NDArray[np.bool_], read: Callable[[Any], NDArray[Any]]
    ) -> tuple[NDArray[Any], int]:
        """The values of an expression, converted by `read`, and the number of failed rows. Nulls become invalid."""
        parts, start, n_failed = [], 0, 0
        for column, failed in evaluate_rows(side, self._time_zone, columns, len(valid)):
            if column.valid is not None:
                valid[start : start + len(column)] &= column.valid
            parts.append(read(column.values))
            start += len(column)
            n_failed += int(np.count_nonzero(failed))
        return parts[0] if len(parts) == 1 else np.concatenate(parts), n_failed

    def order_from(self, place: int) -> NDArray[np.int64]:
        """The rows from a place on, ordered by code and key; they are numbered from that place."""
        codes, keys = self.codes.values[place:], self.keys.values[place:]
        if self._equalities:
            return np.lexsort((keys, codes))
        return np.arange(len(keys)) if self._key is None else np.argsort(keys, kind="stable")

    def drop(self, n: int) -> None:
        """Drop the first rows; the last ones of `n` may not be here yet."""
        n = min(n, len(self))
        self.codes.drop(n)
        self.keys.drop(n)


def _shorten(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """The texts, with a digest instead of each long one. A digest is longer than all texts that are kept."""
    offsets, data = string_buffers(texts)
    lengths = np.diff(offsets)
    if not len(lengths) or lengths.max() <= MAX_TEXT:
        return texts
    long = np.flatnonzero(lengths > MAX_TEXT)
    digests = [blake2b(data[offsets[place] : offsets[place + 1]].data).hexdigest() for place in long.tolist()]
    is_long = pa.array(lengths > MAX_TEXT)
    return pc.replace_with_mask(texts, is_long, pa.array(digests, pa.large_string()))


def _to_keys(values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values
    return keys_of_doubles(values) if values.dtype == np.float64 else values.astype(np.int64)
