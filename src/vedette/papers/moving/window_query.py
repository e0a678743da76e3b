"""Which objects of a tree a moving window meets within a time: an updated object is joined with the other set.

Section 3.3 of Zhang et al.: an updated object is treated as a tree of one node with one entry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.nodes import Nodes, Slots, as_slots, find_root, find_stride
from vedette.papers.moving.plane_sweep import NO_TECHNIQUES, Found, find_meetings, make_found, with_room
from vedette.papers.moving.tally import PAGES_A_TREE, Tally, read_page
from vedette.papers.moving.tpr_star_tree import TPRStarTree


def query_windows(tree: TPRStarTree, windows: Motions, start: float, end: float, tally: Tally) -> Found:
    """The pairs of windows, by position, and objects that meet within [start, end]. One window after the other."""
    if not len(tree):
        return make_found(0)
    first_page = tree.number * PAGES_A_TREE
    return _query(tree.nodes, as_slots(windows), (start, end), first_page, tally.pages, tally.search)


@kernel
def _query(
    nodes: Nodes,
    windows: Slots,
    span: tuple[float, float],
    first_page: int,
    pages: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> Found:
    stride = find_stride(nodes)
    stack, found = np.empty(len(nodes.counts), np.int64), make_found(stride)
    pairs, n_pairs = make_found(1024), 0
    for window in range(len(windows.times)):
        one = np.array([window])
        stack[0] = find_root(nodes)
        n_stack = 1
        while n_stack > 0:
            n_stack -= 1
            node = stack[n_stack]
            read_page(pages, tally, first_page + node)
            entries = np.arange(node * stride, node * stride + nodes.counts[node])
            n = find_meetings(windows, one, nodes.slots, entries, span, span, NO_TECHNIQUES, found, tally)
            if nodes.levels[node] > 0:
                for k in range(n):
                    stack[n_stack + k] = nodes.children[found.b[k]]
                n_stack += n
                continue
            pairs = with_room(pairs, n_pairs, n_pairs + n)
            for k in range(n):
                pairs.a[n_pairs + k], pairs.b[n_pairs + k] = window, nodes.children[found.b[k]]
            pairs.starts[n_pairs : n_pairs + n] = found.starts[:n]
            pairs.ends[n_pairs : n_pairs + n] = found.ends[:n]
            n_pairs += n
    return Found(pairs.a[:n_pairs], pairs.b[:n_pairs], pairs.starts[:n_pairs], pairs.ends[:n_pairs])
