"""The memory of an evaluation is bounded by what it makes, not by what it reads."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import vedette as vd
from vedette.language import string_use

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
limit = 6 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = queries.match({"s": ["a" * 1000] * 200 + ["a" * 1_000_000], "x": [1.0] * 201, "z": [1] * 201})
hits = found.to_arrow()["query"].to_pylist()
print(hits.count("bomb"), hits.count("good"), found.n_failed)
print(len(queries.match({"s": ["a"] * 150_000, "x": [1.0] * 150_000, "z": [1] * 150_000}).positions))
"""


@pytest.mark.timeout(300)
def test_a_query_that_makes_huge_strings_or_many_values_does_not_exhaust_memory():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=290)

    assert (done.returncode, done.stdout) == (0, "200 201 1\n300000\n"), done.stderr[-2000:]


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
    monkeypatch.setattr("vedette.language.residual.MOST_STRING_BYTES", 1000)
    queries = vd.QuerySet("s string")
    queries.add("twice", "length(concat(s, s)) > 1")
    queries.add("long", "length(s) > 1")
    found = queries.match({"s": ["ab", "c" * 400, "d" * 300]})

    assert sorted(zip(*found.to_arrow().to_pydict().values(), strict=True)) == [
        (0, "long"), (0, "twice"), (1, "long"), (2, "long"), (2, "twice"),
    ]  # fmt: skip
    assert found.n_failed == 1
