"""Keys of rows that take much memory: they are computed in parts, and long texts are kept as digests."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.memory import run_alone
from tests.profiles import examples
from vedette.language import evaluation, string_use
from vedette.operators.window_join import keys

TEXTS = [
    "concat(left.s, left.s, left.t) = right.s", "upper(left.s) = upper(right.s) AND left.x + 1 = right.x * 2",
    "concat(left.s, 'a') = right.t AND left.x < right.x", "left.x / right.x > 1 AND lower(left.t) = right.t",
    "CAST(left.s AS BIGINT) = right.x", "left.s = right.s AND left.t = right.t",
]  # fmt: skip
words = st.sampled_from([None, "", "a", "A", "aa", "aaa", "1", "2", "b", "bb"])
rows = st.lists(st.tuples(words, words, st.integers(0, 3)), max_size=8)


def table(given):
    s, t, x = zip(*given, strict=True) if given else ((), (), ())
    return pa.table({"s": pa.array(s, pa.string()), "t": pa.array(t, pa.string()), "x": pa.array(x, pa.int64())})


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.lists(st.tuples(rows, rows), max_size=3))
@examples(0.4)
def test_answers_do_not_depend_on_how_keys_are_computed(texts, batches):
    joins = vd.JoinQuerySet(left="s string, t string, x bigint", right="s string, t string, x bigint")
    joins.add_many([f"q{number}" for number in range(len(texts))], texts, rows=9)
    whole, parts = joins.window(), joins.window()
    for left, right in batches:
        expected = whole.step(left=table(left), right=table(right)).to_pylist()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(string_use, "STRING_BYTES_AT_ONCE", 1)
            patch.setattr(keys, "MAX_TEXT", 2)
            found = parts.step(left=table(left), right=table(right)).to_pylist()

        assert sorted(found, key=str) == sorted(expected, key=str)
    assert parts.n_failed == whole.n_failed


def test_a_row_whose_key_would_be_too_large_fails_alone(monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_STRING_BYTES", 10_000)
    monkeypatch.setattr(string_use, "STRING_BYTES_AT_ONCE", 5_000)
    joins = vd.JoinQuerySet(left="s string", right="s string")
    joins.add("twice", "concat(left.s, left.s) = right.s", rows=9)
    join = joins.window()

    found = join.step(left={"s": ["a", "b" * 4_000, "c"]}, right={"s": ["aa", "b" * 8_000, "cc"]})

    assert sorted(zip(found["left"].to_pylist(), found["right"].to_pylist(), strict=True)) == [(0, 0), (2, 2)]
    assert join.n_failed == 1


def test_long_texts_that_differ_do_not_join():
    long = "a" * 200
    joins = vd.JoinQuerySet(left="s string", right="s string")
    joins.add("same", "left.s = right.s", rows=9)
    join = joins.window()
    digest = keys._shorten(pa.array([long], pa.large_string()))[0].as_py()

    found = join.step(left={"s": [long, long + "b", digest, "a" * 127]}, right={"s": [long, "a" * 127, digest, "c"]})

    assert sorted(zip(found["left"].to_pylist(), found["right"].to_pylist(), strict=True)) == [(0, 0), (2, 2), (3, 1)]


def test_keys_that_repeat_a_text_do_not_exhaust_memory():
    reported = run_alone(
        """
        import numpy as np, vedette as vd
        joins = vd.JoinQuerySet(left="s string", right="s string")
        joins.add("bomb", "concat(" + ",".join(["left.s"] * 99) + ") = right.s", rows=5_000)
        join = joins.window()
        join.step(left={"s": ["a"]}, right={"s": ["a" * 99]})
        texts = [f"{number:5000}" for number in range(4_000)]
        with Peak() as peak:
            found = join.step(left={"s": texts}, right={"s": [texts[5] * 99, texts[6]]})
        print(peak.megabytes, join.nbytes >> 20, found.to_pylist())
        """
    )
    megabytes, kept, found = reported.split(maxsplit=2)

    assert found.strip() == "[{'query': 'bomb', 'left': 6, 'right': 1}]"
    assert int(kept) < 60
    assert int(megabytes) < 300
