"""Answers of moving joins that are too large are refused and change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import run_alone

from tests.profiles import examples
from vedette import AnswerError, MovingJoin
from vedette.data import answer_limit
from vedette.settings import Settings

objects = st.dictionaries(
    st.integers(0, 40),
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(-2, 2), st.integers(0, 3)),
    max_size=10,
)
steps = st.lists(st.tuples(objects, objects, st.sets(st.integers(0, 40), max_size=4), st.integers(0, 6)), max_size=6)


def limit_answers(patch, max_answer_bytes):
    patch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=max_answer_bytes))


def rows(some, time):
    """Objects by id: where they are along an axis, how wide, how fast, and how long ago they updated."""
    x, width, speed, delay = (np.array([each[k] for each in some.values()], float) for k in range(4))
    flat = np.zeros(len(some))
    return {
        "id": np.array(list(some), np.int64), "x_low": x, "x_high": x + width, "vx": speed, "y_low": flat,
        "y_high": flat + 1, "vy": flat, "time": np.maximum(time - 0.25 * delay, 0.0),
    }  # fmt: skip


def lines(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


def assert_same(join, twin, until):
    assert (join.time, join.n_a, join.n_b, repr(join)) == (twin.time, twin.n_a, twin.n_b, repr(twin))
    assert lines(join.changes) == lines(twin.changes)
    assert join.take_delta() == twin.take_delta()
    assert join.save() == twin.save()
    assert lines(join.events()) == lines(twin.events())
    for at in np.linspace(until, until + 6, 4):
        assert lines(join.pairs(at=at)) == lines(twin.pairs(at=at))


@given(
    history=steps,
    most=st.integers(1, 300),
    starts=st.booleans(),
    options=st.sampled_from([{}, {"expire_overdue": True}, {"static": "b"}]),
)
@examples(0.6)
def test_a_refused_update_changes_nothing_and_may_be_repeated(history, most, starts, options):
    join, twin = MovingJoin(4, **options), MovingJoin(4, **options)
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        for a, b, gone, passed in history:
            last, now = now, now + passed
            given = {
                "a": rows(a, now), "b": rows(b, now), "time": now, "remove_a": sorted(gone - set(a)),
                "remove_b": sorted(gone - set(b)),
            }  # fmt: skip
            for name in ("a", "b"):
                given[name]["time"] = np.maximum(given[name]["time"], last)
            try:
                limit_answers(patch, most)
                join.update(**given)
                was_refused = False
            except AnswerError:
                was_refused = True
            limit_answers(patch, 1 << 30)
            if was_refused:
                if twin.time is not None:
                    assert_same(join, twin, last)
                join.update(**given)
            assert lines(twin.update(**given)) == lines(join.changes)
            if starts:
                assert_same(join, twin, now)
            assert join.save() == twin.save()


def crowd(n, first=0):
    return rows(dict.fromkeys(range(first, first + n), (0, 5, 0, 0)), 1.0)


def test_an_update_with_too_many_pairs_says_what_would_work(monkeypatch):
    join = MovingJoin(10)
    join.update(a=crowd(20), time=1.0)
    limit_answers(monkeypatch, 4800)

    with pytest.raises(AnswerError) as error:
        join.update(b=crowd(20), time=1.0)
    assert str(error.value) == (
        "the answer has at least 220 pairs; the limit is 4,800 bytes (setting max_answer_bytes): update fewer objects "
        "at once, let less time pass at once, or raise the setting"
    )
    for first in (0, 10):
        assert join.update(b=crowd(10, first), time=1.0).num_rows == 200


def test_pairs_and_events_beyond_the_limit_are_refused(monkeypatch):
    join = MovingJoin(10)
    join.load(a=crowd(20), b=crowd(20), time=1.0)
    limit_answers(monkeypatch, 3000)
    with pytest.raises(AnswerError, match="has 400 pairs in 3,200 bytes"):
        join.pairs()

    copy = MovingJoin(10)
    copy.load(join.save())
    for act in (copy.pairs, copy.events, lambda: copy.n_pairs):
        with pytest.raises(AnswerError, match=r"has at least \d+ pairs"):
            act()
    limit_answers(monkeypatch, 1 << 30)
    assert lines(copy.pairs()) == lines(join.pairs())


def test_a_load_with_too_many_pairs_leaves_the_join_as_it_was(monkeypatch):
    join, twin = MovingJoin(10), MovingJoin(10)
    for each in (join, twin):
        each.load(a=crowd(3), b=crowd(3), time=1.0)
        each.save()
    limit_answers(monkeypatch, 4800)

    with pytest.raises(AnswerError, match="load fewer objects"):
        join.load(a=crowd(20), b=crowd(20), time=5.0)
    assert_same(join, twin, 1.0)


@pytest.mark.full
def test_memory_is_bounded_however_many_objects_meet():
    told = run_alone(
        """
        import numpy as np, vedette as vd
        def crowd(n):
            flat = np.zeros(n)
            names = "x_low", "x_high", "vx", "y_low", "y_high", "vy"
            return {"id": np.arange(n)} | {name: flat for name in names}
        join = vd.MovingJoin(10)
        join.update(a=crowd(20_000), time=1)
        with Peak() as peak:
            both = {"a": crowd(9_000), "b": crowd(9_000)}
            for act, given in ((join.update, {"b": crowd(20_000)}), (join.load, both)):
                try:
                    act(**given, time=1)
                except vd.AnswerError as error:
                    print(error)
        print(peak.megabytes, join.n_a, join.n_b)
        """,
        VEDETTE_MAX_ANSWER_BYTES=str(4 << 20),
    ).splitlines()

    assert all("(setting max_answer_bytes)" in each for each in told[:2])
    megabytes, n_a, n_b = map(int, told[2].split())
    assert (n_a, n_b) == (20_000, 0)
    assert megabytes < 150
