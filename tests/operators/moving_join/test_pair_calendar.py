"""The calendar of pairs, compared with a plain list."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from vedette.operators.moving_join import meetings
from vedette.operators.moving_join import pair_calendar as module
from vedette.operators.moving_join.meetings import Meetings, differ, net
from vedette.operators.moving_join.pair_calendar import PairCalendar

SLOW = bool(config.DISABLE_JIT)
HORIZON = 60.0


def some_pairs(random, now, a, n_b):
    n = len(a)
    starts = now + np.maximum(0, random.integers(-30, 60, n)).astype(float)
    ends = np.minimum(starts + random.integers(0, 20, n), now + HORIZON)
    return Meetings(a, random.integers(0, n_b, n).astype(np.int32), starts, ends)


def listed(pairs):
    return list(zip(pairs.a.tolist(), pairs.b.tolist(), pairs.starts.tolist(), pairs.ends.tolist(), strict=True))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_snapshots_are_those_of_a_list(seed):
    random = np.random.default_rng(seed)
    n, a_pair = 30, 6
    calendar, kept = PairCalendar(7.0, HORIZON), []
    now = 7.0
    for step in range(8 if SLOW else 150):
        now += float(random.choice([0, 0.25, 1, 1, 1, 3, 40, 500], p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.06, 0.03, 0.01]))
        calendar.advance(now)
        a = random.choice(n, 0 if step % 7 == 6 else 4, replace=False).astype(np.int32)
        b = random.choice(n, 2, replace=False).astype(np.int32)
        kept = [pair for pair in kept if pair[3] >= now]
        gone = [pair for pair in kept if pair[0] in a or pair[1] in b]
        come = some_pairs(random, now, np.repeat(a, a_pair), n)
        calendar.begin_step(n, n)
        calendar.remove((a, b), len(gone))
        calendar.add(come)
        calendar.end_step()
        kept = [pair for pair in kept if pair not in gone] + listed(come)

        assert sorted(listed(calendar.all())) == sorted(kept)
        for time in (now, now + 0.5, now + 11, now + 60, now + 100):
            found = sorted(zip(*(each.tolist() for each in calendar.at(time)), strict=True))
            assert found == sorted((a, b) for a, b, start, end in kept if start <= time <= end)
        if step % 20 == 19:
            moved = [random.permutation(n).astype(np.int32) for _ in range(2)]
            calendar.rename(moved)
            kept = [(int(moved[0][a]), int(moved[1][b]), start, end) for a, b, start, end in kept]


def test_memory_grows_and_shrinks_with_the_pairs():
    n = 1_000 if SLOW else 100_000
    random = np.random.default_rng(4)
    calendar = PairCalendar(0.0, HORIZON)
    calendar.begin_step(n, n)
    calendar.add(some_pairs(random, 0.0, np.repeat(np.arange(n // 10, dtype=np.int32), 10), n))
    calendar.end_step()
    for first in range(0, n // 10, n // 100):
        if not SLOW:
            assert calendar.nbytes - 8 * n <= 44 * len(calendar) + 40_000
        slots = np.arange(first, first + n // 100, dtype=np.int32)
        calendar.begin_step(n, n)
        calendar.remove((slots, slots[:0]), 10 * len(slots))
        calendar.end_step()
    assert len(calendar) == 0
    assert calendar.nbytes <= 10 * n + 40_000


def test_stamps_restart_before_they_run_out(monkeypatch):
    monkeypatch.setattr(module, "LAST_STAMP", 5)
    calendar = PairCalendar(0.0, HORIZON)
    kept = {}
    for step in range(17):
        slot = np.array([step % 4], np.int32)
        calendar.begin_step(4, 1)
        calendar.remove((slot, slot[:0]), int(step >= 4))
        calendar.add(Meetings(slot, np.zeros(1, np.int32), np.zeros(1), np.array([float(step)])))
        calendar.end_step()
        kept[step % 4] = float(step)
        assert sorted(calendar.all().ends.tolist()) == sorted(kept.values())


def test_changes_that_cancel_are_left_out():
    one = Meetings(np.array([1], np.int32), np.array([2], np.int32), np.array([0.5]), np.array([1.5]))
    two = Meetings(one.a, one.b, one.starts, one.ends + 1)
    assert net([]) == []
    assert [(sign, listed(pairs)) for sign, pairs in net([(1, one), (-1, one), (1, one), (-1, two)])] == [
        (-1, listed(two)),
        (1, listed(one)),
    ]
    assert sum(len(pairs) for _, pairs in net([(1, one), (-1, one)])) == 0


def test_the_sum_of_changes_is_that_of_their_signs():
    lines = [(1, 7, 0.0), (-1, 3, 1.0), (-1, 7, 0.0), (1, 3, 2.0), (1, 7, 0.0), (1, 3, 1.0), (-1, 3, 1.0), (1, 9, 0.0)]
    changes = [
        (sign, Meetings(np.array([a], np.int32), np.array([0], np.int32), np.array([start]), np.array([5.0])))
        for sign, a, start in lines
    ]

    found = [(sign, a, start) for sign, pairs in net(changes) for a, _, start, _ in listed(pairs)]

    assert sorted(found) == [(-1, 3, 1.0), (1, 3, 2.0), (1, 7, 0.0), (1, 9, 0.0)]


@pytest.mark.parametrize("many", [10, 1000])
def test_unchanged_pairs_do_not_differ(monkeypatch, many):
    monkeypatch.setattr(meetings, "MANY", many)
    random = np.random.default_rng(7)
    a, b = np.divmod(random.permutation(400).astype(np.int32), 20)
    gone = Meetings(a[:200], b[:200], random.integers(0, 3, 200).astype(float), np.full(200, 5.0))
    come = Meetings(a[100:], b[100:], random.integers(0, 3, 300).astype(float), np.full(300, 5.0))
    went, came = set(listed(gone)), set(listed(come))
    left, right = differ(gone, come)
    assert set(listed(left)) == went - came
    assert set(listed(right)) == came - went
    assert differ(gone, Meetings.empty())[0] is gone
