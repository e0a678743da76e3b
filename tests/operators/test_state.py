"""What saved states of all operators have in common: their format, whole states and deltas, options."""

from __future__ import annotations

import pytest

import vedette as vd
from vedette.data.container import Container, Encoder
from vedette.operators import state
from vedette.queries import snapshot

from .monitors import KINDS, band_join, border, change, moving_join, window_join


@pytest.mark.parametrize("make", KINDS)
def test_a_new_format_of_saved_sets_does_not_invalidate_states(make, monkeypatch):
    blob, monitor = make().save(), make()
    monkeypatch.setattr(snapshot, "FORMAT", snapshot.FORMAT + 1)
    monkeypatch.setattr(snapshot, "_CLASSES", {})
    change(monitor)
    monitor.load(blob)

    assert monitor.save() == blob


@pytest.mark.parametrize("make", KINDS)
def test_a_state_of_another_format_is_refused_with_one_sentence(make, monkeypatch):
    blob, monitor = make().save(), make()
    monkeypatch.setattr(state, "FORMAT", 3)

    for load in (monitor.load, monitor.apply_delta):
        with pytest.raises(vd.SnapshotError) as caught:
            load(blob)
        assert str(caught.value) == (
            f"the saved {KINDS[make]} has format 2; this Vedette reads format 3: start with a new state (in Spark: "
            f"with a new checkpoint)"
        )


def test_a_state_from_before_moving_joins_saved_late_rows_is_refused_with_one_sentence():
    """Its format number was 1, and it had no `n_late`, `waiting`, `reported`, `removed` and `removed_reported`."""
    monitor = moving_join()
    content = state.from_bytes("moving join state", monitor.save())
    for name in ("n_late", "waiting"):
        del content[name]
    for part in content["parts"].values():
        for name in ("reported", "removed", "removed_reported"):
            del part[name]
    old = Container(b"VDSTATE\0", 1, "moving join state", "")
    blob = b"".join(old.to_pieces(content, Encoder()))

    for load in (monitor.load, monitor.apply_delta):
        with pytest.raises(vd.SnapshotError) as caught:
            load(blob)
        assert str(caught.value) == (
            "the saved moving join state has format 1; this Vedette reads format 2: start with a new state (in Spark: "
            "with a new checkpoint)"
        )


@pytest.mark.parametrize("make", KINDS)
def test_a_state_from_before_states_had_a_format_number_is_refused_with_one_sentence(make):
    """Such a state had the first bytes and the format number of a saved set."""
    old = Container(b"VEDETTE\0", 3, "", "")
    blob = b"".join(old.to_pieces({"kind": KINDS[make], "history": [1, 7]}, Encoder()))

    for load in (make().load, make().apply_delta):
        with pytest.raises(vd.SnapshotError) as caught:
            load(blob)
        assert str(caught.value) == (
            f"the bytes are a query set, or a state that an earlier Vedette saved, and this one reads neither as a "
            f"{KINDS[make]}: pass what `save` returned, or start with a new state (in Spark: with a new checkpoint)"
        )


@pytest.mark.parametrize("make", KINDS)
def test_a_delta_is_not_loaded_as_a_state(make):
    monitor = make()
    monitor.save()
    change(monitor)
    delta, before = monitor.take_delta(), monitor.save()

    with pytest.raises(vd.SnapshotError, match=r"^the bytes are a delta; load what `save` returned, then apply"):
        monitor.load(delta)
    assert monitor.save() == before


@pytest.mark.parametrize("make", KINDS)
def test_the_first_delta_of_a_monitor_that_was_never_saved_is_a_whole_state(make):
    monitor, copy, updated = make(), make(), make()
    delta = monitor.take_delta()
    change(copy)
    change(updated)
    copy.load(delta)
    updated.apply_delta(delta)

    assert copy.save() == updated.save() == monitor.save()


@pytest.mark.parametrize("make", KINDS)
def test_a_state_and_its_deltas_are_the_later_state(make):
    monitor, copy = make(), make()
    base = monitor.save()
    change(monitor)
    delta = monitor.take_delta()
    copy.load(base)
    copy.apply_delta(delta)

    assert copy.save() == monitor.save()


@pytest.mark.parametrize("make", KINDS)
def test_states_of_other_operators_are_refused_by_name(make):
    for other in KINDS:
        if other is not make:
            sentence = f"^the bytes are not a saved {KINDS[make]} but a {KINDS[other]}; pass what `save` returned$"
            with pytest.raises(vd.SnapshotError, match=sentence):
                make().load(other().save())


@pytest.mark.parametrize(
    ("make", "option", "value"),
    [
        (border, "schema", "k string, " * 10_000 + "x double"),
        (border, "key", "x"),
        (window_join, "streams", ["a" * 10_000, "b"]),
        (window_join, "id", ["x", None]),
        (moving_join, "max_update_interval", 61.0),
    ],
)
def test_a_state_with_another_option_is_refused_without_echoing_much_of_it(make, option, value):
    monitor = make()
    before = monitor.save()
    content = state.from_bytes(KINDS[make], before)
    content["options"][option] = value

    with pytest.raises(vd.SnapshotError, match=f"^the state was saved with {option}=.*, and here it is ") as caught:
        monitor.load(state.to_bytes(KINDS[make], content))
    assert len(str(caught.value)) < 400
    assert monitor.save() == before


@pytest.mark.parametrize("make", [border, window_join, band_join])
def test_a_state_of_a_later_version_or_of_other_changes_is_refused(make):
    monitor = make()
    before = monitor.save()
    content = state.from_bytes(KINDS[make], before)
    version, mark = content["history"]

    for history, sentence in (
        ([version + 1, mark], f"saved at version {version + 1} of the queries, which are at version {version} here"),
        ([version, mark + 1], "saved with another set of queries, whose changes differ; load the set that was saved"),
    ):
        with pytest.raises(vd.SnapshotError, match=sentence):
            monitor.load(state.to_bytes(KINDS[make], content | {"history": history}))
        assert monitor.save() == before
