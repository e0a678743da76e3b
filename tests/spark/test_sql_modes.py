"""SQL functions, the format `vedette` and counts of workers, through Spark Connect to a cluster of two workers."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from spark.pipelines import CONNECT_TO_CLUSTER, Pipeline

from vedette.spark.workers.top_queries import read_top

pytestmark = pytest.mark.full
PAIRS = sorted([n, "low"] for n in range(3)) + [[n, "failing"] for n in range(1, 10)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sql")
    with Pipeline("sql_pipeline.py", directory) as pipeline:
        pipeline.start(**CONNECT_TO_CLUSTER)
        pipeline.finish()
    return json.loads((directory / "found.json").read_text())


def test_functions_find_the_pairs_of_the_version(found):
    assert found["functions"] == ["vedette_match_alerts", "vedette_queries"]
    assert found["pairs"] == sorted([*pair, 1] for pair in PAIRS)
    assert found["lists"] == [[n, sorted(query for m, query in PAIRS if m == n)] for n in range(10)]


def test_a_write_is_one_version_which_later_queries_see(found):
    added = [[f"q{n}", f"n = {n}", 2] for n in range(3)]
    assert found["queries"] == sorted(
        [["low", "n < 3", 1], ["failing", "10 / n > 1", 1], ["never", "n < 0", 1], *added]
    )
    later = sorted([*pair, 2] for pair in [*PAIRS, *([n, f"q{n}"] for n in range(3))])
    assert found["later"] == found["streamed"] == later


def test_counts_and_warnings_of_workers_reach_the_driver(found):
    hits = read_top(found["match"].pop("hits"), 20)
    assert found["match"] == {"pairs": 15, "failed": 1, "version": 2, "warnings": ""}
    assert hits == Counter(query for _, query in [*PAIRS, *((n, f"q{n}") for n in range(3))])
    assert (found["bands"]["unknown_ids"], found["bands"]["changes"]) == (2, 0)
    assert "to delete" in found["bands"]["warnings"]
