from __future__ import annotations

import numpy as np
import pytest
from numba import config

from vedette.papers.rtrees.packed_rectangle_tree import CAPACITY as PACKED
from vedette.papers.rtrees.packed_rectangle_tree import PackedRTree
from vedette.papers.rtrees.rectangle_tree import RTree
from vedette.papers.rtrees.rectangle_tree_changes import CAPACITY, LEAST

SLOW = bool(config.DISABLE_JIT)


def random_boxes(n, n_axes=2, seed=4):
    random = np.random.default_rng(seed)
    firsts = random.integers(0, 1000, (n_axes, n)).astype(np.int32)
    return (
        firsts,
        np.minimum(firsts + random.integers(0, 60, firsts.shape), 999).astype(np.int32),
        np.arange(n, dtype=np.int32),
    )


def check(index, boxes):
    """Guttman's properties: bounds are tight, nodes have m to M entries, and all leaves are equally deep."""
    root = int(index.counts[0])
    assert index.parents[root] == -1
    found = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        size = int(index.sizes[node])
        assert size <= CAPACITY
        assert node == root or size >= LEAST
        for entry in range(size):
            child = int(index.children[node, entry])
            if index.levels[node] == 0:
                found[child] = index.bounds[node, entry].tolist()
                continue
            assert index.levels[child] == index.levels[node] - 1
            assert index.parents[child] == node
            inner = index.bounds[child, : index.sizes[child]]
            n_axes = inner.shape[1] // 2
            tight = [*inner[:, :n_axes].min(axis=0).tolist(), *inner[:, n_axes:].max(axis=0).tolist()]
            assert index.bounds[node, entry].tolist() == tight
            waiting.append(child)
    assert found == boxes
    assert len(index) == len(boxes)


def by_id(firsts, lasts, ids):
    return {int(id_): [*firsts[:, i].tolist(), *lasts[:, i].tolist()] for i, id_ in enumerate(ids)}


@pytest.mark.parametrize(("n", "n_axes"), [(0, 2), (1, 1), (32, 2), (33, 2), (3_000, 2), (2_000, 3)])
def test_an_r_tree_keeps_its_properties_while_boxes_are_added_and_removed(n, n_axes):
    n = min(n, 150) if SLOW else n
    firsts, lasts, ids = random_boxes(n, n_axes)
    index = RTree.build(firsts, lasts, ids, [1000] * n_axes)
    boxes = by_id(firsts, lasts, ids)
    check(index, boxes)
    order = np.random.default_rng(5).permutation(n)
    for some in np.array_split(order, 5):
        index.remove(ids[some])
        for id_ in ids[some].tolist():
            del boxes[id_]
        check(index, boxes)
        again = some[: len(some) // 3]
        index.insert(firsts[:, again], lasts[:, again], ids[again])
        boxes |= by_id(firsts[:, again], lasts[:, again], ids[again])
        check(index, boxes)
    index.remove(ids)
    check(index, {})
    assert index.levels[index.counts[0]] == 0


def test_freed_nodes_are_reused():
    n = 200 if SLOW else 2_000
    firsts, lasts, ids = random_boxes(n)
    index = RTree.build(firsts, lasts, ids, [1000, 1000])
    for _ in range(3):
        index.remove(ids[: n // 2])
        index.insert(firsts[:, : n // 2], lasts[:, : n // 2], ids[: n // 2])

    assert len(index.sizes) < 1.6 * (n / LEAST) + 10


def test_packed_nodes_are_full_and_their_bounds_tight():
    n = 1_000
    firsts, lasts, ids = random_boxes(n)
    index = PackedRTree.build(firsts, lasts, ids, [1000, 1000])

    sizes = np.diff(index.level_starts)
    assert sizes.tolist() == [1000, 63, 4]
    assert sorted(index.ids.tolist()) == ids.tolist()
    for level in range(1, len(sizes)):
        below = index.bounds[index.level_starts[level - 1] : index.level_starts[level]]
        for entry in range(sizes[level]):
            own = below[PACKED * entry : PACKED * (entry + 1)]
            tight = [*own[:, :2].min(axis=0).tolist(), *own[:, 2:].max(axis=0).tolist()]
            assert index.bounds[index.level_starts[level] + entry].tolist() == tight


def test_packing_by_the_hilbert_curve_makes_smaller_leaves_than_packing_in_order():
    firsts, lasts, ids = random_boxes(2_000)
    index = PackedRTree.build(firsts, lasts, ids, [1000, 1000])
    leaves = index.bounds[index.level_starts[1] : index.level_starts[2]].astype(float)
    areas = np.prod(leaves[:, 2:] - leaves[:, :2], axis=1)
    in_order = [
        np.prod(lasts[:, i : i + PACKED].max(axis=1) - firsts[:, i : i + PACKED].min(axis=1).astype(float))
        for i in range(0, 2_000, PACKED)
    ]

    assert areas.mean() < 0.1 * np.mean(in_order)
