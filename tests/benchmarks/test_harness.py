"""What a quick run skips, and contestants that share an index."""

from __future__ import annotations

import numpy as np

from benchmarks.answers import brute_force
from benchmarks.harness import Bench
from benchmarks.peers.on_cells import SJBatch, SJImmediate
from benchmarks.workloads import conjunctions


def test_a_quick_run_takes_the_first_the_middle_and_the_last_size():
    assert Bench("x", quick=True).some((1, 2, 3, 4, 5, 6, 7)) == [1, 4, 7]
    assert Bench("x", quick=True).some((1, 2)) == [1, 2]
    assert Bench("x", quick=True).some((1,)) == [1]
    assert Bench("x").some((1, 2, 3, 4, 5)) == (1, 2, 3, 4, 5)


def test_contestants_that_share_an_index_find_the_same():
    workload = conjunctions(4, 60, 50)
    first = SJBatch(workload)
    others = [SJBatch(workload, 16, like=first), SJImmediate(workload, like=first)]

    rows = np.arange(workload.n_rows)
    expected = brute_force(workload, rows)
    for peer in (first, *others):
        peer.load(workload)
        assert peer.answer(peer.match()).of_rows(rows) == expected

    assert [peer.name for peer in others] == ["SJ-Batch, N_dc = 16", "SJ-Immediate"]
    assert all(peer.index is first.index for peer in others)
