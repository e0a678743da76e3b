"""Pairs of band joins that would be too many: refused as a whole, delivered in pieces, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import run_alone

from tests.profiles import examples
from vedette import AnswerError, BandQuerySet, QueryError
from vedette.data import answer_limit
from vedette.operators.band_join.index import lookup
from vedette.settings import Settings

low = st.integers(-4, 4).map(float) | st.just(float("-inf"))
width = st.integers(0, 5).map(float) | st.just(float("inf"))
bands = st.lists(st.tuples(low, width), min_size=1, max_size=8)
values = st.dictionaries(st.integers(0, 30), st.integers(0, 6), max_size=12)
ids = st.sets(st.integers(0, 30), max_size=12)
steps = st.lists(st.tuples(st.sampled_from(["insert", "delete", "replace"]), values, values, bands), max_size=6)


@pytest.fixture
def limited(monkeypatch):
    def limit(max_answer_bytes):
        monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=max_answer_bytes))

    return limit


def two_joins(some):
    queries = BandQuerySet()
    queries.add_many([f"q{number}" for number in range(len(some))], *ends(some))
    return queries, queries.monitor(), queries.monitor()


def ends(some):
    """A band without a lower end may have an upper one."""
    return [low for low, _ in some], [width if low == float("-inf") else low + width for low, width in some]


def rows(some):
    return {"id": list(some), "value": [float(value) for value in some.values()]}


def lines(*tables):
    return sorted(tuple(line.values()) for table in tables for line in table.to_pylist())


def full_join(n=20):
    """Each of n bands holds each difference of n left values, which are in, and n right values, which are not."""
    queries, join, twin = two_joins([(-9, 18)] * n)
    for each in (join, twin):
        each.insert(left=rows(dict.fromkeys(range(n), 1)), right=rows({-1: 1}))
        each.save()
    return queries, join, twin, rows(dict.fromkeys(range(100, 100 + n), 2))


def assert_same(join, twin):
    assert (join.n_left, join.n_right, join.unknown, join.n_unknown) == (
        twin.n_left, twin.n_right, twin.unknown, twin.n_unknown,
    )  # fmt: skip
    assert join.take_delta() == twin.take_delta()
    assert join.save() == twin.save()
    assert lines(join.pairs("q0")) == lines(twin.pairs("q0"))


@pytest.mark.parametrize("way", [lookup.BY_GROUPS, lookup.BY_SHIFTS, lookup.BY_POINTS, None])
@given(some=bands, history=steps, most=st.integers(1, 300))
@examples(0.4)
def test_batches_together_are_all_pairs(way, some, history, most):
    with pytest.MonkeyPatch.context() as patch:
        if way is not None:
            patch.setattr(lookup, "choose_way", lambda *_: way)
        queries, whole, pieces = two_joins(some)
        for number, (act, left, right, others) in enumerate(history):
            given = {"left": list(left), "right": list(right)}
            if act == "replace":
                queries.replace("q0", *[end[0] for end in ends(others)])
                queries.add_many([f"{number}-{each}" for each in range(len(others))], *ends(others))
                given, act = {}, "refresh"
            elif act == "insert":
                held = [each.ids.take(np.flatnonzero(each.lives)).tolist() for each in (whole.left, whole.right)]
                given = {
                    side: rows({key: value for key, value in new.items() if key not in old})
                    for side, new, old in zip(("left", "right"), (left, right), held, strict=True)
                }
            expected = getattr(whole, act)(**given)
            found = list(getattr(pieces, f"{act}_batches")(**given, max_bytes=most))

            assert lines(*found) == lines(expected)
            assert all(13 * each.num_rows <= max(most, 13 * len(queries)) for each in found)
            assert pieces.save() == whole.save()


@pytest.mark.parametrize("ends", [(-1.0, float("inf")), (float("-inf"), 1.0), (float("-inf"), float("inf"))])
def test_no_pair_of_an_unbounded_band_is_lost_in_small_batches(ends):
    queries = BandQuerySet()
    queries.add_many(["q", "near"], [ends[0], -1.0], [ends[1], 1.0])
    join = queries.monitor()
    join.insert(left=rows(dict.fromkeys(range(50), 1)), right=rows(dict.fromkeys(range(50), 1)))

    found = list(join.delete_batches(left=list(range(50)), max_bytes=500))

    assert sum(each.num_rows for each in found) == 2 * 50 * 50


def test_an_insert_with_too_many_pairs_is_refused_and_changes_nothing(limited):
    _, join, twin, right = full_join()
    limited(5200)

    with pytest.raises(AnswerError) as error:
        join.insert(left=rows({99: 1}), right=right)
    assert "the limit is 5,200 bytes (setting max_answer_bytes): pass fewer values at once" in str(error.value)
    assert "insert_batches" in str(error.value)
    assert_same(join, twin)

    one = {"id": right["id"][-1:], "value": right["value"][-1:]}
    assert join.insert(right=one).num_rows == 400
    limited(1 << 30)
    twin.insert(right=one)
    assert_same(join, twin)
    rest = {"id": right["id"][:-1], "value": right["value"][:-1]}
    assert lines(join.insert(right=rest)) == lines(twin.insert(right=rest))
    assert_same(join, twin)


def test_a_delete_with_too_many_pairs_is_refused_and_changes_nothing(limited):
    _, join, twin, right = full_join()
    for each in (join, twin):
        each.insert(right=right)
        each.save()
    limited(5200)

    with pytest.raises(AnswerError, match=r"at least .* pairs; .*delete_batches"):
        join.delete(left=[0, 1, 777], right=right["id"])
    limited(1 << 30)
    assert_same(join, twin)

    assert lines(join.delete(left=[0, 777], right=[100])) == lines(twin.delete(left=[0, 777], right=[100]))
    assert_same(join, twin)


def test_a_refresh_with_too_many_pairs_is_refused_and_can_be_read_in_batches(limited):
    queries, join, twin, right = full_join()
    limited(5200)
    queries.add_many([f"new {number}" for number in range(21)], [-5] * 21, [5] * 21)

    for act in (join.refresh, lambda: join.insert(left=rows({50: 500}))):
        with pytest.raises(AnswerError, match=r"has at least 4.. pairs"):
            act()
    found = list(join.refresh_batches(max_bytes=1000))
    assert len(found) > 1
    limited(1 << 30)
    assert lines(*found) == lines(twin.refresh())
    assert_same(join, twin)
    assert lines(join.insert(right=right)) == lines(twin.insert(right=right))


def test_the_pairs_of_a_query_beyond_the_limit_are_refused(limited):
    _, join, _, right = full_join()
    join.insert(right=right)
    limited(5200)

    with pytest.raises(AnswerError, match=r"has at least 4.. pairs"):
        join.pairs("q0")


def test_a_join_whose_batches_are_not_read_to_the_end_does_not_change():
    _, join, twin, right = full_join()

    pieces = join.insert_batches(left=rows({50: 1}), right=right, max_bytes=1000)
    first = [next(pieces), next(pieces)]
    pieces.close()

    assert_same(join, twin)
    join.insert(left=rows({51: 1}))
    assert {line["right"] for each in first for line in each.to_pylist()} <= {-1, *right["id"]}
    assert {line["left"] for each in first for line in each.to_pylist()} <= {50, *range(20)}


@pytest.mark.parametrize("changes", ["values", "queries", "clear"])
def test_a_join_that_changes_while_batches_are_read_raises(changes):
    queries, join, _, right = full_join()
    pieces = join.insert_batches(right=right, max_bytes=1000)
    next(pieces)

    if changes == "values":
        join.insert(right=rows({100: 1}))
    elif changes == "queries":
        queries.remove("q3")
    else:
        join.clear()

    with pytest.raises(QueryError, match=r"changed while pieces were read"):
        next(pieces)


def test_affected_queries_are_one_batch():
    queries, *_ = two_joins([(-9, 18)] * 20)
    join = queries.monitor(report="queries")
    assert [each.num_rows for each in join.insert_batches(left=rows({1: 1}), max_bytes=10)] == [0]
    assert [each.num_rows for each in join.insert_batches(right=rows({1: 1}), max_bytes=10)] == [20]
    assert [each.num_rows for each in join.refresh_batches(max_bytes=10)] == [0]
    assert [each.num_rows for each in join.delete_batches(left=[1], max_bytes=10)] == [20]


@pytest.mark.parametrize("n_new", [1, 50_000])
@pytest.mark.full
def test_memory_is_bounded_however_many_pairs_values_make(n_new):
    told = run_alone(
        f"""
        import numpy as np, vedette as vd
        n, n_new = 50_000, {n_new}
        bands = vd.BandQuerySet()
        bands.add_many(np.arange(n), np.full(n, -1.0) - np.arange(n) / n, np.ones(n))
        join = bands.monitor()
        join.insert(left={{"id": np.arange(n), "value": np.zeros(n)}})
        right = {{"id": np.arange(n_new), "value": np.zeros(n_new)}}
        with Peak() as peak:
            try:
                join.insert(right=right)
            except vd.AnswerError as error:
                print(error)
            n_pairs = 0
            for piece in join.insert_batches(right=right):
                n_pairs += piece.num_rows
                if n_pairs > 30_000_000:
                    break
        print(peak.megabytes, n_pairs, join.n_right)
        """,
        VEDETTE_MAX_ANSWER_BYTES=str(4 << 20),
        VEDETTE_ANSWER_BATCH_BYTES=str(1 << 20),
    ).splitlines()

    assert "(setting max_answer_bytes)" in told[0]
    megabytes, n_pairs, n_right = map(int, told[1].split())
    assert n_pairs > 30_000_000
    assert n_right == 0
    assert megabytes < 150
