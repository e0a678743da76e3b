from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numba import config
from operators.band_join.plain import KINDS

from tests.profiles import examples
from vedette.operators.band_join.index.point_blocks import BLOCK, FILL, STRETCH, find_cell, find_first
from vedette.operators.band_join.index.points import Points

SLOW = bool(config.DISABLE_JIT)
N = 2_000 if SLOW else 20_000
NUMBER = st.one_of(*KINDS)


class Machine(RuleBasedStateMachine):
    """Values come and go; the blocks hold them in order, and the table leads to every one."""

    def __init__(self):
        super().__init__()
        self.points = Points()
        self.values = {}
        self.n_names = 0

    @rule(values=st.lists(NUMBER, min_size=1, max_size=60), is_one=st.booleans())
    def add(self, values, is_one):
        values = values[:1] if is_one else values
        names = range(self.n_names, self.n_names + len(values))
        self.n_names += len(values)
        self.points.add(np.array(values), np.array(names, np.int32))
        self.values.update(zip(names, values, strict=True))

    @rule(source=st.randoms(use_true_random=False), share=st.sampled_from([0.02, 0.3, 1]))
    def remove(self, source, share):
        names = sorted(name for name in self.values if source.random() < share)
        source.shuffle(names)
        if names:
            self.points.remove(np.array([self.values.pop(name) for name in names]), np.array(names, np.int32))

    @invariant()
    def holds_the_values_in_order(self):
        values, names = self.points.in_order()

        expected = sorted((value, name) for name, value in self.values.items())
        assert list(zip(values.tolist(), names.tolist(), strict=True)) == expected
        assert len(self.points) == len(expected)

    @invariant()
    def knows_how_many_blocks_begin_below_each_stretch(self):
        points = self.points
        blocks = points.blocks
        firsts = [blocks.values[blocks.order[block], 0] for block in range(points.n_blocks)]
        assert firsts == blocks.firsts[: points.n_blocks].tolist()
        stretches = [find_cell(first, blocks.grid, blocks.words) >> STRETCH for first in firsts]
        for stretch in range(len(blocks.begun)):
            assert blocks.begun[stretch] == sum(each < stretch for each in stretches)

    @rule(bound=NUMBER)
    def finds_the_first_value_above_a_bound(self, bound):
        points = self.points
        if points.n_blocks == 0:
            return
        blocks = points.blocks
        cell = find_cell(bound, blocks.grid, blocks.words)
        block, place = find_first(
            0.0, bound, cell, blocks.values, blocks.order, blocks.firsts, blocks.begun, points.n_blocks
        )
        before = sum(points.blocks.sizes[:block]) + place
        assert before == sum(value <= bound for value in self.values.values())


TestPoints = Machine.TestCase
TestPoints.settings = examples(0.6, stateful_step_count=15)


def test_adding_one_by_one_keeps_blocks_half_full_and_memory_linear():
    points = Points()
    values = np.random.default_rng(1).random(N)
    for name, value in enumerate(values):
        points.add(np.array([value]), np.array([name], np.int32))

    assert points.in_order()[0].tolist() == np.sort(values).tolist()
    assert points.n_blocks <= 2 * len(values) / BLOCK + 1
    assert points.nbytes < 60 * len(values)


def test_removing_one_by_one_frees_memory():
    points = Points()
    values = np.random.default_rng(1).random(N)
    points.add(values, np.arange(N, dtype=np.int32))
    for name in np.random.default_rng(2).permutation(N)[N // 10 :].tolist():
        points.remove(values[name : name + 1], np.array([name], np.int32))

    assert len(points) == N // 10
    assert points.n_blocks * FILL <= 4 * len(points) + 16 * FILL
    assert points.nbytes < 100 * len(points) + 10_000


def test_a_few_far_values_do_not_make_the_table_sparse():
    points = Points()
    values = np.random.default_rng(1).random(N)
    values[: N // 500] *= 1e12
    points.add(values, np.arange(len(values), dtype=np.int32))

    assert np.count_nonzero(points.blocks.words) > N / 10
