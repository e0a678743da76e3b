"""The TPR*-tree: what holds of its nodes after any changes, where it puts entries, and the regions it judges by."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.moving.boxes import SLOW, as_motions, random_box

from tests.profiles import examples
from vedette.papers.moving.choose_path import choose_path
from vedette.papers.moving.node_split import take_worst
from vedette.papers.moving.nodes import find_stride
from vedette.papers.moving.swept_region import measure_swept
from vedette.papers.moving.tally import BUFFER_PAGES, Tally, read_page
from vedette.papers.moving.tpr_star_tree import TPRStarTree


def ends_at(slots, slot, time):
    passed = time - slots.times[slot]
    lows, highs, low_speeds, high_speeds = slots.sides[:, :, slot]
    return lows + low_speeds * passed, highs + high_speeds * passed


def check(tree, now):
    """All invariants, from the root down; the objects in the tree."""
    nodes, rules = tree.nodes, tree.rules
    stride, objects, n_nodes = find_stride(nodes), [], 0
    todo = [(int(nodes.children[0]), 0, tree.height - 1)]
    while todo:
        node, above, level = todo.pop()
        n_nodes += 1
        n = int(nodes.counts[node])
        assert nodes.parents[node] == above
        assert nodes.levels[node] == level
        assert n <= rules.capacity
        assert n >= (rules.minimum if above else 2 if level else 0)
        for slot in range(node * stride, node * stride + n):
            for time in (now, now + 1, now + 7.3, now + 1e6):
                (low, high), (outer_low, outer_high) = (
                    ends_at(nodes.slots, slot, time),
                    ends_at(nodes.slots, above, time),
                )
                assert (outer_low <= low).all()
                assert (outer_high >= high).all()
            child = int(nodes.children[slot])
            if level:
                todo.append((child, slot, level - 1))
            else:
                assert tree.slot_of[child] == slot
                objects.append(child)
    free, node = 0, int(nodes.state[0])
    while node >= 0:
        free, node = free + 1, int(nodes.parents[node])
    assert n_nodes + free + 1 == nodes.state[1]  # none is lost
    assert len(objects) == len(set(objects)) == len(tree)
    assert set(np.flatnonzero(tree.slot_of != -1).tolist()) == set(objects)
    return set(objects)


@given(seed=st.integers(0, 2**32), n_dims=st.sampled_from([2, 3]), capacity=st.sampled_from([4, 5, 10]))
@examples(0.6)
def test_the_nodes_hold_what_they_should_after_any_insertions_and_deletions(seed, n_dims, capacity):
    numbers, tree = random.Random(seed), TPRStarTree.make(n_dims, 10.0, capacity=capacity)
    inside = set()
    for now in range(6 if SLOW else 12):
        leaving = {i for i in inside if numbers.random() < (0.9 if now == 7 else 0.3)}
        coming = {i for i in range(120) if i not in inside and numbers.random() < 0.4}
        tree.delete(np.array(sorted(leaving), np.int32), float(now))
        boxes = [random_box(numbers, n_dims, now - numbers.randint(0, 3)) for _ in coming]
        tree.insert(np.array(sorted(coming), np.int32), as_motions(boxes, n_dims), float(now))
        inside = inside - leaving | coming

        assert check(pickle.loads(pickle.dumps(tree)), float(now)) == inside
    tree.delete(np.array(sorted(inside), np.int32), 20.0)
    assert check(tree, 20.0) == set()
    assert tree.height == 1


def test_every_object_keeps_its_motion_to_the_last_bit():
    numbers = random.Random(3)
    boxes = [random_box(numbers, 2, 0.1 * i) for i in range(60)]
    tree, motions = TPRStarTree.make(2, 10.0, capacity=4), as_motions(boxes)
    tree.insert(np.arange(60, dtype=np.int32), motions, 6.0)
    slots = tree.nodes.slots

    for row, column in enumerate((motions.lows, motions.highs, motions.low_speeds, motions.high_speeds)):
        assert np.array_equal(slots.sides[row][:, tree.slot_of[:60]], column)
    assert np.array_equal(slots.times[tree.slot_of[:60]], motions.times)


@given(seed=st.integers(0, 2**32))
@examples(0.3)
def test_no_path_costs_less_than_the_chosen_one(seed):
    numbers = random.Random(seed)
    tree = TPRStarTree.make(2, 5.0, np.array([1.0, 0.5]), capacity=4)
    tree.insert(np.arange(70, dtype=np.int32), as_motions(random_box(numbers, 2, 0) for _ in range(70)), 0.0)
    (low, high, low_speed, high_speed, time) = random_box(numbers, 2, 0)
    new = np.array([low, high, low_speed, high_speed])
    entry = np.array([time, *new.reshape(-1)])
    nodes, stride = tree.nodes, find_stride(tree.nodes)

    def costs(node, so_far):
        if nodes.levels[node] == 0:
            yield node, so_far
            return
        for slot in range(node * stride, node * stride + nodes.counts[node]):
            slots = nodes.slots
            box = np.array([*ends_at(slots, slot, 0.0), *slots.sides[2:, :, slot]])
            both = np.array(
                [np.minimum(box[k], new[k]) if k % 2 == 0 else np.maximum(box[k], new[k]) for k in range(4)]
            )
            more = measure_swept(both, tree.rules.sides, 5.0) - measure_swept(box, tree.rules.sides, 5.0)
            yield from costs(nodes.children[slot], so_far + more)

    everything = dict(costs(int(nodes.children[0]), 0.0))
    chosen = choose_path(nodes, entry, 0, 0.0, tree.rules.sides, 5.0)
    assert everything[chosen] == pytest.approx(min(everything.values()), abs=1e-9)


def test_the_worst_entries_are_those_without_which_the_node_sweeps_least():
    still = [([0.1 * i, 0.0], [0.1 * i + 1, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0) for i in range(8)]
    fast = [
        ([0.5, 0.0], [1.5, 1.0], [0.0, 9.0], [0.0, 9.0], 0.0),
        ([0.2, 0.0], [1.2, 1.0], [0.0, 8.0], [0.0, 8.0], 0.0),
    ]
    tree = TPRStarTree.make(2, 10.0, capacity=10)
    tree.insert(np.arange(10, dtype=np.int32), as_motions(still[:4] + fast + still[4:]), 0.0)
    entries, children = np.empty((2, 9)), np.empty(2, np.int32)
    take_worst(tree.nodes, tree.slot_of, 1, 2, 0.0, tree.rules.sides, 10.0, entries, children)

    assert sorted(children.tolist()) == [4, 5]


def test_known_objects_cannot_be_inserted_and_unknown_ones_cannot_be_deleted():
    tree = TPRStarTree.make(2, 10.0, capacity=4)
    one = as_motions([([0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0)])
    tree.insert(np.array([3], np.int32), one, 0.0)

    with pytest.raises(ValueError, match="object 3 is already in the tree; delete it before you insert it again"):
        tree.insert(np.array([3], np.int32), one, 0.0)
    with pytest.raises(ValueError, match="object 2 is not in the tree; it holds 1 objects"):
        tree.delete(np.array([2], np.int32), 0.0)
    with pytest.raises(ValueError, match="a node must have room for at least 4 entries; got capacity=3"):
        TPRStarTree.make(2, 10.0, capacity=3)


@pytest.mark.parametrize("n_dims", [2, 3])
def test_the_swept_region_is_all_that_is_covered_at_some_time(n_dims):
    """Against a count of points thrown at random."""
    numbers = np.random.default_rng(n_dims)
    points = numbers.uniform(-8, 8, (n_dims, 100_000))
    for _ in range(6):
        low = numbers.uniform(-3, 1, n_dims)
        box = np.array([low, low + numbers.uniform(1, 3, n_dims), *numbers.uniform(-1, 1, (2, n_dims))])
        box[3] = np.maximum(box[3], box[2])  # sides go apart, or keep their distance
        sides = numbers.uniform(0, 1, n_dims)
        is_covered = np.zeros(points.shape[1], bool)
        for time in np.linspace(0, 4, 100):
            lows, highs = box[0] + box[2] * time - sides / 2, box[1] + box[3] * time + sides / 2
            is_covered |= ((points >= lows[:, None]) & (points <= highs[:, None])).all(axis=0)
        assert measure_swept(box, sides, 4.0) == pytest.approx(is_covered.mean() * 16**n_dims, rel=0.1)


def test_the_buffer_evicts_the_least_recently_used_page():
    numbers, tally, recent, n_reads = random.Random(1), Tally.make(), [], 0
    for _ in range(2000):
        page = int(numbers.expovariate(1 / 40))
        n_reads += page not in recent
        recent = [page, *(other for other in recent if other != page)][:BUFFER_PAGES]
        read_page(tally.pages, tally.search, page)

    assert (tally.node_accesses, tally.page_reads) == (2000, n_reads)
    tally.reset()
    assert (tally.node_accesses, tally.page_reads, tally.comparisons) == (0, 0, 0)
