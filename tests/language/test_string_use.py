"""The memory of an evaluation is bounded by its results, not by its inputs."""

from __future__ import annotations

import decimal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import vedette as vd
from vedette.data.frames import as_frame
from vedette.data.rows import read_rows
from vedette.data.schema import Schema
from vedette.language import string_use
from vedette.language.compiler import compile_texts
from vedette.language.evaluation import Evaluation
from vedette.language.function_table import FUNCTIONS

PROGRAM = """
import resource
import vedette as vd

inner = "concat(" + ",".join(["s"] * 99) + ")"
bomb = "length(concat(" + ",".join([inner] * 99) + ")) > 5"
queries = vd.QuerySet("s string, x double, z bigint")
queries.add("bomb", bomb)
queries.add("literal", f"{bomb} AND s > '{'a' * 1_000_000}'")
queries.add("values", " OR ".join(f"x * x + {n} < 0" for n in range(2_000)))
queries.add("good", "s LIKE '%a%'")
limit = 3 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = queries.match({"s": ["a" * 1000] * 100 + ["a" * 1_000_000], "x": [1.0] * 101, "z": [1] * 101})
hits = found.to_arrow()["query"].to_pylist()
print(hits.count("bomb"), hits.count("good"), found.n_failed)
print(len(queries.match({"s": ["a"] * 75_000, "x": [1.0] * 75_000, "z": [1] * 75_000}).positions))
"""


@pytest.mark.timeout(300)
@pytest.mark.full
def test_a_query_that_makes_huge_strings_or_many_values_does_not_exhaust_memory():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=290)

    assert (done.returncode, done.stdout) == (0, "100 101 1\n150000\n"), done.stderr[-2000:]


TEXTS = [
    "concat(s, '-', s) LIKE '%a-%'", "upper(s) = 'A' OR x + 1 > 3", "length(concat(concat(s, t), s)) > 3",
    "CAST(z AS STRING) LIKE '2%'", "coalesce(s, t) < 'c' AND x * 2 > 1", "s LIKE t", "x + x > 4 OR x * x < 0.5",
]  # fmt: skip


def test_answers_do_not_depend_on_how_pairs_are_cut(monkeypatch):
    queries = vd.QuerySet("s string, t string, x double, z bigint")
    queries.add_many([f"q{n}" for n in range(len(TEXTS))], TEXTS)
    source = np.random.default_rng(3)
    words = np.array(["", "a", "b", "ab", "ccc", None], object)
    rows = {
        "z": source.integers(0, 30, 300),
        "s": source.choice(words, 300),
        "t": source.choice(words, 300),
        "x": source.random(300),
    }
    expected = queries.match(rows).to_arrow().sort_by([("row", "ascending"), ("query", "ascending")])
    assert len(expected) > 300

    for n in (1, 20, 300):
        monkeypatch.setattr(string_use, "STRING_BYTES_AT_ONCE", n)
        monkeypatch.setattr("vedette.language.residual.VALUES_AT_ONCE", n)
        monkeypatch.setattr(string_use, "VALUES_AT_ONCE", n)
        found = queries.match(rows).to_arrow().sort_by([("row", "ascending"), ("query", "ascending")])
        assert found.equals(expected)


def test_a_pair_whose_strings_are_too_large_fails_alone(monkeypatch):
    monkeypatch.setattr("vedette.language.residual.MAX_STRING_BYTES", 7000)
    queries = vd.QuerySet("s string")
    queries.add("twice", "length(concat(s, s)) > 1")
    queries.add("long", "length(s) > 1")
    found = queries.match({"s": ["ab", "c" * 400, "d" * 300]})

    assert sorted(zip(*found.to_arrow().to_pydict().values(), strict=True)) == [
        (0, "long"), (0, "twice"), (1, "long"), (2, "long"), (2, "twice"),
    ]  # fmt: skip
    assert found.n_failed == 1


EXPRESSIONS = [
    "upper(s) = 'x'", "lower(s) = 'x'", "s LIKE t", "upper(concat(s, t)) LIKE '%x%'", "concat(s, s, t) = t",
    "substring(s, 1, 5) = t", "trim(s) = t", "length(upper(s)) > 3", "coalesce(s, upper(t)) = 'x'",
    "CASE WHEN z > 1 THEN s ELSE t END = 'x'", "CAST(z AS STRING) = s", "CAST(d AS STRING) = s",
    "CAST(m AS STRING) = s", "startswith(upper(s), t)", "contains(s, lower(t))", "least(s, t, 'x') = 'x'",
    "CAST(s AS BIGINT) = 3", "s IN (t, 'x', concat(t, 'x'))",
]  # fmt: skip
LETTERS = ["a", "ß", "ŉ", "ΰ", "ﬃ", "İ", "Ⱥ", "Σ", "😀", " ", "%", "_"]


def strings_of(node, evaluation):
    """The strings of an evaluation: of every node, and for the largest node its copies in Python."""
    stored, copies = np.zeros(len(evaluation.rows), np.int64), np.zeros(len(evaluation.rows), np.int64)
    for each in set(node.walk()):
        values = {}
        for part in (each, *each.args):
            if part.type.name == "string":
                texts = evaluation.of(part).values.fill_null("").to_pylist()
                values[part] = texts
        if each in values:
            stored += [len(text.encode()) for text in values[each]]
        own = [sum(sys.getsizeof(texts[row]) for texts in values.values()) for row in range(len(stored))]
        is_copied = each.op in ("upper", "lower", "like", "concat", "substring", "startswith", "contains", "cast")
        copies = np.maximum(copies, own) if is_copied else copies
    return stored + copies


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_estimate_of_a_pair_is_at_least_the_size_of_its_strings(text):
    schema = Schema.parse("s string, t string, z bigint, d date, m decimal(38,3)")
    source = np.random.default_rng(5)
    words = ["".join(source.choice(LETTERS, n)) for n in (0, 1, 2, 5, 20, 100)] + [letter * 50 for letter in LETTERS]
    n = 300
    rows = {
        "s": source.choice(words, n), "t": source.choice(words, n), "z": source.integers(-(2**63), 2**63 - 1, n),
        "d": pa.array(source.integers(-700_000, 2_900_000, n), pa.int32()).cast(pa.date32()),
        "m": pa.array([decimal.Decimal("-" + "9" * 35 + ".999")] * n, pa.decimal128(38, 3)),
    }  # fmt: skip
    residuals = compile_texts([text], schema).residuals
    assert residuals
    for residual in residuals:
        columns, _ = read_rows(as_frame(rows), schema, residual.fields, "UTC", or_else="")
        numbers, members = np.arange(n), np.zeros(n, np.int64)
        evaluation = Evaluation(residual.constants, "UTC", columns, numbers, members, {})

        estimate = residual.string_use.bytes_of(columns, residual.constants, numbers, members)

        assert (estimate >= strings_of(residual.expression, evaluation)).all()


def test_no_letter_exceeds_the_estimated_growth_in_upper_or_lower_case():
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    grown = max(
        len(each.encode()) / len(letter.encode()) for letter in letters for each in (letter.upper(), letter.lower())
    )

    assert grown <= min(FUNCTIONS[name].growth for name in ("upper", "lower"))
