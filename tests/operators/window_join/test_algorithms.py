"""Window joins by each algorithm against every row with every row, and against each other."""

from __future__ import annotations

import datetime
import decimal
import pickle
import random
from functools import partial
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.operators.window_join.algorithms import ALGORITHMS
from vedette.papers.duality.window_joins import join_conditions, shared_joins, spatial_join_windows
from vedette.papers.duality.window_joins.spatial_join_windows import SJJoin

from .join_model import Model, Query, in_time, make_rows
from .test_monitor import SCHEMA, add, cut, make_query, merged, open_join, step

STREAMS = ["left", "right"]
seeds = st.integers(0, 2**32)
algorithms = pytest.mark.parametrize("index", [None, "SJ-Join", "IBS-JS"])


def make_set(index, schema=SCHEMA):
    return vd.JoinQuerySet(**dict.fromkeys(STREAMS, schema), index=index)


@algorithms
@given(seeds)
def test_pairs_are_those_that_each_row_makes_as_it_arrives(index, seed):
    random_ = random.Random(seed)
    queries = [make_query(random_, number, STREAMS) for number in range(random_.choice([1, 3, 8, 20]))]
    rows = {stream: make_rows(random_, random_.choice([0, 5, 40]), stream) for stream in STREAMS}
    pairs = make_set(index)
    for query in queries:
        add(pairs, query)
    join, model = open_join(pairs), Model(STREAMS)
    for batch in cut(random_, merged(rows, STREAMS)):
        expected = [found for stream, row in batch for found in model.arrive(stream, row, queries)]
        assert sorted(step(join, batch)) == sorted(expected), [query.text for query in queries]


@algorithms
@examples(0.6)
@given(seeds)
def test_queries_change_and_states_are_saved_in_between(index, seed):
    """States have only rows: a state can be loaded after the set was pickled."""
    random_ = random.Random(seed)
    rows = {stream: make_rows(random_, 30, stream) for stream in STREAMS}
    pairs = make_set(index)
    # A query that keeps every row with all its fields, so that the model need not drop rows.
    fields = " AND ".join(f"{stream}.{field} = -99" for stream in STREAMS for field in "xyn")
    add(pairs, Query("all", f"{fields} AND left.s = right.s", None, dict.fromkeys(STREAMS, 1000), {}))
    join, model, active = open_join(pairs), Model(STREAMS), {}
    for batch in cut(random_, merged(rows, STREAMS)):
        for _ in range(random_.choice([0, 0, 1, 2])):
            query = make_query(random_, random_.random(), STREAMS)
            add(pairs, query)
            active[query.id] = query
        if active and random_.random() < 0.3:
            pairs.remove(removed := random_.choice(list(active)))
            del active[removed]
        expected = [found for stream, row in batch for found in model.arrive(stream, row, list(active.values()))]
        assert sorted(step(join, batch)) == sorted(expected), [query.text for query in active.values()]
        if random_.random() < 0.3:
            state = join.save()
            pairs = pickle.loads(pickle.dumps(pairs))
            assert pairs.index == index
            join = open_join(pairs)
            join.load(state)


@algorithms
@examples(0.6)
@given(seeds)
def test_windows_of_time_hold_whichever_stream_is_ahead(index, seed):
    random_ = random.Random(seed)
    queries = [make_query(random_, number, STREAMS, counts=False) for number in range(4)]
    rows = {stream: make_rows(random_, 30, stream) for stream in STREAMS}
    pairs = make_set(index)
    for query in queries:
        add(pairs, query)
    join = open_join(pairs, late="apply")
    found = []
    waiting = {stream: cut(random_, [(stream, row) for row in rows[stream]]) for stream in STREAMS}
    while any(waiting.values()):
        stream = random_.choice([stream for stream in STREAMS if waiting[stream]])
        found += step(join, waiting[stream].pop(0))
    expected = [
        (query.id, left["id"], right["id"])
        for query in queries
        for left in rows["left"]
        for right in rows["right"]
        if in_time(query, {"left": left, "right": right}) and query.test({"left": left, "right": right}) is True
    ]
    assert sorted(found) == sorted(expected)


@examples(0.15)
@given(seeds)
def test_no_answer_depends_on_the_size_of_clusters_pieces_or_slices(seed):
    random_ = random.Random(seed)
    queries = [make_query(random_, number, STREAMS) for number in range(12)]
    for query in queries:
        query.rows = {stream: 10 * n for stream, n in query.rows.items()}
    rows = {stream: make_rows(random_, 70, stream) for stream in STREAMS}
    batches = cut(random_, merged(rows, STREAMS))
    n_dc, n_pieces, room = random_.choice([1, 7, 64, 80]), random_.choice([1, 2, 9]), random_.choice([50, 1000])
    small = partial(SJJoin, n_dc=n_dc, n_pieces=n_pieces)
    answers = {}
    with (
        mock.patch.object(spatial_join_windows, "SJJoin", small),
        mock.patch.multiple(spatial_join_windows, MET_AT_ONCE=room, PAIRS_AT_ONCE=room, CLUSTERS_AT_ONCE=room),
        mock.patch.multiple(shared_joins, MATCHES_AT_ONCE=room),
        mock.patch.multiple(join_conditions, PAIRS_AT_ONCE=room, SHARED=random_.choice([0, 8])),
    ):
        for index in (None, "SJ-Join", "IBS-JS"):
            pairs = make_set(index)
            for query in queries:
                add(pairs, query)
            join = open_join(pairs)
            answers[index] = [sorted(step(join, batch)) for batch in batches]
    assert answers["SJ-Join"] == answers[None], [query.text for query in queries]
    assert answers["IBS-JS"] == answers[None], [query.text for query in queries]


