"""Evaluations that raise: refused when a query is added, and contained when rows are matched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vedette as vd
from vedette.errors import QueryError
from vedette.language import evaluation, raised, trial
from vedette.language.arithmetic import calculate

SCHEMA = "k string, i bigint, j bigint, t timestamp"
UNLUCKY = 13


class UnluckyError(RuntimeError):
    """What the broken addition below raises."""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addition that raises where the left operand is 13."""

    def add(op: str, a: Any, b: Any, *types: Any) -> Any:
        if op == "+" and bool((np.asarray(a.values) == UNLUCKY).any()):
            raise UnluckyError("13")
        return calculate(op, a, b, *types)

    monkeypatch.setattr(evaluation, "calculate", add)
    monkeypatch.setattr(raised, "_logged", set())
    monkeypatch.setattr(trial, "_known", set())


def alerts() -> vd.QuerySet:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(["sum", "more", "plain", "other"], ["i + j > j - j", "i + j > 100 + j - j", "i > 0", "j - i > 5"])
    return queries


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "vedette.language"]


def test_a_pair_that_raises_counts_as_null_and_leaves_all_others_alone(
    broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    queries = alerts()
    rows = {"k": ["a"] * 200, "i": [UNLUCKY if row in (3, 150) else row for row in range(200)], "j": [1] * 200}
    rows |= {"t": [None] * 200}

    matches = queries.match(rows)

    found: dict[str, set[int]] = {"sum": set(), "more": set(), "plain": set(), "other": set()}
    for pair in matches.to_arrow().to_pylist():
        found[pair["query"]].add(pair["row"])
    lucky = set(range(200)) - {3, 150} - {13}
    assert found["sum"] == lucky
    assert found["more"] == {row for row in lucky if row >= 100}
    assert found["plain"] == set(range(1, 200))
    assert matches.n_failed == 6  # three rows for each of two queries
    assert sorted(line.split(" cannot")[0] for line in logged(caplog)) == ["query 'more'", "query 'sum'"]
    assert all("UnluckyError: 13" in line for line in logged(caplog))
    queries.match(rows)
    assert len(logged(caplog)) == 2  # each query once


def test_match_one_of_a_row_that_raises_answers_for_the_other_queries(
    broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    queries = alerts()
    assert queries.match_one({"i": UNLUCKY, "j": 1}) == ["plain"]
    assert sorted(queries.match_one({"i": 12, "j": 1})) == ["plain", "sum"]
    assert len(logged(caplog)) == 2


def test_border_takes_a_row_that_raises_as_outside(broken: None, caplog: pytest.LogCaptureFixture) -> None:
    queries = alerts()
    monitor = queries.border(key="k", time="t")
    steps = []
    for number, value in enumerate((1, UNLUCKY, 2)):
        rows = {"k": ["a"], "i": [value], "j": [1], "t": np.array([number], "datetime64[s]")}
        steps.append(sorted((e["query"], e["event"]) for e in monitor.step(rows).to_pylist()))

    assert steps == [[("plain", "enter"), ("sum", "enter")], [("sum", "exit")], [("sum", "enter")]]
    assert monitor.n_failed >= 1
    assert any(line.startswith("query 'sum' cannot be evaluated") for line in logged(caplog))


def test_a_removed_query_that_raises_does_not_stop_a_border_step(
    broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(["sum", "plain"], ["i + j > j - j", "i > 0"])
    monitor = queries.border(key="k", time="t")
    rows = {"k": ["a"], "i": [UNLUCKY], "j": [1], "t": np.array([0], "datetime64[s]")}
    monitor.step(rows)
    caplog.clear()
    raised._logged.clear()
    queries.remove("sum")

    monitor.step(rows | {"i": [1], "t": np.array([1], "datetime64[s]")})

    assert [line.split(" cannot")[0] for line in logged(caplog)] == ["query 'sum'"]


def test_a_computed_field_that_raises_is_null_and_counted_once_per_row(
    broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(["sum", "more"], ["i + j > 0", "i + j > 100"])
    rows = {"k": ["a"] * 3, "i": [1, UNLUCKY, 200], "j": [1] * 3, "t": np.arange(3).astype("datetime64[s]")}
    monitor = queries.border(key="k", time="t")

    assert queries.match(rows).counts.tolist() == [1, 0, 2]
    assert queries.match(rows).n_failed == 1
    assert monitor.step(rows).num_rows == 4
    assert monitor.n_failed == 1
    assert len(logged(caplog)) == 1


@pytest.mark.parametrize("index", [None, "IBS-JS", "SJ-Join"])
def test_a_window_join_takes_pairs_that_raise_as_not_joined(
    index: str | None, broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = vd.JoinQuerySet(a="i bigint, j bigint", b="i bigint, j bigint", index=index)
    pairs.add("selected", "a.j = b.j AND a.i + a.j > 0", rows={"a": 100, "b": 100})
    monitor = pairs.window()
    found = monitor.step(a={"i": [1, UNLUCKY, 2], "j": [1, 1, 1]}, b={"i": [1], "j": [1]})

    assert found.num_rows == 2
    assert monitor.n_failed >= 1
    assert [line.split(" cannot")[0] for line in logged(caplog)] == ["query 'selected'"]


def test_a_condition_over_two_streams_that_raises_joins_nothing_for_those_rows(
    broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = vd.JoinQuerySet(a="i bigint, j bigint", b="i bigint, j bigint")
    pairs.add("crossed", "a.j = b.j AND (a.i + b.i) * 2 > 0", rows={"a": 100, "b": 100})
    monitor = pairs.window()
    found = monitor.step(a={"i": [1, UNLUCKY, 2], "j": [1, 1, 1]}, b={"i": [1], "j": [1]})

    assert found.num_rows == 2
    assert [line.split(" cannot")[0] for line in logged(caplog)] == ["query 'crossed'"]


def test_a_join_key_that_raises_is_null(broken: None, caplog: pytest.LogCaptureFixture) -> None:
    pairs = vd.JoinQuerySet(a="i bigint, j bigint", b="i bigint, j bigint")
    pairs.add("keyed", "a.i + a.j = b.i", rows={"a": 100, "b": 100})
    monitor = pairs.window()
    found = monitor.step(a={"i": [1, UNLUCKY, 2], "j": [1, 1, 1]}, b={"i": [2, 14, 3], "j": [1, 1, 1]})

    assert found.num_rows == 2
    assert monitor.n_failed == 1
    assert len(logged(caplog)) == 1


def test_memory_errors_are_not_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = alerts()

    def exhausted(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(evaluation, "calculate", exhausted)
    with pytest.raises(MemoryError):
        queries.match_one({"i": 1, "j": 1})


# -- when a query is added


def test_a_shape_that_raises_for_nulls_is_refused_by_name_and_nothing_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> Any:
        raise KeyError("null")

    monkeypatch.setattr(trial, "_known", set())
    monkeypatch.setattr(evaluation, "calculate", never)
    queries = vd.QuerySet(SCHEMA)
    queries.add("plain", "i > 0")
    for attempt in (
        lambda: queries.add("bad", "i + j > 0"),
        lambda: queries.add_many(["good", "bad"], ["j > 0", "i + j > 0"]),
        lambda: queries.replace("plain", "i + j > 0"),
        lambda: queries.check("i + j > 0"),
    ):
        with pytest.raises(QueryError, match=r"the query cannot be evaluated .*KeyError.*please report it"):
            attempt()
    with pytest.raises(QueryError, match="query 'bad'"):
        queries.add("bad", "i + j > 0")
    assert len(queries) == 1
    assert queries.match_one({"i": 1}) == ["plain"]


def test_a_shape_that_raises_for_the_constants_of_one_query_refuses_that_one(broken: None) -> None:
    errors: list[tuple[int, QueryError]] = []
    texts = ["i + j > 15", "i + j > 13", "i + j > 16"]
    from vedette.data.schema import Schema
    from vedette.language import compile_texts

    compile_texts(["i + j > 13"], Schema.parse(SCHEMA), errors=errors)
    assert len(errors) == 1
    errors.clear()
    compile_texts(texts[1:] + texts[:1], Schema.parse(SCHEMA), errors=errors)

    assert [place for place, _ in errors] == [0]


def test_a_link_that_raises_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise KeyError("null")

    monkeypatch.setattr(trial, "_known", set())
    monkeypatch.setattr(evaluation, "calculate", never)
    pairs = vd.JoinQuerySet(a="i bigint, j bigint", b="i bigint, j bigint")
    with pytest.raises(QueryError, match=r"query 'keyed'.*cannot be evaluated"):
        pairs.add("keyed", "a.i + a.j = b.i", rows={"a": 100, "b": 100})


def test_a_known_shape_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = vd.QuerySet(SCHEMA)
    queries.add("first", "i * j > 7")

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(trial, "Evaluation", never)
    queries.add_many([f"q{n}" for n in range(1000)], [f"i * j > {n}" for n in range(1000)])
    assert len(queries) == 1001
