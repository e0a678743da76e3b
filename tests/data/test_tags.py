"""A tag and a bound: what a million queries `array_contains(tags, ?) AND price < ?` need, against Python's own `in`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.data.list_axes import SHORT

# Of 0 to 13 bytes and more, with common beginnings and ends, and characters of several bytes.
WORDS = [
    *("", "a", "aa", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "aaaaaaab", "baaaaaaa", "aaaaaaaaaaaa", "aaaaaaaaaaaaa"),
    *("aaaaaaaaaaab", "aaaaaaaaaaaab", "abcdefgh", "abcdefghi", "abcdefghijkl", "abcdefghijklm"),
    *("é", "éé", "ééééé", "日本語", "日本語日", "😀😀😀", "😀😀😀a", "a" * 100, "a" * 99 + "b"),
]
PADDED = ["\0", "a\0", "a\0\0", "abcdefgh\0", "aaaaaaaaaaaa\0"]  # only rows may have zero bytes
tags = st.none() | st.lists(st.none() | st.sampled_from(WORDS + PADDED) | st.text(max_size=4), max_size=2 * SHORT)
queries = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 9)), max_size=80)
rows = st.lists(st.tuples(tags, st.none() | st.integers(0, 9)), max_size=40)


@pytest.mark.parametrize("index", [None, "KeyedRuns", "Keyed"])
@pytest.mark.parametrize("condition", ["<", ">="])
@given(queries, rows)
@examples(0.5)
def test_a_row_matches_the_queries_of_its_tags_once(index, condition, queries, rows):
    found = vd.QuerySet("tags array<string>, price bigint", index=index)
    texts = [f"array_contains(tags, {quoted(word)}) AND price {condition} {limit}" for word, limit in queries]
    found.add_many(range(len(texts)), texts)
    hits = found.match(table_of(rows))

    def holds(word, limit, own, price):
        return word in (own or []) and price is not None and (price < limit if condition == "<" else price >= limit)

    for row, (own, price) in enumerate(rows):
        positions = sorted(hits.positions[hits.starts[row] : hits.starts[row + 1]].tolist())
        assert positions == [i for i, query in enumerate(queries) if holds(*query, own, price)]


@pytest.mark.parametrize("n_tags", [SHORT - 1, SHORT, SHORT + 1, 5 * SHORT])
def test_a_doubled_tag_counts_once_however_many_there_are(n_tags):
    found = vd.QuerySet("tags array<string>")
    found.add_many(range(200), [f"array_contains(tags, 't{i}')" for i in range(200)])
    chosen = np.random.default_rng(n_tags).integers(0, 210, (50, n_tags)) // 3 * 3
    hits = found.match({"tags": [[f"t{i}" for i in row] for row in chosen.tolist()]})

    for row, own in enumerate(chosen.tolist()):
        positions = hits.positions[hits.starts[row] : hits.starts[row + 1]].tolist()
        assert sorted(positions) == sorted({i for i in own if i < 200})


def test_large_batches_in_threads_match_as_one_row_does():
    random = np.random.default_rng(3)
    words = np.array(WORDS + [f"tag-{i}" for i in range(500)], object)
    found = vd.QuerySet("tags array<string>, price double")
    limits = random.random(5000)
    named = [words[i] for i in random.integers(0, len(words), 5000)]
    texts = [
        f"array_contains(tags, {quoted(word)}) AND price < {limit!r}"
        for word, limit in zip(named, limits.tolist(), strict=True)
    ]
    found.add_many(range(5000), texts)
    n = 40_000
    own = words[random.integers(0, len(words), (n, 4))].tolist()
    prices = random.random(n)
    rows = pa.table({"tags": pa.array(own, pa.list_(pa.string())), "price": prices})
    hits = found.match(rows, threads=3)

    assert np.array_equal(hits.starts, found.match(rows, threads=1).starts)
    for row in range(0, n, 997):
        positions = sorted(hits.positions[hits.starts[row] : hits.starts[row + 1]].tolist())
        assert positions == [i for i in range(5000) if named[i] in own[row] and prices[row] < limits[i]]
        assert positions == sorted(found.match_one({"tags": own[row], "price": prices[row]}))


def quoted(word):
    return "'" + word + "'"


def table_of(rows):
    return pa.table(
        {
            "tags": pa.array([own for own, _ in rows], pa.list_(pa.string())),
            "price": pa.array([price for _, price in rows], pa.int64()),
        }
    )
