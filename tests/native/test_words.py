"""Bytes are compared as Python compares them, whatever their number and place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.native.hashing import empty_slots, find_strings, insert_strings
from vedette.native.inline_strings import InlineStrings
from vedette.native.words import are_same

# Long common parts, so that strings differ in any one of several words, or in the last bytes alone.
strings = st.tuples(st.integers(0, 30), st.binary(max_size=3), st.integers(0, 12)).map(
    lambda parts: b"a" * parts[0] + parts[1] + b"a" * parts[2]
)


@given(strings, strings, st.integers(0, 9), st.integers(0, 9))
def test_bytes_are_the_same_if_python_says_so(left, right, before_left, before_right):
    n = min(len(left), len(right))
    arrays = [
        np.frombuffer(b"x" * before + each, np.uint8) for before, each in ((before_left, left), (before_right, right))
    ]

    assert are_same(arrays[0], before_left, arrays[1], before_right, n) == (left[:n] == right[:n])


@given(st.lists(strings, max_size=60, unique=True), st.lists(strings, max_size=60))
def test_strings_are_found_in_a_table_as_in_a_dict(known, wanted):
    wanted = wanted + known[::2]
    slots = empty_slots(len(known))
    assert insert_strings(*_layout(known), 0, len(known), slots) == -1

    found = find_strings(*_layout(wanted), *_layout(known), slots)
    positions = {string: position for position, string in enumerate(known)}
    assert found.tolist() == [positions.get(string, -1) for string in wanted]
    assert InlineStrings.of(*_layout(known)).find(*_layout(wanted)).tolist() == found.tolist()


def test_strings_of_every_length_are_told_apart_in_a_table_with_their_bytes():
    known = [b"a" * n for n in range(40)] + [b"a" * n + b"\0" for n in range(40)] + [b"\0" * n for n in range(2, 40)]
    wanted = [*known[::-1], b"b", b"a" * 40, b"a" * 11 + b"b", b"b" + b"a" * 11, b"\x00" * 40]
    offsets, data = _layout(wanted)

    for end in (len(data), len(data) - 1):  # the last string ends with the memory
        found = InlineStrings.of(*_layout(known)).find(offsets, data[:end].copy())
        assert found.tolist() == [*range(len(known))][::-1] + [-1] * 5


def test_long_strings_are_found_among_many():
    random = np.random.default_rng(1)
    known = [b"%d-%d" % (i, n) for i, n in enumerate(random.integers(0, 10**18, 5000).tolist())]
    found = InlineStrings.of(*_layout(known)).find(*_layout(known[::7] + [b"x" + each for each in known[::7]]))

    assert found.tolist() == [*range(0, 5000, 7)] + [-1] * len(known[::7])


def _layout(strings):
    """Strings in Arrow's layout."""
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(strings) + b"\0", np.uint8)
