"""Border events that would be too many: refused as a whole, delivered in pieces, in bounded memory."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import run_alone

from tests.profiles import examples
from vedette import AnswerError, QuerySet, RowError
from vedette.data import answer_limit
from vedette.operators import state
from vedette.operators.border.event_table import EVENT_BYTES
from vedette.settings import Settings

TEXTS = ["x > 3", "x BETWEEN 1 AND 6", "x < 3 OR x > 5", "TRUE", "x + y > 6", "y > 1 AND x < 7", "y IS NULL"]
options = st.sampled_from(
    [
        {},
        {"expire_after": 3},
        {"dwell": 2},
        {"margin": 1},
        {"cross": True},
        {"margin": 1, "dwell": 2, "expire_after": 4},
        {"each": [2, None, 5]},
        {"each": [1, 3, None, 6], "margin": 1, "dwell": 2, "expire_after": 4},
    ]
)
batches = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.none() | st.integers(0, 4)), max_size=12), max_size=5
)


def monitors(texts, options, n=2):
    queries = QuerySet("k bigint, t bigint, x double, y double")
    options = dict(options)
    silences = itertools.islice(itertools.cycle(options.pop("each", [None])), len(texts))  # of each query
    queries.add_many([f"q{number}" for number in range(len(texts))], texts, expire_after=list(silences))
    return queries, [queries.border(key="k", time="t", **options) for _ in range(n)]


def tables(batches):
    time = 0
    for batch in batches:
        times = range(time, time + len(batch))
        time += len(batch)
        yield pa.table(
            {
                "k": pa.array([k for k, _, _ in batch], pa.int64()),
                "t": pa.array(times, pa.int64()),
                "x": pa.array([float(x) for _, x, _ in batch], pa.float64()),
                "y": pa.array([None if y is None else float(y) for _, _, y in batch], pa.float64()),
            }
        )


def lines(tables):
    return [line for table in tables for line in table.to_pylist()]


def in_order(events):
    """Events of a move in the order of their queries, which is not defined."""
    return sorted(events, key=lambda e: (e["key"], e["time"], e["event"], e["query"]))


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), options, batches, st.integers(1, 200), st.data())
@examples(0.8)
def test_pieces_put_together_are_all_events_of_a_step(texts, options, batches, most, data):
    queries, (whole, pieces) = monitors(texts, options)
    for number, rows in enumerate(tables(batches)):
        expected = whole.step(rows).to_pylist()
        found = list(pieces.step_batches(rows, max_bytes=most))

        assert in_order(lines(found)) == in_order(expected)
        assert [(e["key"], e["time"]) for e in lines(found)] == [(e["key"], e["time"]) for e in expected]
        if number == 1:
            queries.remove("q0")
    found = list(pieces.advance_batches(100, max_bytes=most))
    assert in_order(lines(found)) == in_order(whole.advance(100).to_pylist())
    assert (pieces.n_keys, pieces.n_late, pieces.n_failed) == (whole.n_keys, whole.n_late, whole.n_failed)


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), options, batches, st.integers(0, 3))
@examples(0.8)
def test_a_monitor_is_unchanged_if_a_step_is_not_read_to_its_end(texts, options, batches, n_taken):
    _, (whole, other) = monitors(texts, options)
    for rows in tables(batches):
        before = other.save()
        pieces = other.step_batches(rows, max_bytes=40)
        taken = list(itertools.islice(pieces, n_taken))
        pieces.close()

        if len(taken) == n_taken:  # else it came to its end
            assert other.save() == before
            assert in_order(other.step(rows).to_pylist()) == in_order(whole.step(rows).to_pylist())
        else:
            assert in_order(lines(taken)) == in_order(whole.step(rows).to_pylist())
        assert other.save() == whole.save()


def content(monitor):
    """The state of a monitor, independent of the order of its keys."""
    whole = state.from_bytes("border state", monitor.save())
    saved = whole["parts"]["keys"]
    keys = saved["keys"].tolist()
    rows = {name: column[0].tolist() for name, column in saved["rows"].items() if keys}
    pairs = [
        sorted(zip([keys[place] for place in places], ids.to_pylist(), times.tolist(), strict=True))
        for places, ids, times, _ in (saved[name] for name in ("lingering", "pending") if len(saved[name][0]))
    ]
    last = sorted(zip(keys, saved["times"].tolist(), *rows.values(), strict=True))
    return whole["clock"], whole["counts"], sorted(rows), last, pairs


USES = {
    "step": lambda monitor, rows: monitor.step(rows),
    "step in pieces": lambda monitor, rows: list(monitor.step_batches(rows, max_bytes=40)),
    "advance": lambda monitor, rows: monitor.advance(50),
    "save": lambda monitor, rows: monitor.save(),
    "load": lambda monitor, rows: monitor.load(monitor.save()),
    "delta": lambda monitor, rows: monitor.take_delta(),
    "clear": lambda monitor, rows: monitor.clear(),
}


@given(
    st.lists(st.sampled_from(TEXTS), min_size=3, max_size=12),
    options,
    batches,
    st.sampled_from(sorted(USES)),
    st.sampled_from(["next", "close"]),
    st.booleans(),
)
@examples(0.6)
def test_a_step_that_is_left_open_does_not_touch_what_the_monitor_does_after_it(
    texts, options, batches, use, end, opens_advance
):
    _, (expected, monitor) = monitors(texts, options)
    for rows in tables(batches):
        left = monitor.advance_batches(40, max_bytes=1) if opens_advance else monitor.step_batches(rows, max_bytes=40)
        next(left)
        USES[use](monitor, rows)
        USES[use](expected, rows)
        if end == "next":
            with pytest.raises(RowError, match="the monitor was used before all pieces"):
                next(left)
        left.close()

        assert content(monitor) == content(expected)
    probe = {"k": [0, 1], "t": [60, 60], "x": [2.0, 5.0], "y": [1.0, None]}
    assert in_order(monitor.step(probe).to_pylist()) == in_order(expected.step(probe).to_pylist())


def test_a_step_in_one_piece_moves_the_monitor_on_when_the_iteration_has_ended():
    _, (monitor,) = monitors(["x > 3"], {}, n=1)
    pieces = monitor.step_batches({"k": [1], "t": [1], "x": [5.0], "y": [0.0]})

    assert next(pieces).num_rows == 1
    assert monitor.n_keys == 0
    assert list(pieces) == []
    assert monitor.n_keys == 1


def test_refused_steps_do_not_make_the_state_grow(monkeypatch):
    _, (monitor,) = monitors(["x > 3"] * 5, {}, n=1)
    monitor.step({"k": [-1], "t": [0], "x": [5.0], "y": [0.0]})
    saved = monitor.save()
    monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=100 * EVENT_BYTES))
    sizes = []
    for first in range(0, 20_000, 2_000):
        rows = {"k": np.arange(first, first + 2_000), "t": np.ones(2_000, np.int64), "x": np.full(2_000, 5.0)}
        with pytest.raises(AnswerError):
            monitor.step(rows | {"y": np.zeros(2_000)})
        sizes.append(len(monitor.keys))

    assert max(sizes) <= 4_000
    assert monitor.save() == saved


def test_deltas_that_free_keys_do_not_make_the_state_grow():
    _, (leader, follower) = monitors(["x > 3"], {"expire_after": 1})
    follower.load(leader.save())
    for time in range(0, 100, 10):
        keys = np.arange(2_000) + 2_000 * time
        leader.step({"k": keys, "t": np.full(2_000, time), "x": np.full(2_000, 5.0), "y": np.zeros(2_000)})
        follower.apply_delta(leader.take_delta())

    assert len(follower.keys) <= 2 * 2_000 + 1_024
    assert follower.save() == leader.save()


@pytest.mark.parametrize("options", [{}, {"expire_after": 3}, {"margin": 1}])
def test_a_step_with_too_many_events_is_refused_and_works_with_fewer_rows(monkeypatch, options):
    _, (monitor, other) = monitors(["x > 3"] * 50, options)
    monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=100 * EVENT_BYTES))
    rows = {"k": np.arange(10), "t": np.zeros(10, np.int64), "x": np.full(10, 5.0), "y": np.zeros(10)}

    for moment in (0, 10):  # the second time there are keys that expire
        rows["t"] = np.full(10, moment)
        before, had_keys = monitor.save(), monitor.n_keys > 0
        if moment == 0 or "expire_after" in options:
            with pytest.raises(AnswerError, match=r"at least .* events; the limit.*fewer rows.*step_batches"):
                monitor.step(rows)
            assert monitor.save() == before
            assert monitor.n_keys == (10 if had_keys else 0)
        events = [
            monitor.step({name: each[k : k + 1] for name, each in rows.items()}, advance=False) for k in range(10)
        ]
        assert in_order(lines(events)) == in_order(lines(other.step_batches(rows, advance=False)))


@pytest.mark.parametrize("options", ["", ", margin=1", ", cross=True", ", expire_after=5"])
@pytest.mark.full
def test_the_memory_of_a_step_is_bounded_for_any_queries_and_rows(options):
    reported = run_alone(
        f"""
        import numpy as np, vedette as vd
        queries = vd.QuerySet("k bigint, t bigint, x double")
        queries.add_many(np.arange(20_000), ["x > 1"] * 19_000 + ["x > 1 AND x % 2 < 2"] * 1_000)
        monitor = queries.border(key="k", time="t"{options})
        def rows(t, n_quiet, n_wide):
            x = np.repeat([0.0, 9.0], [n_quiet, n_wide])
            return {{"k": np.arange(len(x)), "t": np.full(len(x), t), "x": x}}
        monitor.step(rows(0, 20, 2))
        with Peak() as peak:
            try:
                monitor.step(rows(1, 16_384, 20_000))
            except vd.AnswerError as error:
                print(error)
            n_events = 0
            for events in monitor.step_batches(rows(1, 16_384, 100)):
                n_events += events.num_rows
        print(peak.megabytes, n_events)
        """,
        VEDETTE_MAX_ANSWER_BYTES=str(16 << 20),
        VEDETTE_ANSWER_BATCH_BYTES=str(4 << 20),
    ).splitlines()

    assert "(setting max_answer_bytes)" in reported[0]
    megabytes, n_events = map(int, reported[1].split())
    assert n_events == 20_000 * (100 if "margin" in options else 102)  # keys of the first step leave, or linger
    assert megabytes < 400
