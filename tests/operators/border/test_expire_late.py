"""Queries with different `expire_after` and late rows: events equal those of a plain model, for any batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import by_key, from_table
from operators.border.test_border import MARGIN, Pair, cut_at, form, query, small_sets  # noqa: F401  a fixture

silence = st.none() | st.integers(1, 7)
names = "pqrs"
silences = st.fixed_dictionaries(dict.fromkeys(names, silence))
late_options = st.fixed_dictionaries(
    {"late": st.sampled_from(["drop", "apply", "apply"])},
    optional={"expire_after": st.integers(1, 8), "dwell": st.integers(1, 4), "margin": st.just(MARGIN)},
)
late_row = st.fixed_dictionaries(
    {
        "k": st.sampled_from("AB"),
        "s": st.just("u"),
        "x": st.sampled_from([-1.0, 1.0, 2.5]),
        "n": st.just(0),
        "t": st.integers(0, 14),
    }
)


def start(options, texts, own):
    """A monitor and the model, with queries that have their own silences."""
    pair = Pair(options)
    for name, drawn in texts.items():
        text, what = form(*drawn)
        pair.queries.add(name, text, **({} if own[name] is None else {"expire_after": own[name]}))
        pair.model.forms[name] = what[0], what[1] if "margin" in options else lambda row: False, own[name]
    return pair


@given(st.lists(st.lists(late_row, max_size=5), max_size=4), late_options, silences, st.booleans(), st.data())
def test_events_of_late_rows_equal_those_of_the_model(batches, options, own, advance, data):
    pair = start(options, {name: data.draw(query) for name in names}, own)
    for batch in batches:
        got, wanted = pair.step(batch, advance)
        assert by_key(got) == by_key(wanted)
    assert (pair.monitor.n_late, pair.monitor.n_keys) == (pair.model.n_late, len(pair.model.keys))
    assert by_key(from_table(pair.monitor.advance(40))) == by_key(pair.model.advance(40))
    assert pair.monitor.n_keys == len(pair.model.keys)


@given(st.lists(st.lists(late_row, max_size=5), max_size=3), late_options, silences, st.booleans(), st.data())
def test_cutting_a_batch_in_time_order_changes_nothing(batches, options, own, advance, data):
    texts = {name: data.draw(query) for name in names}
    whole = [sorted(batch, key=lambda row: row["t"]) for batch in batches]
    cut = [part for batch in whole for part in cut_at(batch, lambda: data.draw(st.integers(1, 3)))]
    found = []
    for parts in (whole, cut):
        pair = start(options, texts, own)
        found.append(by_key([event for batch in parts for event in pair.step(batch, advance)[0]]))
    assert found[0] == found[1]
