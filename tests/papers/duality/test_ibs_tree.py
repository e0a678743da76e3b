from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from vedette.papers.duality.ibs_tree import IBS

N_CELLS = 12
SLOW = bool(config.DISABLE_JIT)
ranges = st.lists(st.tuples(st.integers(0, N_CELLS - 1), st.integers(0, N_CELLS - 1)).map(sorted), max_size=12)


def arrays(pairs):
    return tuple(np.array([[each[side] for each in pairs]], np.int32).reshape(1, -1) for side in (0, 1))


def build(pairs, n_cells=N_CELLS):
    firsts, lasts = arrays(pairs)
    return IBS.build(firsts, lasts, np.arange(len(pairs), dtype=np.int32), [n_cells])


def nodes(index, axis=0):
    """Each node with the constants above it in the tree that are next to it, and its depth."""
    waiting = [(int(index.roots[axis]), -1, int(index.n_cells[axis]), 0)]
    while waiting:
        node, below, above, depth = waiting.pop()
        if node < 0:
            continue
        yield node, below, above, depth
        value = int(index.values[node])
        assert below < value < above
        waiting.append((int(index.children[0, node]), below, value, depth + 1))
        waiting.append((int(index.children[1, node]), value, above, depth + 1))


def listed(index, one):
    return sorted(index.listed[index.starts[one] : index.starts[one] + index.sizes[one]].tolist())


def expected_lists(index, boxes):
    """By node, who covers what is below it, itself and what is above it, and not all three with the way up to it."""
    for node, below, above, _ in nodes(index):
        value = int(index.values[node])
        lists = [[], [], []]
        for number, (first, last) in boxes.items():
            low = -1 if first == 0 else first
            high = N_CELLS if last == N_CELLS - 1 else last
            if low <= below and above <= high:
                continue
            covers = (low <= below and value <= high, low <= value <= high, low <= value and above <= high)
            for one in range(3):
                if covers[one]:
                    lists[one].append(number)
        yield node, lists


def check(index, boxes):
    constants = sorted(
        {first for first, _ in boxes.values() if first > 0} | {last for _, last in boxes.values() if last < N_CELLS - 1}
    )
    assert sorted(int(index.values[node]) for node, *_ in nodes(index)) == constants
    for node, lists in expected_lists(index, boxes):
        assert [listed(index, 3 * node + one) for one in range(3)] == lists
        for child in index.children[:, node]:
            assert child < 0 or index.priorities[child] <= index.priorities[node]


@given(ranges)
def test_a_range_is_listed_where_it_covers_a_node_but_not_the_whole_range_of_the_node(pairs):
    check(build(pairs), dict(enumerate(pairs)))


@given(ranges, ranges, st.data())
def test_after_rotations_the_lists_follow_from_the_shape_of_the_tree(pairs, more, data):
    index = build(pairs)
    boxes = dict(enumerate(pairs))
    for id_, pair in enumerate(more, len(pairs)):
        index.insert(*arrays([pair]), np.array([id_], np.int32))
        boxes[int(index.find(np.array([id_]))[0])] = pair
        check(index, boxes)
    for number in data.draw(st.permutations(sorted(boxes))):
        index.remove(index.ids[number : number + 1].copy())
        del boxes[number]
        check(index, boxes)
    assert index.sizes.sum() == 0
    assert len(index.free_nodes) == len(index.values)


def test_the_example_of_section_3():
    # Q1: 11 < R.y < 15, and others; 14 lies in it by the nodes of both constants.
    index = build([(11, 15), (3, 8), (15, 20)], 30)

    assert index.match(np.array([[14]], np.int32)).positions.tolist() == [0]
    assert sorted(index.match(np.array([[15]], np.int32)).positions.tolist()) == [0, 2]


def test_a_tree_is_balanced_and_stays_balanced_for_any_order_of_insertions():
    n = 200 if SLOW else 3_000
    cells = 2 * n + 2
    firsts = np.arange(1, 2 * n, 2, dtype=np.int32).reshape(1, -1)
    ids = np.arange(n, dtype=np.int32)
    built = IBS.build(firsts, firsts + 1, ids, [cells])
    grown = IBS.build(firsts[:, :1], firsts[:, :1] + 1, ids[:1], [cells])
    grown.insert(firsts[:, 1:], firsts[:, 1:] + 1, ids[1:])

    assert 1 + max(depth for *_, depth in nodes(built)) == math.ceil(math.log2(2 * n + 1))
    assert 1 + max(depth for *_, depth in nodes(grown)) < 4 * math.log2(2 * n)


def test_an_axis_without_predicates_has_no_tree_and_costs_nothing():
    random = np.random.default_rng(4)
    firsts = random.integers(0, 50, (2, 40)).astype(np.int32)
    lasts = firsts + 10
    firsts[1], lasts[1] = 0, 99
    index = IBS.build(firsts, lasts, np.arange(40, dtype=np.int32), [100, 100])

    assert index.roots[1] == -1
    assert set(index.needed.tolist()) <= {0, 1}
