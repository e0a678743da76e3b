from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from tests.profiles import examples
from vedette.papers.constructs.construct_choice import sweep_lengths
from vedette.papers.constructs.construct_rectangles import VCR, count_overlapped_parts, find_differences
from vedette.papers.constructs.rectangle_cutting import cut_box

SLOW = bool(config.DISABLE_JIT)
SIDE = 16
cell = st.integers(0, SIDE - 1)
side = st.tuples(cell, cell).map(sorted)
boxes_of = st.lists(st.tuples(side, side), min_size=1, max_size=8)


def arrays(boxes):
    firsts, lasts = (
        np.array([[each[axis][end] for each in boxes] for axis in range(2)], np.int32).reshape(2, -1) for end in (0, 1)
    )
    return firsts, lasts, np.arange(len(boxes), dtype=np.int32)


def found(matches):
    return [sorted(matches.positions[i:j].tolist()) for i, j in zip(matches.starts, matches.starts[1:], strict=False)]


def rectangle(number, longest, width):
    """Start and sides of the rectangle of that number: equation (1)."""
    n_lengths = longest.bit_length()
    start, kind = divmod(int(number), n_lengths**2)
    y, x = divmod(start, width)
    j, i = divmod(kind, n_lengths)
    return x - (longest - 1), y - (longest - 1), 1 << i, 1 << j


def cut(first, last, longest, overlapped, width=100):
    firsts, lasts = (np.array(each, np.int32).reshape(2, 1) for each in (first, last))
    numbers, n = cut_box(firsts, lasts, 0, longest, overlapped, width, np.empty(1, np.int64))
    return [rectangle(number, longest, width) for number in numbers[:n]]


@pytest.mark.parametrize("decomposition", ["simple", "overlapped"])
@given(boxes_of, st.sampled_from([1, 2, 4, 16]), st.sampled_from([None, (3, 5), (100, 2)]))
@examples(0.6)
def test_lengths_places_and_decompositions_change_no_answer(decomposition, boxes, longest, n_places):
    firsts, lasts, ids = arrays(boxes)
    index = VCR.build(firsts, lasts, ids, [SIDE, SIDE], longest, n_places, decomposition)
    cells = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE))).reshape(2, -1).astype(np.int32)

    assert found(index.match(cells)) == oracles.match_boxes(firsts, lasts, ids, cells)


@pytest.mark.parametrize("decomposition", ["simple", "overlapped"])
def test_boxes_are_added_and_removed_with_either_decomposition(decomposition):
    random = np.random.default_rng(2)
    ends = np.sort(random.integers(0, SIDE, (2, 2, 60)), axis=0).astype(np.int32)
    ids = np.arange(60, dtype=np.int32)
    cells = random.integers(0, SIDE, (2, 50)).astype(np.int32)
    index = VCR.build(ends[0][:, :20], ends[1][:, :20], ids[:20], [SIDE, SIDE], 4, decomposition=decomposition)
    index.insert(ends[0][:, 20:], ends[1][:, 20:], ids[20:])
    index.remove(ids[::3])

    kept = ids[ids % 3 != 0]
    assert found(index.match(cells)) == oracles.match_boxes(ends[0][:, kept], ends[1][:, kept], kept, cells)


def test_the_simple_decomposition_of_figure_10():
    parts = cut((3, 3), (13, 8), 4, False)  # (3, 3, 11, 6): 11 wide and 6 high

    assert [each for each in parts if each[1] == 3] == [(3, 3, 4, 4), (7, 3, 4, 4), (11, 3, 2, 4), (13, 3, 1, 4)]
    assert [each for each in parts if each[1] == 7] == [(3, 7, 4, 2), (7, 7, 4, 2), (11, 7, 2, 2), (13, 7, 1, 2)]
    assert len(parts) == 8


def test_the_overlapped_decomposition_of_figure_10():
    parts = cut((3, 3), (13, 8), 4, True)

    assert sorted(parts) == [(x, y, 4, 4) for x in (3, 7, 10) for y in (3, 5)]


