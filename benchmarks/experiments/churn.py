"""Churn: a match right after changes, against the same match without them."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

import vedette as vd
from benchmarks.answers import Answer
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import Workload, intervals

N_CHANGES = 1_000


@experiment("churn")
def churn(bench: Bench) -> None:
    """1,000 additions and 1,000 removals on a million intervals, then a match of 100k rows."""
    n_queries, n_rows = bench.size(1_000_000, 100_000), bench.size(100_000, 100_000)
    n_rounds = bench.repeats
    workload = intervals(n_queries, n_rows, 10)
    new = intervals(N_CHANGES * (n_rounds + 1), 1, 10 * N_CHANGES * (n_rounds + 1) / n_queries, seed=8)
    rows = {"x0": workload.rows[0]}
    still, changed = _query_set(workload), _query_set(workload)
    times: dict[str, list[float]] = {"still": [], "changes": [], "match": []}
    for round_ in range(n_rounds + 1):  # the first is the warm-up
        changes = time_once(partial(_change, changed, new, n_queries, round_))
        match = time_once(lambda: changed.match(rows))
        without = time_once(lambda: still.match(rows))
        if round_ == 0:
            _check(changed, workload, new, rows)
        else:
            for name, taken in (("still", without), ("changes", changes), ("match", match)):
                times[name].append(taken)
    seconds = {name: statistics.median(runs) for name, runs in times.items()}
    case = "changes in two calls"
    bench.record("churn", case, "match without changes", seconds["still"], n_queries=n_queries, n_rows=n_rows)
    bench.record("churn", case, "match after the changes", seconds["match"], n_queries=n_queries, n_rows=n_rows)
    bench.record("churn", case, "the changes themselves", seconds["changes"], n_changes=2 * N_CHANGES)
    bench.verdict("churn", case, "times the match without changes", seconds["match"] / seconds["still"], 1.3)
    both = (seconds["match"] + seconds["changes"]) / seconds["still"]
    bench.note("churn", case, "times the match without changes, the changes themselves included", both)
    _time_single_changes(bench, changed, n_queries)


def _query_set(workload: Workload) -> Any:
    queries = vd.QuerySet("x0 double")
    queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")
    queries.match({"x0": workload.rows[0]})
    return queries


def _change(queries: Any, new: Workload, n_queries: int, round_: int) -> None:
    part = slice(round_ * N_CHANGES, (round_ + 1) * N_CHANGES)
    ids = n_queries + np.arange(part.start, part.stop)
    queries.add_boxes(ids, {"x0": (new.lows[0, part], new.highs[0, part])}, closed="both")
    queries.remove_many(_removed(n_queries, round_))


def _removed(n_queries: int, round_: int) -> Any:
    """Ids from all over the set, different ones in every round."""
    return np.arange(N_CHANGES) * (n_queries // N_CHANGES) + round_


def _check(changed: Any, workload: Workload, new: Workload, rows: dict[str, Any]) -> None:
    """Compare the changed set after its first round with a new set of the same queries."""
    n_queries = workload.n_queries
    kept = np.setdiff1d(np.arange(n_queries), _removed(n_queries, 0))
    ids = np.concatenate([kept, n_queries + np.arange(N_CHANGES)])
    fresh = vd.QuerySet("x0 double")
    lows = np.concatenate([workload.lows[0, kept], new.lows[0, :N_CHANGES]])
    highs = np.concatenate([workload.highs[0, kept], new.highs[0, :N_CHANGES]])
    fresh.add_boxes(ids, {"x0": (lows, highs)}, closed="both")
    digests = []
    for queries in (changed, fresh):
        hits = queries.match(rows)
        answer = Answer(queries.ids.to_numpy(zero_copy_only=False)[hits.positions], starts=hits.starts)
        digests.append(answer.digest(workload.n_rows))
    if digests[0] != digests[1]:
        raise AnswersDifferError(f"{digests[0].n_pairs:,} pairs after changes, but {digests[1].n_pairs:,} in a new set")


def _time_single_changes(bench: Bench, queries: Any, n_queries: int) -> None:
    """One call per change, as for texts that users add one by one."""
    ids = range(10 * n_queries, 10 * n_queries + N_CHANGES)

    def add() -> None:
        for query_id in ids:
            queries.add(query_id, f"x0 BETWEEN {query_id} AND {query_id + 5}")

    def remove() -> None:
        for query_id in ids:
            queries.remove(query_id)

    bench.record("churn", "changes one by one", "1,000 texts added", time_once(add))
    bench.record("churn", "changes one by one", "1,000 queries removed", time_once(remove))
