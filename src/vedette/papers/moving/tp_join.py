"""TP-Join: the pairs that intersect now, when that changes next, and the pairs that change then.

Section 4 of Zhang et al., after Tao and Papadias, "Time-Parameterized Queries in Spatio-Temporal Databases" (2002).
Both trees are descended where nodes intersect now, or will do so before the first change found so far. Figure 8 as
printed treats the time at which two nodes meet as a change, which hides the changes inside them, and it never looks for
the end of a pair that intersects now. Here only pairs of objects are changes, and their ends are changes, too.

It reports no intervals, only the next change. Intervals are closed, so a time has two moments: at the time, pairs that
begin then have entered; after it, pairs that ended then have left. No motion may start after the last change of the
trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.papers.moving.nodes import Nodes, find_root, find_stride, meet_slots
from vedette.papers.moving.plane_sweep import Found, make_found, with_room
from vedette.papers.moving.tally import COMPARISONS, PAGES_A_TREE, Tally, read_page
from vedette.papers.moving.tpr_star_tree import TPRStarTree


class Moment(NamedTuple):
    """At a time, or right after it. Moments are ordered."""

    time: float
    is_after: bool = False


NEVER = Moment(float("inf"), True)


@dataclass(frozen=True)
class TPAnswer:
    """The pairs that intersect at a moment, the moment of the next change, and the pairs that change then.

    They enter if that moment is at a time, and leave if it is after one.
    """

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    expiry: Moment
    a_changes: NDArray[np.int32]
    b_changes: NDArray[np.int32]


def tp_join(a: TPRStarTree, b: TPRStarTree, moment: Moment, tally: Tally, *, with_pairs: bool = True) -> TPAnswer:
    """The answer at a moment, not before the last change of the trees. Without pairs: only the next change."""
    none = np.empty(0, np.int32)
    if not len(a) or not len(b):
        return TPAnswer(none, none, NEVER, none, none)
    first_pages = a.number * PAGES_A_TREE, b.number * PAGES_A_TREE
    now, is_after = float(moment.time), bool(moment.is_after)
    pairs, changes, expiry, leaves = _descend(
        a.nodes, b.nodes, now, is_after, with_pairs, first_pages, tally.pages, tally.search
    )
    columns = [column.astype(np.int32) for column in (pairs.a, pairs.b, changes.a, changes.b)]
    return TPAnswer(columns[0], columns[1], Moment(expiry, leaves), columns[2], columns[3])


@kernel
def _descend(
    a: Nodes,
    b: Nodes,
    now: float,
    is_after: bool,
    with_pairs: bool,
    first_pages: tuple[int, int],
    pages: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> tuple[Found, Found, float, bool]:
    """Depth first. A node pair that meets after the first change found so far is skipped."""
    stack, n_stack = make_found(1024), 1
    stack.a[0], stack.b[0] = find_root(a), find_root(b)
    stack.starts[0], stack.ends[0] = meet_slots(a.slots, 0, b.slots, 0, now, np.inf)
    if stack.starts[0] > stack.ends[0]:
        n_stack = 0
    pairs, n_pairs, changes, n_changes = make_found(1024), 0, make_found(16), 0
    expiry, leaves = np.inf, True
    while n_stack > 0:
        n_stack -= 1
        i, j = stack.a[n_stack], stack.b[n_stack]
        if stack.starts[n_stack] > max(expiry, now):
            continue
        n_a, n_b = a.counts[i], b.counts[j]
        a_first, b_first = i * find_stride(a), j * find_stride(b)
        if a.levels[i] < b.levels[j]:
            a_first, n_a = a.parents[i], 1
        else:
            read_page(pages, tally, first_pages[0] + i)
        if b.levels[j] < a.levels[i]:
            b_first, n_b = b.parents[j], 1
        else:
            read_page(pages, tally, first_pages[1] + j)
        stack = with_room(stack, n_stack, n_stack + n_a * n_b)
        tally[COMPARISONS] += n_a * n_b
        for s in range(a_first, a_first + n_a):
            for t in range(b_first, b_first + n_b):
                is_leaf = a.levels[i] == 0 and b.levels[j] == 0
                # Computed from their last updates, so that the result does not depend on the moment of the call.
                since = max(a.slots.times[s], b.slots.times[t]) if is_leaf else now
                start, end = meet_slots(a.slots, s, b.slots, t, since, np.inf)
                if start > end or start > max(expiry, now):
                    continue
                if not is_leaf:
                    stack.a[n_stack] = i if a.levels[i] < b.levels[j] else a.children[s]
                    stack.b[n_stack] = j if b.levels[j] < a.levels[i] else b.children[t]
                    stack.starts[n_stack] = start
                    n_stack += 1
                    continue
                is_in = start <= now and (end > now if is_after else end >= now)
                if is_in and with_pairs:
                    pairs = with_room(pairs, n_pairs, n_pairs + 1)
                    pairs.a[n_pairs], pairs.b[n_pairs] = a.children[s], b.children[t]
                    n_pairs += 1
                if start <= now and not is_in:
                    continue  # it has ended
                time = end if is_in else start
                if time < expiry or (time == expiry and leaves and not is_in and expiry < np.inf):
                    expiry, leaves, n_changes = time, is_in, 0
                if time == expiry and leaves == is_in and expiry < np.inf:
                    changes = with_room(changes, n_changes, n_changes + 1)
                    changes.a[n_changes], changes.b[n_changes] = a.children[s], b.children[t]
                    n_changes += 1
    found = Found(pairs.a[:n_pairs], pairs.b[:n_pairs], pairs.starts[:n_pairs], pairs.ends[:n_pairs])
    events = Found(changes.a[:n_changes], changes.b[:n_changes], changes.starts[:0], changes.ends[:0])
    return found, events, expiry, leaves
