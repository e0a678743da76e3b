"""Runs of ordered lists against every row compared with every probe."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.native.ordering import GREATEST, LEAST, NAN_KEY, keys_of_doubles
from vedette.operators.window_join.ordered_lists import ListArrays
from vedette.operators.window_join.probes import (
    DOUBLES,
    INTEGERS,
    NO_LINK,
    SIGN,
    Before,
    LinkRanges,
    Probes,
    Reach,
    RowKeyArrays,
    Runs,
    Taken,
    find_runs,
    is_in_range,
    link_value,
    name_pairs,
    take_runs,
)

seeds = st.integers(0, 2**32)
KINDS = {"nothing": NO_LINK, "signs": SIGN, "doubles": DOUBLES, "integers": INTEGERS}
DOUBLE_VALUES = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 0.1, 0.3, 1.0, 1.5, -1.5, 2.0),
    *(1e308, -1e308, 1.7e308, -1.7e308, 2.0**53, 2.0**53 + 2),
]
INTEGER_VALUES = [
    *(-(2**63), -(2**63) + 1, -(2**62) - 1, -(2**62), -3, -1, 0, 1, 2, 3, 2**62 - 1, 2**62, 2**62 + 1),
    *(2**63 - 2, 2**63 - 1),
]


def to_keys(kind, values):
    return keys_of_doubles(np.array(values, np.float64)) if kind == DOUBLES else np.array(values, np.int64)


def order(value):
    """Spark's order of doubles, as Python can compare it."""
    return (1, 0.0) if math.isnan(value) else (0, value)


def is_linked(kind, first, second, low, high):
    """Whether a link is true, from the values themselves; an end of None is unbounded."""
    if kind == NO_LINK:
        return True
    if kind == SIGN:
        value = (first > second) - (first < second)
    elif kind == INTEGERS:
        value = first - second
        if not -(2**63) <= value < 2**63:
            return False
    else:
        value, low, high = (None if each is None else order(each) for each in (first - second, low, high))
    return (low is None or low <= value) and (high is None or value <= high)


def draw_range(random_, kind):
    """Ends of a range as values, and as keys."""
    if kind in (NO_LINK, SIGN):
        low, high = random_.choice([(-1, -1), (-1, 0), (0, 0), (0, 1), (1, 1), (-1, 1), (1, -1)])
        return (low, high), (low, high)
    values = DOUBLE_VALUES if kind == DOUBLES else INTEGER_VALUES
    ends = [random_.choice([None, *values]) for _ in range(2)]
    keys = [
        int(to_keys(kind, [end])[0]) if end is not None else none
        for end, none in zip(ends, (LEAST, GREATEST), strict=True)
    ]
    return ends, keys


