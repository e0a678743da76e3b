"""Kernels for hash tables: they map numbers and strings, which are stored elsewhere, to their positions.

A table is an int32 array whose length is a power of two. A slot is a position, or -1 if empty. Tables use open
addressing and are at most two thirds full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.damage import check
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.words import are_same

MOST_PROBES = 10_000_000_000  # limit to find every position; about 20 seconds
AHEAD, NEAR, NEXT = 24, 16, 8  # positions ahead for which a slot, its offset and its string are fetched


def empty_slots(n: int) -> NDArray[np.int32]:
    """A table that can store `n` positions."""
    return np.full(1 << max(1, (3 * n // 2).bit_length()), -1, np.int32)


def has_room(slots: NDArray[np.int32], n: int) -> bool:
    return 3 * n <= 2 * len(slots)


def check_slots(slots: NDArray[np.int32], n: int) -> None:
    """Raise DamageError unless a table from a file has positions below `n`, and searches in it are short."""
    size = len(slots)
    is_table = slots.ndim == 1 and slots.dtype == np.int32 and size > 1 and size & (size - 1) == 0
    check(is_table, "a hash table is truncated")
    n_filled, n_probes = _measure(slots, n)
    check(n_filled >= 0, "a hash table has a position out of range")
    check(n_filled <= n and 3 * n_filled <= 2 * size and n_probes <= MOST_PROBES, "a hash table is too full")


def leads_to_numbers(numbers: NDArray[np.int64], slots: NDArray[np.int32], wanted: NDArray[np.bool_]) -> bool:
    """Whether a search in a checked table finds the position of each wanted number."""
    sure = _leads_to(_hash_numbers(numbers), slots, wanted)
    if sure < 0:
        return bool((find_numbers(numbers, numbers, slots) == np.arange(len(numbers)))[wanted].all())
    return bool(sure)


def leads_to_strings(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], slots: NDArray[np.int32], wanted: NDArray[np.bool_]
) -> bool:
    """As `leads_to_numbers`, for strings in Arrow's layout."""
    sure = _leads_to(_hash_strings(offsets, data), slots, wanted)
    if sure < 0:
        return bool((find_strings(offsets, data, offsets, data, slots) == np.arange(len(wanted)))[wanted].all())
    return bool(sure)


@kernel
def _measure(slots: NDArray[np.int32], n: int) -> tuple[int, float]:
    """The number of filled slots (-1 if one is out of range), and an upper bound of the probes for all positions."""
    n_filled, run, first_run, n_probes = 0, 0, -1, 0.0
    for slot in range(len(slots)):
        if slots[slot] >= n or slots[slot] < -1:
            return -1, 0.0
        if slots[slot] >= 0:
            n_filled += 1
            run += 1
            continue
        if first_run < 0:
            first_run = run  # it continues the last run
        else:
            n_probes += np.float64(run) * run
        run = 0
    run += first_run
    return n_filled, n_probes + np.float64(run) * run


@kernel
def _leads_to(hashes: NDArray[np.int64], slots: NDArray[np.int32], wanted: NDArray[np.bool_]) -> int:
    """Whether a search finds each wanted position; -1 if that is unknown because hashes are equal."""
    mask = len(slots) - 1
    for position in range(len(hashes)):
        if position + AHEAD < len(hashes):
            prefetch(slots, hashes[position + AHEAD] & mask)
        if not wanted[position]:
            continue
        slot = hashes[position] & mask
        while slots[slot] >= 0 and slots[slot] != position:
            if hashes[slots[slot]] == hashes[position]:
                return -1
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            return 0
    return 1


