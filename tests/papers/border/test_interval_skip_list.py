from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from tests.profiles import examples
from vedette.papers.border.interval_skip_list import ISList
from vedette.papers.border.skip_list_changes import HEADER, TAIL

SLOW = bool(config.DISABLE_JIT)


def random_boxes(n_boxes, width, n_cells=200_000):
    firsts = np.random.default_rng(5).integers(0, n_cells - width, (1, n_boxes)).astype(np.int32)
    return firsts, firsts + width, np.arange(n_boxes, dtype=np.int32)


def random_list(n_boxes, width, n_cells=200_000):
    return ISList.build(*random_boxes(n_boxes, width, n_cells), [n_cells])


def sizes_of(index):
    return index.sizes if len(index.sizes) else np.diff(index.starts)


def nodes_of(index):
    """All nodes in order, the header first and what is behind all left out."""
    nodes = [HEADER]
    while index.forward[nodes[-1] + 1] != TAIL:
        nodes.append(int(index.forward[nodes[-1] + 1]))
    return nodes


def listed(index, slot):
    return index.listed[index.starts[slot] : index.starts[slot] + sizes_of(index)[slot]].tolist()


def edges_of(index):
    return [
        (int(index.forward[node]), int(index.forward[index.forward[node + level]]), node + level)
        for node in nodes_of(index)
        for level in range(1, index.heights[node] + 1)
    ]


def marked(index):
    """What each edge and each node is marked with: by their keys, sorted ids."""
    on_edges = {(low, high): [] for low, high, _ in edges_of(index)}
    for low, high, slot in edges_of(index):  # two edges of different levels may be as long
        on_edges[low, high] += index.ids[listed(index, slot)].tolist()
    on_nodes = {int(index.forward[node]): sorted(index.ids[listed(index, node)].tolist()) for node in nodes_of(index)}
    return {edge: sorted(ids) for edge, ids in on_edges.items()}, on_nodes


def to_be_marked(index, boxes):
    """The same, from towers and boxes alone: the edges within a box that lie in no longer one, and their ends."""
    on_edges = {(low, high): [] for low, high, _ in edges_of(index)}
    on_nodes = {int(index.forward[node]): [] for node in nodes_of(index)}
    for first, last, box_id in boxes:
        within = [(low, high) for low, high in on_edges if first <= low and high <= last]
        longest = [
            edge for edge in within if not any(a <= edge[0] and edge[1] <= b and (a, b) != edge for a, b in within)
        ]
        for edge in longest:
            on_edges[edge].append(box_id)
        for key in {first, last}.union(*longest):
            on_nodes[key].append(box_id)
    return {edge: sorted(ids) for edge, ids in on_edges.items()}, {key: sorted(ids) for key, ids in on_nodes.items()}


def test_equal_boxes_give_equal_lists():
    one, other = random_list(300, 1_000), random_list(300, 1_000)

    assert one.forward.tolist() == other.forward.tolist()
    assert one.listed.tolist() == other.listed.tolist()


def test_each_edge_leads_to_the_next_node_that_is_as_high():
    index = random_list(200, 50)
    nodes = nodes_of(index)
    for i, node in enumerate(nodes):
        for level in range(1, index.heights[node] + 1):
            higher = [other for other in nodes[i + 1 :] if index.heights[other] >= level]

            assert index.forward[node + level] == (higher[0] if higher else TAIL)


def test_a_marked_edge_is_in_the_box_and_no_longer_edge_is():
    n_cells, width = 2_000, 150
    index = random_list(60, width, n_cells)
    firsts, lasts, ids = (each.ravel().tolist() for each in random_boxes(60, width, n_cells))

    assert marked(index) == to_be_marked(index, list(zip(firsts, lasts, ids, strict=True)))


def test_markers_grow_with_the_logarithm_of_the_width():
    by_width = [random_list(2_000, width).starts[-1] for width in (200, 2_000, 20_000)]

    assert by_width[0] < by_width[1] < by_width[2] < 6 * by_width[0]
    assert by_width[2] - by_width[1] < 2 * (by_width[1] - by_width[0])


