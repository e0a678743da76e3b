"""Ordered lists against Python's own."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.operators.window_join import ordered_lists
from vedette.operators.window_join.ordered_lists import Arrivals, Expiry, OrderedLists

NOW = 2000  # later than all times
seeds = st.integers(0, 2**32)


class World:
    """Rows with a code, a key and a time each, and the lists that they are put into, plainly."""

    def __init__(self, random_: random.Random, *, has_codes: bool) -> None:
        self.random = random_
        self.has_codes = has_codes
        self.lists = OrderedLists(has_codes=has_codes)
        self.codes, self.keys, self.times = [], [], []  # of every row there ever was
        self.plain: list[list[int]] = []  # by list, rows that were put there and were not cleared
        self.first_rows: list[int] = []  # by list, below which rows may be dropped
        self.oldest: list[int] = []  # by list, the time before which rows may be dropped
        self.shift = 0

    def add(self, n: int) -> None:
        self.lists.add(n)
        self.plain += [[] for _ in range(n)]
        self.first_rows += [0] * n
        self.oldest += [-1000] * n

    def clear(self, lists: list[int]) -> None:
        self.lists.clear(np.array(lists, np.int32))
        for one in lists:
            self.plain[one] = []

    def expire(self) -> None:
        """Some rows expire in all lists, some in one list or another."""
        n = len(self.keys)
        self.shift = self.random.randint(self.shift, n)
        for one in range(len(self.plain)):
            if self.random.random() < 0.5:
                self.first_rows[one] = max(self.first_rows[one], self.random.randint(0, n))
            if self.random.random() < 0.5 and n:
                self.oldest[one] = max(self.oldest[one], self.random.choice(self.times))

    def insert(self, n: int, chosen: list[int] | None = None) -> None:
        first = len(self.keys)
        for number in range(first, first + n):
            self.codes.append(
                self.random.choice([-1, 0, 0, 1, 2, 5]) if self.has_codes else self.random.choice([0, 0, -1])
            )
            self.keys.append(self.random.choice([-(2**63), -3, 0, 0, 1, 2, 2**63 - 1, self.random.randint(-9, 9)]))
            self.times.append(number + self.random.randint(-3, 3))
        if chosen is None:
            chosen = sorted(self.random.sample(range(len(self.plain)), self.random.randint(0, len(self.plain))))
        starts, rows = [0], []
        for one in chosen:
            new = [row for row in range(first, first + n) if self.random.random() < 0.7]
            new.sort(key=lambda row: (self.codes[row] if self.has_codes else 0, self.keys[row]))
            rows += new
            starts.append(len(rows))
            self.plain[one] += [row for row in new if self.codes[row] >= 0]
        self.lists.insert(
            Arrivals(np.array(chosen, np.int32), np.array(starts, np.int64), np.array(rows, np.int32)),
            np.array(self.codes[self.shift :], np.int32),
            np.array(self.keys[self.shift :], np.int64),
            self.shift,
            Expiry(
                np.array(self.first_rows, np.int64),
                np.array(self.times[self.shift :], np.int64),
                self.shift,
                np.int64(NOW),
                NOW - np.array(self.oldest, np.int64),
            ),
        )

    def check(self) -> None:
        """Each list is in order, has every row that is not expired, and no row that was not inserted."""
        lists, spans = self.lists, []
        for one, plain in enumerate(self.plain):
            start, n = int(lists.arrays.starts[one]), int(lists.arrays.lengths[one])
            assert n <= lists.arrays.rooms[one]
            rows = lists.arrays.rows[start : start + n].tolist()
            keys = lists.arrays.keys[start : start + n].tolist()
            codes = lists.arrays.codes[start : start + n].tolist() if self.has_codes else [0] * n
            assert list(zip(codes, keys, strict=True)) == sorted(zip(codes, keys, strict=True))
            assert keys == [self.keys[row] for row in rows]
            assert codes == [self.codes[row] if self.has_codes else 0 for row in rows]
            assert len(set(rows)) == len(rows)
            assert set(rows) <= set(plain)
            first = max(self.first_rows[one], self.shift)
            kept = {row for row in plain if row >= first and self.times[row] >= self.oldest[one]}
            assert kept <= set(rows)
            spans.append((start, start + int(lists.arrays.rooms[one])))
        spans = sorted(span for span in spans if span[0] < span[1])
        assert all(before[1] <= after[0] for before, after in pairwise(spans)), "lists overlap"
        assert not spans or spans[-1][1] <= len(lists.arrays.rows)


@pytest.mark.parametrize("has_codes", [False, True])
@given(seed=seeds)
def test_lists_hold_what_was_put_into_them_in_order_until_it_expires(has_codes, seed):
    world = World(random.Random(seed), has_codes=has_codes)
    for _ in range(12):
        act = world.random.random()
        if act < 0.2 or not world.plain:
            world.add(world.random.choice([0, 1, 3]))
        elif act < 0.3:
            world.clear(world.random.sample(range(len(world.plain)), world.random.randint(0, len(world.plain))))
        elif act < 0.5:
            world.expire()
        else:
            world.insert(world.random.choice([0, 1, 2, 10]))
        world.check()


@pytest.mark.parametrize("has_codes", [False, True])
@given(seed=seeds)
def test_lists_hold_the_same_when_gaps_are_closed_early(has_codes, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_lists, "SMALL_ARENA", 0)
        world = World(random.Random(seed), has_codes=has_codes)
        world.add(world.random.choice([2, 5]))
        for _ in range(25):
            act = world.random.random()
            if act < 0.15:
                world.clear(world.random.sample(range(len(world.plain)), world.random.randint(0, len(world.plain))))
            elif act < 0.4:
                world.expire()
            else:
                world.insert(world.random.choice([1, 2, 6]))
            world.check()


def test_memory_depends_on_kept_rows_not_on_earlier_ones():
    world = World(random.Random(1), has_codes=True)
    world.add(20)
    sizes = []
    for _ in range(400):
        world.insert(20)
        world.shift = max(0, len(world.keys) - 100)
        sizes.append(world.lists.nbytes)
    world.check()
    assert sizes[-1] <= 2 * max(sizes[:40])


def test_lists_without_new_rows_free_their_memory(monkeypatch):
    monkeypatch.setattr(ordered_lists, "SMALL_ARENA", 0)
    world = World(random.Random(2), has_codes=False)
    world.add(100)
    sizes = []
    for one in range(100):
        for _ in range(10):
            world.insert(20, [one])
            world.shift = max(0, len(world.keys) - 100)
        sizes.append(world.lists.nbytes)
    world.check()
    assert sizes[-1] <= 4 * sizes[1]


def test_a_list_without_rows_costs_no_room():
    lists = OrderedLists(has_codes=False)
    lists.add(1000)
    assert len(lists.arrays.rows) == 0
    nothing = Arrivals(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32))
    none, zeros = np.empty(0, np.int64), np.zeros(1000, np.int64)
    lists.insert(nothing, np.empty(0, np.int32), none, 0, Expiry(zeros, none, 0, np.int64(NOW), zeros))
    assert len(lists.arrays.rows) == 0
