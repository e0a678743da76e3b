"""All pairs of two trees that meet within a time: both trees are descended together, by pairs of nodes.

NaiveJoin of section 3.3 of Zhang et al. over any time; with techniques, ImprovedJoin (Figure 13) and IOImprovedJoin
(Figure 15). If two nodes meet during a part of the time, their entries are joined within that part only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.nodes import Nodes, find_root, find_stride, meet_slots
from vedette.papers.moving.plane_sweep import Found, Techniques, find_meetings, keep_meeting, make_found, with_room
from vedette.papers.moving.tally import COMPARISONS, PAGES_A_TREE, Tally, read_page
from vedette.papers.moving.tpr_star_tree import TPRStarTree


class Pairs(NamedTuple):
    """Pairs of objects of both sets, and the closed interval in which each pair intersects."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


class Stack(NamedTuple):
    """Node pairs still to join, each with the part of the time in which the nodes meet."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    is_b_first: NDArray[np.bool_]  # whether node `b` is read first


def join_trees(a: TPRStarTree, b: TPRStarTree, start: float, end: float, techniques: Techniques, tally: Tally) -> Pairs:
    """All pairs that meet within [start, end]; `start` is not before the last change of the trees."""
    pages = a.number * PAGES_A_TREE, b.number * PAGES_A_TREE
    if not len(a) or not len(b):
        return Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))
    return Pairs(*_join(a.nodes, b.nodes, (start, end), techniques, pages, tally.pages, tally.search))


@kernel
def _join(
    a: Nodes,
    b: Nodes,
    span: tuple[float, float],
    techniques: Techniques,
    page_starts: tuple[int, int],
    pages: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    stack, n_stack = _make_stack(1024), 1
    stack.a[0], stack.b[0], stack.is_b_first[0] = find_root(a), find_root(b), False
    stack.starts[0], stack.ends[0] = meet_slots(a.slots, 0, b.slots, 0, span[0], span[1])
    found, pairs, n_pairs = make_found(find_stride(a) * find_stride(b)), make_found(1024), 0
    if stack.starts[0] > stack.ends[0]:
        n_stack = 0
    while n_stack > 0:
        n_stack -= 1
        i, j, is_b_first = stack.a[n_stack], stack.b[n_stack], stack.is_b_first[n_stack]
        limits = stack.starts[n_stack], stack.ends[n_stack]
        if a.levels[i] != b.levels[j]:
            n = _descend_higher(a, i, b, j, limits, page_starts, pages, found, tally)
            stack = _grow_stack(stack, n_stack, n_stack + n)
            n_stack = _push(stack, n_stack, found, n, False)
            continue
        a_slots, b_slots = _choose_entries(a, i, b, j, is_b_first, limits, techniques, page_starts, pages, tally)
        if a.levels[i] == 0:
            n = find_meetings(a.slots, a_slots, b.slots, b_slots, limits, span, techniques, found, tally)
            pairs = with_room(pairs, n_pairs, n_pairs + n)
            for k in range(n):
                pairs.a[n_pairs + k], pairs.b[n_pairs + k] = a.children[found.a[k]], b.children[found.b[k]]
            pairs.starts[n_pairs : n_pairs + n] = found.starts[:n]
            pairs.ends[n_pairs : n_pairs + n] = found.ends[:n]
            n_pairs += n
            continue
        n = find_meetings(a.slots, a_slots, b.slots, b_slots, limits, limits, techniques, found, tally)
        for k in range(n):
            found.a[k], found.b[k] = a.children[found.a[k]], b.children[found.b[k]]
        stack = _grow_stack(stack, n_stack, n_stack + n)
        n_stack = _push(stack, n_stack, found, n, techniques.improved_order)
    a_objects, b_objects = pairs.a[:n_pairs].astype(np.int32), pairs.b[:n_pairs].astype(np.int32)
    return a_objects, b_objects, pairs.starts[:n_pairs].copy(), pairs.ends[:n_pairs].copy()


@kernel
def _make_stack(n: int) -> Stack:
    return Stack(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n, np.bool_))


@kernel
def _grow_stack(stack: Stack, used: int, needed: int) -> Stack:
    if needed <= len(stack.a):
        return stack
    larger = _make_stack(max(needed, 2 * used))
    larger.a[:used], larger.b[:used] = stack.a[:used], stack.b[:used]
    larger.starts[:used], larger.ends[:used] = stack.starts[:used], stack.ends[:used]
    larger.is_b_first[:used] = stack.is_b_first[:used]
    return larger


@kernel
def _push(stack: Stack, n_stack: int, found: Found, n: int, is_ordered: bool) -> int:
    """Put node pairs on the stack so that the first is on top; the size of the stack.

    In the improved order, the node that a pair shares with the pair before it, its master, is read first.
    """
    for k in range(n):
        top = n_stack + n - 1 - k
        stack.a[top], stack.b[top] = found.a[k], found.b[k]
        stack.starts[top], stack.ends[top] = found.starts[k], found.ends[k]
        is_same_a = k > 0 and found.a[k] == found.a[k - 1]
        stack.is_b_first[top] = is_ordered and k > 0 and not is_same_a and found.b[k] == found.b[k - 1]
    return n_stack + n


@kernel
def _descend_higher(
    a: Nodes,
    i: int,
    b: Nodes,
    j: int,
    limits: tuple[float, float],
    page_starts: tuple[int, int],
    pages: NDArray[np.int64],
    found: Found,
    tally: NDArray[np.int64],
) -> int:
    """If one tree is higher, only its node is replaced by its entries that meet the other node; how many pairs."""
    is_a = a.levels[i] > b.levels[j]
    nodes, node, other, slot = (a, i, b, b.parents[j]) if is_a else (b, j, a, a.parents[i])
    read_page(pages, tally, (page_starts[0] if is_a else page_starts[1]) + node)
    n, first = 0, node * find_stride(nodes)
    for s in range(first, first + nodes.counts[node]):
        start, end = meet_slots(nodes.slots, s, other.slots, slot, limits[0], limits[1])
        if start <= end:
            found.a[n], found.b[n] = (nodes.children[s], j) if is_a else (i, nodes.children[s])
            found.starts[n], found.ends[n] = start, end
            n += 1
    tally[COMPARISONS] += nodes.counts[node]
    return n


@kernel
def _choose_entries(
    a: Nodes,
    i: int,
    b: Nodes,
    j: int,
    is_b_first: bool,
    limits: tuple[float, float],
    techniques: Techniques,
    page_starts: tuple[int, int],
    pages: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The entries of both nodes that may meet an entry of the other; with the check, only those that meet its node.

    In the improved order, the second node is not read if the first has no such entry.
    """
    a_slots = np.arange(i * find_stride(a), i * find_stride(a) + a.counts[i])
    b_slots = np.arange(j * find_stride(b), j * find_stride(b) + b.counts[j])
    is_checked, is_ordered = techniques.intersection_check, techniques.improved_order
    for turn in range(2):
        if (turn == 0) == is_b_first:
            read_page(pages, tally, page_starts[1] + j)
            if is_checked:
                b_slots = keep_meeting(b.slots, b_slots, a.slots, a.parents[i], limits, tally)
            is_done = len(b_slots) == 0
        else:
            read_page(pages, tally, page_starts[0] + i)
            if is_checked:
                a_slots = keep_meeting(a.slots, a_slots, b.slots, b.parents[j], limits, tally)
            is_done = len(a_slots) == 0
        if is_done and is_checked and is_ordered:
            return a_slots[:0], b_slots[:0]
    return a_slots, b_slots
