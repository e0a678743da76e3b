"""After changes of a registry, sets of joins answer like new sets of the active queries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from operators.border.histories import active_at, cut, make_history

import vedette as vd
from vedette.operators.band_join import query_set as band_query_set
from vedette.queries.set_changes import Changes

STREAMS = {"left": "id bigint, x double, t bigint", "right": "id bigint, x double, t bigint"}


def make_join(random):
    low = int(random.integers(-2, 2))
    windows = [
        {"within": 3},
        {"within": {"left": 2, "right": 1}},
        {"rows": 4},
        {"within": {"left": 2}, "rows": {"right": 3}},
    ]
    return f"left.x - right.x BETWEEN {low} AND {low + 1}", windows[random.integers(0, 4)]


def make_band(random):
    low = float(random.integers(-3, 3))
    return low, low + float(random.integers(0, 3))


def make_rows(random, t, first, n=6):
    return {"id": list(range(first, first + n)), "x": random.integers(-3, 3, n).astype(float).tolist(), "t": [t] * n}


def window(pairs):
    return pairs.window(left_time="t", right_time="t", left_id="id", right_id="id")


@pytest.mark.parametrize("seed", range(4))
def test_a_join_answers_like_a_set_of_the_active_queries(seed):
    random = np.random.default_rng(seed)
    reported, states = make_history(random, make_join)
    pairs = vd.JoinQuerySet(**STREAMS)
    for changes in cut(random, reported):
        pairs.apply(changes)
        if random.random() < 0.3:
            pairs = pickle.loads(pickle.dumps(pairs))
        plain = vd.JoinQuerySet(**STREAMS)
        for query, (text, each) in states[changes.until].items():
            plain.add(query, text, **each)
        rows = {"left": make_rows(random, 1, 0), "right": make_rows(random, 2, 0)}

        found, wanted = (window(queries).step(**rows).to_pylist() for queries in (pairs, plain))
        assert sorted(map(str, found)) == sorted(map(str, wanted))
        assert pairs.version == changes.until
        assert pairs.history_mark(changes.until) == reported[changes.until - 1][1]


def test_the_state_of_a_window_join_continues_in_a_set_that_began_later():
    random = np.random.default_rng(3)
    reported, states = make_history(random, lambda random: ("left.x = right.x", {"within": 5}), n_versions=20)
    first, later = vd.JoinQuerySet(**STREAMS), vd.JoinQuerySet(**STREAMS)
    first.apply(Changes.of(reported[:10]))
    join = window(first)
    join.step(left=make_rows(random, 1, 0))
    blob = join.save()
    active, mark = active_at(reported, states, 15)
    later.begin(15, mark)
    later.apply(active)
    first.apply(Changes.of(reported[10:20]))
    later.apply(Changes.of(reported[15:20]))
    goes_on = window(later)
    goes_on.load(blob)

    right = make_rows(random, 2, 0)
    found, wanted = goes_on.step(right=right).to_pylist(), join.step(right=right).to_pylist()
    assert found
    assert sorted(map(str, found)) == sorted(map(str, wanted))


def answer(active, left, right):
    return {
        (query, i, j)
        for query, (low, high) in active.items()
        for i, r in left.items()
        for j, s in right.items()
        if low <= r - s <= high
    }


@pytest.mark.parametrize("seed", range(4))
def test_band_states_go_on_in_sets_that_jump_over_versions_and_the_signs_add_up(seed, monkeypatch):
    monkeypatch.setattr(band_query_set, "FEW_REMOVED", (2, 1024)[seed % 2])
    random = np.random.default_rng(seed)
    reported, states = make_history(random, make_band, n_versions=40, integers=seed == 2)
    workers = [vd.BandQuerySet() for _ in range(3)]
    blob, version, seen = None, 0, 0
    values, total = {"left": {}, "right": {}}, {}
    for step in range(12):
        version = min(len(reported), version + int(random.integers(0, 7)))
        worker = int(random.integers(0, 3))
        if random.random() < 0.3 and seen:  # a new process, which begins before the state was saved
            start = int(random.integers(1, seen + 1))
            active, mark = active_at(reported, states, start)
            workers[worker] = vd.BandQuerySet()
            workers[worker].begin(start, mark)
            workers[worker].apply(active)
        bands = workers[worker]
        bands.retain()
        bands.apply(Changes.of(reported[bands.version : version]))
        monitor = bands.monitor()
        if blob is not None:
            monitor.load(blob)
        side = ("left", "right")[step % 2]
        new = {step * 10 + i: float(random.integers(-3, 4)) for i in range(3)}
        values[side] |= new
        told_rows = monitor.insert(**{side: {"id": list(new), "value": list(new.values())}})
        for row in told_rows.to_pylist():
            pair = (row["query"], row["left"], row["right"])
            total[pair] = total.get(pair, 0) + row["sign"]

        assert set(total.values()) <= {0, 1}
        assert {pair for pair, sign in total.items() if sign} == answer(
            states[version], values["left"], values["right"]
        )
        blob, seen = monitor.save(), version


def test_bands_that_do_not_follow_are_refused():
    bands = vd.BandQuerySet()
    bands.apply(Changes.of([(1, 5, [], [("a", 0.0, 1.0)])]))
    for reported, message in [
        ([(3, 7, [], [])], "the set is at version 1; got changes of version 3"),
        ([(2, 7, [], [("a", 0.0, 2.0)])], "id 'a' already exists"),
        ([(2, 7, ["b"], [])], "no query 'b' in this set"),
    ]:
        with pytest.raises(vd.QueryError, match=message):
            bands.apply(Changes.of(reported))
