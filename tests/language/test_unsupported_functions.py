"""Functions that are not supported: the message, and the table of Spark's functions that are refused."""

from __future__ import annotations

from typing import Any

import pytest

import vedette as vd
from vedette.language.check import check_text
from vedette.language.function_table import FUNCTIONS
from vedette.language.refused_functions import OPERATORS, REFUSED, coverage, refused_functions
from vedette.language.spark_functions import BY_GROUP
from vedette.language.unsupported_functions import _SIMILAR, MOST_SIMILAR, close_names

QUERIES = vd.QuerySet("a int, s string, x double")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("powerr(x) = 1", "unsupported function 'powerr'; did you mean 'power'?"),
        ("strlen(s) = 1", "unsupported function 'strlen'; similar functions: length"),
        ("typeof(s) = 'a'", "unsupported function 'typeof': every expression has a known type"),
        ("row_number() = 1", "it needs neighbouring rows, and a query is a condition on one row"),
        ("from_json(s, 'a int') = 1", "parse them before the transform"),
        ("nosuch(x) = 1", "unsupported function 'nosuch'; the page on the query language lists the functions"),
    ],
)
def test_the_message_has_the_reason_or_similar_functions(text: str, words: str) -> None:
    with pytest.raises(vd.QueryError) as raised:
        QUERIES.check(text)

    assert words in str(raised.value)
    assert str(raised.value).splitlines()[0].count(",") <= MOST_SIMILAR + 3  # never a list of all functions


def test_only_misspellings_are_close() -> None:
    assert close_names("lenght", FUNCTIONS) == ["length"]
    assert close_names("power2", FUNCTIONS) == ["power"]
    assert "lower" not in close_names("powr", FUNCTIONS)
    assert close_names("abcdefgh", FUNCTIONS) == []


def test_few_functions_are_similar() -> None:
    assert all(len(names.split()) <= MOST_SIMILAR for names in _SIMILAR.values())


def test_refused_functions_are_not_in_the_function_table() -> None:
    assert all(name not in FUNCTIONS for names in refused_functions().values() for name in names)


def test_every_function_of_spark_is_supported_or_refused_with_a_reason(spark: Any) -> None:
    shown = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    ours = {"decimal"}

    assert sorted(shown - set(FUNCTIONS) - set(REFUSED) - OPERATORS) == []
    assert sorted((set(REFUSED) | OPERATORS) - shown - ours) == []


@pytest.mark.parametrize("group", ["string", "math", "datetime", "predicate", "conditional", "bitwise"])
def test_most_functions_of_a_group_are_supported(group: str) -> None:
    n, n_all, lacking = coverage()[group]

    assert n / n_all >= 0.9, lacking


def test_the_groups_are_those_of_spark(spark: Any) -> None:
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    for group, names in BY_GROUP.items():
        for name in names.split():
            assert catalog.lookupFunctionInfo(identifier(name)).getGroup() == f"{group}_funcs", name


def test_queries_without_a_box_are_reported() -> None:
    (warning,) = check_text("x > a", QUERIES.schema)

    assert warning.startswith("every row is a candidate")
    assert "such as a > 0" in warning
    assert "written as x - a > 0" in warning
    assert check_text("x > a OR a = 5", QUERIES.schema) == [warning]
    assert check_text("x > a AND a = 5", QUERIES.schema) == []
    assert check_text("x - a > 0", QUERIES.schema) == []
    assert check_text("sin(x) > 0", QUERIES.schema) == []
    assert check_text("x IS NULL OR sin(x) > 0 AND s = 'a'", QUERIES.schema) == []
