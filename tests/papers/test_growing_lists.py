from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.papers.growing_lists import (
    CHANGES,
    USED,
    append_to_list,
    close_lists,
    count_listed,
    make_lists,
    open_lists,
    pack_lists,
    remove_from_list,
)


def contents(starts, sizes, listed):
    return [sorted(listed[start : start + size].tolist()) for start, size in zip(starts, sizes, strict=True)]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=5),
    st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 9)), max_size=80),
)
@settings(deadline=None)
def test_lists_grow_and_shrink_without_touching_each_other(given_lists, changes):
    starts, sizes, listed, ends = make_lists(np.array([len(each) for each in given_lists]))
    for start, each in zip(starts, given_lists, strict=True):
        listed[start : start + len(each)] = each
    lists = [list(each) for each in given_lists]
    for grows, number, value in changes:
        number %= len(lists)
        if grows:
            listed = append_to_list(number, value, starts, sizes, listed, ends)
            lists[number].append(value)
        else:
            remove_from_list(number, value, starts, sizes, listed)
            if value in lists[number]:
                lists[number].remove(value)
        assert contents(starts, sizes, listed) == [sorted(each) for each in lists]


def test_the_gaps_of_moved_lists_are_freed():
    starts, sizes, listed, ends = make_lists(np.zeros(3, np.int64))
    for value in range(4_000):
        listed = append_to_list(value % 3, value, starts, sizes, listed, ends)
    for value in range(3_900):
        remove_from_list(value % 3, value, starts, sizes, listed)
    before = contents(starts, sizes, listed)
    packed_starts, packed, packed_ends = pack_lists(starts, sizes, listed, ends)

    assert packed_ends[USED] < ends[USED] // 10
    assert contents(packed_starts, sizes, packed) == before


def test_a_few_changes_of_many_lists_wait_until_they_are_more():
    starts, sizes, listed, ends = make_lists(np.full(1_000, 3))
    sizes[:] = 0  # all went
    assert pack_lists(starts, sizes, listed, ends, 10)[1] is listed
    _, packed, packed_ends = pack_lists(starts, sizes, listed, ends, 10)

    assert len(packed) < 20
    assert packed_ends[CHANGES] == 0


def test_closed_lists_take_four_bytes_and_are_as_long_when_opened():
    starts, sizes, _, _ = make_lists(np.array([3, 0, 5]))
    closed, none = close_lists(starts, sizes)

    assert (closed.tolist(), closed.dtype, len(none)) == ([0, 3, 3, 8], np.int32, 0)
    assert [count_listed(number, closed, none) for number in range(3)] == [3, 0, 5]
    assert [each.tolist() for each in open_lists(closed)] == [[0, 3, 3], [3, 0, 5]]
    assert [count_listed(number, starts, sizes) for number in range(3)] == [3, 0, 5]
