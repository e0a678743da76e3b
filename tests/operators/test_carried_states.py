"""States that carry columns, as plain content: merged from deltas, divided among shards and joined again."""

from __future__ import annotations

import numpy as np
import pytest

import vedette as vd
from vedette.operators.band_join.stored_state import StoredBands
from vedette.operators.moving_join.stored_state import StoredMoving
from vedette.operators.window_join.stored_state import StoredJoin

POINT = {"y": 0.0, "vx": 0.0, "vy": 0.0}


def window_join(columns):
    joins = vd.JoinQuerySet(left="id bigint, x double", right="id bigint, x double")
    joins.add("all", "left.x <= right.x", within=100)
    join = joins.window(left_time="t", right_time="t", left_id="id", right_id="id", columns=columns)

    def step(join, ids, side, time):
        rows = {"id": ids, "x": [float(each) for each in ids], "t": [time] * len(ids)}
        return join.step(**{side: rows | notes(ids, side, time)})

    return join, joins.window(left_time="t", right_time="t", left_id="id", right_id="id", columns=columns), step


def band_join(columns):
    bands = vd.BandQuerySet()
    bands.add("all", -100, 100)

    def step(join, ids, side, time):
        values = {"id": ids, "value": [float(each) for each in ids]}
        return join.step(**{side: values | notes(ids, side, time)})

    options = {"columns": columns, "known_id": "replace"}
    return bands.monitor(**options), bands.monitor(**options), step


def moving_join(columns):
    def step(join, ids, side, time):
        rows = {"id": ids, "x": [0.0] * len(ids)} | {name: [value] * len(ids) for name, value in POINT.items()}
        return join.update(**{"a" if side == "left" else "b": rows | notes(ids, side, time)}, time=time)

    columns = columns and {"a": columns["left"], "b": columns["right"]}
    return vd.MovingJoin(1000, columns=columns), vd.MovingJoin(1000, columns=columns), step


def notes(ids, side, time):
    return {"note": [f"{side} {each} {time}" for each in ids], "more": [[each, time] for each in ids]}


KINDS = {
    "window": (window_join, StoredJoin({})),
    "band": (band_join, StoredBands()),
    "moving": (moving_join, StoredMoving()),
}


def as_lines(table):
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize(
    "columns", [{"left": ["note", "more"], "right": ["note"]}, {"left": [], "right": ["more"]}], ids=str
)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_survive_deltas_and_another_number_of_shards(kind, columns):
    make, stored = KINDS[kind]
    join, copy, step = make(columns)
    blobs = [join.save()]
    for time, (ids, side) in enumerate([([1, 2, 3], "left"), ([4, 5], "right"), ([2, 6], "left"), ([5], "right")]):
        step(join, ids, side, time)
        blobs.append(join.take_delta())
    content = stored.read(blobs)
    shares = [
        stored.divide(content, lambda _, ids, rest=rest: np.flatnonzero(np.asarray(ids) % 2 == rest), with_counts=True)[
            0
        ]
        for rest in range(2)
    ]
    copy.load(stored.join(shares)[0])
    for ids, side in (([7], "right"), ([3, 8], "left"), ([5, 9], "right")):
        found = step(join, ids, side, 9)
        assert as_lines(step(copy, ids, side, 9)) == as_lines(found)
        assert found.num_rows > 0
        assert any(name.endswith(("_note", "_more")) for name in found.column_names)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_saved_that_was_not_asked_for(kind):
    make, stored = KINDS[kind]
    join, _, step = make(None)
    step(join, [1], "left", 0)
    assert b"left 1 0" not in join.save()
    assert all("carried" not in part for part in stored.read([join.save()])["parts"].values())
