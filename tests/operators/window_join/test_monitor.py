"""Window joins against every row with every row."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.operators.window_join import bundles as join_bundles

from .join_model import Model, Predicates, Query, in_time, make_rows

SCHEMA = "s string, x double, y double, n bigint"
ARROW = pa.schema(
    {"id": pa.string(), "at": pa.int64(), "s": pa.string(), "x": pa.float64(), "y": pa.float64(), "n": pa.int64()}
)
seeds = st.integers(0, 2**32)


def make_set(streams):
    return vd.JoinQuerySet(**dict.fromkeys(streams, SCHEMA))


def open_join(pairs, **options):
    columns = {f"{stream}_{role}": name for stream in pairs.streams for role, name in (("time", "at"), ("id", "id"))}
    return pairs.window(**columns, **options)


def make_query(random_, number, streams, *, counts=True):
    text, test = Predicates(random_, streams).make()
    within, rows = {}, {}
    for stream in streams:
        if counts and random_.random() < 0.4:
            rows[stream] = random_.choice([1, 2, 5, 20])
        else:
            within[stream] = random_.choice([0.5, 1, 3, 10, 40])
    return Query(f"q{number}", text, test, within, rows)


def add(pairs, query):
    pairs.add(query.id, query.text, within=query.within or None, rows=query.rows or None)


def table(rows):
    return pa.Table.from_pylist(rows, ARROW)


def step(join, rows):
    """Rows as (stream, row) in one step."""
    by_stream = {stream: table([row for other, row in rows if other == stream]) for stream in join.queries.streams}
    found = join.step(**{stream: each for stream, each in by_stream.items() if len(each)})
    return [tuple(line.values()) for line in found.to_pylist()]


def merged(rows, streams):
    """All rows by time, then stream, then id."""
    every = [(stream, row) for stream in streams for row in rows[stream]]
    return sorted(every, key=lambda pair: (pair[1]["at"], streams.index(pair[0]), pair[1]["id"]))


def cut(random_, items):
    cuts = []
    while items:
        n = random_.choice([1, 1, 2, 5, 30])
        cuts.append(items[:n])
        items = items[n:]
    return cuts


@pytest.mark.parametrize("bundles", ["as they pay", "always"])
@examples(1.2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seeds)
def test_pairs_are_those_that_each_row_makes_as_it_arrives(bundles, monkeypatch, seed):
    if bundles == "always":
        monkeypatch.setattr(join_bundles, "MIN_BUNDLE", 1)
        monkeypatch.setattr(join_bundles, "PAIR_COST", 0)
        monkeypatch.setattr(join_bundles, "PROBE_COST", 1)
    random_ = random.Random(seed)
    streams = ["left", "right"]
    queries = [make_query(random_, number, streams) for number in range(random_.choice([1, 3, 8]))]
    rows = {stream: make_rows(random_, random_.choice([0, 5, 40]), stream) for stream in streams}
    pairs = make_set(streams)
    for query in queries:
        add(pairs, query)
    join, model = open_join(pairs), Model(streams)
    for batch in cut(random_, merged(rows, streams)):
        expected = [found for stream, row in batch for found in model.arrive(stream, row, queries)]
        assert sorted(step(join, batch)) == sorted(expected), [query.text for query in queries]


@given(seeds)
def test_three_streams_join_as_each_row_arrives(seed):
    random_ = random.Random(seed)
    streams = ["a", "b", "c"]
    queries = [make_query(random_, number, streams) for number in range(random_.choice([1, 4]))]
    rows = {stream: make_rows(random_, random_.choice([3, 12]), stream) for stream in streams}
    pairs = make_set(streams)
    for query in queries:
        add(pairs, query)
    join, model = open_join(pairs), Model(streams)
    for batch in cut(random_, merged(rows, streams)):
        expected = [found for stream, row in batch for found in model.arrive(stream, row, queries)]
        assert sorted(step(join, batch)) == sorted(expected), [query.text for query in queries]


@given(seeds)
def test_queries_change_and_states_are_saved_in_between(seed):
    """A new query sees the rows that were kept for those before it, and no state depends on how rows were cut."""
    random_ = random.Random(seed)
    streams = ["left", "right"]
    rows = {stream: make_rows(random_, 40, stream) for stream in streams}
    pairs = make_set(streams)
    # A query that keeps every row with all its fields, so that the model need not drop rows.
    fields = " AND ".join(f"{stream}.{field} = -99" for stream in streams for field in "xyn")
    add(pairs, Query("all", f"{fields} AND left.s = right.s", None, dict.fromkeys(streams, 1000), {}))
    join, model, active = open_join(pairs), Model(streams), {}
    base, deltas = join.save(), []
    for batch in cut(random_, merged(rows, streams)):
        for number in range(random_.choice([0, 0, 1, 2])):
            query = make_query(random_, f"{len(model.seen['left'])}-{number}-{random_.random()}", streams)
            if active and random_.random() < 0.3:
                query.id = random_.choice(list(active))
                pairs.replace(query.id, query.text, within=query.within or None, rows=query.rows or None)
            else:
                add(pairs, query)
            active[query.id] = query
        if active and random_.random() < 0.3:
            pairs.remove(removed := random_.choice(list(active)))
            del active[removed]
        expected = [found for stream, row in batch for found in model.arrive(stream, row, list(active.values()))]
        assert sorted(step(join, batch)) == sorted(expected), [query.text for query in active.values()]
        deltas.append(join.take_delta())
        if random_.random() < 0.3:
            if random_.random() < 0.5:
                pairs = pickle.loads(pickle.dumps(pairs))
            join = open_join(pairs)
            join.load(base)
            for delta in deltas:
                join.apply_delta(delta)
        if random_.random() < 0.2:
            base, deltas = join.save(), []


@examples(0.6)
@given(seeds)
def test_windows_of_time_hold_whichever_stream_is_ahead(seed):
    random_ = random.Random(seed)
    streams = ["left", "right"]
    queries = [make_query(random_, number, streams, counts=False) for number in range(4)]
    rows = {stream: make_rows(random_, 30, stream) for stream in streams}
    pairs = make_set(streams)
    for query in queries:
        add(pairs, query)
    join = open_join(pairs)
    found = []
    waiting = {stream: cut(random_, [(stream, row) for row in rows[stream]]) for stream in streams}
    while any(waiting.values()):
        stream = random_.choice([stream for stream in streams if waiting[stream]])
        found += step(join, waiting[stream].pop(0))
    expected = [
        (query.id, left["id"], right["id"])
        for query in queries
        for left in rows["left"]
        for right in rows["right"]
        if in_time(query, {"left": left, "right": right}) and query.test({"left": left, "right": right}) is True
    ]
    assert sorted(found) == sorted(expected)


def test_the_smallest_case():
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    pairs.add("less", "left.x < right.x", rows=1)
    join = pairs.window()
    assert join.step(left={"x": [1.0, 2.0]}, right={"x": [1.5, 3.0]}).to_pylist() == [
        {"query": "less", "left": 1, "right": 1}
    ]
    with pytest.raises(vd.RowError, match="unknown stream 'lft'; the streams are: left, right"):
        join.step(lft={"x": [1.0]})
