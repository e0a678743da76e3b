"""Saved window joins: states and their deltas at any moment, sets in files, and what does not fit."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from tests.profiles import examples
from vedette.operators.window_join import join as window_join
from vedette.operators.window_join import monitor as join_monitor
from vedette.operators.window_join import query_set as join_query_set

from .join_model import make_rows
from .test_monitor import add, cut, make_query, make_set

TWO = ["left", "right"]
seeds = st.integers(0, 2**32)
IDS = {"strings": pa.string(), "numbers": pa.int64(), "none": None}
TIMES = {"whole": pa.int64(), "doubles": pa.float64(), "moments": pa.timestamp("us", tz="UTC"), "none": None}


def pairs_of(table):
    return sorted(tuple(line.values()) for line in table.to_pylist())


class Streams:
    """Random rows, ids and times of some kind, and queries that fit them."""

    def __init__(self, random_, ids, times):
        self.random, self.ids, self.times = random_, ids, times
        self.pairs = make_set(TWO)
        self.options = {f"{stream}_id": "id" for stream in TWO if ids != "none"}
        self.options |= {f"{stream}_time": "at" for stream in TWO if times != "none"}
        self.options["late"] = random_.choice(["drop", "apply"])
        self.standing = []

    def open(self):
        return self.pairs.window(**self.options)

    def change(self):
        """Some queries come and some go."""
        for _ in range(self.random.choice([0, 1, 2])):
            query = make_query(self.random, self.random.random(), TWO)
            if self.times == "none":
                query.within, query.rows = {}, {stream: self.random.choice([1, 3, 20]) for stream in TWO}
            if self.times == "moments":
                query.within = {stream: f"{round(1e6 * each)} us" for stream, each in query.within.items()}
            add(self.pairs, query)
            self.standing.append(query.id)
        removed = [query for query in self.standing if self.random.random() < 0.15]
        self.pairs.remove_many(removed)
        self.standing = [query for query in self.standing if query not in removed]

    def steps(self):
        rows = [(stream, row) for stream in TWO for row in make_rows(self.random, 40, stream)]
        rows.sort(key=lambda pair: pair[1]["at"] + self.random.choice([0, 0, 0, 6]))
        for batch in cut(self.random, rows):
            yield {stream: self.to_table([row for other, row in batch if other == stream]) for stream in TWO}

    def to_table(self, rows):
        columns = {name: [row[name] for row in rows] for name in ("s", "x", "y", "n")}
        types = {"s": pa.string(), "x": pa.float64(), "y": pa.float64(), "n": pa.int64()}
        table = pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
        if self.ids != "none":
            names = [row["id"] for row in rows]
            values = names if self.ids == "strings" else [int(name.lstrip("leftrigh")) for name in names]
            table = table.append_column("id", pa.array(values, IDS[self.ids]))
        if self.times != "none":
            scale = {"whole": 1, "doubles": 1.0, "moments": 10**6}[self.times]
            table = table.append_column("at", pa.array([row["at"] * scale for row in rows], TIMES[self.times]))
        return table


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("ids", IDS)
@examples(0.12)
@given(seed=seeds)
def test_a_join_continues_from_a_saved_state_as_if_it_had_never_stopped(ids, times, seed):
    """Windows are short, so that rows go between one delta and the next, some before any delta knew of them."""
    random_ = random.Random(seed)
    streams = Streams(random_, ids, times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_monitor, "_MAX_NUMBER", random_.choice([40, 2**31 - 1]))
        patch.setattr(window_join, "FEW_CODES", random_.choice([-1000, 0, 1 << 16]))
        patch.setattr(join_query_set, "FEW_REMOVED", random_.choice([0, 1024]))
        straight, saving = streams.open(), streams.open()
        base, deltas = saving.save(), []
        for rows in streams.steps():
            streams.change()
            expected = straight.step(**rows)
            assert pairs_of(saving.step(**rows)) == pairs_of(expected)
            assert (saving.n_late, saving.n_failed) == (straight.n_late, straight.n_failed)
            if random_.random() < 0.4:
                deltas.append(saving.take_delta())
                if random_.random() < 0.5:
                    restored = streams.open()
                    restored.load(base)
                    for delta in deltas:
                        restored.apply_delta(delta)
                    assert restored.n_rows == saving.n_rows == straight.n_rows
                    saving = restored
            if random_.random() < 0.2:
                base, deltas = saving.save(), []


def test_a_delta_is_as_large_as_what_came_since():
    pairs = make_set(TWO)
    pairs.add("q", "left.x < right.x AND left.n < 0", within=10**6)
    join = pairs.window(left_time="at", right_time="at")
    rows = {"x": [0.5] * 20_000, "n": [1] * 20_000, "at": list(range(20_000))}
    join.step(left=rows, right=rows)
    whole = len(join.save())
    join.step(left={"x": [1.0], "n": [1], "at": [20_000]})
    assert len(join.take_delta()) < whole / 50
    assert len(join.take_delta()) < whole / 50


def test_rows_that_came_and_went_between_two_deltas_are_in_none():
    pairs = make_set(TWO)
    pairs.add("q", "left.n <= right.n", within=2)
    columns = {"left_time": "at", "right_time": "at"}
    join, restored = pairs.window(**columns), pairs.window(**columns)

    def rows(first, last):
        return {stream: {"n": list(range(first, last)), "at": list(range(first, last))} for stream in TWO}

    join.step(**rows(0, 5))
    restored.load(join.save())
    join.step(**rows(5, 100))
    restored.apply_delta(join.take_delta())
    assert restored.n_rows == join.n_rows == 6
    expected = pairs_of(join.step(**rows(100, 103)))
    assert pairs_of(restored.step(**rows(100, 103))) == expected
    assert len(expected) == 9


def test_a_saved_state_stays_as_it_was_saved():
    pairs = make_set(TWO)
    pairs.add("q", "left.s = right.s", rows=3)
    join = pairs.window()
    join.step(left={"s": ["a", "b", "c"]})
    blob = join.save()
    before = bytes(blob)
    for _ in range(30):
        join.step(left={"s": ["d", "e", "f"]})
    assert blob == before
    join.load(blob)
    assert pairs_of(join.step(right={"s": ["b"]})) == [("q", 1, 0)]


def test_a_state_fits_every_later_version_of_its_set():
    pairs = make_set(TWO)
    pairs.add("q", "left.n < right.n", within=10)
    columns = {"left_time": "at", "right_time": "at"}
    join = pairs.window(**columns)
    join.step(left={"n": [1], "at": [0]})
    blob = join.save()
    pairs.add("more", "left.n = right.n", within=10)
    pairs.remove("q")
    later = pickle.loads(pickle.dumps(pairs)).window(**columns)
    later.load(blob)
    assert pairs_of(later.step(right={"n": [1, 2], "at": [1, 2]})) == [("more", 0, 0)]


def test_clear_forgets_rows_and_not_queries():
    pairs = make_set(TWO)
    pairs.add("q", "left.n < right.n", within=10)
    join = pairs.window(left_time="at", right_time="at")
    join.step(left={"n": [1, 1], "at": [100, 101]})
    join.clear()
    assert join.n_rows == 0
    assert pairs_of(join.step(left={"n": [1], "at": [0]}, right={"n": [2], "at": [1]})) == [("q", 0, 0)]


# What does not fit.


def saved_state(**options):
    pairs = make_set(TWO)
    pairs.add("q", "left.n < right.n", rows=5)
    join = pairs.window(**options)
    join.step(left={"n": [1, 2], "id": ["a", "b"], "at": [0, 1]})
    return pairs, join


def misfits():
    """What is loaded, by its name: into which join, and the sentence."""
    pairs, join = saved_state()
    blob = join.save()
    other = make_set(TWO)
    other.add("q", "left.n > right.n", rows=5)
    window = make_set(TWO)
    window.add("q", "left.n < right.n", rows=6)
    streams = make_set(["here", "there"])
    streams.add("q", "here.n < there.n", rows=5)
    older = make_set(TWO)
    join.step(left={"n": [3], "id": ["c"], "at": [2]})
    delta = join.take_delta()
    damaged = bytearray(blob)
    damaged[len(blob) // 2] ^= 1
    timed = pairs.window(left_time="at", right_time="at")
    bands, alerts = vd.BandQuerySet(), vd.QuerySet("n bigint, k string")
    return {
        "of another set": (
            other.window(),
            blob,
            "the state was saved with another set of queries, whose changes differ",
        ),
        "of other windows": (window.window(), blob, "the state was saved with another set of queries"),
        "of other streams": (
            streams.window(),
            blob,
            "the state was saved with streams=['left', 'right'], and here it is ['here', 'there']",
        ),
        "of a later version": (
            older.window(),
            blob,
            "saved at version 1 of the queries, which are at version 0 here; load the set that was saved with it",
        ),
        "of other columns": (
            timed,
            blob,
            "saved with time=[None, None], and here it is ['at', 'at']",
        ),
        "a delta": (
            pairs.window(),
            delta,
            "the bytes are a delta; load what `save` returned, then apply the deltas in order",
        ),
        "damaged": (pairs.window(), bytes(damaged), "is damaged: its checksum is wrong"),
        "cut off": (pairs.window(), blob[: len(blob) // 2], "is damaged: its checksum is wrong"),
        "nothing": (pairs.window(), b"", "the bytes are not a saved window join state"),
        "a text": (pairs.window(), "state", "a saved window join state is bytes; got str"),
        "a set of joins": (
            pairs.window(),
            pairs.to_bytes(),
            "the bytes are a query set, or a state that an earlier Vedette saved",
        ),
        "of a band join": (
            pairs.window(),
            bands.monitor().save(),
            "not a saved window join state but a band join state",
        ),
        "of a border": (
            pairs.window(),
            alerts.border(key="k", time="n").save(),
            "the bytes are not a saved window join state but a border state",
        ),
        "of moving objects": (
            pairs.window(),
            vd.MovingJoin(max_update_interval=5).save(),
            "the bytes are not a saved window join state but a moving join state",
        ),
    }


@pytest.mark.parametrize("name", misfits())
def test_a_state_that_does_not_fit_is_refused_with_its_reason_and_changes_nothing(name):
    join, blob, sentence = misfits()[name]
    rows = {"id": ["x"], "at": [5], "n": [7]}
    streams = join.queries.streams
    join.step(**{streams[0]: rows})
    before = (join.n_rows, join.n_late)
    with pytest.raises(vd.SnapshotError) as caught:
        join.load(blob)
    assert sentence in str(caught.value)
    assert (join.n_rows, join.n_late) == before
    if name != "a delta":
        with pytest.raises(vd.SnapshotError):
            join.apply_delta(blob)
        assert (join.n_rows, join.n_late) == before


def test_a_state_of_times_of_another_type_is_refused():
    columns = {"left_time": "at", "right_time": "at"}
    pairs, join = saved_state(**columns)
    other = pairs.window(**columns)
    other.step(left={"n": [1], "at": [0.5]})
    with pytest.raises(vd.SnapshotError, match="saved with times of type bigint; here they are of type double"):
        other.load(join.save())


def test_deltas_are_applied_in_their_order():
    pairs, join = saved_state()
    base = join.save()
    deltas = []
    for number in range(3):
        join.step(left={"n": [number]})
        deltas.append(join.take_delta())
    restored = pairs.window()
    for wrong in (deltas[0], deltas[1]):
        with pytest.raises(vd.SnapshotError, match="the bytes are a delta of another state; apply deltas in the order"):
            restored.apply_delta(wrong)
    restored.load(base)
    restored.apply_delta(deltas[0])
    for wrong in (deltas[0], deltas[2]):
        with pytest.raises(vd.SnapshotError, match="the bytes are a delta of another state; apply deltas in the order"):
            restored.apply_delta(wrong)
    restored.apply_delta(deltas[1])
    restored.apply_delta(deltas[2])
    assert restored.n_rows == join.n_rows


def test_other_monitors_refuse_the_state_of_a_window_join():
    _, join = saved_state()
    blob = join.save()
    for other in (vd.BandQuerySet().monitor(), vd.QuerySet("n bigint, k string").border(key="k", time="n")):
        with pytest.raises(vd.SnapshotError):
            other.load(blob)


# Sets in files.


@examples(0.3)
@given(seeds)
def test_a_set_that_was_saved_at_any_moment_answers_as_before_and_takes_more(seed):
    random_ = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_query_set, "FEW_REMOVED", random_.choice([0, 1024]))
        streams = Streams(random_, "strings", "whole")
        rows = list(streams.steps())
        for _ in range(6):
            streams.change()
            again = pickle.loads(pickle.dumps(streams.pairs))
            assert (len(again), again.version) == (len(streams.pairs), streams.pairs.version)
            joins = [pairs.window(**streams.options) for pairs in (streams.pairs, again)]
            for each in rows[:4]:
                one, other = (pairs_of(join.step(**each)) for join in joins)
                assert one == other
            assert again.explain() == streams.pairs.explain()
            if random_.random() < 0.5:
                streams.pairs = again


def test_texts_that_are_added_to_a_loaded_set_join_the_groups_of_those_before(tmp_path):
    pairs = make_set(TWO)
    texts = ["left.x - right.x < {}", "left.s = right.s AND abs(left.n - right.n) < {}", "round(left.x, 1) = right.x"]
    pairs.add_many(["a", "b", "c"], [text.format(3) for text in texts], rows=5)
    pairs.save(tmp_path / "set")
    again = vd.JoinQuerySet.load(tmp_path / "set")
    n_groups = len(again.groups())
    again.add_many(["d", "e", "f"], [text.format(4) for text in texts], rows=7)
    assert len(again.groups()) == n_groups
    rows = {"x": [1.0, 2.0], "n": [1, 2], "s": ["p", "q"]}
    found = pairs_of(again.window().step(left=rows, right=rows))
    every = [(left, right) for left in range(2) for right in range(2)]
    assert found == sorted(
        [(query, *pair) for query in "ad" for pair in every]
        + [(query, each, each) for query in "bcef" for each in range(2)]
    )


def test_no_set_loads_the_file_of_another_kind(tmp_path):
    sets = {
        "queries": vd.QuerySet("x double"),
        "joins": vd.JoinQuerySet(left="x double", right="x double"),
        "bands": vd.BandQuerySet(),
    }
    kinds = {type(each).kind: each for each in sets.values()}
    for kind, each in kinds.items():
        each.save(tmp_path / kind)
    for kind, each in kinds.items():
        for other in kinds.values():
            load, read = type(other).load, type(other).from_bytes
            if other is each:
                assert len(load(tmp_path / kind)) == len(read(each.to_bytes())) == 0
                continue
            sentence = f"the saved content is: {kind}; {type(other).__name__} loads: {type(other).kind}"
            with pytest.raises(vd.SnapshotError, match=sentence):
                load(tmp_path / kind)
            with pytest.raises(vd.SnapshotError, match=sentence):
                read(each.to_bytes())


def test_no_set_loads_a_state():
    _, join = saved_state()
    states = [
        join.save(),
        vd.BandQuerySet().monitor().save(),
        vd.QuerySet("n bigint, k string").border(key="k", time="n").save(),
    ]
    for blob in states:
        for kind in (vd.QuerySet, vd.JoinQuerySet, vd.BandQuerySet):
            with pytest.raises(vd.SnapshotError):
                kind.from_bytes(blob)
