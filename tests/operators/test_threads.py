"""Operators with several threads: the same tables and states as with one, whatever the rows, options and bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.data import ids
from vedette.indexes import dual
from vedette.native import concatenation, threads
from vedette.operators.band_join.index import lookup
from vedette.operators.border import changes, differences, event_pieces, finder
from vedette.operators.moving_join import grid
from vedette.operators.window_join import join, ordered_lists, probe_pieces
from vedette.queries import match, match_pieces, parts

N_THREADS = (1, 2, 5)


@pytest.fixture(autouse=True, scope="module")
def _cut_small_batches():
    """Small batches are cut for threads, into pieces of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "PIECE_IDS", 2)
        patch.setattr(concatenation, "COPIED_AT_ONCE", 8)
        patch.setattr(event_pieces, "PIECE_MOVES", 2)
        for module in (changes, differences, event_pieces, finder):
            patch.setattr(module, "MOVES_AT_ONCE", 5)
        patch.setattr(grid, "PIECE_OBJECTS", 2)
        patch.setattr(join, "PIECE_ROWS", 1)
        patch.setattr(lookup, "PIECE", 1)
        patch.setattr(match_pieces, "PIECE_ROWS", 2)
        patch.setattr(match, "COPIED_AT_ONCE", 2)
        patch.setattr(ordered_lists, "PIECE_ARRIVALS", 2)
        patch.setattr(probe_pieces, "PIECE_CANDIDATES", 2)
        patch.setattr(probe_pieces, "PIECE_PROBES", 2)
        for module in (parts, match, dual):
            patch.setattr(module, "MIN_ROWS", 4)
        yield


@pytest.fixture
def cuts(monkeypatch):
    """The numbers of pieces that calls were cut into."""
    counts = []
    run = threads.run_pieces

    def run_pieces(work, n_pieces):
        counts.append(n_pieces)
        return run(work, n_pieces)

    for module in (event_pieces, grid, lookup, probe_pieces):
        monkeypatch.setattr(module, "run_pieces", run_pieces)
    return counts


def content(table):
    """What a table is to a reader, byte by byte."""
    return [(name, str(table[name].type), table[name].to_pylist()) for name in table.column_names]


# Border.

TEXTS = [
    "x > 3", "x BETWEEN 1 AND 6", "x < 3 OR x > 5", "TRUE", "x + y > 6", "y > 1 AND x < 7", "y IS NULL", "10 / y > 4",
]  # fmt: skip
OPTIONS = [
    {},
    {"expire_after": 3},
    {"dwell": 2},
    {"margin": 1},
    {"cross": True},
    {"late": "apply"},
    {"margin": 1, "dwell": 2, "expire_after": 4, "cross": True},
]
rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 8), st.none() | st.integers(0, 4)), max_size=40
)
replacements = st.none() | st.tuples(st.integers(0, 7), st.sampled_from(TEXTS))


def border_rows(rows, time):
    names = "k", "t", "x", "y"
    columns = zip(*((f"k{k}", time + t, float(x), None if y is None else float(y)) for k, t, x, y in rows), strict=True)
    types = pa.string(), pa.int64(), pa.float64(), pa.float64()
    held = list(columns) or [()] * 4
    return pa.table({name: pa.array(each, type_) for name, each, type_ in zip(names, held, types, strict=True)})


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8),
    st.none() | st.sampled_from(["Dual", "MLGF", "Buckets", "Bitmaps"]),
    st.sampled_from(OPTIONS),
    st.lists(st.tuples(rows, replacements), max_size=5),
    st.none() | st.integers(18, 400),
)
def test_a_border_monitor_has_the_same_events_in_the_same_order(texts, index, options, batches, most):
    queries = vd.QuerySet("k string, t bigint, x double, y double", index=index)
    queries.add_many([f"q{number}" for number in range(len(texts))], texts)
    monitors = [queries.border(key="k", time="t", threads=n, **options) for n in N_THREADS]
    for number, (batch, change) in enumerate(batches):
        table = border_rows(batch, 10 * number)
        found = []
        for monitor in monitors:
            tables = [monitor.step(table)] if most is None else monitor.step_batches(table, max_bytes=most)
            found.append(([content(each) for each in tables], monitor.n_failed, monitor.save()))
        assert found[0] == found[1] == found[2]
        if change is not None and f"q{change[0]}" in queries:
            queries.replace(f"q{change[0]}", change[1])
        elif change is not None:
            queries.add(f"q{change[0]}", change[1])


