"""Texts become boxes and residuals: shapes, kinds, errors and their places."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from language.plain import answers, columns_of
from strategies import SCHEMA, predicates, rows

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, Nulls, Ranges
from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import CompiledTexts, check_text, compile_texts

market = Schema.parse(
    "symbol string, price double, volume bigint, fee decimal(8,2), live boolean, day date, ts timestamp"
)
everything = Schema.parse(SCHEMA)


def only_range(compiled: CompiledTexts, field: str) -> tuple[object, int, object, int]:
    (block,) = compiled.blocks
    ranges = block.ranges[field]
    assert isinstance(ranges, Ranges)
    assert len(ranges) == 1
    return ranges.lows[0], int(ranges.low_ends[0]), ranges.highs[0], int(ranges.high_ends[0])


def test_texts_of_one_shape_become_one_block() -> None:
    compiled = compile_texts([f"symbol = 'S{k}' AND price < {k}.25" for k in range(1000)], market)

    (block,) = compiled.blocks
    assert block.queries.tolist() == list(range(1000))
    assert block.ranges["price"].highs[7] == 7.25
    assert block.ranges["symbol"].lows[7] == "S7"


def test_literals_of_several_kinds_may_be_in_one_place() -> None:
    compiled = compile_texts(["price < 1", "price < 1.5", "price < 1e0", "price < '2'", "price < NULL"], market)

    highs = {
        int(q): r for block in compiled.blocks for q, r in zip(block.queries, block.ranges["price"].highs, strict=True)
    }
    assert highs == {0: 1.0, 1: 1.5, 2: 1.0, 3: 2.0}


def test_a_condition_that_is_always_true_is_a_box_without_ranges() -> None:
    (block,) = compile_texts(["TRUE"], market).blocks

    assert block.ranges == {}
    assert block.queries.tolist() == [0]


def test_a_contradiction_has_no_box() -> None:
    compiled = compile_texts(["price > 5 AND price < 3", "volume = 1.5", "symbol = NULL"], market)

    assert compiled.blocks == []
    assert compiled.residuals == []


def test_is_null_is_a_box_of_nulls() -> None:
    (block,) = compile_texts(["day IS NULL AND price > 3"], market).blocks

    assert isinstance(block.ranges["day"], Nulls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("volume > 1.5", (2, CLOSED, None, UNBOUNDED)),
        ("volume <= 1.5", (None, UNBOUNDED, 2, OPEN)),
        ("volume = 9007199254740992e0", (2**53, CLOSED, 2**53 + 1, CLOSED)),
        ("volume > 9007199254740992e0", (2**53 + 1, OPEN, None, UNBOUNDED)),
        ("volume = -9223372036854775808", (-(2**63), CLOSED, -(2**63), CLOSED)),
        ("fee < 1.555", (None, UNBOUNDED, 156, OPEN)),
        ("fee >= 0.1e0", (10, CLOSED, None, UNBOUNDED)),
        ("fee = '0.3'", (30, CLOSED, 30, CLOSED)),
        ("day > TIMESTAMP '1970-01-02 12:00:00'", (2, CLOSED, None, UNBOUNDED)),
        ("day > TIMESTAMP '1970-01-02'", (1, OPEN, None, UNBOUNDED)),
        ("ts < DATE '1970-01-02'", (None, UNBOUNDED, 86_400_000_000, OPEN)),
        ("day = CAST('1970-01-03' AS DATE)", (2, CLOSED, 2, CLOSED)),
        ("symbol LIKE 'ab%'", ("ab", CLOSED, "ac", OPEN)),
        (r"symbol = '\uD83D\uDE00'", ("\U0001f600", CLOSED, "\U0001f600", CLOSED)),
        (r"symbol = '\U00110000'", ("??", CLOSED, "??", CLOSED)),
        (r"symbol = 'a\ud800'", ("a?", CLOSED, "a?", CLOSED)),
        ("symbol LIKE 'ab'", ("ab", CLOSED, "ab", CLOSED)),
        ("symbol LIKE '\U0010ffff%'", ("\U0010ffff", CLOSED, None, UNBOUNDED)),
        ("symbol LIKE 'a\U0010ffff%'", ("a\U0010ffff", CLOSED, "b", OPEN)),
        ("symbol LIKE '\ud7ff%'", ("\ud7ff", CLOSED, "\ue000", OPEN)),
        ("startswith(symbol, 'x')", ("x", CLOSED, "y", OPEN)),
        ("price >= -0.0", (0.0, CLOSED, None, UNBOUNDED)),
        ("NOT live", (False, CLOSED, False, CLOSED)),
        ("price BETWEEN 1 AND 5 AND price < 3", (1.0, CLOSED, 3.0, OPEN)),
    ],
)
def test_a_comparison_is_the_range_of_values_that_spark_accepts(text: str, expected: tuple[object, ...]) -> None:
    compiled = compile_texts([text], market)
    (field,) = compiled.blocks[0].ranges

    low, low_end, high, high_end = only_range(compiled, field)

    assert compiled.residuals == []
    assert (low if low_end != UNBOUNDED else None, low_end) == expected[:2]
    assert (high if high_end != UNBOUNDED else None, high_end) == expected[2:]


def test_midnight_is_that_of_the_sets_time_zone() -> None:
    low, *_ = only_range(compile_texts(["ts >= DATE '2021-03-15'"], market, "America/New_York"), "ts")
    assert low == 1_615_780_800_000_000  # 04:00 UTC, in summer time

    gap = "ts >= DATE '2018-11-04'"  # the day on which midnight was skipped in Sao Paulo
    low, *_ = only_range(compile_texts([gap], market, "America/Sao_Paulo"), "ts")
    assert low == 1_541_300_400_000_000  # 01:00 local time, 03:00 UTC


def test_conjuncts_that_are_boxes_leave_the_residual() -> None:
    (residual,) = compile_texts(["price < 40 AND volume > price * 2e0 AND symbol = 'IBM'"], market).residuals

    assert residual.fields == ("price", "volume")
    assert len(residual.constants) == 1


def test_a_product_of_many_disjunctions_becomes_a_bounding_box_and_a_residual() -> None:
    text = " AND ".join(f"(price > {k} OR volume > {k} OR fee > {k})" for k in range(1, 6))
    compiled = compile_texts([text], market)

    assert sum(map(len, compiled.blocks)) <= 64
    assert len(compiled.residuals) == 1


def test_a_long_list_of_values_stays_a_list_of_boxes() -> None:
    listed = ", ".join(f"'S{k}'" for k in range(500))
    compiled = compile_texts([f"symbol IN ({listed}) AND price < 4"], market)

    assert sum(map(len, compiled.blocks)) == 500
    assert compiled.residuals == []


@pytest.mark.parametrize(
    "name", ["date", "timestamp", "day", "year", "user", "order", "key", "left", "type", "r", "x", "group"]
)
def test_a_field_may_have_the_name_of_a_word_of_sql(name: str) -> None:
    schema = Schema.parse(f"{name} string")
    texts = [f"{name} = 'a'", f"'a'<{name.upper()} OR {name} IN ('b')", f"NOT {name} IS NULL", f"length({name}) > 2"]

    assert len(compile_texts(texts, schema).residuals) == 1


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(QueryError, match=r"too deeply|is incomplete|without"):
        compile_texts(["(" * 3000 + "price > 1" + ")" * 3000], market)


def test_only_the_first_invalid_text_is_reported() -> None:
    with pytest.raises(QueryError, match=r"query 'q2'.*unknown field 'prize'; .*did you mean 'price'"):
        compile_texts(["price < 1", "volume > 1", "prize < 3", "price <"], market, ids=["q0", "q1", "q2", "q3"])


def test_bad_texts_can_be_collected_in_order() -> None:
    errors: list[tuple[int, QueryError]] = []
    texts = ["price < 1", "price < 'x'", "prize < 1", "price < '2'", "price <", "day = DATE '2024-13-01'"]
    compiled = compile_texts(texts, market, errors=errors)

    assert [index for index, _ in errors] == [1, 2, 4, 5]
    assert {int(q) for block in compiled.blocks for q in block.queries} == {0, 3}


def test_a_lone_surrogate_is_an_error() -> None:
    with pytest.raises(
        QueryError,
        match=r"(?s)the text has a lone surrogate, which is not a character; remove it.*symbol = 'a\?'\n {13}\^",
    ):
        compile_texts(["symbol = 'b'", "symbol = 'a\ud800'"], market)


def test_a_query_that_is_not_a_string_is_an_error() -> None:
    errors: list[tuple[int, QueryError]] = []
    compile_texts(["price < 1", None], market, errors=errors)  # type: ignore[list-item]

    assert errors[0][0] == 1
    assert "not NoneType" in str(errors[0][1])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("price > 30 AND prize < 50", "prize"),
        ("symbol = 'it''s' AND price < 'x'", "'x'"),
        ("price < 1 AND day = DATE '2024-02-30'", "DATE '2024-02-30'"),
        ("`price` < 1 AND\n lenght(symbol) > 2", "lenght(symbol"),
    ],
)
def test_the_caret_is_under_the_place(text: str, place: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_texts([text], market)

    error = caught.value
    assert error.position is not None
    assert text[error.position : error.end] == place
    assert "^" * len(place) in str(error)


def test_texts_that_never_or_always_match_are_warned_of() -> None:
    assert check_text("price > 5 AND price < 3", market) == ["never matches: no value of price lies in all its ranges"]
    assert check_text("1 = 1", market) == ["always true: it matches every row"]
    assert check_text("price IS NULL OR price IS NOT NULL", market) == ["always true: it matches every row"]
    assert check_text("price > 5", market) == []


@given(predicates(), rows(12))
def test_a_text_has_the_same_error_alone_and_among_many(pair: object, columns: dict[str, list[object]]) -> None:
    text = str(pair)
    others = ["i > 5", text, "x < 2.5 OR s = 'a'", text]
    together, alone = (compile_texts(texts, everything) for texts in (others, [text]))
    physical = columns_of(columns, everything)

    kept = answers(together, physical, 12)

    assert kept[1] == kept[3] == answers(alone, physical, 12)[0]


@given(st.lists(st.text("ab'\\\"%1. `\n-", max_size=8), min_size=1, max_size=4))
def test_any_characters_give_boxes_or_an_error(parts: list[str]) -> None:
    errors: list[tuple[int, QueryError]] = []
    compile_texts(["".join(parts), "symbol = " + parts[0]], market, errors=errors)


def test_texts_of_a_few_shapes_compile_ten_times_as_fast_as_sqlglot_parses() -> None:
    import sqlglot

    numbers = np.random.default_rng(5).random(20_000).round(3).tolist()
    shapes = (
        "symbol = 'S{0}' AND price < {0}",
        "price BETWEEN {0} AND 4.5",
        "volume >= 100 OR price IN ({0}, 2.5)",
        "fee < {0}",
        "symbol = 'a' AND volume > 10 AND price >= {0}",
    )
    texts = [shapes[k % 5].format(number) for k, number in enumerate(numbers)]
    compile_texts(texts[:10], market)

    ratios = []
    for _ in range(3):
        start = time.thread_time()
        for text in texts[:500]:
            sqlglot.parse_one(text, dialect="spark")
        middle = time.thread_time()
        compile_texts(texts, market)
        ratios.append((middle - start) * 40 / (time.thread_time() - middle))

    assert max(ratios) > 10


@pytest.mark.parametrize("literal", ["999", "9" * 40, "1.5", "1e5", "'a'", "DATE'2020-01-01'", "-3"])
def test_a_literal_that_is_called_is_not_named_by_its_place_in_the_skeleton(literal):
    with pytest.raises(QueryError) as caught:
        compile_texts([f"price = 1 AND {literal}(price) = 1"], market)

    assert str(caught.value).startswith("a literal cannot be called; an operator or a comma is missing")
    assert "__literal" not in str(caught.value)
