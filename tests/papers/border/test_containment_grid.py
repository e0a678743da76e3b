from __future__ import annotations

import numpy as np
import oracles
from hypothesis import given
from hypothesis import strategies as st

from vedette.papers.border.containment_grid import CEI

N_CELLS = 23
cell = st.integers(0, N_CELLS - 1)


def build(ranges, segment_cells):
    firsts, lasts = (np.array([[each[side] for each in ranges]], np.int32).reshape(1, -1) for side in (0, 1))
    ids = np.arange(len(ranges), dtype=np.int32)
    return firsts, lasts, ids, CEI.build(firsts, lasts, ids, [N_CELLS], segment_cells=segment_cells)


def sizes_of(index):
    return index.sizes if len(index.sizes) else np.diff(index.starts)


def listed(index, number):
    start, end = index.starts[number], index.starts[number] + sizes_of(index)[number]
    return index.listed[start:end].tolist()


@given(st.lists(st.tuples(cell, cell), max_size=8), st.integers(1, 40))
def test_the_length_of_segments_changes_no_answer(ranges, segment_cells):
    firsts, lasts, ids, index = build(ranges, segment_cells)
    cells = np.arange(N_CELLS, dtype=np.int32).reshape(1, -1)

    matches = index.match(cells)

    found = [sorted(matches.positions[matches.starts[i] : matches.starts[i + 1]].tolist()) for i in range(N_CELLS)]
    assert found == oracles.match_boxes(firsts, lasts, ids, cells)


def test_a_box_is_listed_in_the_longest_intervals_that_it_contains():
    _, _, _, index = build([(1, 14)], segment_cells=8)

    # Of segment 0: cell 1, the pair 2 and 3, and the second half. Of segment 1: the first half, the pair 4 and 5, 6.
    numbers = [number for number in range(len(sizes_of(index))) if listed(index, number)]
    assert numbers == [3, 5, 8 + 1, 16 + 2, 16 + 6, 16 + 8 + 6]


def test_a_segment_that_is_covered_takes_one_listing():
    _, _, _, index = build([(0, 15)], segment_cells=4)

    assert [listed(index, number) for number in (1, 8 + 1, 16 + 1, 24 + 1)] == [[0]] * 4
    assert sizes_of(index).sum() == 4


def test_shorter_segments_list_wide_boxes_more_often():
    random = np.random.default_rng(3)
    firsts = random.integers(0, 90_000, (1, 500)).astype(np.int32)
    ids = np.arange(500, dtype=np.int32)
    sizes = [
        CEI.build(firsts, firsts + 9_000, ids, [100_000], segment_cells=length).starts[-1] for length in (16, 1024)
    ]

    assert sizes[0] > 10 * sizes[1]


def contents(index):
    return [sorted(listed(index, number)) for number in range(len(sizes_of(index)))]


def test_a_change_touches_the_lists_of_its_own_box_only():
    _, _, _, index = build([(0, 6), (3, 9), (4, 22), (11, 12), (20, 22), (7, 7), (1, 2), (13, 19), (5, 5)], 8)
    starts, before = index.starts.copy(), contents(index)
    index.insert(np.array([[1]], np.int32), np.array([[14]], np.int32), np.array([77], np.int32))

    own = [3, 5, 8 + 1, 16 + 2, 16 + 6, 16 + 8 + 6]  # as above
    assert [number for number, each in enumerate(contents(index)) if 9 in each] == own
    assert [number for number in range(len(index.starts)) if index.starts[number] != starts[number]] == own
    index.remove(np.array([77], np.int32))
    assert contents(index) == before


def test_an_index_filled_step_by_step_has_the_segments_of_one_built_at_once():
    random = np.random.default_rng(4)
    firsts = random.integers(0, 900, (1, 64)).astype(np.int32)
    lasts, ids = firsts + random.integers(20, 90, (1, 64)).astype(np.int32), np.arange(64, dtype=np.int32)
    index = CEI.build(firsts[:, :0], lasts[:, :0], ids[:0], [1_000])
    assert index.shift == 0
    for some in np.split(np.arange(64), [8, 16, 32]):
        index.insert(firsts[:, some], lasts[:, some], ids[some])
    built = CEI.build(firsts, lasts, ids, [1_000])

    assert index.shift == built.shift > 0
    assert contents(index) == contents(built)


def test_a_given_length_of_segments_is_kept():
    firsts = np.arange(40, dtype=np.int32).reshape(1, -1)
    index = CEI.build(firsts[:, :1], firsts[:, :1] + 50, np.array([0], np.int32), [100], segment_cells=16)
    index.insert(firsts, firsts + 50, np.arange(1, 41, dtype=np.int32))

    assert index.n_inserted == 0
    assert index.shift == 4


@given(st.lists(st.tuples(cell, cell).map(sorted), max_size=8), st.integers(1, 40))
def test_an_index_that_never_changed_stores_no_ends_and_computes_them_at_the_first_change(ranges, segment_cells):
    firsts, lasts, ids, index = build(ranges, segment_cells)
    assert index.firsts.size == index.lasts.size == index.sizes.size == 0
    index.remove(ids[:0])

    assert index.firsts.tolist() == firsts.tolist()
    assert index.lasts.tolist() == lasts.tolist()
    assert len(index.sizes) == len(index.starts)
