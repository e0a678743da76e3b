"""The ranges of a link's value that branches require, as ranges of numbers instead of keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, UNBOUNDED, Ranges
from vedette.native.ordering import GREATEST, LEAST, NAN_KEY, keys_of_doubles

_LEAST_INFINITE, _GREATEST_INFINITE = keys_of_doubles(np.array([-np.inf, np.inf])).tolist()


def to_ranges(lows: NDArray[np.int64], highs: NDArray[np.int64], *, is_double: bool) -> Ranges:
    """Ranges that contain at least the values between the keys.

    Ranges of doubles that end at infinity may also contain NaN, so matches must be compared once more.
    """
    if not is_double:
        return Ranges(lows, highs, _ends(lows == LEAST), _ends(highs == GREATEST))
    return Ranges(
        _nearest_double(lows),
        _nearest_double(highs),
        _ends(lows <= _LEAST_INFINITE),
        _ends(highs >= _GREATEST_INFINITE),
    )


def doubles_of_keys(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The doubles with these keys."""
    bits = keys ^ ((keys >> 63) & 0x7FFFFFFFFFFFFFFF)
    return np.where(keys == NAN_KEY, np.nan, bits.view(np.float64))


def _nearest_double(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    inside = np.clip(keys, _LEAST_INFINITE, _GREATEST_INFINITE)
    return np.where(keys > _GREATEST_INFINITE, np.nan, doubles_of_keys(inside))


def _ends(is_unbounded: NDArray[np.bool_]) -> NDArray[np.int8]:
    return np.where(is_unbounded, UNBOUNDED, CLOSED).astype(np.int8)
