"""Event ids of the pairs of a window join: set, query, its revision, and by stream the id and the time of the row.

A pair is reported once, so nothing else is needed to tell pairs apart. Rows of a stream with the same id and the same
time are one row in this respect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.stable_ids import HEX, ID_BYTES, Names, as_names, mix, mix_name, seed_of, to_ids, write_digits

Hashed = tuple[NDArray[np.uint64], NDArray[np.int64]]  # two words by item, and by pair the place of its item


def hash_items(names: pa.Array, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Two words for each item, which has a name and a number."""
    words = np.empty((len(numbers), 2), np.uint64)
    _hash_items(as_names(names), numbers, words)
    return words


def make_pair_ids(set_name: str, n: int, parts: Sequence[Hashed]) -> pa.LargeStringArray:
    """The id of each pair, from its query and its rows."""
    words = np.tile(seed_of(set_name), (n, 1))
    for items, places in parts:
        _mix_items(words, items, places)
    digits = np.empty((n, ID_BYTES), np.uint8)
    _write_ids(words, HEX, digits)
    return to_ids(digits)


@kernel
def _hash_items(names: Names, numbers: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    for item in range(len(numbers)):
        a, b = mix_name(np.uint64(0), np.uint64(0), names, item)
        a, b = mix(a, b, np.uint64(numbers[item]))
        words[item, 0], words[item, 1] = a, b


@kernel
def _mix_items(words: NDArray[np.uint64], items: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
    for pair in range(len(places)):
        a, b = words[pair, 0], words[pair, 1]
        a, b = mix(a, b, items[places[pair], 0])
        a, b = mix(a, b, items[places[pair], 1])
        words[pair, 0], words[pair, 1] = a, b


@kernel
def _write_ids(words: NDArray[np.uint64], hex_digits: NDArray[np.uint8], digits: NDArray[np.uint8]) -> None:
    for pair in range(len(words)):
        write_digits(words[pair, 0], words[pair, 1], hex_digits, digits[pair])
