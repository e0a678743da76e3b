"""Changes of a registry applied in bulk give the same set as one by one, at every version."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from operators.border import border_model
from operators.border.histories import active_at, cut, make_history

import vedette as vd
from vedette.queries import query_set
from vedette.queries.set_changes import Changes

SCHEMA = "k string, t bigint, x double, n bigint"


def make_query(random):
    low = int(random.integers(-3, 3))
    if random.random() < 0.3:
        return (f"x + n > {low}",)
    return (f"x >= {low} AND x <= {low + 2}",)


def holds(text, row):
    if text.startswith("x + n"):
        return row["x"] + row["n"] > int(text.split("> ")[1])
    low = int(text.split(">= ")[1].split(" ")[0])
    return low <= row["x"] <= low + 2


def make_rows(random, t, n=12):
    return [
        {"k": f"k{random.integers(0, 5)}", "t": t, "x": float(random.integers(-4, 5)), "n": int(random.integers(-2, 3))}
        for _ in range(n)
    ]


def columns(rows):
    return {name: [row[name] for row in rows] for name in ("k", "t", "x", "n")}


def matched(queries, rows):
    found = queries.match(columns(rows)).to_arrow().to_pylist()
    return sorted((each["row"], each["query"]) for each in found)


def expected(active, rows):
    return sorted((i, query) for i, row in enumerate(rows) for query, (text,) in active.items() if holds(text, row))


@pytest.mark.parametrize("seed", range(6))
def test_matches_are_those_of_active_queries_however_changes_are_cut(seed, monkeypatch):
    monkeypatch.setattr(query_set, "FEW_REMOVED", (2, 1024)[seed % 2])
    random = np.random.default_rng(seed)
    reported, states = make_history(random, make_query, integers=seed == 3)
    rows = make_rows(random, 0, 20)
    queries = vd.QuerySet(SCHEMA)
    for changes in cut(random, reported):
        queries.apply(changes)
        if random.random() < 0.3:
            queries = pickle.loads(pickle.dumps(queries))

        assert queries.version == changes.until
        assert len(queries) == len(states[changes.until])
        assert matched(queries, rows) == expected(states[changes.until], rows)
        assert all(queries.history_mark(version) == mark for version, mark, *_ in reported[: changes.until])


def make_forms(state, known):
    """The active queries for the model of border monitoring: the same query is the same object."""
    forms = {}
    for query, (text,) in state.items():
        key = (query, id(state[query]))
        forms[query] = known.setdefault(key, (lambda row, text=text: holds(text, row), lambda row: False))
    return forms


def begin(reported, states, version):
    """A set that knows what stood at a version, as one that is rebuilt from a registry."""
    queries = vd.QuerySet(SCHEMA)
    queries.retain()
    if version:
        active, mark = active_at(reported, states, version)
        queries.begin(version, mark)
        queries.apply(active)
    return queries


@pytest.mark.parametrize("seed", range(6))
def test_border_states_go_on_in_sets_that_jump_over_versions(seed, monkeypatch):
    monkeypatch.setattr(query_set, "FEW_REMOVED", (2, 1024)[seed % 2])
    random = np.random.default_rng(seed)
    reported, states = make_history(random, make_query, n_versions=40)
    model, known, seen = border_model.Model(), {}, {}
    workers = [begin(reported, states, 0) for _ in range(3)]  # each updates its set when it steps
    blob, version = None, 0
    for t in range(12):
        version = min(len(reported), version + int(random.integers(0, 7)))
        worker = int(random.integers(0, 3))
        if random.random() < 0.3:  # a new process, which begins before any key was last seen
            workers[worker] = begin(reported, states, int(random.integers(0, min(seen.values(), default=0) + 1)))
        queries = workers[worker]
        queries.apply(Changes.of(reported[queries.version : version]))
        if random.random() < 0.3:
            queries = pickle.loads(pickle.dumps(queries))
        monitor = queries.border(key="k", time="t")
        if blob is not None:
            monitor.load(blob)
        rows = make_rows(random, t)
        events = border_model.from_table(monitor.step(columns(rows)))

        model.forms = make_forms(states[version], known)
        assert border_model.by_key(events) == border_model.by_key(model.step(rows))
        seen |= {row["k"]: version for row in rows}
        blob = monitor.save()


def test_a_state_of_another_history_is_refused():
    reported, _ = make_history(np.random.default_rng(1), make_query)
    other = [(version, mark + 1, *rest) for version, mark, *rest in reported]
    mine, yours = vd.QuerySet(SCHEMA), vd.QuerySet(SCHEMA)
    mine.apply(Changes.of(reported))
    yours.apply(Changes.of(other))
    blob = mine.border(key="k", time="t").save()

    with pytest.raises(vd.SnapshotError, match="whose changes differ"):
        yours.border(key="k", time="t").load(blob)


def test_changes_that_do_not_follow_are_refused_and_change_nothing():
    queries = vd.QuerySet(SCHEMA)
    queries.apply(Changes.of([(1, 5, [], [("a", "x > 1")])]))
    rows = make_rows(np.random.default_rng(1), 0)
    before = matched(queries, rows)
    for reported, message in [
        ([(3, 7, [], [])], "changes must start at version 2 without gaps; got version 3"),
        ([(2, 7, [], [("a", "x > 2")])], "query 'a' is added, but it already exists"),
        ([(2, 7, ["b"], [])], "query 'b' is removed, but it does not exist"),
        ([(2, 7, ["a"], []), (3, 8, ["a"], [])], "query 'a' is removed, but it does not exist"),
        ([(2, 7, [], [("b", "x > 2")]), (3, 8, [], [("b", "x > 3")])], "query 'b' is added, but it already exists"),
        ([(2, 7, [], [(4, "x > 2")])], "ids of this set are strings; got the integer 4"),
        ([(2, 7, [], [("b", "y > 2")])], "unknown field 'y'"),
    ]:
        with pytest.raises(vd.QueryError, match=message):
            queries.apply(Changes.of(reported))
        assert (queries.version, matched(queries, rows)) == (1, before)
    with pytest.raises(vd.QueryError, match="only a new set can start at another version; this one is at 1"):
        queries.begin(7, 7)
