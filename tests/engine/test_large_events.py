"""Border events that would be too many: refused as a whole, delivered in pieces, in bounded memory."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import run_alone

from vedette import AnswerError, QuerySet, answer_limit
from vedette.engine.event_table import EVENT_BYTES
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
    ]
)
batches = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.none() | st.integers(0, 4)), max_size=12), max_size=5
)


def monitors(texts, options, n=2):
    queries = QuerySet("k bigint, t bigint, x double, y double")
    queries.add_many([f"q{number}" for number in range(len(texts))], texts)
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
@settings(max_examples=80, deadline=None)
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
@settings(max_examples=80, deadline=None)
def test_a_monitor_is_unchanged_where_a_step_is_not_taken_to_its_end(texts, options, batches, n_taken):
    _, (whole, other) = monitors(texts, options)
    for rows in tables(batches):
        before, had_keys = other.save(), other.n_keys > 0
        pieces = other.step_batches(rows, max_bytes=40)
        taken = list(itertools.islice(pieces, n_taken))
        pieces.close()

        if len(taken) == n_taken:  # else it came to its end
            assert other.save() == before or not had_keys  # a monitor without keys may know its fields by now
            assert in_order(other.step(rows).to_pylist()) == in_order(whole.step(rows).to_pylist())
        else:
            assert in_order(lines(taken)) == in_order(whole.step(rows).to_pylist())
        assert other.save() == whole.save()


@pytest.mark.parametrize("options", [{}, {"expire_after": 3}, {"margin": 1}])
def test_a_step_with_too_many_events_is_refused_and_may_be_taken_in_fewer_rows(monkeypatch, options):
    _, (monitor, other) = monitors(["x > 3"] * 50, options)
    monkeypatch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=100 * EVENT_BYTES))
    rows = {"k": np.arange(10), "t": np.zeros(10, np.int64), "x": np.full(10, 5.0), "y": np.zeros(10)}

    for moment in (0, 10):  # the second time there are keys that expire
        rows["t"] = np.full(10, moment)
        before, had_keys = monitor.save(), monitor.n_keys > 0
        if moment == 0 or "expire_after" in options:
            with pytest.raises(AnswerError, match=r"events in .* bytes; the limit.*fewer rows.*step_batches"):
                monitor.step(rows)
            assert monitor.save() == before or not had_keys
            assert monitor.n_keys == (10 if had_keys else 0)
        events = [
            monitor.step({name: each[k : k + 1] for name, each in rows.items()}, advance=False) for k in range(10)
        ]
        assert in_order(lines(events)) == in_order(lines(other.step_batches(rows, advance=False)))


@pytest.mark.parametrize("options", ["", ", margin=1", ", cross=True", ", expire_after=5"])
def test_the_memory_of_a_step_is_bounded_whatever_the_queries_and_rows_are(options):
    told = run_alone(
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

    assert "(setting max_answer_bytes)" in told[0]
    megabytes, n_events = map(int, told[1].split())
    assert n_events == 20_000 * (100 if "margin" in options else 102)  # keys of the first step leave, or linger
    assert megabytes < 400
