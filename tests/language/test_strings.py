"""String functions have Spark's values, over hostile strings and numbers."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from language.test_against_spark import interpreted  # noqa: F401
from language.values import FAILED, differences, our_values

from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.functions.function import MAX_PADDED
from vedette.language.functions.search import edit_distance

SCHEMA = Schema.parse("s string, z string, i bigint, m decimal(10,2), b boolean, d date, x double")
TEXTS = [
    *(
        "",
        " ",
        "a",
        "ab",
        "abcab",
        "aaaa",
        " a b ",
        "É",
        "ß",
        "日本語",
        "\U0001f600a\U0001f600",
        "e\u0301a",
        "it's",
        None,
    ),
    *("a,b,,c", "İi", "ΣΑΣ ΑΣ", "ǆa", "x\x00y", "ﬁn", "Hello wORLD", "79927398713", "a%b", "-2", "3"),
]
WORDS = ["", "a", "ab", "aa", " ", ",", "b", "\U0001f600", None, "abc", "日", "\u0301"]
NUMBERS = [0, 1, 2, 3, -1, -2, 5, 100, -100, 2**31 - 1, -(2**31), None]
N_ROWS = len(TEXTS) * 4
ROWS: dict[str, list[Any]] = {
    name: [value for value, _ in zip(cycle(values), range(N_ROWS), strict=False)]
    for name, values in {
        "s": TEXTS, "z": [*WORDS, "x"], "i": [*NUMBERS, 4, 7], "m": [None], "b": [True, None], "d": [None],
        "x": [0.5, 2.9, -1.5, None, 3.0],
    }.items()
}  # fmt: skip
ONE = "length octet_length bit_length lower upper initcap trim ltrim rtrim btrim reverse ascii luhn_check soundex md5"
TWO = "trim ltrim btrim instr locate find_in_set startswith endswith contains replace concat concat_ws levenshtein"
THREE = "replace translate concat_ws concat"
NUMBERED = [
    *("left(s, {})", "right(s, {})", "substring(s, {})", "substring(s, {}, 2)", "substring(s, 2, {})", "chr({})"),
    *("split_part(s, z, {})", "split_part(s, 'a', {})", "substring_index(s, z, {})", "substring_index(s, 'a', {})"),
    *("locate(z, s, {})", "position('a', s, {})", "levenshtein(s, z, {})", "overlay(s, z, {})", "overlay(s, z, 2, {})"),
    *("overlay(s, z, {}, 1)", "elt({}, s, z, 'q')", "sha2(s, {})", "repeat(s, {})", "lpad(s, {})", "lpad(s, {}, z)"),
    *("rpad(s, {}, 'xy')", "space({})"),
]  # fmt: skip
HUGE = ("repeat", "pad", "space")  # of these, Spark makes strings that are refused here


def expressions() -> list[str]:
    texts = [
        f"{name}({value})" for name in ONE.split() for value in ("s", "z", "concat(s, z)", "i", "-2", "2L", "b", "NULL")
    ]
    pairs = ("s, z", "z, s", "s, 'a'", "'ab', s", "s, ''", "'', s", "s, NULL", "NULL, s", "s, i", "i, 2")
    texts += [f"{name}({values})" for name in TWO.split() for values in pairs]
    triples = (
        "s, z, 'xy'",
        "s, 'a', z",
        "s, 'ab', 'X'",
        "s, z, s",
        "'aXbXc', 'X', s",
        "NULL, s, z",
        "s, z, NULL",
        "s, NULL, z",
    )
    texts += [f"{name}({values})" for name in THREE.split() for values in triples]
    for call in NUMBERED:
        numbers = ["1", "2", "3", "-1", "-3", "NULL", "2L", "'2'", "2.9", "-1.5", "1e0", "length(z)", "b", "d"]
        if "elt" in call:
            numbers = ["1", "2", "3", "NULL", "2L", "'2'", "2.9", "if(b, 1, 3)", "b"]
        elif "split_part" in call:
            numbers += ["100", "-2147483648", "2147483647"]
        else:
            numbers += ["0", "100", "-100", "-2147483648"]
            numbers += [] if "levenshtein" in call else ["m", "x"]
            numbers += [] if any(word in call for word in HUGE) else ["2147483647", "i"]
        texts += [call.format(number) for number in numbers if call != "levenshtein(s, z, {})" or number != "i"]
    texts += [
        "concat_ws('-', s, z, NULL, 'q', i)",
        "concat_ws(z, s, s, s)",
        "concat_ws(z)",
        "elt(1, NULL, s)",
        "lpad(s, 3)",
    ]
    texts += [f"sha2(s, {bits})" for bits in (0, 224, 256, 384, 512)] + ["md5(i)", "soundex(i)", "crc32(2)"]
    words = [
        "Tymczak",
        "Ashcraft",
        "Pfister",
        "a-h-b",
        "Honeyman",
        "éabc",
        "abé-bb",
        "aéb",
        "BhB",
        "BaB",
        "bwb",
        "ab-c1d",
    ]
    return texts + [f"soundex('{word}')" for word in words]


FORMS = [
    *(
        "trim(BOTH 'a' FROM s)",
        "trim(both from s)",
        "trim(LEADING z FROM s)",
        "trim( TRAILING FROM s )",
        "trim('ab' FROM s)",
    ),
    *(
        "trim(z from trim(leading 'a' from s))",
        "trim(FROM s)",
        "trim(BOTH z, s)",
        "trim(s BOTH FROM s)",
        "position('a' IN s)",
    ),
    *("position(z in concat(s, z))", "POSITION((z) IN (s))", "position('a' IN s, 2)", "substring(s FROM 2 FOR 1)"),
    *("substring(s FROM 2)", "substr(s from length(z) for 2)", "substring(s FOR 2)", "overlay(s PLACING z FROM 2)"),
    *("overlay(s placing 'xx' from 1 for 2)", "overlay(s PLACING z)", "s ILIKE 'A%'", "s NOT ILIKE '%A%'", "s ILIKE z"),
    *(
        "s ILIKE 'É'",
        "s ILIKE '%ς%'",
        "s ILIKE '%İ%'",
        "s ILIKE 'a/%b' ESCAPE '/'",
        "s ILIKE 'aA%b' ESCAPE 'A'",
        "s ILIKE NULL",
    ),
    *(
        "i ILIKE '1%'",
        "s LIKE ANY ('a%', '%b')",
        "s LIKE ALL ('a%', '%b')",
        "s NOT LIKE ANY ('a%', '%b')",
        "s LIKE ANY ()",
    ),
    *("s NOT LIKE ALL ('a%', '%b', z)", "s LIKE ANY ('a%', NULL)", "s LIKE SOME ('a%')", "s ILIKE ANY ('A%', '%B')"),
    *(
        "s NOT ILIKE ALL ('A%', 'x')",
        "s LIKE ANY 'a'",
        "s LIKE ANY (z, s)",
        "s LIKE ANY ('a/%') ESCAPE '/'",
        "s LIKE ALL (1, 2)",
    ),
    *("s LIKE ANY ('a%', 'b%') AND b", "NOT s LIKE ANY ('a%')", "s ILIKE '%' || 'A'", "lpad(s, 1 + 2, upper('x'))"),
]
FAILING = ["split_part(s, ',', 0)", "elt(3, s, z)", "elt(0, s)", "left(s, s)", "chr(z)", "repeat(s, i * 10000000000L)"]


@pytest.mark.fast
def test_values_of_string_functions_are_those_of_spark(interpreted: Any) -> None:  # noqa: F811
    texts = expressions() + FORMS

    assert differences(interpreted, texts, SCHEMA, ROWS) == []


def test_what_stops_a_job_of_spark_fails_for_the_row(interpreted: Any) -> None:  # noqa: F811
    rows = {name: column[4:5] for name, column in ROWS.items()}

    assert all(our_values(text, SCHEMA, rows) == [FAILED] for text in FAILING)
    assert differences(interpreted, FAILING, SCHEMA, rows) == []


@pytest.mark.fast
@pytest.mark.parametrize("call", ["upper", "lower", "initcap"])
def test_a_change_of_case_is_that_of_spark_for_letters_of_all_scripts(interpreted: Any, call: str) -> None:  # noqa: F811
    letters = [
        chr(code) for code in range(0x20, 0x1F000) if chr(code).upper() != chr(code) or chr(code).lower() != chr(code)
    ]
    texts = [
        f"{call}({text})"
        for text in ("s", "concat('a', s, 'b')", "concat(s, 'Σ')", "concat('AΣ', s)", "concat(' ', s, 'AB')")
    ]

    assert differences(interpreted, texts, Schema.parse("s string"), {"s": letters}) == []


@pytest.mark.parametrize(
    "text", ["repeat(s, 2000000)", "space(2000000)", "lpad(s, 2000000)", "rpad(s, 900000, '日')", "replace(s, 'a', z)"]
)
def test_a_function_that_would_add_more_than_a_million_bytes_fails(text: str) -> None:
    schema = Schema.parse("s string, z string")

    assert our_values(text, schema, {"s": ["a" * 1000], "z": ["b" * (MAX_PADDED // 900)]}) == [FAILED]


@pytest.mark.parametrize("text", ["s ILIKE 'a/' ESCAPE '/'", "z LIKE ANY ('a', 'b\\\\x')"])
def test_a_pattern_with_a_wrong_escape_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(QueryError, match="in a LIKE pattern must be followed by") as caught:
        compile_texts([text], SCHEMA)

    assert text[caught.value.position] == "'"


def test_what_is_computed_from_literals_is_computed_once() -> None:
    (residual,) = compile_texts(["concat(s, lower('AB' || 'C')) ILIKE '%X' AND s > z"] * 3, SCHEMA).residuals

    assert {node.op for node in residual.expression.walk()} >= {"concat", "like", "lower"}
    assert [values.to_pylist() for values in residual.constants] == [["abc"] * 3, ["%x"] * 3]


def test_edit_distances_are_those_of_the_table() -> None:
    for one in ("", "kitten", "ab" * 40, "日本"):
        for other in ("", "sitting", "ba" * 50, "本"):
            table = list(range(len(other) + 1))
            for i, character in enumerate(one):
                before, table = table, [i + 1]
                for j, its in enumerate(other):
                    table.append(min(before[j + 1] + 1, table[j] + 1, before[j] + (character != its)))
            assert edit_distance(one, other) == table[-1]
