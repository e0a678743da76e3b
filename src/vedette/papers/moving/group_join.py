"""Which objects of a tree a group of moving windows meets within a time: all updates of a timestamp in one descent.

Section 6.2 of Zhang et al. (GroupJoin, Figure 16). A node is read once for all windows that meet it; one query per
window would read the upper nodes many times. A node gets from above the windows that meet its rectangle, and the time
and the box in which they meet it. Its entries are checked against that box first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.nodes import Nodes, Slots, as_slots, find_root, find_stride
from vedette.papers.moving.plane_sweep import (
    Found,
    Techniques,
    find_meetings,
    find_range,
    keep_meeting,
    make_found,
    with_room,
)
from vedette.papers.moving.swept_region import HIGH, LOW
from vedette.papers.moving.tally import PAGES_A_TREE, Tally, read_page
from vedette.papers.moving.tpr_star_tree import TPRStarTree


class Frames(NamedTuple):
    """Nodes still to join, each with its windows `members[starts[i]:ends[i]]`, its time and its box."""

    nodes: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    limits: NDArray[np.float64]  # (n, 2)
    boxes: Slots  # boxes that do not move


def join_group(
    tree: TPRStarTree, windows: Motions, start: float, end: float, techniques: Techniques, tally: Tally
) -> Found:
    """The pairs of windows, by position, and objects that meet within [start, end]; `end` is finite."""
    if not len(tree) or not len(windows):
        return make_found(0)
    first_page = tree.number * PAGES_A_TREE
    span = float(start), float(end)
    return _join(tree.nodes, as_slots(windows), span, techniques, first_page, tally.pages, tally.search)


@kernel
def _join(
    nodes: Nodes,
    windows: Slots,
    span: tuple[float, float],
    techniques: Techniques,
    first_page: int,
    pages: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> Found:
    stride, n_windows, n_dims = find_stride(nodes), len(windows.times), windows.sides.shape[1]
    n_frames_most = stride * (nodes.levels[find_root(nodes)] + 1) + 1
    frames = _make_frames(n_frames_most, n_dims)
    members = np.empty(n_frames_most * n_windows, np.int64)  # a frame has at most all windows
    members[:n_windows] = np.arange(n_windows)
    frames.nodes[0], frames.starts[0], frames.ends[0] = find_root(nodes), 0, n_windows
    frames.limits[0] = span
    n_frames, pairs, n_pairs = 1, make_found(1024), 0
    found = make_found(stride * n_windows)
    while n_frames > 0:
        n_frames -= 1
        node, first = frames.nodes[n_frames], frames.starts[n_frames]
        group = members[first : frames.ends[n_frames]].copy()
        limits = frames.limits[n_frames, 0], frames.limits[n_frames, 1]
        read_page(pages, tally, first_page + node)
        entries = np.arange(node * stride, node * stride + nodes.counts[node])
        if techniques.intersection_check and node != find_root(nodes):
            entries = keep_meeting(nodes.slots, entries, frames.boxes, n_frames, limits, tally)
        if nodes.levels[node] == 0:
            n = find_meetings(windows, group, nodes.slots, entries, limits, span, techniques, found, tally)
            pairs = with_room(pairs, n_pairs, n_pairs + n)
            for k in range(n):
                pairs.a[n_pairs + k], pairs.b[n_pairs + k] = found.a[k], nodes.children[found.b[k]]
            pairs.starts[n_pairs : n_pairs + n] = found.starts[:n]
            pairs.ends[n_pairs : n_pairs + n] = found.ends[:n]
            n_pairs += n
        else:
            n = find_meetings(windows, group, nodes.slots, entries, limits, limits, techniques, found, tally)
            n_frames = _push(nodes, windows, found, n, frames, n_frames, members, first)
    return Found(pairs.a[:n_pairs], pairs.b[:n_pairs], pairs.starts[:n_pairs], pairs.ends[:n_pairs])


@kernel
def _make_frames(n: int, n_dims: int) -> Frames:
    still = Slots(np.zeros((4, n_dims, n)), np.zeros(n))
    return Frames(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, 2)), still)


@kernel
def _push(
    nodes: Nodes,
    windows: Slots,
    found: Found,
    n: int,
    frames: Frames,
    n_frames: int,
    members: NDArray[np.int64],
    first: int,
) -> int:
    """Push a frame for each entry that is met: its windows, when they meet it, and where; the number of frames."""
    order = np.argsort(found.b[:n], kind="mergesort")
    box = frames.boxes
    for place in range(n):
        k = order[place]
        slot = found.b[k]
        if place == 0 or slot != found.b[order[place - 1]]:
            frames.nodes[n_frames], frames.starts[n_frames] = nodes.children[slot], first + place
            frames.limits[n_frames] = np.inf, -np.inf
            box.sides[LOW, :, n_frames], box.sides[HIGH, :, n_frames] = np.inf, -np.inf
            n_frames += 1
        frame = n_frames - 1
        members[first + place] = found.a[k]
        frames.ends[frame] = first + place + 1
        frames.limits[frame, 0] = min(frames.limits[frame, 0], found.starts[k])
        frames.limits[frame, 1] = max(frames.limits[frame, 1], found.ends[k])
        when = found.starts[k], found.ends[k]
        for d in range(windows.sides.shape[1]):
            low, high = find_range(windows, found.a[k], d, when)
            other_low, other_high = find_range(nodes.slots, slot, d, when)
            box.sides[LOW, d, frame] = min(box.sides[LOW, d, frame], max(low, other_low))
            box.sides[HIGH, d, frame] = max(box.sides[HIGH, d, frame], min(high, other_high))
    return n_frames
