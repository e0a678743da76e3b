"""The settings that the page of benchmarks names are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.experiments import planner, spatial_join, spatial_join_windows
from benchmarks.harness import Bench

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text().split())


def number(pattern):
    return float(re.search(pattern, PAGE)[1])


def test_the_limits_of_one_run_are_those_of_the_code():
    assert number(r"more than ([\d.]+) seconds per? ?a? ?run") == Bench("x").limit_seconds
    assert number(r"The limit is ([\d.]+) seconds in sjcq-fig15 to sjcq-fig17") == spatial_join.LIMIT_SECONDS
    assert number(r"([\d.]+) in sjcq-fig18") == spatial_join_windows.LIMIT_SECONDS
    assert number(r"([\d.]+) in the planner's matrix") == planner.LIMIT_SECONDS
    assert number(r"([\d.]+) for DuckDB in window-join") == Bench("x").limit_seconds * spatial_join_windows.DUCKDB_LIMIT
