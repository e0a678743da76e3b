"""Stable ids: 128 bits of a hash of what an answer is about, the same in every process, batch and repetition."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import string_buffers
from vedette.native.kernels import kernel

EVENT_ID = "event_id"  # the column of ids in answers
ID_BYTES = 32  # hexadecimal digits
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class Names(NamedTuple):
    """Strings, or integers, of which the other arrays are empty."""

    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]


def as_names(values: pa.Array) -> Names:
    if pa.types.is_integer(values.type):
        return Names(values.to_numpy(), np.zeros(1, np.int64), np.empty(0, np.uint8))
    return Names(np.empty(0, np.int64), *string_buffers(values.cast(pa.large_string())))


def seed_of(set_name: str) -> NDArray[np.uint64]:
    """Two words to begin with, which depend on the name of the set."""
    return np.frombuffer(hashlib.blake2b(set_name.encode(), digest_size=16).digest(), np.uint64)


def as_words(times: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Times as numbers to hash. There is one zero."""
    return (times + 0.0 if times.dtype == np.float64 else times).view(np.int64)


def to_ids(digits: NDArray[np.uint8]) -> pa.LargeStringArray:
    """Rows of hexadecimal digits as strings."""
    n = len(digits)
    offsets = np.arange(0, ID_BYTES * (n + 1), ID_BYTES, dtype=np.int64)
    return pa.Array.from_buffers(pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


@kernel
def write_digits(a: np.uint64, b: np.uint64, hex_digits: NDArray[np.uint8], digits: NDArray[np.uint8]) -> None:
    """The digits of one id."""
    a = _finish(a + b)
    b = _finish(b + a)
    for place in range(16):
        shift = np.uint64(60 - 4 * place)
        digits[place] = hex_digits[(a >> shift) & np.uint64(15)]
        digits[place + 16] = hex_digits[(b >> shift) & np.uint64(15)]


@kernel
def mix_name(a: np.uint64, b: np.uint64, names: Names, place: int) -> tuple[np.uint64, np.uint64]:
    """Both halves with a string, eight bytes at a time, and its length; or with an integer."""
    if len(names.numbers):
        return mix(a, b, np.uint64(names.numbers[place]))
    start, end = names.offsets[place], names.offsets[place + 1]
    word = np.uint64(0)
    for at in range(start, end):
        word = (word << np.uint64(8)) | np.uint64(names.data[at])
        if (at - start) % 8 == 7:
            a, b = mix(a, b, word)
            word = np.uint64(0)
    a, b = mix(a, b, word)
    return mix(a, b, np.uint64(end - start))


@kernel
def mix(a: np.uint64, b: np.uint64, word: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Two words of state with one more word: the steps of Murmur3 for 128 bits, one constant per half."""
    a = (a ^ (word * np.uint64(0x87C37B91114253D5))) * np.uint64(0x9FB21C651E98DF25)
    a ^= a >> np.uint64(32)
    b = (b ^ (word * np.uint64(0x4CF5AD432745937F))) * np.uint64(0xD6E8FEB86659FD93)
    b ^= b >> np.uint64(29)
    return a + b, b


@kernel
def _finish(code: np.uint64) -> np.uint64:
    code = (code ^ (code >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    code = (code ^ (code >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return code ^ (code >> np.uint64(33))
