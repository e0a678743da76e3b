"""A hash table of strings that has the bytes of short ones in its entries, so that one line of the cache answers.

An entry is two words. Of a string of up to 11 bytes it has all bytes; of a longer one a hash, and the string itself is
compared, too. The table is made in memory from strings that are stored elsewhere, and is never saved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.words import WORD, are_same, word_at

INLINE = 11  # bytes
AT_ONCE = 64  # strings whose slots are fetched together
_LONG = 0xFF  # instead of the length, of a string whose bytes are not in the entry
_K0, _K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(0xFF51AFD7ED558CCD)


class InlineStrings(NamedTuple):
    """Strings in Arrow's layout, and the table: two words per slot.

    The first word has the first bytes, or a hash. The low half of the second has three more bytes and the length plus
    one, so it is 0 if the slot is empty; the high half has the position.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    table: NDArray[np.uint64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> InlineStrings:
        """The table of distinct strings, at most half full."""
        n = len(offsets) - 1
        made = cls(offsets, data, np.zeros(2 << max(4, (2 * n - 1).bit_length()), np.uint64))
        _insert(made)
        return made

    def find(self, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The position of each wanted string, or -1."""
        return _find(offsets, data, self)


@kernel
def _insert(strings: InlineStrings) -> None:
    mask = len(strings.table) // 2 - 1
    for position in range(len(strings.offsets) - 1):
        first, last = strings.offsets[position], strings.offsets[position + 1]
        head, tail = _describe(strings.data, first, last)
        slot = _mix(head, tail) & mask
        while strings.table[2 * slot + 1] != 0:
            slot = (slot + 1) & mask
        strings.table[2 * slot] = head
        strings.table[2 * slot + 1] = tail | np.uint64(position) << np.uint64(32)


@kernel
def _find(offsets: NDArray[np.int64], data: NDArray[np.uint8], strings: InlineStrings) -> NDArray[np.int32]:
    n, table = len(offsets) - 1, strings.table
    mask = len(table) // 2 - 1
    found = np.empty(n, np.int32)
    heads, tails, slots = np.empty(AT_ONCE, np.uint64), np.empty(AT_ONCE, np.uint64), np.empty(AT_ONCE, np.int64)
    for start in range(0, n, AT_ONCE):
        some = min(AT_ONCE, n - start)
        for i in range(some):
            heads[i], tails[i] = _describe(data, offsets[start + i], offsets[start + i + 1])
            slots[i] = _mix(heads[i], tails[i]) & mask
            prefetch(table, 2 * slots[i])
        for i in range(some):
            slot = slots[i]
            while True:
                entry = table[2 * slot + 1]
                low = entry & np.uint64(0xFFFFFFFF)
                if low == 0:
                    found[start + i] = -1
                    break
                if low == tails[i] and table[2 * slot] == heads[i]:
                    position = np.int64(entry >> np.uint64(32))
                    if low >> np.uint64(24) != _LONG or _is_at(strings, position, data, offsets, start + i):
                        found[start + i] = position
                        break
                slot = (slot + 1) & mask
    return found


@kernel
def _is_at(
    strings: InlineStrings, position: np.int64, data: NDArray[np.uint8], offsets: NDArray[np.int64], wanted: int
) -> bool:
    first, last = strings.offsets[position], strings.offsets[position + 1]
    n = offsets[wanted + 1] - offsets[wanted]
    return bool(last - first == n and are_same(strings.data, first, data, offsets[wanted], n))


@kernel
def _describe(data: NDArray[np.uint8], first: int, last: int) -> tuple[np.uint64, np.uint64]:
    """The words of a string in the table, without its position."""
    n = last - first
    if n > INLINE:
        code = np.uint64(n)
        for place in range(first, last - WORD, WORD):
            code = (code ^ word_at(data, place)) * _K1
            code ^= code >> np.uint64(32)
        code = (code ^ word_at(data, last - WORD)) * _K1  # this word may overlap the one before it
        return code, np.uint64(_LONG) << np.uint64(24)
    if first + 2 * WORD <= len(data):  # two whole words can be read
        head, tail = word_at(data, first), np.uint64(0)
        if n < WORD:
            head &= (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)
        else:
            tail = word_at(data, first + WORD) & ((np.uint64(1) << np.uint64(8 * (n - WORD))) - np.uint64(1))
    else:
        head, tail = np.uint64(0), np.uint64(0)
        for i in range(n):
            byte = np.uint64(data[first + i])
            if i < WORD:
                head |= byte << np.uint64(8 * i)
            else:
                tail |= byte << np.uint64(8 * (i - WORD))
    return head, tail | np.uint64(n + 1) << np.uint64(24)


@kernel
def _mix(head: np.uint64, tail: np.uint64) -> np.int64:
    code = (head ^ (tail * _K0)) * _K1
    code = (code ^ (code >> np.uint64(32))) * _K2
    return np.int64(code >> np.uint64(33))
