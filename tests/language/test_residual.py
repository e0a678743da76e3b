"""Residuals: evaluation over pairs, failures, pickles and parts."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from language.plain import columns_of

from vedette.data.schema import Schema
from vedette.language import Residual, compile_texts

schema = Schema.parse("i bigint, j bigint, x double, m decimal(10,2), w decimal(30,4), s string, b boolean")
ROWS: dict[str, list[Any]] = {
    "i": [1, 0, None, 2**63 - 1],
    "j": [2, 3, 4, 5],
    "x": [1.5, float("nan"), -0.0, None],
    "m": [Decimal("1.50"), Decimal("0.00"), None, Decimal("99999999.99")],
    "w": [Decimal("1.5000"), Decimal("12345678901234567890.1234"), None, Decimal("0.0000")],
    "s": ["1", "x", None, "2.5"],
    "b": [True, False, None, True],
}
columns = columns_of(ROWS, schema)


def residual_of(*texts: str) -> Residual:
    (residual,) = compile_texts(texts, schema).residuals
    return residual


def evaluated(residual: Residual, member: int = 0) -> tuple[list[bool], int]:
    keep, n_failed = residual.evaluate(columns, np.arange(4), np.full(4, member))
    return keep.tolist(), n_failed


@pytest.mark.parametrize(
    ("text", "kept", "n_failed"),
    [
        ("10 / i > 1", [True, False, False, False], 1),
        ("i + 1 > j", [False, False, False, False], 1),
        ("s < 5 AND j > i", [True, False, False, False], 2),
        ("i <> j - 3 AND 10 / i > 1", [True, False, False, False], 0),
        ("10 / i > 1 AND j > i + 1", [False, False, False, False], 1),
        ("CASE WHEN i = 0 THEN 1e0 ELSE 10 / i END > 0.5", [True, True, False, False], 0),
        ("coalesce(x, 1 / 0) = 1.5", [True, False, False, False], 1),
        ("if(i = 0, 0, 10 / i) >= 0", [True, True, False, True], 0),
        ("try_divide(10, i) > 1", [True, False, False, False], 0),
        ("(10 / i > 1) IS NULL", [False, True, True, False], 1),
        ("NOT (10 / i > 1)", [False, False, False, True], 1),
        ("j IN (10 / i, 3)", [False, True, False, False], 1),
        ("m * m > 1", [True, False, False, True], 0),
        ("w * w > 1", [True, False, False, False], 1),
        ("abs(i) = j - 1", [True, False, False, False], 0),
    ],
)
def test_a_failure_makes_the_comparison_null_and_is_counted(text: str, kept: list[bool], n_failed: int) -> None:
    assert evaluated(residual_of(text)) == (kept, n_failed)


def test_pairs_may_be_in_any_order_and_repeat() -> None:
    residual = residual_of("i + j > 2", "i + j > 4")
    rows, members = np.array([0, 0, 1, 0]), np.array([1, 0, 1, 0])

    keep, _ = residual.evaluate(columns, rows, members)

    assert keep.tolist() == [False, True, False, True]


def test_no_pairs_give_an_empty_answer() -> None:
    nothing = np.zeros(0, np.int64)
    for text in ("i + j > 2", "m / 3 > w", "upper(s) LIKE '%X' OR s < 3", "round(x, 1) = 2"):
        keep, n_failed = residual_of(text).evaluate(columns, nothing, nothing)
        assert (len(keep), n_failed) == (0, 0)


TEXTS = [
    "concat(s, 'a') = 'xa' OR w + 12345678901234567890123.5 > m",
    "concat(s, 'b') = '1b' OR w + 22345678901234567890123.5 > m",
]


def test_residuals_of_one_expression_can_be_split_and_joined() -> None:
    both = residual_of(*TEXTS)
    first, second = both.take(np.array([0])), both.take(np.array([False, True]))

    joined = Residual.concat([second, first])

    assert first.expression == second.expression
    assert hash(first.expression) == hash(second.expression)
    assert evaluated(joined, 0) == evaluated(both, 1)
    assert evaluated(joined, 1) == evaluated(both, 0)


def test_residuals_of_different_expressions_are_not_joined() -> None:
    with pytest.raises(ValueError, match="different expressions"):
        Residual.concat([residual_of("i > j"), residual_of("i < j")])


@pytest.mark.parametrize("text", [*TEXTS, "i > j", "x * 2.5 > i AND s LIKE '%x'", "b = (i > j)"])
def test_residuals_survive_pickling_and_storage(text: str) -> None:
    residual = residual_of(text)
    pickled = pickle.loads(pickle.dumps(residual))
    description, arrays = residual.to_parts()
    stored = Residual.from_parts(json.loads(json.dumps(description)), arrays)

    for copy in (pickled, stored):
        assert copy.expression == residual.expression
        assert copy.fields == residual.fields
        assert evaluated(copy) == evaluated(residual)
