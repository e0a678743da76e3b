from __future__ import annotations

import numpy as np

from vedette.indexes.interval_skip_list import ISList


def random_list(n_boxes, width, n_cells=200_000):
    random = np.random.default_rng(5)
    firsts = random.integers(0, n_cells - width, (1, n_boxes)).astype(np.int32)
    return ISList.build(firsts, firsts + width, np.arange(n_boxes, dtype=np.int32), [n_cells])


def test_equal_boxes_make_equal_lists():
    one, other = random_list(300, 1_000), random_list(300, 1_000)

    assert one.forward.tolist() == other.forward.tolist()
    assert one.markers.tolist() == other.markers.tolist()


def test_each_edge_leads_to_the_next_node_that_is_as_high():
    index = random_list(200, 50)
    heights = np.diff(index.towers)
    for node in range(len(index.keys) - 1):
        for level in range(heights[node]):
            higher = [other for other in range(node + 1, len(heights)) if heights[other] > level]

            assert index.forward[index.towers[node] + level] == (higher[0] if higher else len(heights) - 1)


def test_a_marked_edge_lies_in_the_box_and_none_longer_does():
    n_cells, width = 2_000, 150
    index = random_list(60, width, n_cells)
    edges = [
        (int(index.keys[node]), int(index.keys[index.forward[edge]]), edge)
        for node in range(len(index.keys) - 1)
        for edge in range(index.towers[node], index.towers[node + 1])
    ]
    firsts = np.random.default_rng(5).integers(0, n_cells - width, 60)
    for low, high, edge in edges:
        for box in index.markers[index.starts[edge] : index.starts[edge + 1]]:
            first, last = firsts[box], firsts[box] + width

            assert first <= low
            assert high <= last
            assert not any(
                first <= start <= low and high <= end <= last and (start, end) != (low, high) for start, end, _ in edges
            )


def test_markers_grow_with_the_logarithm_of_the_width():
    by_width = [len(random_list(2_000, width).markers) for width in (200, 2_000, 20_000)]

    assert by_width[0] < by_width[1] < by_width[2] < 6 * by_width[0]
    assert by_width[2] - by_width[1] < 2 * (by_width[1] - by_width[0])
