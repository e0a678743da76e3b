"""Columns of rows, and metadata of zones, in the answers of a moving join, compared with a plain model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.errors import AnswerError, QueryError, RowError
from vedette.operators import carried_rows
from vedette.operators.moving_join import moving_set

N = 8
seeds = st.integers(0, 2**32)


@pytest.fixture(autouse=True)
def pack_early(monkeypatch):
    monkeypatch.setattr(carried_rows, "_FEW", 2)
    monkeypatch.setattr(moving_set, "FEW_FREED", 2)


def some(random, ids, time, label):
    low, speed = random.integers(0, 12, (2, len(ids))), random.integers(-2, 3, (2, len(ids)))
    sides = {"x_low": low[0], "x_high": low[0] + 2, "y_low": low[1], "y_high": low[1] + 2}
    rows = {"id": ids, **{name: values.astype(float) for name, values in sides.items()}, "vx": speed[0], "vy": speed[1]}
    return rows | {"note": [f"{label} {each} {time}" for each in ids.tolist()]}


def history(random, n_steps):
    """Updates and removals of both sets, at each moment."""
    for time in range(n_steps):
        ids = {name: random.choice(N, random.integers(0, 4), replace=False) for name in "ab"}
        rows = {name: some(random, each, time, name) for name, each in ids.items() if len(each)}
        gone = {name: random.choice(N, random.integers(0, 2), replace=False) for name in "ab"}
        gone = {name: np.setdiff1d(each, ids[name]) for name, each in gone.items()}
        yield time, rows, gone


def apply_to(notes, rows, gone):
    after = {name: dict(known) for name, known in notes.items()}
    for name in "ab":
        for each in gone[name].tolist():
            after[name].pop(each, None)
        if name in rows:
            after[name] |= dict(zip(rows[name]["id"].tolist(), rows[name]["note"], strict=True))
    return after


@given(seeds, st.sampled_from([{}, {"expire_overdue": True}, {"static": "b"}]), st.lists(st.booleans(), min_size=12))
def test_changes_carry_the_rows_before_or_after_an_update(seed, options, saves):
    random = np.random.default_rng(seed)
    plain, moving = vd.MovingJoin(4, **options), vd.MovingJoin(4, **options, columns=["note"])
    copy = vd.MovingJoin(4, **options, columns=["note"])
    notes = {"a": {}, "b": {}}
    for (time, rows, gone), is_saved in zip(history(random, 12), saves, strict=False):
        after = apply_to(notes, rows, gone)
        removals = {f"remove_{name}": each for name, each in gone.items()}
        expected = []
        for line in plain.update(**rows, time=time, **removals).to_pylist():
            of = notes if line["sign"] < 0 or line["start"] < time else after
            expected.append(line | {"a_note": of["a"][line["a"]], "b_note": of["b"][line["b"]]})
        assert sorted(map(str, moving.update(**rows, time=time, **removals).to_pylist())) == sorted(map(str, expected))
        notes = after
        for found in (moving.pairs(), moving.events()):
            for line in found.to_pylist():
                assert (line["a_note"], line["b_note"]) == (notes["a"][line["a"]], notes["b"][line["b"]])
        if is_saved:
            copy.load(moving.save())
            moving, copy = copy, moving
        else:
            delta = moving.take_delta()
            copy.load(moving.save())
            assert delta


@given(seeds)
def test_rows_of_several_times_carry_as_one_update_per_time_does(seed):
    random = np.random.default_rng(seed)
    one_by_one, together = vd.MovingJoin(4, columns=["note"]), vd.MovingJoin(4, columns=["note"])
    expected, tables = [], {"a": [], "b": []}
    for time, rows, _ in history(random, 8):
        if rows or time == 7:
            expected += one_by_one.update(**rows, time=time).to_pylist()
        for name, each in rows.items():
            tables[name].append(pa.table(each | {"time": np.full(len(each["id"]), float(time))}))
    given_rows = {name: pa.concat_tables(many) for name, many in tables.items() if many}
    found = together.update(**given_rows, time=7).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_an_update_that_is_refused_keeps_the_columns(set_limits):
    moving = vd.MovingJoin(60, columns=["note"])
    point = {"x": [0.0], "y": [0.0], "vx": [0.0], "vy": [0.0]}
    moving.load(a={"id": [1], **point, "note": ["old"]}, b={"id": [7], **point, "note": ["b"]}, time=0)
    set_limits(max_answer_bytes=1000)
    with pytest.raises(AnswerError, match="bytes of columns"):
        moving.update(a={"id": [1], **point, "note": ["x" * 2000]}, time=1)
    set_limits(max_answer_bytes=100_000)
    retracted, *_ = moving.update(time=2, remove_a=[1]).to_pylist()
    assert (retracted["a_note"], retracted["b_note"]) == ("old", "b")


def test_a_state_without_columns_has_nulls_for_them():
    point = {"x": [0.0], "y": [0.0], "vx": [0.0], "vy": [0.0]}
    plain, moving = vd.MovingJoin(60), vd.MovingJoin(60, columns={"a": ["note"]})
    plain.load(a={"id": [1], **point}, b={"id": [7], **point}, time=0)
    moving.load(plain.save())
    assert [line["a_note"] for line in moving.update(time=1, remove_a=[1]).to_pylist()] == [None, None]
    plain.load(moving.save())
    assert plain.n_b == 1


def test_static_rows_without_a_time_keep_their_columns_while_they_wait():
    moving = vd.MovingJoin(60, static="b", columns={"b": ["note"]})
    box = {"x_low": [5.0], "x_high": [6.0], "y_low": [-1.0], "y_high": [1.0]}
    moving.update(b={"id": [7], **box, "note": ["waiting"]})
    copy = vd.MovingJoin(60, static="b", columns={"b": ["note"]})
    copy.load(moving.save())
    copy.update(b={"id": [8], **box, "note": ["later"]})
    found = copy.update(a={"id": [1], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0]}, time=0).to_pylist()
    assert {line["b"]: line["b_note"] for line in found} == {7: "waiting", 8: "later"}


def zone_set():
    zones = vd.ZoneSet()
    zones.add("harbour", x_low=10, x_high=14, y_low=-1, y_high=1, metadata={"owner": "ann", "level": 3})
    return zones


SHIP = {"id": [1], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0], "name": ["Ada"]}
OPTIONS = {"columns": ["name"], "metadata": ["owner", "level"]}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_zone_has_the_metadata_of_its_revision(is_loaded):
    zones = zone_set()
    watch = zones.monitor(60, **OPTIONS)
    (line,) = watch.update(SHIP, time=0).to_pylist()
    assert (line["a_name"], line["owner"], line["level"]) == ("Ada", "ann", "3")
    zones.replace("harbour", x_low=10, x_high=15, y_low=-1, y_high=1, metadata={"owner": "bob"})
    if is_loaded:
        saved = watch.save()
        watch = vd.ZoneSet.from_bytes(zones.to_bytes()).monitor(60, **OPTIONS)
        zones = watch.queries
        watch.load(saved)
    lines = [(line["sign"], line["owner"], line["level"]) for line in watch.update(time=1).to_pylist()]
    assert lines == [(-1, "ann", "3"), (1, "bob", None)]
    zones.remove("harbour")
    (line,) = watch.update(time=2).to_pylist()
    assert (line["sign"], line["a_name"], line["owner"]) == (-1, "Ada", "bob")


@pytest.mark.parametrize("is_loaded", [False, True])
def test_metadata_that_changes_alone_is_that_of_later_answers(is_loaded):
    zones = zone_set()
    watch = zones.monitor(60, **OPTIONS)
    watch.update(SHIP, time=0)
    zones.replace("harbour", x_low=10, x_high=14, y_low=-1, y_high=1, metadata={"owner": "bob"})
    if is_loaded:
        saved = watch.save()
        watch = zones.monitor(60, **OPTIONS)
        watch.load(saved)
    assert watch.update(time=1).num_rows == 0
    assert watch.events().to_pylist()[0]["owner"] == "bob"
    zones.remove("harbour")
    assert [line["owner"] for line in watch.update(time=2).to_pylist()] == ["bob"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metadata": ["owner"]}, "metadata is for queries, and two sets of moving objects have none"),
        ({"columns": {"c": ["x"]}}, "unknown side 'c'; the sides are: a, b"),
        ({"columns": 7}, "columns must be a list of names"),
        ({"columns": ["x", "X"]}, "asked for twice"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(QueryError, match=message):
        vd.MovingJoin(60, **options)


def test_zones_have_no_columns():
    with pytest.raises(QueryError, match="unknown side 'b'; the sides are: a"):
        zone_set().monitor(60, columns={"b": ["name"]})


def test_rows_that_lack_a_column_are_refused():
    moving = vd.MovingJoin(60, columns=["name"])
    with pytest.raises(RowError, match="set b: columns names 'name', which is not a column"):
        moving.load(a=SHIP, b={"id": [1], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0]}, time=0)
    with pytest.raises(RowError, match="set a: there are 1 ids but 2 values of 'name'"):
        moving.load(a=SHIP | {"name": ["a", "b"]}, time=0)