def test_a_border_step_is_cut_into_pieces(cuts):
    queries = vd.QuerySet("k string, t bigint, x double, y double")
    queries.add("a", "x > 3")
    batch = [(n % 7, n, n % 9, 1) for n in range(70)]

    queries.border(key="k", time="t", threads=3).step(border_rows(batch, 0))
    queries.border(key="k", time="t", threads=1).step(border_rows(batch, 0))

    assert cuts == [6]


def test_a_border_step_that_is_refused_changes_nothing(set_limits):
    set_limits(max_answer_bytes=1000)
    queries = vd.QuerySet("k string, t bigint, x double, y double")
    queries.add_many(range(20), ["x > 3"] * 20)
    monitors = [queries.border(key="k", time="t", threads=n) for n in N_THREADS]
    messages = []
    for monitor in monitors:
        before = monitor.save()
        with pytest.raises(vd.AnswerError) as error:
            monitor.step(border_rows([(n % 5, n, n % 9, 1) for n in range(30)], 0))
        messages.append(str(error.value))
        assert monitor.save() == before
    assert len(set(messages)) == 1


# Window joins.

JOIN_TEXTS = [
    "left.x < right.x", "left.k = right.k", "left.k = right.k AND left.x - right.x BETWEEN -1 AND 2", "left.x > 2",
    "left.x * right.x > 6", "left.x > right.x OR left.k = right.k", "left.x <> right.x AND left.k < right.k",
    "10 / left.x > right.x",
]  # fmt: skip
join_rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 9)), max_size=25)


def join_table(rows, time):
    rows = sorted(rows, key=lambda row: row[2])
    names, columns = ("x", "k", "t"), list(zip(*rows, strict=True)) or [()] * 3
    table = pa.table({name: pa.array(each, pa.int64()) for name, each in zip(names, columns, strict=True)})
    return table.set_column(2, "t", pa.array([time + t for t in columns[2]], pa.int64()))


@given(
    st.lists(st.sampled_from(JOIN_TEXTS), min_size=1, max_size=8),
    st.integers(1, 80),
    st.lists(st.tuples(join_rows, join_rows), max_size=4),
    st.sampled_from(["drop", "apply"]),
    st.none() | st.integers(1, 300),
)
@examples(0.6)
def test_a_window_join_has_the_same_pairs_in_the_same_order(texts, n_bands, batches, late, most):
    pairs = vd.JoinQuerySet(left="x bigint, k bigint, t bigint", right="x bigint, k bigint, t bigint")
    for number, text in enumerate(texts):
        pairs.add(f"q{number}", text, **({"within": 6} if number % 2 else {"rows": 5}))
    for number in range(n_bands):  # many of them are a bundle
        pairs.add(f"b{number}", f"left.x - right.x BETWEEN {number % 5 - 3} AND {number % 7 - 2}", within=4)
    monitors = [pairs.window(left_time="t", right_time="t", late=late, threads=n) for n in N_THREADS]
    for number, (left, right) in enumerate(batches):
        given = {"left": join_table(left, 6 * number), "right": join_table(right, 6 * number)}
        found = []
        for monitor in monitors:
            tables = [monitor.step(**given)] if most is None else monitor.step_batches(most, **given)
            found.append(([content(each) for each in tables], monitor.n_failed, monitor.n_late, monitor.save()))
        assert found[0] == found[1] == found[2]


@given(st.lists(st.tuples(join_rows, join_rows, join_rows), max_size=3))
@examples(0.3)
def test_a_join_of_three_streams_has_the_same_rows_in_the_same_order(batches):
    pairs = vd.JoinQuerySet(**dict.fromkeys(("a", "b", "c"), "x bigint, k bigint, t bigint"))
    pairs.add("chain", "a.k = b.k AND b.x < c.x", within=8)
    pairs.add("band", "a.x - b.x BETWEEN -1 AND 1 AND b.k = c.k AND a.x <> c.x", within=5)
    times = {f"{name}_time": "t" for name in "abc"}
    monitors = [pairs.window(**times, threads=n) for n in N_THREADS]
    for number, batch in enumerate(batches):
        given = {name: join_table(rows, 10 * number) for name, rows in zip("abc", batch, strict=True)}
        found = [(content(monitor.step(**given)), monitor.save()) for monitor in monitors]
        assert found[0] == found[1] == found[2]


def test_a_window_join_is_cut_into_pieces(cuts):
    pairs = vd.JoinQuerySet(left="x bigint, k bigint, t bigint", right="x bigint, k bigint, t bigint")
    pairs.add("q", "left.k = right.k", within=100)
    rows = join_table([(n % 5, n % 3, n % 10) for n in range(60)], 0)

    found = [pairs.window(left_time="t", right_time="t", threads=n).step(left=rows, right=rows) for n in N_THREADS]

    assert content(found[0]) == content(found[1]) == content(found[2])
    assert max(cuts) == 10


