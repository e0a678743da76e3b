"""Some of the mutations of `fuzz_snapshots`; its first lines tell how to run all."""

from __future__ import annotations

import fuzz_snapshots
import pytest


@pytest.mark.timeout(600)
def test_sets_that_were_changed_at_random_are_refused_or_answer():
    jobs = fuzz_snapshots.jobs_of(fuzz_snapshots.sets(), 260)
    outcomes, failures = fuzz_snapshots.run(fuzz_snapshots.sets, jobs)

    assert failures == []
    assert sum(outcomes.values()) == len(jobs)
    assert sum(n for (_, kind), n in outcomes.items() if kind == "refused") > len(jobs) // 2