@kernel
def _hash_numbers(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    hashes = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        hashes[i] = _hash_number(numbers[i])
    return hashes


@kernel
def _hash_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    hashes = np.empty(len(offsets) - 1, np.int64)
    for i in range(len(hashes)):
        hashes[i] = _hash_string(data, offsets[i], offsets[i + 1])
    return hashes


@kernel
def insert_numbers(numbers: NDArray[np.int64], start: int, end: int, slots: NDArray[np.int32]) -> int:
    """Insert the positions [start, end); of equal numbers the last one is kept. Returns a repeated position, or -1."""
    mask = len(slots) - 1
    twice = -1
    for position in range(start, end):
        slot = _hash_number(numbers[position]) & mask
        while slots[slot] >= 0 and numbers[slots[slot]] != numbers[position]:
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            twice = position
        slots[slot] = position
    return twice


@kernel
def find_numbers(wanted: NDArray[np.int64], numbers: NDArray[np.int64], slots: NDArray[np.int32]) -> NDArray[np.int32]:
    """The position of each wanted number, or -1."""
    mask = len(slots) - 1
    found = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        slot = _hash_number(wanted[i]) & mask
        while slots[slot] >= 0 and numbers[slots[slot]] != wanted[i]:
            slot = (slot + 1) & mask
        found[i] = slots[slot]
    return found


@kernel
def insert_strings(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], start: int, end: int, slots: NDArray[np.int32]
) -> int:
    """As `insert_numbers`, for strings in Arrow's layout."""
    mask = len(slots) - 1
    twice = -1
    for position in range(start, end):
        slot = _slot_of(data, offsets[position], offsets[position + 1], offsets, data, slots, mask)
        if slots[slot] >= 0:
            twice = position
        slots[slot] = position
    return twice


@kernel
def add_strings(
    wanted_offsets: NDArray[np.int64],
    wanted_data: NDArray[np.uint8],
    found: NDArray[np.int32],
    n: int,
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    slots: NDArray[np.int32],
) -> int:
    """Append the wanted strings whose `found` is -1 and insert them, each once; there is room for them.

    Writes their positions to `found`. Returns the number of strings.
    """
    mask = len(slots) - 1
    for i in range(len(found)):
        if found[i] >= 0:
            continue
        start, end = wanted_offsets[i], wanted_offsets[i + 1]
        slot = _slot_of(wanted_data, start, end, offsets, data, slots, mask)
        if slots[slot] < 0:
            data[offsets[n] : offsets[n] + end - start] = wanted_data[start:end]
            offsets[n + 1] = offsets[n] + end - start
            slots[slot] = n
            n += 1
        found[i] = slots[slot]
    return n


@kernel
def find_strings(
    wanted_offsets: NDArray[np.int64],
    wanted_data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    slots: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The position of each wanted string, or -1."""
    mask = len(slots) - 1
    found = np.empty(len(wanted_offsets) - 1, np.int32)
    hashes = _hash_strings(wanted_offsets, wanted_data)
    n = len(found)
    for i in range(n):
        if i + AHEAD < n:
            prefetch(slots, hashes[i + AHEAD] & mask)
            position = slots[hashes[i + NEAR] & mask]
            if position >= 0:
                prefetch(offsets, position)
            position = slots[hashes[i + NEXT] & mask]
            if position >= 0:
                prefetch(data, offsets[position])
        slot, first, last = hashes[i] & mask, wanted_offsets[i], wanted_offsets[i + 1]
        while slots[slot] >= 0:  # as in `_slot_of`; a call with so many arrays would take as long as all of this
            start, end = offsets[slots[slot]], offsets[slots[slot] + 1]
            if end - start == last - first and are_same(data, start, wanted_data, first, end - start):
                break
            slot = (slot + 1) & mask
        found[i] = slots[slot]
    return found


@kernel
def _slot_of(
    wanted: NDArray[np.uint8],
    first: int,
    last: int,
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    slots: NDArray[np.int32],
    mask: int,
) -> int:
    """The slot of an equal string, or the empty slot for it."""
    slot = _hash_string(wanted, first, last) & mask
    while slots[slot] >= 0:
        start, end = offsets[slots[slot]], offsets[slots[slot] + 1]
        if end - start == last - first and are_same(data, start, wanted, first, end - start):
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def _hash_number(number: np.int64) -> int:
    code = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((code ^ (code >> np.uint64(32))) & np.uint64(0x7FFFFFFFFFFFFFFF))  # type: ignore[return-value]


@kernel
def _hash_string(data: NDArray[np.uint8], start: int, end: int) -> int:
    """FNV-1a over 64 bits, its high bits folded down for use under a mask."""
    code = np.uint64(14695981039346656037)
    for i in range(start, end):
        code = (code ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return np.int64((code ^ (code >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))  # type: ignore[return-value]
