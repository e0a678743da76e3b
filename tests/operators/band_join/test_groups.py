"""Groups of bands that come and go: always right, never many more than need be, at a small cost a change."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numba import config
from operators.band_join import plain

from tests.profiles import examples
from vedette.operators.band_join.index import groups as groups_module
from vedette.operators.band_join.index import lookup
from vedette.operators.band_join.index.group_changes import CAP
from vedette.operators.band_join.index.groups import SLACK
from vedette.operators.band_join.index.partition import find_partition
from vedette.papers.bands import Groups, Points, find_affected, find_pairs

SLOW = bool(config.DISABLE_JIT)
END = st.one_of(*plain.KINDS) | st.sampled_from([float("-inf"), float("inf")])
WAYS = [lookup.BY_GROUPS, lookup.BY_SHIFTS, lookup.BY_POINTS]
BAND = st.tuples(END, END).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(BAND, max_size=40))
def test_the_greedy_partition_is_the_smallest(bands):
    partition = find_partition(*plain.ends(bands))

    assert len(partition) == plain.fewest_points(bands)
    assert sorted(partition.order.tolist()) == list(range(len(bands)))
    for group, point in enumerate(partition.points):
        for band in partition.order[partition.starts[group] : partition.starts[group + 1]]:
            assert bands[band][0] <= point <= bands[band][1]
    witnesses = sorted(bands[band] for band in partition.witnesses)
    assert all(high < low for (_, high), (low, _) in pairwise(witnesses))


def check(groups, bands):
    """Every list and number that look-ups rely on."""
    assert len(groups) == len(bands)
    seen, points = [], []
    for group in range(groups.n_groups):
        listed = slice(groups.table.starts[group], groups.table.starts[group] + groups.table.sizes[group])
        names, point = groups.lists.low_names[listed].tolist(), groups.table.points[group]
        assert 0 < len(names) <= CAP
        assert sorted(names) == sorted(groups.lists.high_names[listed].tolist())
        assert all(bands[name][0] <= point <= bands[name][1] for name in names)
        assert groups.lists.lows[listed].tolist() == sorted(bands[name][0] for name in names)
        assert groups.lists.highs[listed].tolist() == sorted((bands[name][1] for name in names), reverse=True)
        assert [bands[name][0] for name in names] == groups.lists.lows[listed].tolist()
        low, high = groups.lists.lows[listed][0], groups.lists.highs[listed][0]
        cover = groups.table.cover_lows[group], groups.table.cover_highs[group]
        assert cover[0] == math.nextafter(low, -math.inf) or (low == -math.inf and math.isnan(cover[0]))
        assert cover[1] == math.nextafter(high, math.inf) or (high == math.inf and math.isnan(cover[1]))
        assert groups.table.singles[group] == (names[0] if len(names) == 1 else -1)
        assert all(groups.bands.group_of[name] == group for name in names)
        seen += names
        points.append(point)
    assert sorted(seen) == sorted(bands)
    assert groups.n_points == len(set(points))
    assert groups.order.points[: groups.n_groups].tolist() == sorted(points)
    assert [groups.table.points[group] for group in groups.order.groups[: groups.n_groups]] == sorted(points)
    fewest = plain.fewest_points(bands.values())
    assert groups.least_points <= fewest <= groups.n_points <= 2 * fewest + SLACK


class Machine(RuleBasedStateMachine):
    """Bands come and go, one by one and many at once."""

    def __init__(self):
        super().__init__()
        self.groups = Groups()
        self.bands = {}
        self.n_names = 0

    @rule(bands=st.lists(BAND, min_size=1, max_size=40), is_one=st.booleans())
    def add(self, bands, is_one):
        bands = bands[:1] if is_one else bands
        names = np.arange(self.n_names, self.n_names + len(bands), dtype=np.int32)
        self.n_names += len(bands)
        self.groups.add(names, *plain.ends(bands))
        self.bands.update(zip(names.tolist(), bands, strict=True))

    @rule(source=st.randoms(use_true_random=False), share=st.sampled_from([0.05, 0.3, 1]))
    def remove(self, source, share):
        names = [name for name in self.bands if source.random() < share]
        self.groups.remove(np.array(names, np.int32))
        for name in names:
            del self.bands[name]

    @rule(source=st.randoms(use_true_random=False), band=BAND)
    def replace(self, source, band):
        if self.bands:
            name = source.choice(sorted(self.bands))
            one = np.array([name], np.int32)
            self.groups.change(one, one, *plain.ends([band]))
            self.bands[name] = band

    @invariant()
    def is_right(self):
        check(self.groups, self.bands)

    @rule(problem=plain.problems(max_bands=0), way=st.sampled_from(WAYS))
    def finds_what_brute_force_finds(self, problem, way):
        values, _, shifts = problem
        points = Points()
        points.add(np.array(values), np.arange(len(values), dtype=np.int32))
        names = list(self.bands)
        numbers = np.arange(len(shifts), dtype=np.int32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "choose_way", lambda *_: way)
            found = [find_pairs(self.groups, points, np.array(shifts), numbers) for _ in range(2)]
            affected = find_affected(self.groups, points, np.array(shifts)).tolist()
        expected = sorted(
            (row, i, names[j])
            for row, shift in enumerate(shifts)
            for i, j in plain.pairs(values, list(self.bands.values()), shift)
        )

        for bands, values, rows in found:  # the second time by the cells of covers
            assert sorted(zip(rows.tolist(), values.tolist(), bands.tolist(), strict=True)) == expected
        assert sorted(affected) == sorted({name for _, _, name in expected})


TestGroups = Machine.TestCase
TestGroups.settings = examples(0.6, stateful_step_count=15)


def test_a_point_of_many_bands_has_several_groups_that_are_divided_as_they_grow():
    random = np.random.default_rng(1)
    n = 6_000 if SLOW else 20_000
    highs = random.exponential(1, n)
    n_first = n - 500
    groups = Groups.build(-highs[:n_first], highs[:n_first])
    bands = {name: (-high, high) for name, high in enumerate(highs[:n_first].tolist())}
    for start in range(n_first, n, 100):
        names = np.arange(start, start + 100, dtype=np.int32)
        groups.add(names, -highs[names], highs[names])
        bands.update({name: (-highs[name], highs[name]) for name in names.tolist()})

    assert groups.n_points == 1
    assert groups.n_made == n_first
    assert groups.n_groups > -(-n_first // CAP)
    check(groups, bands)
    for name in random.permutation(n)[: n // 10].tolist():
        groups.remove(np.array([name], np.int32))
        del bands[name]
    check(groups, bands)


@pytest.mark.parametrize("n_clusters", [1, 30, 1_000])
def test_groups_stay_few_and_are_rarely_rebuilt_as_bands_change(n_clusters):
    """Where bands that come are like those that go, a change costs less than one band put into place anew."""
    n, n_changes = (500, 1_000) if SLOW else (5_000, 20_000)
    _, lows, highs = plain.clusters(1, n + n_changes, n_clusters, 1e-4, scattered=0.05)
    groups = Groups.build(lows[:n], highs[:n])
    for name in range(n, n + n_changes):
        one = np.array([name], np.int32)
        groups.change(one - n, one, lows[name : name + 1], highs[name : name + 1])
        if name % 500 == 0:
            standing = range(name - n + 1, name + 1)
            fewest = plain.fewest_points([(lows[i], highs[i]) for i in standing])
            assert groups.n_points <= 2 * fewest + SLACK

    assert (groups.n_made - n) / n_changes < 10


@pytest.mark.parametrize("n", [600, 1_200] if SLOW else [2_000, 8_000])
def test_the_cost_of_the_worst_sequence_of_changes_is_bounded_by_its_length(n):
    """Bands that each hold no point of any group, though all of them share one, made again and again.

    Each time the groups are made anew, more than SLACK / 2 changes have gone by, so that a change costs at most
    2 n / SLACK bands put into place.
    """
    groups = Groups.build(np.linspace(8, 9, n), np.linspace(11, 12, n))  # all hold 10
    name, n_changes = n, 0
    for _ in range(10):
        first = name
        for i in range(SLACK + 4):  # nested, each beside the middles of those before, and all hold 0
            groups.add(np.array([name], np.int32), np.zeros(1), np.array([4.0**-i]))
            name += 1
        groups.remove(np.arange(first, name, dtype=np.int32))
        n_changes += 2 * (name - first)

    assert groups.n_made >= 11 * n  # every time
    assert (groups.n_made - n) / n_changes <= 2 * (n + SLACK) / SLACK


def test_a_set_that_grows_from_empty_is_rebuilt_only_a_few_times():
    n = 2_000 if SLOW else 20_000
    _, lows, highs = plain.clusters(1, n, n, 1e-6)
    groups = Groups()
    for name in range(n):
        groups.add(np.array([name], np.int32), lows[name : name + 1], highs[name : name + 1])

    assert groups.n_made < 8 * n


@pytest.mark.parametrize("way", WAYS)
def test_more_pairs_than_there_is_room_for_are_all_found(way, monkeypatch):
    n = 50 if SLOW else 500
    monkeypatch.setattr(lookup, "choose_way", lambda *_: way)
    monkeypatch.setattr(lookup, "FIRST_ROOM", 8)
    values, lows, highs = plain.clusters(n, n, 5, 0.05, scattered=0.3)
    points = Points()
    points.add(values, np.arange(n, dtype=np.int32))
    shifts = np.array([-0.2, -0.9, -0.5])
    bands, found, rows = find_pairs(Groups.build(lows, highs), points, shifts, np.arange(3, dtype=np.int32))

    expected = [(row, i, band) for row in range(3) for i, band in brute(values, lows, highs, shifts[row])]
    assert sorted(zip(rows.tolist(), found.tolist(), bands.tolist(), strict=True)) == expected
    assert len(expected) > n


def brute(values, lows, highs, shift):
    return plain.pairs(values.tolist(), list(zip(lows.tolist(), highs.tolist(), strict=True)), float(shift))


def test_the_cheapest_way_is_chosen():
    n = 500 if SLOW else 20_000
    _, lows, highs = plain.clusters(1, n, n, 1e-7)
    groups, few, many = Groups.build(lows, highs), Points(), Points()
    few.add(np.zeros(1), np.zeros(1, np.int32))
    many.add(np.random.default_rng(1).random(n), np.arange(n, dtype=np.int32))

    assert lookup.choose_way(groups, few, 1) == lookup.BY_GROUPS  # a tree is worth its making for several shifts
    assert lookup.choose_way(groups, few, 20) == lookup.BY_POINTS
    find_affected(groups, few, np.zeros(20))
    assert lookup.choose_way(groups, few, 1) == lookup.BY_POINTS
    groups.remove(np.zeros(1, np.int32))
    assert lookup.choose_way(groups, few, 1) == lookup.BY_GROUPS
    assert lookup.choose_way(groups, many, 10) == lookup.BY_GROUPS
    assert lookup.choose_way(groups, many, 2 * n) == lookup.BY_SHIFTS
    assert lookup.choose_way(Groups.build(lows[:1], highs[:1]), many, n // 10) == lookup.BY_SHIFTS


def test_a_wrong_guess_of_the_number_of_pairs_does_not_change_the_answer():
    points = Points()
    points.add(np.zeros(3), np.arange(3, dtype=np.int32))
    found = find_pairs(Groups.build(np.zeros(1), np.ones(1)), points, np.zeros(1), np.zeros(1, np.int32), 10**15)

    assert found[1].tolist() == [0, 1, 2]


def test_many_new_points_at_once_rebuild_the_groups(monkeypatch):
    monkeypatch.setattr(groups_module, "MANY_GROUPS", 32)
    n = 2_000
    _, lows, highs = plain.clusters(1, n, n, 1e-9)
    groups = Groups.build(lows[: n - n // 10], highs[: n - n // 10])
    names = np.arange(n - n // 10, n, dtype=np.int32)
    groups.add(names, lows[names], highs[names])

    assert groups.n_made == 2 * n - n // 10
    assert groups.n_points == plain.fewest_points(list(zip(lows.tolist(), highs.tolist(), strict=True)))


@pytest.mark.parametrize("way", WAYS)
def test_differences_near_the_greatest_double_are_found(way, monkeypatch):
    """The second time by cells of covers, whose differences with the first value overflow."""
    monkeypatch.setattr(lookup, "choose_way", lambda *_: way)
    values, bands = [-1.7e308, -0.0, 0.3, 1.7e308], [(7e307, 1.7e308), (1e308, 1e308), (1.7e308, float("inf"))]
    points, groups = Points(), Groups.build(*plain.ends(bands))
    points.add(np.array(values), np.arange(4, dtype=np.int32))
    for shift in (1.7e308, 1e308, 0.0, -1.7e308) * 2:
        found, names, _ = find_pairs(groups, points, np.array([shift]), np.zeros(1, np.int32))

        assert sorted(zip(names.tolist(), found.tolist(), strict=True)) == plain.pairs(values, bands, shift)
