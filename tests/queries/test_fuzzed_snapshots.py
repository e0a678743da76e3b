"""Some of the mutations of `fuzz_snapshots`, whose docstring says how to run all."""

from __future__ import annotations

import pytest
from queries import fuzz_snapshots

from tests.profiles import scaled


@pytest.mark.parametrize(
    ("which", "n"), [(fuzz_snapshots.sets, 260), (fuzz_snapshots.states, 160)], ids=["sets", "states"]
)
@pytest.mark.full
def test_sets_and_states_that_were_changed_at_random_are_refused_or_answer(which, n):
    jobs = fuzz_snapshots.jobs_of(which(), scaled(n))
    outcomes, failures = fuzz_snapshots.run(which, jobs)

    assert failures == []
    assert sum(outcomes.values()) == len(jobs)
    assert sum(n for (_, kind), n in outcomes.items() if kind == "refused") > len(jobs) // 2
