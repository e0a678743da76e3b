"""The pairs of window joins in pieces: the same pairs for any size of pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory import run_alone
from tests.profiles import examples
from vedette import AnswerError, JoinQuerySet
from vedette.data import answer_limit
from vedette.operators.window_join import join as window_join
from vedette.operators.window_join import monitor as join_monitor
from vedette.settings import Settings

TEXTS = [
    "left.x < right.x", "left.k = right.k", "left.k = right.k AND left.x - right.x BETWEEN -1 AND 2", "left.x > 2",
    "left.x * right.x > 6", "left.x > right.x OR left.k = right.k", "left.x <> right.x AND left.k < right.k",
]  # fmt: skip
rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=12)


def make_queries(texts, has_times=True, **options):
    pairs = JoinQuerySet(left="x bigint, k bigint, t bigint", right="x bigint, k bigint, t bigint", **options)
    for number, text in enumerate(texts):
        pairs.add(f"q{number}", text, **({"within": 6} if number % 2 and has_times else {"rows": 5}))
    return pairs


def joins(texts, n=2):
    pairs = make_queries(texts)
    return [pairs.window(left_time="t", right_time="t") for _ in range(n)]


def table(rows, time):
    return pa.table(
        {
            "x": pa.array([x for x, _ in rows], pa.int64()),
            "k": pa.array([k for _, k in rows], pa.int64()),
            "t": pa.array(range(time, time + len(rows)), pa.int64()),
        }
    )


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8), st.lists(st.tuples(rows, rows), max_size=4), st.data())
@examples(0.6)
def test_pieces_put_together_are_all_pairs_of_a_step(texts, batches, data):
    whole, pieces = joins(texts)
    most = data.draw(st.integers(1, 200))
    with pytest.MonkeyPatch.context() as patch:
        for number, (left, right) in enumerate(batches):
            given = {"left": table(left, 10 * number), "right": table(right, 10 * number)}
            patch.setattr(window_join, "CANDIDATES_AT_ONCE", 1 << 23)
            expected = whole.step(**given).to_pylist()
            patch.setattr(window_join, "CANDIDATES_AT_ONCE", 4)
            found = [line for each in pieces.step_batches(most, **given) for line in each.to_pylist()]

            assert sorted(found, key=str) == sorted(expected, key=str)
            assert pieces.save() == whole.save()


def test_a_step_with_very_many_pairs_is_returned_in_pieces_of_bounded_size(monkeypatch):
    monkeypatch.setattr(window_join, "CANDIDATES_AT_ONCE", 1 << 14)
    (join,) = joins(["left.x = right.x"] * 200, n=1)
    rows = {"x": np.zeros(200, np.int64), "k": np.zeros(200, np.int64), "t": np.arange(200)}

    sizes = [each.num_rows for each in join.step_batches(60_000, left=rows, right=rows)]

    assert sum(sizes) > 200_000
    assert max(sizes) * 12 <= 60_000 + 12 * (1 << 14)


@pytest.fixture
def limited(monkeypatch):
    def limit(max_answer_bytes):
        monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=max_answer_bytes))

    return limit


def test_a_step_beyond_the_limit_is_refused_with_what_would_work(limited):
    (join,) = joins(["left.x = right.x"], n=1)
    rows = {"x": [0] * 5, "k": [0] * 5, "t": range(5)}
    limited(100)

    with pytest.raises(AnswerError) as error:
        join.step(left=rows, right=rows)
    assert str(error.value) == (
        "the answer has at least 10 pairs; the limit is 100 bytes (setting max_answer_bytes): pass fewer rows at once, "
        "or get the pairs in pieces with step_batches"
    )
    assert join.n_rows == 0
    assert sum(each.num_rows for each in join.step_batches(left=rows, right=rows)) == 25


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8), st.lists(st.tuples(rows, rows), max_size=6),
    st.integers(1, 200), st.sampled_from([1, 3, 4096]), st.booleans(), st.data(),
)  # fmt: skip
@examples(0.8)
def test_a_refused_step_changes_nothing(texts, batches, most, n_at_once, has_times, data):
    pairs, active = make_queries(texts, has_times), [f"q{number}" for number in range(len(texts))]
    columns = {"left_time": "t", "right_time": "t"} if has_times else {}
    tried, untouched = (pairs.window(**columns) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_monitor, "ROWS_AT_ONCE", n_at_once)
        for number, (left, right) in enumerate(batches):
            given = {"left": table(left, 10 * number), "right": table(right, 10 * number)}
            change = data.draw(st.sampled_from(["nothing", "add", "remove", "save"]))
            if change == "add":
                active.append(f"more{number}")
                pairs.add(active[-1], data.draw(st.sampled_from(TEXTS)), rows=data.draw(st.integers(1, 9)))
            elif change == "remove" and active:
                pairs.remove(active.pop(0))
            elif change == "save":
                assert tried.save() == untouched.save()
            patch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=most))
            answer = None
            try:
                answer = tried.step(**given)
            except AnswerError:
                assert tried.save() == untouched.save()
            patch.setattr(answer_limit, "settings", Settings)
            expected = untouched.step(**given)
            answer = tried.step(**given) if answer is None else answer

            assert sorted(answer.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)
            assert tried.take_delta() == untouched.take_delta()
            assert tried.save() == untouched.save()
            assert tried.n_failed == untouched.n_failed


def test_a_step_whose_pieces_are_not_all_read_changes_nothing():
    stopped, untouched = joins(["left.x = right.x"] * 3)
    rows = {"x": [0] * 9, "k": [0] * 9, "t": range(9)}
    for join in (stopped, untouched):
        join.step(left=rows)
    pieces = stopped.step_batches(1, right=rows)
    next(pieces)
    pieces.close()

    assert stopped.save() == untouched.save()
    assert stopped.step(right=rows).to_pylist() == untouched.step(right=rows).to_pylist()


def test_pieces_that_are_left_behind_do_not_undo_a_later_step():
    (join,) = joins(["left.x = right.x"] * 3, n=1)
    rows = {"x": [0] * 9, "k": [0] * 9, "t": range(9)}
    pieces = join.step_batches(1, left=rows, right=rows)
    next(pieces)
    join.step(right={"x": [1], "k": [0], "t": [20]})
    saved = join.save()
    pieces.close()

    assert join.save() == saved


def test_repeats_that_two_branches_find_do_not_count_towards_the_limit(limited):
    (join,) = joins(["left.x = right.x OR left.k = right.k OR left.x >= right.x"], n=1)
    rows = {"x": [0] * 4, "k": [0] * 4, "t": range(4)}
    limited(16 * 12)

    assert join.step(left=rows, right=rows).num_rows == 16
    with pytest.raises(AnswerError):
        join.step(left={"x": [0] * 9, "k": [0] * 9, "t": range(4, 13)})


def test_queries_with_several_branches_are_returned_in_pieces_too(monkeypatch):
    monkeypatch.setattr(join_monitor, "ROWS_AT_ONCE", 4)
    whole, pieces = joins(["left.x = right.x OR left.k = right.k"] * 3)
    rows = {"x": [0] * 40, "k": [0] * 40, "t": range(40)}
    expected = whole.step(left=rows, right=rows).to_pylist()

    found = list(pieces.step_batches(1000, left=rows, right=rows))

    assert sorted((line for each in found for line in each.to_pylist()), key=str) == sorted(expected, key=str)
    assert len(found) > 5
    assert max(each.num_rows for each in found) <= 2 * 1000 // 12
    assert len({str(line) for line in expected}) == len(expected)


@pytest.mark.parametrize("index", [None, "SJ-Join", "IBS-JS"])
def test_the_pairs_of_a_row_with_several_queries_are_returned_in_pieces_too(index):
    pairs = make_queries(["left.x = right.x OR left.k = right.k", "left.x <= right.x OR left.k = 0"] * 4, index=index)
    whole, pieces = (pairs.window(left_time="t", right_time="t") for _ in range(2))
    rows, row = {"x": [0] * 40, "k": [0] * 40, "t": range(40)}, {"x": [0], "k": [0], "t": [40]}
    for join in (whole, pieces):
        join.step(left=rows)

    found = [each.to_pylist() for each in pieces.step_batches(100, right=row)]

    assert sorted((line for each in found for line in each), key=str) == sorted(
        whole.step(right=row).to_pylist(), key=str
    )
    assert max(map(len, found)) <= 40
    assert pieces.save() == whole.save()


def test_the_memory_of_queries_with_several_branches_is_bounded():
    reported = run_alone(
        """
        import numpy as np, vedette as vd
        pairs = vd.JoinQuerySet(left="x bigint, k bigint", right="x bigint, k bigint")
        pairs.add_many(["a", "b", "c"], ["left.x = right.x OR left.k = right.k"] * 3, rows=5_000)
        join = pairs.window()
        def rows(n):
            return {"x": np.zeros(n, np.int64), "k": np.zeros(n, np.int64)}
        list(join.step_batches(left=rows(10), right=rows(10)))
        n_pairs = 0
        with Peak() as peak:
            for found in join.step_batches(left=rows(2_000), right=rows(2_000)):
                n_pairs += found.num_rows
        print(peak.megabytes, n_pairs)
        """,
        VEDETTE_ANSWER_BATCH_BYTES=str(4 << 20),
    )
    megabytes, n_pairs = map(int, reported.split())

    assert n_pairs == 3 * (2_010 * 2_010 - 10 * 10)
    assert megabytes < 200
