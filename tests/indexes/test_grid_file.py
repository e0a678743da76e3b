from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from tests.profiles import examples
from vedette.indexes import grid_file
from vedette.indexes.grid_file import MAX_AXES, MLGF
from vedette.indexes.grid_file_directory import HIGH, LOW, NOWHERE
from vedette.indexes.grid_file_pages import PAGE

SLOW = bool(config.DISABLE_JIT)


def random_boxes(n_boxes, n_axes, n_cells=1000, width=0.3, seed=5):
    random = np.random.default_rng(seed)
    firsts = random.integers(0, n_cells, (n_axes, n_boxes))
    lasts = np.minimum(firsts + random.exponential(width * n_cells, firsts.shape).astype(int), n_cells - 1)
    return firsts.astype(np.int32), lasts.astype(np.int32), np.arange(n_boxes, dtype=np.int32)


def build(n_boxes, n_axes, **more):
    firsts, lasts, ids = random_boxes(n_boxes, n_axes, **more)
    return firsts, lasts, ids, MLGF.build(firsts, lasts, ids, [more.get("n_cells", 1000)] * n_axes)


def found(matches):
    return [sorted(matches.positions[i:j].tolist()) for i, j in zip(matches.starts, matches.starts[1:], strict=False)]


def met(firsts, lasts, ids, lows, highs):
    """Boxes that share a cell with each region."""
    return [
        sorted(
            int(id_)
            for box, id_ in enumerate(ids)
            if all(
                firsts[axis][box] <= highs[axis][region] and lows[axis][region] <= lasts[axis][box]
                for axis in range(len(lows))
            )
        )
        for region in range(len(lows[0]))
    ]


def walk(index, node=None, region=None):
    """Check all below a directory page; gives the pages."""
    node = int(index.counts[0]) if node is None else node
    n = int(index.n_entries[node])
    assert n > 0
    regions = index.regions[node, :, :, :n].astype(np.int64)
    for one in range(n):
        for other in range(one):
            can_show_progress = (regions[HIGH, :, one] < regions[LOW, :, other]) | (
                regions[LOW, :, one] > regions[HIGH, :, other]
            )
            assert can_show_progress.any(), "regions of a page do not meet"
    if region is not None:
        volume = np.prod((regions[HIGH] - regions[LOW] + 1).astype(object), axis=0).sum()
        assert volume == np.prod((region[HIGH] - region[LOW] + 1).astype(object)), "together they are all of it"
        assert (regions[LOW] >= region[LOW][:, None]).all()
        assert (regions[HIGH] <= region[HIGH][:, None]).all()
    for entry in range(n):
        child = int(index.children[node, entry])
        if index.levels[node] > 0:
            assert index.levels[child] == index.levels[node] - 1, "all pages are equally deep"
            points = yield from walk(index, child, regions[:, :, entry])
        else:
            points = yield from check_pages(index, child)
        if points.shape[1]:
            bounds = index.bounds[node, :, :, entry]
            assert (bounds[LOW][:, None] <= points).all()
            assert (points <= bounds[HIGH][:, None]).all()
            assert (regions[LOW, :, entry][:, None] <= points).all()
            assert (points <= regions[HIGH, :, entry][:, None]).all()
    own = [index.bounds[node, LOW, :, :n].min(axis=1), index.bounds[node, HIGH, :, :n].max(axis=1)]
    return np.stack(own, axis=1) if own[0][0] < NOWHERE else np.empty((len(own[0]), 0), np.int32)


def check_pages(index, page):
    n_axes = len(index.n_cells)
    known = np.concatenate([index.axes, n_axes + index.axes])
    points = []
    while page >= 0:
        yield page
        size = int(index.sizes[page])
        points.append(index.points[page][known, :size])
        assert (index.points[page][:n_axes, size:] == NOWHERE).all(), "free places are met by nobody"
        if index.nexts[page] >= 0 and size:
            assert (points[-1] == points[-1][:, :1]).all(), "only pages of equal points are linked"
        page = int(index.nexts[page])
    return np.concatenate(points, axis=1)


def check(index):
    pages = list(walk(index))
    assert len(pages) == len(set(pages)) == index.counts[1]
    assert index.sizes[pages].sum() == len(index)


@pytest.mark.parametrize(("n_boxes", "n_axes"), [(0, 2), (1, 1), (64, 2), (65, 2), (1000, 1), (1500, 2), (1500, 4)])
def test_regions_divide_the_transform_space_and_hold_their_points(n_boxes, n_axes):
    n_boxes = min(n_boxes, 300) if SLOW else n_boxes
    *_, index = build(n_boxes, n_axes)

    check(index)
    assert len(index) == n_boxes


def test_a_directory_grows_upwards_and_stays_balanced():
    *_, index = build(400 if SLOW else 20_000, 2, n_cells=5000)

    check(index)
    assert index.n_levels == (1 if SLOW else 2)
    *_, index = build(400 if SLOW else 250_000, 1, n_cells=1_000_000, width=0.01)
    assert index.n_levels == (1 if SLOW else 3)


