"""NULL, with and without a type, as an operand of every operator and function."""

from __future__ import annotations

import contextlib

import pytest
from language.plain import answers, columns_of
from strategies import NULL_CONDITIONS, NULL_VALUES, SCHEMA

import vedette as vd
from vedette import QuerySet
from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts

schema = Schema.parse(SCHEMA)
columns = columns_of({name: [None] for name in schema.names}, schema)
TYPES = ("bigint", "int", "double", "decimal(10,2)", "decimal(38,10)", "boolean", "string", "date", "timestamp")
NULLS = ["NULL", "coalesce(NULL, NULL)", "CASE WHEN b THEN NULL END", *(f"CAST(NULL AS {name})" for name in TYPES)]
BESIDE = [
    "1",
    "3L",
    "1.5",
    "12345678901234567890.5",
    "1e0",
    "'1'",
    "TRUE",
    "DATE '2020-01-01'",
    "j",
    "x",
    "m",
    "w",
    "s",
]


def is_kept(text: str) -> bool:
    """Whether a row of nulls is kept."""
    return answers(compile_texts([text], schema), columns, 1) == [{0}]


@pytest.mark.parametrize(
    "text",
    [
        "NULL / 1.5 IS NULL",
        "1.5 / NULL IS NULL",
        "NULL % m IS NULL",
        "pmod(NULL, 1.5) IS NULL",
        "try_divide(NULL, 1.5) IS NULL",
        "NULL + NULL IS NULL",
        "NULL DIV NULL IS NULL",
        "CASE WHEN b THEN NULL END * 1.5 IS NULL",
        "least(NULL, NULL) IS NULL",
        "lower(if(b, NULL, NULL)) IS NULL",
        "CAST(nullif(NULL, 1) AS decimal(4,1)) IS NULL",
    ],
)
def test_arithmetic_and_functions_of_null_are_null(text: str) -> None:
    assert is_kept(text)


@pytest.mark.parametrize("template", [*NULL_VALUES, *NULL_CONDITIONS])
def test_a_null_in_any_place_is_answered_or_refused_and_never_raises(template: str) -> None:
    n = template.count("{}")
    for place in range(n):
        for null in NULLS:
            for other in BESIDE:
                operands = [other] * n
                operands[place] = null
                text = template.format(*operands)
                with contextlib.suppress(QueryError):
                    is_kept(text if template in NULL_CONDITIONS else f"{text} IS NULL")


@pytest.mark.parametrize("text", ["CASE WHEN NULL THEN 1 END = 1", "CASE WHEN b THEN 1 WHEN NULL THEN 2 END = 1"])
def test_null_is_refused_as_a_condition_of_case(text: str) -> None:
    with pytest.raises(QueryError, match="a condition is needed here, but this is NULL"):
        compile_texts([text], schema)


def test_null_is_a_condition_of_if() -> None:
    assert is_kept("if(NULL, 1, 2) = 2")


@pytest.mark.parametrize(
    "text", ["s AND 'true'", "NULL OR s", "b AND c AND 'true' AND s", "CAST(NULL AS string) OR NULL"]
)
def test_a_string_is_a_condition_only_next_to_a_condition(text: str) -> None:
    with pytest.raises(QueryError, match="needs a condition next to "):
        compile_texts([text], schema)
    compile_texts(["b AND 'true'", "'true' AND b AND s", "b OR c OR 'true'"], schema)


@pytest.mark.parametrize(
    "text",
    [
        "try_cast('a' AS decimal(8,2)) IS NULL",
        "try_cast('a' AS bigint) IS NULL",
        "try_cast('' AS date) IS NULL",
        "try_cast('x' AS timestamp) IS NULL",
        "try_cast('maybe' AS boolean) IS NULL",
        "try_cast(123.45 AS decimal(3,2)) IS NULL",
        "coalesce(try_cast('1,5' AS double), 2e0) = 2",
    ],
)
def test_try_cast_of_a_literal_that_cannot_be_cast_is_null(text: str) -> None:
    assert is_kept(text)


def test_try_cast_of_a_literal_that_can_be_cast_is_its_value() -> None:
    assert is_kept("try_cast('1.50' AS decimal(8,2)) = 1.5")


def test_try_forgives_its_own_failure_and_not_that_of_its_operands() -> None:
    rows = {"i": [0], "j": [0], "x": [1.0], "b": [True]}
    queries = QuerySet("i bigint, j bigint, x double, b boolean")
    queries.add("own", "try_divide(x, i) IS NULL")
    queries.add("operand", "try_divide(x / i, 2) IS NULL")

    assert queries.match(rows).ids.to_pylist() == ["own"]
    assert queries.match(rows).n_failed == 1


@pytest.mark.parametrize("text", ["lower(s) LIKE 'a\\\\'", "(s LIKE 'a\\\\b') IS NULL", "'abc' LIKE '/a' ESCAPE '/'"])
def test_a_literal_pattern_with_an_invalid_escape_is_refused_anywhere(text: str) -> None:
    with pytest.raises(QueryError, match="in a LIKE pattern must be followed by %, _ or itself"):
        compile_texts([text], schema)


def test_a_number_as_pattern_is_a_string_beside_texts_that_have_strings() -> None:
    queries = vd.QuerySet("s string")
    queries.add_many(["a", "b", "c"], ["s LIKE 'a%'", "s LIKE 555", "s LIKE 5.50"])

    assert queries.match_one({"s": "555"}) == ["b"]
    assert queries.match_one({"s": "5.50"}) == ["c"]