# Band joins.

values = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=30)


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 6)), min_size=1, max_size=60),
    st.lists(st.tuples(values, values, st.lists(st.integers(0, 29), max_size=10)), min_size=1, max_size=3),
    st.sampled_from(["pairs", "queries"]),
    st.none() | st.integers(1, 900),
)
@examples(0.6)
def test_a_band_join_has_the_same_changes_in_the_same_order(bands, batches, report, most):
    queries = vd.BandQuerySet()
    queries.add_many(range(len(bands)), [float(low) for low, _ in bands], [float(low + size) for low, size in bands])
    monitors = [queries.monitor(report=report, known_id="replace", threads=n) for n in N_THREADS]
    for lefts, rights, deleted in batches:
        given = {
            "left": {"id": np.arange(len(lefts)), "value": lefts},
            "right": {"id": np.arange(len(rights)), "value": rights},
        }
        found = []
        for monitor in monitors:
            tables = list(monitor.insert_batches(**given, max_bytes=most)) if most else [monitor.insert(**given)]
            tables.append(monitor.delete(right=sorted(set(deleted))))
            found.append(([content(each) for each in tables], monitor.save()))
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("n_values", [3, 200])
def test_a_band_join_is_cut_into_pieces_of_values_or_of_groups(cuts, n_values):
    queries = vd.BandQuerySet()
    queries.add_many(range(50), np.arange(50) * 10.0, np.arange(50) * 10.0 + 3)
    found = []
    for n in N_THREADS:
        monitor = queries.monitor(threads=n)
        monitor.insert(right={"id": np.arange(900), "value": np.arange(900.0)})
        left = {"id": np.arange(n_values), "value": np.arange(n_values) + 450.0}
        found.append(content(monitor.insert(left=left)))

    assert found[0] == found[1] == found[2]
    assert len(found[0][0][2]) > 100
    assert max(cuts) > 1


# Moving joins.

sides = st.integers(0, 12).map(float)
speeds = st.integers(-2, 2).map(float)
objects = st.lists(st.tuples(st.integers(0, 19), sides, sides, speeds, speeds), max_size=20)


def moving_rows(objects):
    held = list({each[0]: each for each in objects}.values())
    columns = {"id": np.array([each[0] for each in held], np.int64)}
    for name, place, more in (("x_low", 1, 0), ("x_high", 1, 2), ("y_low", 2, 0), ("y_high", 2, 2)):
        columns[name] = np.array([each[place] + more for each in held], np.float64)
    for name, place in (("vx_low", 3), ("vx_high", 3), ("vy_low", 4), ("vy_high", 4)):
        columns[name] = np.array([each[place] for each in held], np.float64)
    return columns


@given(objects, objects, st.lists(st.tuples(objects, objects), max_size=4))
@examples(0.6)
def test_a_moving_join_has_the_same_changes_in_the_same_order(a, b, updates):
    monitors = [vd.MovingJoin(5, threads=n) for n in N_THREADS]
    found = [content(each.load(a=moving_rows(a), b=moving_rows(b), time=0)) for each in monitors]
    assert found[0] == found[1] == found[2]
    for time, (some_a, some_b) in enumerate(updates, 1):
        found = []
        for each in monitors:
            updates = content(each.update(a=moving_rows(some_a), b=moving_rows(some_b), time=time))
            found.append((updates, content(each.pairs(at=time)), each.save()))
        assert found[0] == found[1] == found[2]


def test_a_moving_join_is_cut_into_pieces(cuts):
    random = np.random.default_rng(3)
    many = [(n, *random.integers(0, 40, 2).tolist(), *random.integers(-2, 3, 2).tolist()) for n in range(80)]
    found = []
    for n in N_THREADS:
        moving = vd.MovingJoin(5, threads=n)
        found.append(content(moving.load(a=moving_rows(many), b=moving_rows(many), time=0)))

    assert found[0] == found[1] == found[2]
    assert max(cuts) == 10


@pytest.mark.parametrize(
    "make",
    [
        lambda n: vd.QuerySet("x double").border(key="k", time="t", threads=n),
        lambda n: vd.JoinQuerySet(left="x double", right="x double").window(threads=n),
        lambda n: vd.BandQuerySet().monitor(threads=n),
        lambda n: vd.MovingJoin(5, threads=n),
    ],
    ids=["border", "window join", "band join", "moving join"],
)
def test_an_invalid_number_of_threads_is_refused(make):
    with pytest.raises(vd.QueryError, match="threads must be an integer from 1 to 1,024, or None for all cores; got 0"):
        make(0)