def test_pages_are_filled_by_two_thirds():
    *_, index = build(500 if SLOW else 10_000, 3)

    assert index.sizes.mean() > 0.55 * PAGE


@given(st.integers(1, 4), st.integers(0, 2**32), st.integers(1, 5))
@examples(0.6)
def test_a_window_finds_the_boxes_that_the_region_meets(n_axes, seed, n_cells):
    firsts, lasts, ids, index = build(80, n_axes, n_cells=4**n_cells, width=0.2, seed=seed)
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, 4**n_cells, (2, n_axes, 12)), axis=0).astype(np.int32)

    assert found(index.find(*ends)) == met(firsts, lasts, ids, *ends)


def test_equal_boxes_link_their_pages_and_others_part_from_them():
    n = 3 * PAGE + 10
    firsts, lasts = np.full((2, n), 30, np.int32), np.full((2, n), 60, np.int32)
    index = MLGF.build(firsts, lasts, np.arange(n, dtype=np.int32), [100, 100])
    check(index)
    assert (index.nexts >= 0).sum() == 3
    other_firsts, other_lasts = np.array([[30, 10, 30], [30, 30, 90]], np.int32), np.full((2, 3), 95, np.int32)
    index.insert(other_firsts, other_lasts, np.array([1000, 1001, 1002], np.int32))
    check(index)

    rows = np.array([[50, 92, 15], [50, 92, 40]], np.int32)
    assert found(index.match(rows)) == [[*range(n), 1000, 1001], [1000, 1001, 1002], [1001]]
    index.remove(np.arange(0, n, 2, dtype=np.int32))
    check(index)
    index.insert(firsts[:, ::2].copy(), lasts[:, ::2].copy(), np.arange(0, n, 2, dtype=np.int32))
    check(index)
    assert found(index.match(rows)) == [[*range(n), 1000, 1001], [1000, 1001, 1002], [1001]]


def test_pages_with_removed_points_are_divided_correctly():
    random = np.random.default_rng(8)
    firsts, lasts, ids, index = build(300 if SLOW else 2_000, 2, n_cells=40)
    for _ in range(6):
        removed = random.permutation(ids)[: len(ids) // 3]
        index.remove(removed)
        check(index)
        narrow = random.integers(0, 3, firsts[:, removed].shape).astype(np.int32)
        firsts[:, removed], lasts[:, removed] = narrow, narrow + 1
        index.insert(firsts[:, removed], lasts[:, removed], removed)
        check(index)

    rows = random.integers(0, 40, (2, 50)).astype(np.int32)
    assert found(index.match(rows)) == met(firsts, lasts, ids, rows, rows)


def test_a_file_with_half_of_its_boxes_removed_is_rebuilt():
    n = 200 if SLOW else 3_000
    *_, ids, index = build(n, 2)
    pages = int(index.counts[1])
    index.remove(ids[: n * 9 // 10])

    assert index.counts[1] < pages
    check(index)


def test_of_many_axes_the_directory_knows_the_ten_most_selective():
    n_axes = 14
    firsts, lasts, ids = random_boxes(200 if SLOW else 2_000, n_axes, width=0.3)
    firsts[[2, 5, 7, 9]], lasts[[2, 5, 7, 9]] = 0, 999
    index = MLGF.build(firsts, lasts, ids, [1000] * n_axes)
    check(index)

    assert index.axes.tolist() == [0, 1, 3, 4, 6, 8, 10, 11, 12, 13]
    assert len(index.axes) == MAX_AXES
    rows = np.random.default_rng(2).integers(0, 1000, (n_axes, 60)).astype(np.int32)
    assert found(index.match(rows)) == met(firsts, lasts, ids, rows, rows)


@pytest.mark.parametrize("n_axes", [1, 2, 5])
def test_batches_and_single_rows_and_clusters_of_any_size_answer_alike(n_axes):
    *_, index = build(300 if SLOW else 3_000, n_axes, n_cells=400)
    rows = np.random.default_rng(3).integers(0, 400, (n_axes, 90 if SLOW else 1_500)).astype(np.int32)
    expected = found(index.match_immediately(rows))

    assert found(index.match_batch(rows)) == expected
    for n_dc in (1, 3, 64, 100, 256, 700, 2048):
        assert found(index.match_batch(rows, n_dc)) == expected


def test_a_batch_whose_bits_would_take_too_much_memory_is_cut_in_two(monkeypatch):
    *_, index = build(300, 2)
    rows = np.random.default_rng(3).integers(0, 1000, (2, 600)).astype(np.int32)
    expected = found(index.match_batch(rows, 64))
    monkeypatch.setattr(grid_file, "MAX_BYTES", 1 << 12)

    assert found(index.match_batch(rows, 64)) == expected