TYPES = "d date, t timestamp, m decimal(12, 3), b boolean, n bigint, x double, s string"
TEXTS = [
    "left.d < right.d AND left.n > 1",
    "left.t >= right.t AND right.x < 0.5",
    "left.m - right.m BETWEEN -0.2 AND 0.3 AND left.s = 'a'",
    "abs(left.m - right.m) > 0.7",
    "left.b = right.b AND left.s = right.s AND left.x < right.x",
    "left.b > right.b",
    "left.n + 1 = right.n AND left.x / left.n > 0.1 AND right.x / right.n < 0.2",
    "left.x * 2 < right.x OR left.s = right.s AND left.n < right.n",
    "left.s < right.s AND left.d = right.d",
    "left.n BETWEEN 1 AND 3 AND right.s IS NULL",
    "left.n > 3 AND left.n < 2 AND left.x < right.x",
    "left.x - right.x > 0.25 AND left.n IN (0, 2)",
]


@algorithms
def test_every_type_that_links_can_have_is_joined_alike(index):
    random_ = random.Random(3)
    batches = [{stream: typed_rows(random_, 25) for stream in STREAMS} for _ in range(3)]
    expected = join_typed(None, batches)
    assert join_typed(index, batches) == expected
    assert all(expected)


def typed_rows(random_, n):
    def maybe(value):
        return None if random_.random() < 0.1 else value

    day, moment = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    columns = {
        "d": [maybe(day + datetime.timedelta(random_.randrange(5))) for _ in range(n)],
        "t": [maybe(moment + datetime.timedelta(hours=random_.randrange(50))) for _ in range(n)],
        "m": [maybe(decimal.Decimal(random_.randrange(1000)) / 1000) for _ in range(n)],
        "b": [maybe(random_.random() < 0.5) for _ in range(n)],
        "n": [maybe(random_.randrange(5)) for _ in range(n)],
        "x": [maybe(random_.random()) for _ in range(n)],
        "s": [maybe(random_.choice("abcü")) for _ in range(n)],
    }
    types = [pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(12, 3), pa.bool_(), pa.int64(), pa.float64()]
    types.append(pa.string())
    return pa.table(
        {name: pa.array(values, type_) for (name, values), type_ in zip(columns.items(), types, strict=True)}
    )


def join_typed(index, batches):
    pairs = make_set(index, TYPES)
    pairs.add_many([f"q{number}" for number in range(len(TEXTS))], TEXTS, rows=[20, 30, 60] * 4)
    join = pairs.window()
    return [sorted(map(repr, join.step(**batch).to_pylist())) for batch in batches]


def test_a_set_without_queries_finds_nothing_and_one_that_lost_them_too():
    for index in ALGORITHMS:
        pairs = vd.JoinQuerySet(left="x double", right="x double", index=index)
        join = pairs.window()
        rows = {"x": [1.0, 2.0]}
        assert join.step(left=rows, right=rows).num_rows == 0
        pairs.add("all", "left.x <= right.x", rows=5)
        assert join.step(left=rows, right=rows).num_rows == 3
        pairs.remove("all")
        assert join.step(left=rows, right=rows).num_rows == 0
        assert join.nbytes > 0


def test_an_algorithm_is_named_as_it_is_in_the_paper():
    with pytest.raises(vd.QueryError) as error:
        vd.JoinQuerySet(left="x double", right="x double", index="SJ-join")
    assert str(error.value) == (
        "unknown index 'SJ-join' of joins; the names are: SJ-Join, IBS-JS; by default ordered lists are used; "
        "did you mean 'SJ-Join'?"
    )
    with pytest.raises(
        vd.QueryError, match=r"IBS-JS joins two streams, not 3 \(a, b, c\); the names are: SJ-Join, IBS"
    ):
        vd.JoinQuerySet(a="x double", b="x double", c="x double", index="IBS-JS")


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (None, ["lists ordered by left.x with right.x"]),
        ("SJ-Join", ["SJ-Join, because it was requested", "left.x with right.x: in 4 pieces, cut along left.x"]),
        (
            "IBS-JS",
            ["IBS-JS, because it was requested", "left.x with right.x: 2 join conditions", "one more attribute"],
        ),
    ],
)
def test_the_plan_shows_which_algorithm_is_used_and_why(index, words):
    pairs = make_set(index)
    pairs.add_many(["a", "b"], ["left.y > 1 AND left.x < right.x", "left.y > 1 AND left.x >= right.x"], rows=10)
    bands = [f"left.x - right.x BETWEEN {number} AND {number + 1}" for number in range(20)]
    pairs.add_many([f"band {number}" for number in range(20)], bands, rows=10)
    plan = pairs.explain()
    for each in words:
        assert each in plan
    assert ("because it was requested" in plan) == (index is not None)
