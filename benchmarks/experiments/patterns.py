"""Patterns: many queries that look for substrings, against evaluating them one by one."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once

LETTERS = np.array(list("abcdefghijklmnopqrst"))
LENGTH = 80  # characters of a text
TIMES = 50
N_ALONE = 100  # queries that are evaluated one by one; their time is scaled up


@experiment("patterns")
def patterns(bench: Bench) -> None:
    """100,000 queries `s LIKE '%...%'` over 20,000 texts of 80 letters."""
    n_queries, n_rows = bench.size(100_000, 5_000), bench.size(20_000, 1_000)
    source = np.random.default_rng(7)
    words = ["".join(source.choice(LETTERS, length)) for length in source.integers(4, 8, n_queries)]
    texts = pa.array(["".join(each) for each in source.choice(LETTERS, (n_rows, LENGTH))], pa.large_string())
    queries = vd.QuerySet("s string")
    queries.add_many(np.arange(n_queries), [f"s LIKE '%{word}%'" for word in words])
    chosen = source.choice(n_queries, N_ALONE, replace=False)
    residuals = vd.QuerySet("s string")  # locate has no box, so each pair is evaluated
    residuals.add_many(np.arange(N_ALONE), [f"locate('{words[query]}', s) > 0" for query in chosen])
    _check(queries.match({"s": texts}), residuals.match({"s": texts}), words, chosen, texts)
    ours = statistics.median(time_once(lambda: queries.match({"s": texts})) for _ in range(bench.repeats))
    arrow = statistics.median(time_once(lambda: _one_by_one(words, chosen, texts)) for _ in range(bench.repeats))
    alone = statistics.median(time_once(lambda: residuals.match({"s": texts})) for _ in range(bench.repeats))
    case = f"{n_queries:,} substrings"
    scale = n_queries / N_ALONE
    bench.record("patterns", case, "match", ours, n_queries=n_queries, n_rows=n_rows)
    bench.record("patterns", case, "Arrow, one query at a time (scaled up)", arrow * scale)
    bench.record("patterns", case, "the conditions, pair by pair (scaled up)", alone * scale)
    bench.verdict("patterns", case, "times faster than one by one", arrow * scale / ours, TIMES, "at least")
    bench.note("patterns", case, "times faster than pair by pair", alone * scale / ours)


def _one_by_one(words: list[str], chosen: Any, texts: pa.Array) -> list[Any]:
    return [pc.match_substring(texts, words[query]) for query in chosen.tolist()]


def _check(hits: Any, alone: Any, words: list[str], chosen: Any, texts: pa.Array) -> None:
    """Compare both sets with Arrow, over all rows and the chosen queries."""
    n_rows = len(texts)
    rows = np.repeat(np.arange(n_rows), np.diff(hits.starts))
    alone_rows = np.repeat(np.arange(n_rows), np.diff(alone.starts))
    for place, (query, mask) in enumerate(zip(chosen.tolist(), _one_by_one(words, chosen, texts), strict=True)):
        expected = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        ours = (rows[hits.positions == query], alone_rows[alone.positions == place])
        if not all(np.array_equal(expected, np.sort(found)) for found in ours):
            raise AnswersDifferError(f"the rows with {words[query]!r} differ")