cell = st.integers(0, 29)
change = st.tuples(st.booleans(), st.lists(st.tuples(cell, cell, st.integers(0, 9)), min_size=1, max_size=6))


def change_list(index, boxes, comes, some):
    """Let boxes come, or those with the ids of these go; what boxes are there then."""
    some = [(min(ends), max(ends), box_id) for *ends, box_id in some]
    if comes:
        firsts, lasts, ids = (np.array(each, np.int32) for each in zip(*some, strict=True))
        index.insert(firsts.reshape(1, -1), lasts.reshape(1, -1), ids)
        return boxes + some
    gone = {box_id for _, _, box_id in some}
    index.remove(np.array(sorted(gone), np.int32))
    return [box for box in boxes if box[2] not in gone]


@given(st.lists(change, max_size=10))
@examples(1.5)
def test_changes_leave_the_nodes_and_markers_that_the_boxes_need(changes):
    none = np.empty((1, 0), np.int32)
    index, boxes = ISList.build(none, none, none[0], [30]), []
    for comes, some in changes:
        boxes = change_list(index, boxes, comes, some)
        index = pickle.loads(pickle.dumps(index))
        keys = [int(index.forward[node]) for node in nodes_of(index)]

        assert keys == [-1, *sorted({end for first, last, _ in boxes for end in (first, last)})]
        assert marked(index) == to_be_marked(index, boxes)


def test_a_change_touches_the_markers_near_its_own_only():
    n_cells = 100_000
    index = random_list(300 if SLOW else 3_000, 900, n_cells)
    index.remove(np.empty(0, np.int32))
    before = {slot: listed(index, slot) for slot in range(len(index.sizes))}
    index.insert(np.array([[n_cells // 2]]), np.array([[n_cells // 2 + 900]]), np.array([99_999]))
    after = {slot: listed(index, slot) for slot in range(len(index.sizes))}

    assert sum(before.get(slot, []) != each for slot, each in after.items()) < 120
    index.remove(np.array([99_999]))
    again = {slot: listed(index, slot) for slot in before}
    assert {slot: sorted(each) for slot, each in again.items()} == {slot: sorted(each) for slot, each in before.items()}


def test_a_list_filled_step_by_step_has_towers_as_high_as_one_built_at_once():
    n_boxes = 100 if SLOW else 1_000
    firsts, lasts, ids = random_boxes(n_boxes, 900)
    built = random_list(n_boxes, 900)
    none = np.empty((1, 0), np.int32)
    filled = ISList.build(none, none, none[0], [200_000])
    for box in range(n_boxes):
        filled.insert(firsts[:, [box]], lasts[:, [box]], ids[[box]])

    heights = [index.heights[nodes_of(index)[1:]] for index in (filled, built)]
    assert len(heights[0]) == len(heights[1])
    assert 0.8 < heights[0].mean() / heights[1].mean() < 1.25
    assert 0.8 < filled.sizes.sum() / built.starts[-1] < 1.25


def test_towers_of_removed_nodes_are_reused():
    index = random_list(50, 900)
    random = np.random.default_rng(8)
    for _ in range(4 if SLOW else 40):
        boxes = random.integers(0, 50, 20).astype(np.int32)
        index.remove(boxes)
        boxes = np.unique(boxes)
        firsts = random.integers(0, 190_000, (1, len(boxes))).astype(np.int32)
        index.insert(firsts, firsts + 900, boxes)

    assert len(index) == 50
    assert len(index.forward) < 2 * len(random_list(100, 900).forward)


def test_a_list_that_never_changed_stores_no_ends_and_computes_them_at_the_first_change():
    firsts, lasts, ids = random_boxes(100, 900, 2_000)
    lasts[0, ::5] = firsts[0, ::5]
    index = ISList.build(firsts, lasts, ids, [2_000])
    assert index.firsts.size == index.lasts.size == index.sizes.size == 0
    index.remove(ids[:0])

    assert index.firsts.tolist() == firsts.tolist()
    assert index.lasts.tolist() == lasts.tolist()
    assert len(index.sizes) == len(index.starts)
