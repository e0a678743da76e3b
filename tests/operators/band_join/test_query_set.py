"""What a set of band queries takes, refuses and keeps."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numba import config

import vedette as vd
from vedette.operators.band_join.history import RETAINED

SLOW = bool(config.DISABLE_JIT)


@pytest.fixture
def bands():
    made = vd.BandQuerySet()
    made.add("q1", -0.5, 0.5)
    return made


def test_every_change_is_a_version(bands):
    assert bands.version == 1
    bands.add_many(["q2", "q3"], np.array([0.0, 1.0]), [1, 2])
    bands.replace("q2", 5, 6)
    bands.remove("q1")
    bands.remove_many(["q3"])

    assert bands.version == 5
    assert len(bands) == 1
    assert bands.ids.to_pylist() == ["q2"]
    assert bands.band("q2") == (5.0, 6.0)
    assert "q2" in bands
    assert "q1" not in bands
    assert 7 not in bands
    assert repr(bands) == "BandQuerySet(1 query, version 5)"


def test_ends_may_be_infinite_equal_or_one_for_all(bands):
    bands.add("all", -math.inf, math.inf)
    bands.add("point", 3, 3)
    bands.add_many(pa.array(["a", "b"]), -1, pa.array([1.0, 2.0]))

    assert bands.band("all") == (-math.inf, math.inf)
    assert bands.band("b") == (-1.0, 2.0)


def test_none_means_unbounded(bands):
    bands.add("below", None, 1)
    bands.add_many(["all", "above"], pa.array([None, 2.0]), None)
    bands.replace("q1", 0, None)

    assert bands.band("below") == (-math.inf, 1.0)
    assert bands.band("all") == (-math.inf, math.inf)
    assert bands.band("above") == (2.0, math.inf)
    assert bands.band("q1") == (0.0, math.inf)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda bands: bands.add("x", 1, 0.5), "low 1 of band 'x' is above its high 0.5; a band is low <= high"),
        (
            lambda bands: bands.add("x", math.nan, 1),
            "low of band 'x' is NaN; use None or float('-inf') for an unbounded band",
        ),
        (
            lambda bands: bands.add_many(["x", "y"], 1, [2, math.nan]),
            "high of band 'y' is NaN; use None or float('inf') for an unbounded band",
        ),
        (
            lambda bands: bands.add_many(["x", "y"], pd.Series([1.0, math.nan]), 5),
            "low of band 'y' is NaN; use None or float('-inf') for an unbounded band",
        ),
        (lambda bands: bands.add_many(["x", "y"], [0, 5], [1, 4]), "low 5 of band 'y' is above its high 4"),
        (lambda bands: bands.add_many(["x", "y"], [0], [1, 4]), "got 1 lows but 2 ids; each band needs both ends"),
        (lambda bands: bands.add("x", "low", 1), "low of band 'x' must be a number; got 'low'"),
        (
            lambda bands: bands.add_many(["x", "y", "z"], [0, None, "low"], 1),
            "low of band 'z' must be a number; got 'low'",
        ),
        (lambda bands: bands.add("x", 0, True), "high of band 'x' must be a number; got True"),
        (lambda bands: bands.add("q1", 0, 1), "id 'q1' already exists; use replace to change it, or another id"),
        (lambda bands: bands.add(1, 0, 1), "the ids of this set are strings; got the integer 1"),
        (lambda bands: bands.add_many(["x", "x"], 0, 1), "id 'x' is given twice"),
        (lambda bands: bands.replace("x", 0, 1), "no query 'x' in this set"),
        (lambda bands: bands.replace("q1", 1, 0), "low 1 of band 'q1' is above its high 0"),
        (lambda bands: bands.remove("x"), "no query 'x' in this set"),
        (lambda bands: bands.remove(["q1"]), "remove takes one id; use remove_many for several"),
        (lambda bands: bands.remove_many(["q1", "x"]), "no query 'x' in this set"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(bands, change, words):
    with pytest.raises(vd.QueryError) as caught:
        change(bands)

    assert words in str(caught.value)
    assert bands.version == 1
    assert bands.band("q1") == (-0.5, 0.5)


def test_an_empty_change_makes_no_version():
    bands = vd.BandQuerySet()
    bands.add(1, 0, 1)
    bands.add_many([], [], [])
    bands.remove_many([])

    assert bands.version == 1


def test_a_saved_or_pickled_set_can_be_changed_further(bands, tmp_path):
    bands.add_many([f"x{i}" for i in range(300)], np.arange(300.0), np.arange(300.0) + 2)
    bands.remove("x5")
    bands.save(tmp_path / "bands.vedette")
    for copy in (pickle.loads(pickle.dumps(bands)), vd.BandQuerySet.load(tmp_path / "bands.vedette")):
        assert copy.version == bands.version
        assert copy.ids.to_pylist() == bands.ids.to_pylist()
        copy.add("x5", 0, 10)
        copy.replace("x6", -3, -2)
        found = []
        for each in (bands, copy):
            join = each.monitor()
            join.insert(left={"id": [1], "value": [7.0]})
            found.append(set(join.insert(right={"id": [1], "value": [0.0]})["query"].to_pylist()))
        assert found == [{"x6", "x7"}, {"x5", "x7"}]


def test_another_kind_of_file_is_refused(bands, tmp_path):
    alerts = vd.QuerySet("price double")
    alerts.save(tmp_path / "alerts.vedette")

    with pytest.raises(vd.SnapshotError, match="the saved content is: queries; BandQuerySet loads: bands"):
        vd.BandQuerySet.load(tmp_path / "alerts.vedette")
    with pytest.raises(vd.SnapshotError, match="a saved query set must be bytes; got str"):
        vd.BandQuerySet.from_bytes("bands")


def test_ids_of_removed_queries_are_dropped_eventually(bands):
    n = 2_000 if SLOW else 20_000
    join = bands.monitor()
    join.insert(left={"id": [1], "value": [0.0]}, right={"id": [1], "value": [0.0]})
    for start in range(0, 10 * n, n):
        ids = [f"n{i}" for i in range(start, start + n)]
        bands.add_many(ids, -1.0, 1.0)
        bands.remove_many(ids)
        assert join.refresh().num_rows == 0

    assert len(bands._ids) <= 2 * (len(bands) + len(bands._history)) + 1024
    assert len(bands._history) <= max(2 * RETAINED, 2 * n)
    assert [row["query"] for row in join.insert(right={"id": [2], "value": [0.25]}).to_pylist()] == ["q1"]


def test_a_monitor_that_was_not_called_for_long_misses_no_change(bands):
    join = bands.monitor()
    join.insert(left={"id": [1], "value": [0.0]}, right={"id": [1], "value": [0.0]})
    bands.add("early", -1, 1)
    n = RETAINED + 100
    for turn in range(4):
        ids = [f"{turn}-{i}" for i in range(n)]
        bands.add_many(ids, 5, 6)
        bands.remove_many(ids)

    assert [(row["sign"], row["query"]) for row in join.refresh().to_pylist()] == [(1, "early")]


def test_many_single_changes_with_calls_between_them_are_cheap(bands):
    n = 200 if SLOW else 2_000
    join = bands.monitor(report="queries")
    join.insert(left={"id": [1], "value": [0.0]})
    random = np.random.default_rng(1)
    bands.add_many([f"base{i}" for i in range(n)], random.uniform(-9, -1, n), random.uniform(1, 9, n))
    join.refresh()
    made = bands.groups().n_made
    for i in range(n):
        bands.add(f"more{i}", -1, 1)
        assert len(join.insert(right={"id": [i], "value": [0.0]})) == n + i + 2

    assert bands.groups().n_made == made
