"""Look-ups in a grid of swept boxes, compared with all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from oracles_moving import Motion, meet

from tests.profiles import examples
from vedette.operators.moving_join.grid import SweptGrid
from vedette.operators.moving_join.motion_rows import SIDES, TIME, UNTIL, meet_rows, to_motions, to_rows
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.nodes import as_slots, meet_slots

SLOW = bool(config.DISABLE_JIT)
KINDS = ("crowded", "spread", "far off", "of all sizes", "in a line", "of one place", "of long ago")


def some_rows(random, n, n_dims, kind):
    """Rows that are valid at 0; some end soon."""
    size = random.integers(0, 4, (n_dims, n)).astype(float)
    low = random.integers(-20, 20, (n_dims, n)).astype(float)
    speed = random.integers(-4, 5, (n_dims, n)) / 2
    if kind == "crowded":
        low /= 8
    elif kind == "far off":
        low += 5e6
        low[:, : n // 10] *= 1e9
    elif kind == "of all sizes":
        size[:, : n // 8] *= 10.0 ** random.integers(0, 7, n // 8)
    elif kind == "in a line":
        low[1:], size[1:], speed[1:] = 0.0, 0.0, 0.0
    elif kind == "of one place":
        low[:], size[:], speed[:] = 3.0, 0.0, 0.0
    growth = random.integers(0, 3, (n_dims, n)) / 4
    times = -random.integers(0, 7, n).astype(float) * (1e6 if kind == "of long ago" else 1)
    rows = to_rows(Motions(low, low + size, speed, speed + growth, times))
    rows[:, UNTIL] = random.integers(0, 9, n)
    return rows


def all_pairs(rows, slots, others, other_slots, since):
    found = {}
    for i in slots.tolist():
        for j in other_slots.tolist():
            start, end = meet_rows(rows, i, others, j)
            if end >= since:
                found[i, j] = start, end
    return found


def found_by(grid, rows, slots, others, since, left_out=()):
    is_left_out = np.zeros(len(others), np.bool_)
    is_left_out[list(left_out)] = True
    found = grid.find(rows, slots, others, is_left_out, since)
    pairs = list(zip(found.a.tolist(), found.b.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))  # none twice
    return dict(zip(pairs, zip(found.starts.tolist(), found.ends.tolist(), strict=True), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_a_look_up_finds_all_pairs(kind, n_dims):
    random = np.random.default_rng(1)
    n = 30 if SLOW else 300
    rows, others = some_rows(random, n, n_dims, kind), some_rows(random, n, n_dims, kind)
    every = np.arange(n, dtype=np.int32)
    for since in (0.0, 2.0):
        grid = SweptGrid.build(others, every, since)
        for later in (since, since + 1.5):
            wanted = all_pairs(rows, every, others, every, later)
            assert found_by(grid, rows, every, others, later) == wanted
    assert wanted or kind in ("far off", "of long ago")


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_inserted_and_removed_one_by_one(kind):
    random = np.random.default_rng(2)
    n = 30 if SLOW else 200
    rows, others = some_rows(random, n, 2, kind), some_rows(random, n, 2, kind)
    every = np.arange(n, dtype=np.int32)
    there = set(range(n // 2))
    grid = SweptGrid.build(others, np.array(sorted(there), np.int32), 0.0)
    for step in range(6 if SLOW else 25):
        changed = random.choice(n, 8, replace=False).astype(np.int32)
        grid.remove(changed)
        there -= set(changed.tolist())
        others[changed] = some_rows(random, n, 2, kind)[changed]
        back = changed[: random.integers(0, 9)]
        if not grid.insert(others, back, 0.0):
            grid = SweptGrid.build(others, np.array(sorted(there | set(back.tolist())), np.int32), 0.0)
        there |= set(back.tolist())
        left_out = set(random.choice(n, 5).tolist())
        if SLOW and step % 3:
            continue
        wanted = all_pairs(rows, every, others, np.array(sorted(there - left_out), np.int32), 1.0)
        assert found_by(grid, rows, every, others, 1.0, left_out) == wanted


def test_objects_that_change_again_and_again_need_no_other_grid():
    random = np.random.default_rng(3)
    n = 30 if SLOW else 200
    rows, others = some_rows(random, n, 2, "spread"), some_rows(random, n, 2, "spread")
    every = np.arange(n, dtype=np.int32)
    grid, places = SweptGrid.build(others, every, 0.0), []
    for _ in range(100):
        changed = random.choice(n, n // 10, replace=False).astype(np.int32)
        grid.remove(changed)
        others[changed] = some_rows(random, n, 2, "spread")[changed]
        assert grid.insert(others, changed, 0.0)
        places.append(grid.cells.entries)
    assert found_by(grid, rows, every, others, 1.0) == all_pairs(rows, every, others, every, 1.0)
    assert len({id(each) for each in places}) > 1  # entries were copied to other places
    assert len(places[-1]) < 2 * len(places[0])


def test_a_grid_with_many_more_objects_must_be_built_again():
    random = np.random.default_rng(4)
    others = some_rows(random, 2000, 2, "spread")
    grid = SweptGrid.build(others, np.arange(100, dtype=np.int32), 0.0)

    assert not grid.insert(others, np.arange(100, 2000, dtype=np.int32), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_rebuilt_in_the_memory_of_an_old_one_finds_all_pairs(kind):
    random = np.random.default_rng(5)
    n = 30 if SLOW else 200
    rows, every, grid = some_rows(random, n, 2, kind), np.arange(n, dtype=np.int32), None
    memory = set()
    for since in range(4):
        others = some_rows(random, n, 2, kind)
        some = every[: n - 3 * since]
        grid = SweptGrid.build(others, some, float(since), grid)
        memory.add(grid.cells.boxes.ctypes.data)
        wanted = all_pairs(rows, every, others, some, float(since))
        assert found_by(grid, rows, every, others, float(since)) == wanted
        gone = some[:5]
        grid.remove(gone)
        assert found_by(grid, rows, every, others, float(since)) == {
            pair: span for pair, span in wanted.items() if pair[1] not in gone
        }
    assert len(memory) < 4


# Powers of two, by which nothing is rounded: of places, and of times. Speeds follow.
SCALES = [(320, 0), (0, 320), (320, 320), (110, -20), (100, 100), (0, -200), (-200, 0), (-100, 100), (60, -60)]


def scaled(rows, place, span):
    made = rows.copy()
    made[:, [TIME, UNTIL]] *= 2.0**span
    for k in range(4):
        made[:, SIDES + k :: 4] *= 2.0 ** (place if k < 2 else place - span)
    return made


def by_fractions(rows, others, since):
    """The pairs that meet at `since` or later, by exact fractions."""
    made = [
        [Motion(row[TIME], tuple(zip(*(row[SIDES + k :: 4] for k in range(4)), strict=True))) for row in each.tolist()]
        for each in (rows, others)
    ]
    return {
        (i, j)
        for i, one in enumerate(made[0])
        for j, other in enumerate(made[1])
        if (span := meet(one, other, max(one.time, other.time), min(rows[i, UNTIL], others[j, UNTIL])))
        and span[1] >= since
    }


@pytest.mark.parametrize("kind", ["crowded", "of all sizes"])
def test_a_look_up_finds_the_same_however_large_or_small_places_and_times_are(kind):
    random = np.random.default_rng(7)
    n = 20 if SLOW else 60
    rows, others = some_rows(random, n, 2, kind), some_rows(random, n, 2, kind)
    every = np.arange(n, dtype=np.int32)
    wanted = {since: by_fractions(rows, others, since) for since in (0.0, 2.0, 3.5)}
    assert wanted[3.5]
    for place, span in SCALES:
        large, large_others = scaled(rows, place, span), scaled(others, place, span)
        for made in (0.0, 2.0):
            grid = SweptGrid.build(large_others, every, made * 2.0**span)
            for since in (2.0, 3.5):
                assert set(found_by(grid, large, every, large_others, since * 2.0**span)) == wanted[since]


@pytest.mark.parametrize(("span", "passed"), [(0, 40), (0, 49), (60, 90), (90, 110), (280, 320)])
def test_a_grid_built_long_ago_finds_all_pairs(span, passed):
    random = np.random.default_rng(8)
    n = 20 if SLOW else 60
    rows, others = some_rows(random, n, 2, "crowded"), some_rows(random, n, 2, "crowded")
    every = np.arange(n, dtype=np.int32)
    wanted = by_fractions(rows, others, 2.0)
    rows, others = scaled(rows, 0, span), scaled(others, 0, span)
    for each in (rows, others):
        each[:, [TIME, UNTIL]] += 2.0**passed
    grid = SweptGrid.build(others, every, 0.0)
    found = found_by(grid, rows, every, others, 2.0**passed + 2.0 * 2.0**span)
    assert found == all_pairs(rows, every, others, every, 2.0**passed + 2.0 * 2.0**span)
    assert wanted <= set(found)


def test_a_look_up_finds_pairs_that_end_now_because_moments_are_rounded():
    time = 2.0**52  # from where on moments are whole
    rows = np.array([[time, time + 8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    others = np.array([[time, time + 8, -0.6, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]])  # parts 0.6 later
    one = np.zeros(1, np.int32)
    for made in (0.0, time, time + 1):
        for both in ((rows, others), (others, rows)):
            grid = SweptGrid.build(both[1], one, made)
            assert found_by(grid, both[0], one, both[1], time + 1) == {(0, 0): (time, time + 1)}


@pytest.mark.parametrize("seed", range(4))
def test_a_look_up_finds_all_pairs_of_objects_of_all_magnitudes(seed):
    random = np.random.default_rng(seed)
    n = 20 if SLOW else 150
    made = []
    for _ in range(2):
        rows = some_rows(random, n, 2, "crowded")
        is_usual = random.random((n, 1)) < 0.5
        rows[:, SIDES:] *= np.where(is_usual, 1.0, 2.0 ** random.integers(-320, 321, (n, 1)))
        slower = np.where(is_usual, 1.0, 2.0 ** random.integers(-300, 1, (n, 1)))
        rows[:, SIDES + 2 :: 4] *= slower
        rows[:, SIDES + 3 :: 4] *= slower
        made.append(rows)
    rows, others = made
    every = np.arange(n, dtype=np.int32)
    for since in (0.0, 2.0):
        grid = SweptGrid.build(others, every, 0.0)
        wanted = all_pairs(rows, every, others, every, since)
        assert found_by(grid, rows, every, others, since) == wanted
        assert wanted


def rows_up_to(random, n, place, speed, time, lasts):
    """Objects whose numbers are of all magnitudes up to powers of ten."""

    def some(largest):
        return random.choice([-1.0, 0.0, 1.0], n, p=[0.45, 0.1, 0.45]) * 10.0 ** random.uniform(-3, largest, n)

    rows = np.zeros((n, SIDES + 8))
    rows[:, TIME] = some(time)
    rows[:, UNTIL] = rows[:, TIME] + 10.0 ** random.uniform(-3, lasts, n)
    for column in (SIDES, SIDES + 4):
        rows[:, column] = some(place)
        rows[:, column + 1] = rows[:, column] + np.abs(some(place))
        rows[:, column + 2] = some(speed)
        rows[:, column + 3] = rows[:, column + 2] + np.abs(some(speed)) * (random.random(n) < 0.3)
    return np.clip(rows, -1e100, 1e100)


@pytest.mark.parametrize("seed", range(20))
def test_a_look_up_finds_all_pairs_up_to_the_largest_numbers(seed):
    """Single precision ends long before 1e100, up to which rows are accepted."""
    random = np.random.default_rng(seed)
    n, time = 20, random.uniform(0, 60)
    largest = random.uniform(0, 100), random.uniform(0, 100), time, random.uniform(0, 100)
    rows, others = rows_up_to(random, n, *largest), rows_up_to(random, n, *largest)
    every = np.arange(n, dtype=np.int32)
    made = random.uniform(-1, 1) * 10.0**time
    since = made + 10.0 ** random.uniform(-3, time)

    grid = SweptGrid.build(others, every, made)

    assert found_by(grid, rows, every, others, since) == all_pairs(rows, every, others, every, since)


def test_an_empty_grid_finds_nothing():
    rows = some_rows(np.random.default_rng(3), 4, 2, "crowded")
    grid = SweptGrid.build(np.empty((0, SIDES + 8)), np.empty(0, np.int32), 0.0)
    assert found_by(grid, rows, np.arange(4, dtype=np.int32), np.empty((0, SIDES + 8)), 0.0) == {}


def test_a_few_huge_boxes_do_not_fill_all_cells():
    random = np.random.default_rng(4)
    n = 500 if SLOW else 20_000
    low = random.uniform(0, 1000, (2, n))
    size = np.full((2, n), 0.01)
    size[:, : n // 20] = 2000.0
    still = np.zeros((2, n))
    rows = to_rows(Motions(low, low + size, still, still, np.zeros(n)))
    rows[:, UNTIL] = 60
    grid = SweptGrid.build(rows, np.arange(n, dtype=np.int32), 0.0)
    assert grid.n_used <= 12 * n


sides = st.tuples(
    st.integers(-6, 6), st.integers(0, 4), st.sampled_from([-2, -1, 0, 0.5, 1]), st.sampled_from([-2, -1, 0, 0, 0.25])
)


@given(
    st.lists(st.tuples(sides, sides), min_size=1, max_size=3), st.integers(-3, 0), st.integers(-3, 0), st.integers(0, 9)
)
@examples(5)
def test_the_interval_of_two_motions_is_that_of_exact_fractions(both, a_time, b_time, lasts):
    made = []
    for k, time in ((0, a_time), (1, b_time)):
        mine = [each[k] for each in both]
        made.append(Motion(time, tuple((low, low + size, v, v + growth) for low, size, v, growth in mine)))
    start, end = max(a_time, b_time), max(a_time, b_time) + lasts
    columns = []
    for motion in made:
        arrays = (np.array([[float(side[k])] for side in motion.sides]) for k in range(4))
        columns.append(Motions(*arrays, np.array([float(motion.time)])))

    wanted = meet(*made, start, end)
    for a, b in (columns, columns[::-1]):
        first, last = meet_slots(as_slots(a), 0, as_slots(b), 0, float(start), float(end))
        if wanted is None:
            assert first > last
        else:
            assert (first, last) == pytest.approx((float(wanted[0]), float(wanted[1])), rel=1e-12, abs=1e-12)
            if end == wanted[1]:
                assert last == end


def test_motions_are_columns_and_rows_and_back():
    random = np.random.default_rng(6)
    rows = some_rows(random, 9, 3, "spread")
    made = to_motions(rows)
    both = Motions.concat([made.take(np.arange(4)), made.take(np.arange(9) >= 4)])
    assert (to_rows(both)[:, SIDES:] == rows[:, SIDES:]).all()
    assert (to_rows(both)[:, TIME] == rows[:, TIME]).all()
    lows, highs = both.rebased(2.5).at(4.0)
    assert np.allclose(lows, both.at(4.0)[0])
    assert np.allclose(highs, both.at(4.0)[1])
    assert (len(both), both.n_dims, Motions.empty(2, 5).n_dims) == (9, 3, 2)
    assert both.nbytes == 9 * 13 * 8
