"""Hypothesis profiles: `fast` for the fast tier, `full` for everything else, `interpreted` without JIT, `hunt` by hand.

HYPOTHESIS_PROFILE chooses one. All but `hunt` try the same examples in every run, so a test fails only because of a
change. There is no deadline, because the first example may compile a kernel for seconds.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings
from hypothesis.internal.conjecture import providers

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = {"fast": 20, "full": 100, "interpreted": 15, "hunt": 1000}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "full") if IS_COMPILED else "interpreted"


def load_profile() -> None:
    """Use the chosen profile in this process."""
    for name, n_examples in EXAMPLES.items():
        settings.register_profile(name, deadline=None, derandomize=name != "hunt", max_examples=n_examples)
    settings.load_profile(PROFILE)
    # Hypothesis also tries literals of all loaded modules, and which are loaded depends on the tests that ran before.
    if PROFILE != "hunt" and hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda path: False


def examples(share: float, **more: Any) -> settings:
    """Settings for a test with cheaper or more expensive examples: this share of the profile's number of examples."""
    return settings(max_examples=max(2, round(share * EXAMPLES[PROFILE])), **more)


def scaled(n_cases: int) -> int:
    """How many random cases to try in a test without Hypothesis that tries this many with the `full` profile."""
    return max(2, n_cases * EXAMPLES[PROFILE] // EXAMPLES["full"])
