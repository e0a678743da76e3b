from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from tests.profiles import examples
from vedette.indexes.index import sample_boxes
from vedette.papers.constructs.construct_bit_vectors import LCIBV
from vedette.papers.constructs.construct_choice import BYTES_ALWAYS, BYTES_PER_BOX, SAMPLE, sweep_lengths
from vedette.papers.constructs.construct_intervals import LCI, SCI, cut_interval
from vedette.papers.constructs.direct_lists import Dlist
from vedette.papers.constructs.places import find_borders, find_misfits, make_places

SLOW = bool(config.DISABLE_JIT)
N_CELLS = 23
cell = st.integers(0, N_CELLS - 1)
ranges = st.lists(st.tuples(cell, cell).map(sorted), min_size=1, max_size=8)
every_kind = pytest.mark.parametrize("index_class", [SCI, LCI, LCIBV, Dlist])


def arrays(pairs):
    firsts, lasts = (np.array([[each[side] for each in pairs]], np.int32).reshape(1, -1) for side in (0, 1))
    return firsts, lasts, np.arange(len(pairs), dtype=np.int32)


def found(matches):
    return [sorted(matches.positions[i:j].tolist()) for i, j in zip(matches.starts, matches.starts[1:], strict=False)]


def length_of(index_class, number, longest):
    """Start and length of the interval of that number (section 2.2)."""
    start, kind = divmod(int(number), index_class.count_lengths(longest))
    return start - (longest - 1), 1 << kind if index_class.is_logarithmic() else kind + 1


@every_kind
@given(ranges, st.sampled_from([1, 2, 4, 8, 32]), st.sampled_from([1, 2, 5, 100]))
@examples(0.6)
def test_lengths_and_places_change_no_answer(index_class, pairs, longest, n_places):
    firsts, lasts, ids = arrays(pairs)
    index = index_class.build(firsts, lasts, ids, [N_CELLS], longest=longest, n_places=n_places)
    cells = np.arange(N_CELLS, dtype=np.int32).reshape(1, -1)

    assert found(index.match(cells)) == oracles.match_boxes(firsts, lasts, ids, cells)


@pytest.mark.parametrize("index_class", [SCI, LCI])
@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([1, 2, 4, 8, 16]))
def test_a_range_is_cut_into_intervals_that_follow_each_other(index_class, first, more, longest):
    numbers = np.empty(100, np.int64)
    n = cut_interval(first, first + more, longest, index_class.is_logarithmic(), numbers)
    parts = [length_of(index_class, number, longest) for number in numbers[:n]]

    at = first
    for start, length in parts:
        assert start == at
        assert length <= longest
        at += length
    assert at == first + more + 1
    rest = (more + 1) % longest
    rest_parts = rest.bit_count() if index_class.is_logarithmic() else int(rest > 0)
    assert n == (more + 1) // longest + rest_parts


def test_the_example_of_section_2_3():
    # L = 16 and a rest of 7: one interval of 16 places, then 4, 2 and 1.
    numbers = np.empty(100, np.int64)
    n = cut_interval(0, 22, 16, True, numbers)

    assert [length_of(LCI, number, 16)[1] for number in numbers[:n]] == [16, 4, 2, 1]


