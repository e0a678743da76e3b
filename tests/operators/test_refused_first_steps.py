"""A first step that is refused fixes no type: the next one may have other keys, ids and times."""

from __future__ import annotations

import pytest

import vedette as vd
from vedette.data import answer_limit
from vedette.settings import Settings

KEYS = {"string": ["a", "b"], "bigint": [1, 2]}
TIMES = {"bigint": [1, 2], "double": [1.5, 2.5]}


class Border:
    def __init__(self, schema, **options):
        queries = vd.QuerySet(schema)
        queries.add("low", "x < 9")
        self.monitor = queries.border(key="k", time="t")

    def step(self, keys, times):
        return self.monitor.step({"k": keys, "x": [1.0, 2.0], "t": times})

    def open_step(self, keys, times):
        return self.monitor.step_batches({"k": keys, "x": [1.0, 2.0], "t": times}, max_bytes=1)


class Window:
    def __init__(self, schema, **options):
        joins = vd.JoinQuerySet(left=schema, right=schema)
        joins.add("all", "left.x < 9 AND right.x < 9", within=99)
        self.monitor = joins.window(left_time="t", right_time="t", left_id="k", right_id="k", **options)

    def step(self, keys, times):
        rows = {"k": keys, "x": [1.0, 2.0], "t": times}
        return self.monitor.step(left=rows, right=rows)

    def open_step(self, keys, times):
        rows = {"k": keys, "x": [1.0, 2.0], "t": times}
        return self.monitor.step_batches(1, left=rows, right=rows)


class Band:
    def __init__(self, schema, **options):
        bands = vd.BandQuerySet()
        bands.add("all", -9.0, 9.0)
        self.monitor = bands.monitor(**options)

    def step(self, keys, times):
        rows = {"id": keys, "value": [1.0, 2.0]}
        return self.monitor.insert(rows, rows)

    def open_step(self, keys, times):
        rows = {"id": keys, "value": [1.0, 2.0]}
        return self.monitor.insert_batches(rows, rows, max_bytes=1)


def refuse_answer(monitor, keys, times):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_limit, "settings", lambda: Settings(max_answer_bytes=1))
        with pytest.raises(vd.AnswerError):
            monitor.step(keys, times)


def refuse_rows(monitor, keys, times):
    with pytest.raises(vd.RowError):
        monitor.step([*keys, *keys, *keys], times)


def leave_unread(monitor, keys, times):
    pieces = monitor.open_step(keys, times)
    next(pieces)
    pieces.close()


@pytest.mark.parametrize("refuse", [refuse_answer, refuse_rows, leave_unread])
@pytest.mark.parametrize("schema", ["x double", "x double, t {}", "x double, k {}", "x double, k {}, t {}"])
@pytest.mark.parametrize("kind", [Border, Window, Band])
def test_a_refused_first_step_fixes_neither_the_type_of_keys_nor_that_of_times(kind, schema, refuse):
    later_keys = "string" if "k" in schema else "bigint"
    later_times = "bigint" if "t" in schema.split() else "double"
    types = [name for name, column in ((later_keys, "k"), (later_times, "t")) if f"{column} {{" in schema]
    tried, untouched = (kind(schema.format(*types)) for _ in range(2))
    before = tried.monitor.save()

    refuse(tried, KEYS["string"], TIMES["bigint"])

    assert tried.monitor.save() == before
    answers = [each.step(KEYS[later_keys], TIMES[later_times]).to_pylist() for each in (tried, untouched)]
    assert answers[0] == answers[1]
    assert answers[0]
    assert tried.monitor.save() == untouched.monitor.save()


@pytest.mark.parametrize("kind", [Window, Band])
def test_a_first_step_beyond_max_state_rows_fixes_no_type(kind):
    tried = kind("x double", max_state_rows=1)
    before = tried.monitor.save()

    with pytest.raises(vd.RowError, match="max_state_rows"):
        tried.step(KEYS["string"], TIMES["bigint"])

    assert tried.monitor.save() == before
    with pytest.raises(vd.RowError, match="max_state_rows"):
        tried.step(KEYS["bigint"], TIMES["double"])
