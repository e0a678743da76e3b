"""The log of changed slots, compared with sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from vedette.operators.slot_log import SlotLog

slots = st.lists(st.integers(0, 20), max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(["note", "note", "note", "take", "begin", "forget", "undone", "drop_from"]), slots),
    max_size=12,
)


@given(steps, st.sets(st.integers(0, 20)))
@examples(0.5)
def test_the_log_has_what_changed_since_it_was_taken(steps, living):
    log, expected = SlotLog(), None
    lives = np.array([slot in living for slot in range(21)])
    for step, some in steps:
        changed = np.array(some, np.int32)
        if step == "note":
            log.note(changed)
            expected = None if expected is None else expected | set(some)
        elif step == "begin":
            log.begin()
            expected = set()
        elif step == "forget":
            log.forget()
            expected = None
        elif step == "undone":
            kept = log.keep(changed)
            log.note(changed)
            log.restore(changed, kept)
        elif step == "drop_from":
            n = len(some) * 3
            log.drop_from(n)
            expected = None if expected is None else {slot for slot in expected if slot < n}
        else:
            taken = log.take(lives)
            if expected is None:
                assert taken is None
            else:
                assert [part.tolist() for part in taken] == [sorted(expected & living), sorted(expected - living)]
            expected = set()