@pytest.mark.parametrize(("index_class", "n_covering"), [(SCI, 4 * 5 // 2), (LCI, 2 * 4 - 1)])
def test_the_difference_table_lists_the_intervals_over_any_place(index_class, n_covering):
    longest, place = 4, 30
    n_lengths = index_class.count_lengths(longest)
    numbers = index_class.find_differences(longest) + place * n_lengths + n_lengths - 1

    covering = {length_of(index_class, number, longest) for number in numbers}
    lengths = (1, 2, 4) if index_class is LCI else (1, 2, 3, 4)
    assert covering == {(s, k) for s in range(60) for k in lengths if s <= place < s + k}
    assert len(numbers) == n_covering
    assert numbers.min() == place * n_lengths + n_lengths - 1


def integer_domain(n_boxes=400, n_places=5000, width=200, seed=1):
    """As in section 2.5: R = 5000."""
    random = np.random.default_rng(seed)
    firsts = random.integers(0, n_places, (1, n_boxes)).astype(np.int32)
    lasts = np.minimum(firsts + random.integers(1, width + 1, (1, n_boxes)), n_places - 1).astype(np.int32)
    return firsts, lasts, np.arange(n_boxes, dtype=np.int32), [n_places + 1]


@pytest.mark.parametrize("n_boxes", [400, 5_000])
def test_bit_vectors_store_only_intervals_with_boxes_and_take_the_least_memory(n_boxes):
    boxes = integer_domain(n_boxes)
    plain, with_bits = (each.build(*boxes, longest=32) for each in (LCI, LCIBV))

    n_used = int((plain.sizes > 0).sum())
    assert np.bitwise_count(with_bits.words.view(np.uint64)).sum() == n_used
    assert with_bits.sizes.sum() == plain.sizes.sum() + n_used
    assert with_bits.nbytes < 0.8 * plain.nbytes


def test_direct_lists_are_the_largest_and_logarithmic_ones_smaller_than_simple_ones():
    boxes = integer_domain(n_boxes=5_000)
    sizes = {each: each.build(*boxes).nbytes for each in (SCI, LCI, Dlist)}

    assert sizes[LCI] < sizes[SCI] < sizes[Dlist]


def test_boxes_are_compared_while_one_does_not_fit_the_places():
    firsts, lasts, ids = arrays([(3, 8), (6, 12)])
    index = LCI.build(firsts, lasts, ids, [N_CELLS])
    assert index.n_misfits == 0
    index.insert(*arrays([(4, 9), (6, 8)])[:2], np.array([7, 8], np.int32))

    assert index.n_misfits == 1
    assert found(index.match(np.array([[3, 4, 9, 10]], np.int32))) == [[0], [0, 7], [1, 7], [1]]
    index.remove(np.array([7], np.int32))
    assert index.n_misfits == 0
    assert found(index.match(np.array([[3, 4, 9, 10]], np.int32))) == [[0], [0], [1], [1]]


def test_no_box_begins_or_ends_within_a_place():
    firsts, lasts, _ = arrays([(3, 8), (6, 8)])
    borders = find_borders(firsts[0], lasts[0], 12)

    assert borders.tolist() == [0, 3, 6, 9]
    places = make_places(borders, 12, 100)
    assert places.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert find_misfits(places, firsts[0], lasts[0]).tolist() == [False, False]
    coarse = make_places(borders, 12, 2)
    assert coarse.tolist() == [0] * 6 + [1] * 6
    assert find_misfits(coarse, np.array([3, 6, 0, 6]), np.array([5, 8, 5, 11])).tolist() == [True, True, False, False]


def test_places_with_room_are_no_longer_than_a_box_has_cells():
    firsts, lasts, _ = arrays([(3, 8), (6, 8), (10, 11), (11, 11), (11, 11)])

    # 60 cells for five boxes: what is behind them is cut at each 12th cell.
    assert find_borders(firsts[0], lasts[0], 60, with_room=True).tolist() == [0, 3, 6, 9, 10, 11, 12, 24, 36, 48]
    assert find_borders(firsts[0], lasts[0], 15, with_room=True).tolist() == [0, 3, 6, 9, 10, 11, 12]
    assert find_borders(firsts[0, :0], lasts[0, :0], 60, with_room=True).tolist() == [0]


@pytest.mark.parametrize("index_class", [SCI, LCI, LCIBV])
@pytest.mark.parametrize("width", [20, 200, 1500])
def test_the_chosen_length_is_near_the_best_of_a_sweep(index_class, width):
    firsts, lasts, ids, n_cells = integer_domain(*((400, 500, width // 10) if SLOW else (20_000, 5000, width)))
    borders = find_borders(firsts[0], lasts[0], n_cells[0])
    chosen, n_places = index_class.choose(firsts[0], lasts[0], borders)
    assert n_places == len(borders)

    # Memory as it is, and time as it follows from what a row looks at, for every length that could have been taken.
    model = index_class.model()
    some = sample_boxes(len(ids), SAMPLE)
    widths = make_places(borders, n_cells[0], len(borders))
    widths = (widths[lasts[0, some]] - widths[firsts[0, some]] + 1.0)[None, :]
    products = {}
    for shape in sweep_lengths(model, [len(borders)], widths, len(ids)):
        index = index_class.build(firsts, lasts, ids, n_cells, longest=shape.longest)
        assert 0.7 < shape.n_bytes / index.nbytes < 1.4
        products[shape.longest] = shape.nanoseconds * index.nbytes
    assert products[chosen] <= 1.3 * min(products.values())
    assert products[chosen] < 0.8 * products[1] or width < 1000


def test_wider_boxes_get_longer_intervals():
    model = LCI.model()
    lengths = []
    for width in (4, 40, 400):
        shapes = sweep_lengths(model, [5000], np.full((1, 10), float(width)), 20_000)
        lengths.append(min(shapes, key=lambda shape: shape.product).longest)

    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_places_are_merged_if_memory_is_short():
    n = 2_000
    index = SCI.build(*integer_domain(n, 50 * n, 50 * n))
    room = BYTES_PER_BOX * n + BYTES_ALWAYS

    assert min(shape.n_bytes for shape in sweep_lengths(SCI.model(), [2 * n], np.full((1, 1), 1.0 * n), n)) > room
    assert index.n_misfits > 0
    assert index.nbytes < 1.2 * room + index.places.nbytes


def fill_step_by_step(index_class, boxes, n_at_once):
    """An index that is built empty."""
    firsts, lasts, ids, n_cells = boxes
    index = index_class.build(firsts[:, :0], lasts[:, :0], ids[:0], n_cells)
    for start in range(0, len(ids), n_at_once):
        some = np.s_[start : start + n_at_once]
        index.insert(firsts[:, some], lasts[:, some], ids[some])
    return index


@every_kind
def test_an_index_filled_step_by_step_has_the_layout_of_one_built_at_once(index_class):
    boxes = integer_domain(n_boxes=64, n_places=50, width=10)
    filled, built = fill_step_by_step(index_class, boxes, 8), index_class.build(*boxes)

    # 8, 16, 32 and 64 boxes: each time half of them are new.
    assert filled.n_inserted == 0
    assert filled.longest == built.longest
    for name in ("places", "starts", "sizes", "listed"):
        assert getattr(filled, name).tolist() == getattr(built, name).tolist()


@every_kind
@pytest.mark.parametrize("in_order", [False, True])
def test_a_row_of_an_index_filled_step_by_step_reads_few_boxes_that_do_not_match(index_class, in_order):
    n_boxes = 120 if SLOW else 500
    boxes = firsts, lasts, _, n_cells = integer_domain(n_boxes, 5_000, 200)
    if in_order:
        order = np.argsort(firsts[0])
        boxes = firsts, lasts, *_ = firsts[:, order], lasts[:, order], *boxes[2:]
    index = fill_step_by_step(index_class, boxes, 3)
    built = index_class.build(*boxes)

    rows = np.arange(n_cells[0])[:, None]
    n_matches = ((firsts <= rows) & (rows <= lasts)).sum(axis=1)
    first_places, last_places = index.places[index.firsts[0]], index.places[index.lasts[0]]
    is_kept = index.firsts[0] <= index.lasts[0]
    places = index.places[:, None]
    n_found = ((first_places <= places) & (places <= last_places) & is_kept).sum(axis=1)
    assert n_found.mean() <= n_matches.mean() + 3
    assert n_found.max() <= n_matches.max() + 16
    assert index.longest in (built.longest // 2, built.longest, 2 * built.longest)
    assert index.n_inserted < n_boxes / 2


@every_kind
def test_places_are_rarely_rebuilt(index_class, monkeypatch):
    sizes = []
    rebuild = index_class.rebuild
    monkeypatch.setattr(
        index_class, "rebuild", lambda self, *boxes: (sizes.append(len(boxes[2])), rebuild(self, *boxes))
    )
    fill_step_by_step(index_class, integer_domain(200, 500, 60), 1)

    assert sizes == [8, 16, 32, 64, 128]


@every_kind
def test_places_follow_boxes_that_move(index_class):
    # Boxes go and come elsewhere, so that none of the first places is left.
    random = np.random.default_rng(7)
    index = index_class.build(*integer_domain(50, 1_000, 30)[:3], [5_000])
    for turn in range(1, 4):
        for box in random.permutation(50).astype(np.int32):
            first = np.array([[1_200 * turn + 20 * box]], np.int32)
            index.remove(np.array([box]))
            index.insert(first, first + 7, np.array([box]))

    assert len(index) == 50
    assert index.places[-1] > 50
    assert found(index.match(np.array([[0, 3_607, 3_608, 3_627]], np.int32))) == [[], [0], [], [1]]


@every_kind
def test_a_given_length_and_number_of_places_are_kept(index_class):
    firsts, lasts, ids, n_cells = integer_domain(300, 500, 60)
    index = index_class.build(firsts[:, :5], lasts[:, :5], ids[:5], n_cells, longest=4, n_places=40)
    index.insert(firsts[:, 5:], lasts[:, 5:], ids[5:])

    assert index.n_inserted == 0
    assert index.longest == 4
    assert 20 <= index.places[-1] < 40