class Probing:
    """Rows in lists, some of them dropped, and probes of branches, all at random."""

    def __init__(self, random_, kind, *, is_first):
        self.random, self.kind, self.is_first = random_, kind, is_first
        pool = DOUBLE_VALUES if kind == DOUBLES else INTEGER_VALUES
        # Half of the time without what breaks the order.
        self.pool = [value for value in pool if abs(value) < 1e18] if random_.random() < 0.5 else pool
        self.has_codes, self.counts = random_.random() < 0.5, random_.random() < 0.5
        self.draw_lists(random_.choice([1, 3]))
        self.draw_branches(random_.choice([1, 2, 5]))
        self.draw_probes(random_.choice([1, 2, 8]))

    def draw_values(self, n):
        values = [self.random.choice(self.pool) for _ in range(n)]
        return values, to_keys(self.kind, values)

    def draw_lists(self, n):
        self.shift, n_kept = self.random.choice([0, 3]), self.random.choice([0, 1, 12])
        self.end = self.shift + n_kept
        self.values, keys = self.draw_values(self.end)
        self.codes = [self.random.choice([0, 1, 2]) if self.has_codes else 0 for _ in self.values]
        self.times = [self.random.randint(0, 20) for _ in self.values]
        self.lists = [[row for row in range(self.end) if self.random.random() < 0.7] for _ in range(n)]
        arena, starts = [], []
        for rows in self.lists:
            rows.sort(key=lambda row: (self.codes[row], keys[row]))
            arena += self.random.choice([[], self.values and [0, 0]])  # room that is not used
            starts.append(len(arena))
            arena += rows
        self.starts, self.list_rows = np.array(starts, np.int64), np.array(arena, np.int32)
        self.list_keys = keys[self.list_rows]
        codes = np.array(self.codes, np.int32)[self.list_rows]
        self.list_codes = codes if self.has_codes else np.empty(0, np.int32)

    def draw_branches(self, n):
        self.ends, keys = zip(*(draw_range(self.random, self.kind) for _ in range(n)), strict=True)
        self.lows, self.highs = (np.array([each[side] for each in keys], np.int64) for side in (0, 1))
        self.list_of = [self.random.randrange(len(self.lists)) for _ in range(n)]
        self.windows = [self.random.choice([1, 2, 5, 20]) for _ in range(n)]
        has_own = self.random.random() < 0.5
        self.own_windows = [self.random.choice([1, 3, 20]) for _ in range(n)] if has_own else []

    def draw_probes(self, n):
        """Probes branch by branch, mostly in the order of their keys. The arrival of a probe is its place."""
        self.probe_values, self.probe_keys = self.draw_values(n)
        self.probe_codes = [self.random.choice([-1, 0, 1, 2] if self.has_codes else [-1, 0, 0]) for _ in range(n)]
        self.limits = [self.random.randint(self.shift, self.end) for _ in range(n)]
        self.latest = [self.random.randint(0, 20) for _ in range(n)]
        self.probes = []
        for branch in range(len(self.ends)):
            places = [place for place in range(n) if self.random.random() < 0.8]
            if self.random.random() < 0.8:
                places.sort(key=lambda place: (self.probe_codes[place], self.probe_keys[place]))
            self.probes += [(branch, place) for place in places]

    def find(self):
        """The (probe, row) that the kernels find, in two parts."""
        branches, places = (np.array([probe[side] for probe in self.probes], np.int32) for side in (0, 1))
        probes = Probes(branches, places, places)
        runs = Runs(np.empty(len(places), np.int64), np.empty(len(places), np.int32))
        link = LinkRanges(self.kind, self.is_first, self.lows, self.highs)
        lengths = np.array([len(rows) for rows in self.lists], np.int32)
        lists = ListArrays(self.starts, lengths, lengths, self.list_codes, self.list_keys, self.list_rows)
        row_keys = RowKeyArrays(np.array(self.probe_codes, np.int32), self.probe_keys)
        find_runs(probes, row_keys, link, np.array(self.list_of, np.int32), lists, runs)
        n_most = int(np.abs(runs.lengths.astype(np.int64)).sum())
        latest, by_arrival = np.array(self.latest, np.int64), self.random.random() < 0.5
        cut, n, base = self.random.randint(0, len(places)), 0, self.random.choice([0, 7])
        before = Before(np.array(self.limits, np.int64), latest if by_arrival else latest[places], by_arrival)
        windows = np.array(self.windows, np.int64), np.array(self.own_windows, np.int64)
        reach = Reach(np.array(self.times[self.shift :], np.int64), self.shift, self.counts, *windows)
        taken, rows = np.empty(len(places), np.int32), np.empty(n_most + 1, np.int32)
        names, own = np.empty(n_most + 1, np.int32), np.empty(n_most + 1, np.int32)
        for first, last in ((0, cut), (cut, len(places))):
            n_before, out = n, Taken(base, taken, rows, n)
            n = take_runs(probes, self.probe_keys, before, runs, link, lists, reach, (first, last), out)
            queries = np.arange(len(self.ends), dtype=np.int32) + 100
            name_pairs(branches, queries, places, base, taken, first, last, names, own, n_before)
        which = np.repeat(np.arange(len(places)), taken)
        assert names[:n].tolist() == (branches[which] + 100).tolist()
        assert own[:n].tolist() == (places[which] - base).tolist()
        return list(zip(which.tolist(), (rows[:n] + base).tolist(), strict=True))

    def joins(self, branch, place, row):
        """Whether a row of the branch's list joins with the row at the probe's place."""
        if self.probe_codes[place] != self.codes[row] or not self.shift <= row < self.limits[place]:
            return False
        age, window = self.latest[place] - self.times[row], self.windows[branch]
        if self.own_windows and -age > self.own_windows[branch]:
            return False
        if (self.limits[place] - row if self.counts else age) > window:
            return False
        pair = (self.probe_values[place], self.values[row])
        return is_linked(self.kind, *(pair if self.is_first else pair[::-1]), *self.ends[branch])


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(seed=seeds)
def test_runs_are_what_comparing_every_row_finds(kind, is_first, seed):
    probing = Probing(random.Random(seed), kind, is_first=is_first)

    assert sorted(probing.find()) == sorted(
        (number, row)
        for number, (branch, place) in enumerate(probing.probes)
        for row in probing.lists[probing.list_of[branch]]
        if probing.joins(branch, place, row)
    )


def test_a_difference_beyond_64_bits_is_at_the_end_it_is_beyond_and_in_no_range():
    least, greatest = np.int64(LEAST), np.int64(GREATEST)
    one = np.int64(1)
    assert link_value(INTEGERS, greatest, -one) == GREATEST
    assert link_value(INTEGERS, least, one) == LEAST
    assert not is_in_range(INTEGERS, greatest, -one, LEAST, GREATEST)
    assert not is_in_range(INTEGERS, least, one, LEAST, GREATEST)
    assert is_in_range(INTEGERS, greatest, np.int64(0), LEAST, GREATEST)
    assert is_in_range(INTEGERS, least, np.int64(0), LEAST, LEAST)
    assert link_value(SIGN, greatest, least) == 1
    assert link_value(SIGN, least, greatest) == -1
    assert link_value(NO_LINK, least, greatest) == 0


def test_a_difference_of_infinities_is_the_greatest_double():
    infinite, least = keys_of_doubles(np.array([math.inf, -math.inf]))
    assert link_value(DOUBLES, infinite, infinite) == NAN_KEY
    assert link_value(DOUBLES, infinite, least) == infinite
    assert is_in_range(DOUBLES, infinite, infinite, infinite, GREATEST)
    assert not is_in_range(DOUBLES, infinite, infinite, LEAST, infinite)


def test_zeros_of_both_signs_are_equal():
    zero, minus = keys_of_doubles(np.array([0.0, -0.0]))
    assert zero == minus
    assert link_value(DOUBLES, zero, minus) == zero
