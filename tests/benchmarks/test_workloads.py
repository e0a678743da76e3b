"""Workloads are what their papers describe."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.answers import brute_force
from benchmarks.workloads import GRID_SIDE, vcr_rectangles


def share_in_the_hot_part(points):
    """Of points, those in the square in the middle that is a tenth of the region."""
    hot_side = GRID_SIDE * 0.1**0.5
    start = (GRID_SIDE - hot_side) / 2
    inside = (points >= start - 1) & (points <= start + hot_side + 1)
    return inside.all(axis=0).mean()


def test_where_rectangles_gather_rows_gather_as_much():
    workload = vcr_rectangles(4_000, 4_000, 20, "90-10")

    assert share_in_the_hot_part(workload.lows) == pytest.approx(0.91, abs=0.03)
    assert share_in_the_hot_part(workload.rows) == pytest.approx(0.91, abs=0.03)


def test_uniform_rectangles_and_rows_lie_anywhere():
    workload = vcr_rectangles(4_000, 4_000, 20)

    assert share_in_the_hot_part(workload.lows) == pytest.approx(0.105, abs=0.03)
    assert share_in_the_hot_part(workload.rows) == pytest.approx(0.105, abs=0.03)


def test_rows_meet_more_rectangles_where_these_overlap_highly():
    means = []
    for placed in ("uniform", "90-10"):
        found = brute_force(vcr_rectangles(2_000, 100, 20, placed), np.arange(100))
        means.append(sum(len(queries) for queries in found.values()) / 100)

    assert means[1] > 4 * means[0]  # 4.6 times the time in the paper's figure 13


def test_rectangles_are_placed_in_one_of_two_ways():
    with pytest.raises(ValueError, match="placed must be 'uniform' or '90-10', not 'anywhere'"):
        vcr_rectangles(1, 1, 20, "anywhere")
