"""What every structure over bands and values promises, each crossed with each, and the size its lemma states."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from numba import config
from operators.band_join import plain

from vedette.papers.bands import STRUCTURES
from vedette.papers.bands.mixed import Mixed, choose_r
from vedette.papers.bands.stabbing_set import StabbedBands, StabbingSet

SLOW = bool(config.DISABLE_JIT)
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)


def build(structure, values, bands, **options):
    return structure.build(np.array(values, np.float64), *plain.ends(bands), **options)


def found(index, shift):
    values, bands = index.pairs(shift)
    return sorted(zip(values.tolist(), bands.tolist(), strict=True))


@every_structure
@given(problem=plain.problems())
def test_it_finds_what_brute_force_finds(structure, problem):
    values, bands, shifts = problem
    index = pickle.loads(pickle.dumps(build(structure, values, bands)))  # as Spark ships it
    for shift in shifts:
        expected = plain.pairs(values, bands, shift)

        assert found(index, shift) == expected
        assert sorted(index.affected(shift).tolist()) == sorted({band for _, band in expected})


@pytest.mark.parametrize("r", [1, 2, 3])
@given(problem=plain.problems(max_values=12, max_bands=12))
def test_the_mixed_structure_is_right_for_every_r(r, problem):
    values, bands, shifts = problem
    index = build(Mixed, values, bands, r=r)
    for shift in shifts:
        expected = plain.pairs(values, bands, shift)

        assert found(index, shift) == expected
        assert sorted(index.affected(shift).tolist()) == sorted({band for _, band in expected})


@every_structure
def test_three_decimal_ends_are_compared_with_the_rounded_difference(structure):
    random = np.random.default_rng(3)
    n = 40 if SLOW else 150
    values, others = random.integers(0, 2000, n) / 1000, random.integers(0, 2000, 30) / 1000
    lows = np.round(random.choice(values, n) - random.choice(others, n), 3)
    index = structure.build(values, lows, lows.copy())
    bands = list(zip(lows.tolist(), lows.tolist(), strict=True))
    for other in others.tolist():
        assert found(index, -other) == plain.pairs(values.tolist(), bands, -other)


@every_structure
def test_differences_that_overflow_are_infinite(structure):
    index = build(structure, [1.7e308], [(-math.inf, math.inf), (1e308, math.inf), (math.inf, math.inf), (0, 1e308)])

    assert found(index, 1.7e308) == [(0, 0), (0, 1), (0, 2)]
    assert sorted(index.affected(1.7e308).tolist()) == [0, 1, 2]
    assert found(index, -1.7e308) == [(0, 0), (0, 3)]


@every_structure
def test_empty_structures_find_nothing(structure):
    for values, bands in (([], []), ([1.0], []), ([], [(0.0, 1.0)]), ([5.0], [(0.0, 1.0)])):
        index = build(structure, values, bands)

        assert found(index, 0.0) == []
        assert index.affected(0.0).tolist() == []


@every_structure
def test_all_structures_agree_on_many_values_and_bands(structure):
    n = 60 if SLOW else 300
    values, lows, highs = plain.clusters(n, n, 6, 0.02, scattered=0.2)
    index = structure.build(values, lows, highs)
    reference = STRUCTURES["Scan"].build(values, lows, highs)
    for shift in np.random.default_rng(2).uniform(-1, 0, 20).tolist():
        assert found(index, shift) == found(reference, shift)
        assert sorted(index.affected(shift).tolist()) == sorted(reference.affected(shift).tolist())


def test_sizes_are_those_of_the_lemmas():
    m, n, n_clusters = (50, 100, 2) if SLOW else (200, 400, 5)
    values, lows, highs = plain.clusters(m, n, n_clusters, 0.02)
    tau = plain.fewest_points(list(zip(lows.tolist(), highs.tolist(), strict=True)))
    sizes = {name: structure.build(values, lows, highs).n_entries for name, structure in STRUCTURES.items()}

    assert tau <= n_clusters
    assert sizes["Scan"] == m + n
    assert m * n <= sizes["DifferenceTree"] <= 2 * m * n  # Lemma 1
    assert sizes["StabbingSet"] <= 3 * (m + 1) * tau + 2 * n  # Lemmas 4 and 5
    assert sizes["StabbingGroups"] <= m + 2 * n
    assert sizes["StabbingSet"] < sizes["DifferenceTree"] / 10


def test_the_mixed_structure_grows_slower_than_the_product():
    """Theorem 1: over scattered bands, where a stabbing set helps least."""
    shares = []
    for size in (50, 100 if SLOW else 800):
        values, lows, highs = plain.clusters(size, size, size, 0.3 / size)
        index = Mixed.build(values, lows, highs, r=2)
        shares.append(index.gaps.table_of.size / size**2)

        assert np.diff(index.gaps.starts).max() <= 2
        assert len(index.tables.first_events) - 1 < index.gaps.table_of.size / 2  # pieces and gaps share tables

    assert max(shares) <= 0.27
    assert choose_r(10, 10) <= choose_r(1_000, 1_000) <= choose_r(100_000, 100_000)


@given(problem=plain.problems())
def test_an_interval_of_definition_1_has_its_values_on_both_sides_of_the_point(problem):
    values, bands, _ = problem
    index = build(StabbingSet, values, bands)
    tree, points = index.gaps_tree, index.bands.grouped.points
    lows, highs = index.bands.covers
    by_place = dict(zip(tree.lists.by_first.tolist(), tree.lists.firsts.tolist(), strict=True))
    by_group = {}
    for place, last in zip(tree.lists.by_last.tolist(), tree.lists.lasts.tolist(), strict=True):
        group, before = int(index.gap_groups[place]), int(index.gap_values[place])
        by_group.setdefault(group, []).append((by_place[place], last))
        for shift in (by_place[place], last):
            if math.isinf(shift):
                continue
            near = [float(index.values[j]) + shift for j in (before, before + 1) if 0 <= j < len(values)]
            assert before < 0 or near[0] <= points[group]
            assert before + 1 == len(values) or near[-1] > points[group] or points[group] == math.inf
            assert any(lows[group] <= value <= highs[group] for value in near)
    for intervals in by_group.values():  # so that no group is found twice
        intervals.sort()
        assert all(last < first for (_, last), (first, _) in pairwise(intervals))


@given(problem=plain.problems())
def test_a_number_stabs_the_first_bands_of_a_groups_lists(problem):
    """Lemma 3."""
    from vedette.papers.bands.interval_tree import IntervalTree

    _, bands, numbers = problem
    stabbed = StabbedBands.build(*plain.ends(bands))
    tree = IntervalTree.build(*stabbed.covers)
    for number in numbers:
        expected = [band for band, (low, high) in enumerate(bands) if low <= number <= high]

        assert sorted(stabbed.stab(tree, number).tolist()) == expected