@given(side, side, st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_rectangles_cover_the_box_and_nothing_else(x, y, longest, overlapped):
    parts = cut((x[0], y[0]), (x[1], y[1]), longest, overlapped)
    times = np.zeros((SIDE, SIDE), int)
    for left, bottom, width, height in parts:
        times[left : left + width, bottom : bottom + height] += 1
    inside = np.zeros((SIDE, SIDE), bool)
    inside[x[0] : x[1] + 1, y[0] : y[1] + 1] = True

    assert (times[~inside] == 0).all()
    assert (times[inside] >= 1).all()
    assert overlapped or (times[inside] == 1).all()
    assert times.max() <= 4
    n_sides = [int(count_overlapped_parts(np.array([end - first + 1.0]), longest)[0]) for first, end in (x, y)]
    assert not overlapped or len(parts) == n_sides[0] * n_sides[1]


@pytest.mark.parametrize("longest", [1, 2, 8])
def test_the_difference_table_lists_the_rectangles_over_any_point(longest):
    width, x, y = 50, 17, 20
    n_lengths = longest.bit_length()
    numbers = find_differences(longest, width) + n_lengths**2 * (x + y * width)
    sides = [1 << i for i in range(n_lengths)]

    expected = {
        (a, b, w, h) for w in sides for h in sides for a in range(x - w + 1, x + 1) for b in range(y - h + 1, y + 1)
    }
    assert {rectangle(number, longest, width) for number in numbers} == expected
    assert len(numbers) == (2 * longest - 1) ** 2
    assert (np.diff(numbers) > 0).all()


def on_grid(n_boxes, width, seed=3):
    """Rectangles of sides 1 to `width` on a grid of 60 x 60."""
    random = np.random.default_rng(seed)
    firsts = random.integers(0, 60, (2, n_boxes))
    lasts = np.minimum(firsts + random.integers(0, width, (2, n_boxes)), 59)
    return firsts.astype(np.int32), lasts.astype(np.int32), np.arange(n_boxes, dtype=np.int32), [61, 61]


def test_the_overlapped_decomposition_lists_wide_boxes_less_often():
    boxes = on_grid(500, 30)
    simple, overlapped = (VCR.build(*boxes, longest=8, decomposition=each) for each in ("simple", "overlapped"))

    assert overlapped.sizes.sum() < 0.8 * simple.sizes.sum()


def test_an_unknown_decomposition_is_refused():
    with pytest.raises(ValueError, match="decomposition must be one of simple, overlapped; got 'minimal'"):
        VCR.build(*on_grid(5, 3), decomposition="minimal")


@pytest.mark.parametrize("width", [4, 12, 30])
def test_the_chosen_length_is_near_the_best_of_a_sweep(width):
    firsts, lasts, ids, n_cells = on_grid(300 if SLOW else 20_000, width)
    index = VCR.build(firsts, lasts, ids, n_cells)

    widths = (lasts - firsts + 1.0)[:, :1000]
    products = {}
    for shape in sweep_lengths(VCR.model(), [61, 61], widths, len(ids)):
        if shape.longest <= 32:
            n_bytes = VCR.build(firsts, lasts, ids, n_cells, longest=shape.longest, n_places=(61, 61)).nbytes
            assert 0.7 < shape.n_bytes / n_bytes < 1.4
            products[shape.longest] = shape.nanoseconds * n_bytes
    assert SLOW or products[index.longest] <= 1.3 * min(products.values())


def test_wider_boxes_get_longer_sides():
    lengths = [VCR.build(*on_grid(20_000 if not SLOW else 2_000, width)).longest for width in (2, 12, 50)]

    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def fill_step_by_step(boxes, n_at_once, **options):
    """An index that is built empty."""
    firsts, lasts, ids, n_cells = boxes
    index = VCR.build(firsts[:, :0], lasts[:, :0], ids[:0], n_cells, **options)
    for start in range(0, len(ids), n_at_once):
        some = np.s_[start : start + n_at_once]
        index.insert(firsts[:, some], lasts[:, some], ids[some])
    return index


@pytest.mark.parametrize("decomposition", ["simple", "overlapped"])
def test_an_index_filled_step_by_step_has_the_layout_of_one_built_at_once(decomposition):
    boxes = on_grid(64, 12)
    filled = fill_step_by_step(boxes, 8, decomposition=decomposition)
    built = VCR.build(*boxes, decomposition=decomposition)

    # 8, 16, 32 and 64 boxes: each time half of them are new.
    assert filled.n_inserted == 0
    assert (filled.longest, filled.overlapped) == (built.longest, built.overlapped)
    for name in ("x_places", "y_places", "starts", "sizes", "listed"):
        assert getattr(filled, name).tolist() == getattr(built, name).tolist()


@pytest.mark.parametrize("in_order", [False, True])
def test_a_row_of_an_index_filled_step_by_step_reads_few_boxes_that_do_not_match(in_order):
    boxes = firsts, lasts, _, n_cells = on_grid(280, 12)
    if in_order:
        order = np.argsort(firsts[0])
        boxes = firsts, lasts, *_ = firsts[:, order], lasts[:, order], *boxes[2:]
    index = fill_step_by_step(boxes, 3)

    x, y = (each.reshape(-1, 1) for each in np.meshgrid(np.arange(n_cells[0]), np.arange(n_cells[1])))
    holds = (firsts[0] <= x) & (x <= lasts[0]) & (firsts[1] <= y) & (y <= lasts[1])
    found_on = []
    for cells, places, axis in ((x, index.x_places, 0), (y, index.y_places, 1)):
        first_places, last_places = places[index.firsts[axis]], places[index.lasts[axis]]
        found_on.append((first_places <= places[cells]) & (places[cells] <= last_places))
    n_found = (found_on[0] & found_on[1] & (index.firsts <= index.lasts).all(axis=0)).sum(axis=1)
    assert VCR.build(*boxes).n_misfits == 0
    assert n_found.mean() <= holds.sum(axis=1).mean() + 1
    assert n_found.max() <= holds.sum(axis=1).max() + 16
    assert index.n_inserted < len(index) / 2


def test_given_lengths_and_numbers_of_places_are_kept():
    firsts, lasts, ids, n_cells = on_grid(100, 12)
    index = VCR.build(firsts[:, :5], lasts[:, :5], ids[:5], n_cells, longest=4, n_places=(20, 30))
    index.insert(firsts[:, 5:], lasts[:, 5:], ids[5:])

    assert index.n_inserted == 0
    assert index.longest == 4
    assert 10 <= index.x_places[-1] < 20
    assert 15 <= index.y_places[-1] < 30
