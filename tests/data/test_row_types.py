"""Every field type with every container and dtype: a column is read exactly, or refused by field and type."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from columns_held import VALUES, all_columns

import vedette as vd

BERLIN = ZoneInfo("Europe/Berlin")
READS = {  # by the kind of a column, the types of the fields that read it; all others refuse it
    "integer": ("bigint", "double", "decimal(10,2)", "decimal(30,2)"),
    "unsigned": ("double", "decimal(10,2)", "decimal(30,2)"),
    "float": ("double",),
    "decimal": ("decimal(10,2)", "decimal(30,2)"),
    "boolean": ("boolean",),
    "string": ("string",),
    "date": ("date",),
    "wall clock": ("timestamp",),
    "instant": ("timestamp",),
    "null": ("bigint", "double", "decimal(10,2)", "decimal(30,2)", "boolean", "string", "date", "timestamp"),
    "other": (),
}
TYPES = READS["null"]
HELD = all_columns()
each_column = pytest.mark.parametrize("stored", HELD, ids=[stored.name for stored in HELD])


def as_field(value, type_):
    """A value as a field of the type has it, in Python."""
    if value is None:
        return None
    if type_.startswith("decimal"):
        return Decimal(value)
    if type_ == "timestamp":
        return value.replace(tzinfo=BERLIN) if value.tzinfo is None else value
    return {"bigint": int, "double": float}.get(type_, lambda same: same)(value)


def literal(value, type_):
    if type_ == "string":
        return f"'{value}'"
    if type_ == "boolean":
        return str(value)
    if type_ == "date":
        return f"DATE '{value}'"
    if type_ == "timestamp":
        return f"TIMESTAMP '{value.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S}Z'"
    return str(value)


OPERATORS = {"=": operator.eq, "<": operator.lt}


def constants(type_):
    kinds = [kind for kind, types in READS.items() if type_ in types and kind in VALUES]
    return sorted({as_field(value, type_) for kind in kinds for value in VALUES[kind]})


@pytest.fixture(scope="module")
def sets():
    """By type of field, queries that distinguish its values, with the same condition in plain Python."""
    made = {}
    for type_ in TYPES:
        queries, tests = vd.QuerySet(f"f {type_}", time_zone="Europe/Berlin"), {}
        for constant in constants(type_):
            for sign, holds in OPERATORS.items():
                tests[f"{sign} {constant}"] = lambda value, holds=holds, constant=constant: (
                    value is not None and holds(value, constant)
                )
                queries.add(f"{sign} {constant}", f"f {sign} {literal(constant, type_)}")
        queries.add("null", "f IS NULL")
        tests["null"] = lambda value: value is None
        made[type_] = queries, tests
    return made


@each_column
def test_a_column_is_read_exactly_or_refused_by_field_and_type(stored, sets):
    for type_ in TYPES:
        queries, tests = sets[type_]
        if type_ not in READS[stored.kind]:
            with pytest.raises(vd.RowError) as caught:
                queries.match({"f": stored.column})
            assert "'f'" in str(caught.value)
            assert type_ in str(caught.value)
            continue
        hits = queries.match({"f": stored.column})
        ids = hits.ids.to_pylist()
        found = [sorted(ids[first:last]) for first, last in zip(hits.starts, hits.starts[1:], strict=False)]
        wanted = [as_field(value, type_) for value in stored.values]
        assert found == [sorted(name for name, holds in tests.items() if holds(value)) for value in wanted]


@each_column
def test_one_row_is_read_as_its_column_or_refused(stored, sets):
    if stored.values is None:
        return  # only the column may be wrong, which one row does not show
    values = (
        stored.column.to_pylist() if isinstance(stored.column, (pa.Array, pa.ChunkedArray)) else list(stored.column)
    )
    for value, wanted in zip(values, stored.values, strict=True):
        for type_ in TYPES:
            queries, tests = sets[type_]
            if wanted is None and isinstance(value, float):
                continue  # NaN is null in pandas, and a number in one row
            if wanted is None or type_ in READS[stored.kind]:
                plain = as_field(wanted, type_)
                assert sorted(queries.match_one({"f": value})) == sorted(
                    n for n, holds in tests.items() if holds(plain)
                )
            elif stored.kind not in (
                "unsigned",
                "decimal",
            ):  # one value has no dtype, and a decimal is widened to double
                with pytest.raises(vd.RowError, match="field 'f' is"):
                    queries.match_one({"f": value})


def whole_frames(stored):
    """The column in each kind of frame that supports it unchanged."""
    column = stored.column
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        yield pa.table({"f": column})
        if isinstance(column, pa.Array):
            yield pa.RecordBatch.from_arrays([column], names=["f"])
    elif isinstance(column, pl.Series):
        yield pl.DataFrame([column.rename("f")])
    elif isinstance(column, pd.Series):
        yield pd.DataFrame({"f": column})


@each_column
def test_a_frame_answers_as_its_column_does(stored, sets):
    for frame in whole_frames(stored):
        for type_ in TYPES:
            queries, _ = sets[type_]
            if type_ in READS[stored.kind]:
                hits, wanted = queries.match(frame), queries.match({"f": stored.column})
                assert (hits.starts.tolist(), hits.positions.tolist()) == (
                    wanted.starts.tolist(),
                    wanted.positions.tolist(),
                )
            else:
                with pytest.raises(vd.RowError, match="field 'f'"):
                    queries.match(frame)


# Columns that are keys, times, ids, values and sides. Each answers as a plain list of the same values does.

NUMBERS = ("integer", "unsigned", "float")
NAMES = ("integer", "string")
MOMENTS = ("integer", "float", "wall clock", "instant")


def without_nulls(stored):
    """The values, if the column has rows and no null among them."""
    return stored.values if stored.values and None not in stored.values else None


def border_by_key(schema):
    def step(column):
        queries = vd.QuerySet(schema)
        queries.add("all", "x > 0")
        n = len(column)
        monitor = queries.border(key="f", time="t")
        return monitor.step({"f": column, "x": np.ones(n), "t": np.arange(n)}).to_pylist()

    return step


def border_by_time(column):
    queries = vd.QuerySet("x double", time_zone="Europe/Berlin")
    queries.add("all", "x > 0")
    n = len(column)
    return queries.border(key="k", time="f").step({"k": np.arange(n), "x": np.ones(n), "f": column}).to_pylist()


def window_join(**options):
    def step(column):
        pairs = vd.JoinQuerySet(left="x double", right="x double", time_zone="Europe/Berlin")
        pairs.add("all", "left.x <= right.x", rows=100)
        n = len(column)
        rows = {"x": np.arange(n), "t": np.arange(n), "f": column}
        join = pairs.window(
            **{f"{side}_{name}": value for side in ("left", "right") for name, value in options.items()}
        )
        return sorted(map(str, join.step(left=rows, right=rows).to_pylist()))

    return step


def band_join(**names):
    def step(column):
        bands = vd.BandQuerySet()
        bands.add("close", -2.0, 2.0)
        join = bands.monitor()
        n = len(column)
        join.insert(right={"id": np.arange(n), "value": np.arange(n)})
        rows = {"id": np.arange(n), "value": np.arange(n)} | dict.fromkeys(names, column)
        return sorted(map(str, join.insert(left=rows).to_pylist()))

    return step


def moving_join(*names):
    def load(column):
        moving = vd.MovingJoin(max_update_interval=60)
        n = len(column)
        still = {"id": np.arange(n), "x": np.arange(n), "y": np.zeros(n), "vx": np.ones(n), "vy": np.zeros(n)}
        return sorted(map(str, moving.load(a=still | dict.fromkeys(names, column), b=still, time=0).to_pylist()))

    return load


def query_ids(column):
    queries = vd.QuerySet("x double")
    queries.add_many(column, ["x > 0"] * len(column))
    return queries.match_one({"x": 1.0})


USES = {
    "a key that the schema has not": (border_by_key("x double"), NAMES),
    "a key that is a string": (border_by_key("f string, x double"), ("string",)),
    "a key that is a bigint": (border_by_key("f bigint, x double"), ("integer",)),
    "a time of border monitoring": (border_by_time, MOMENTS),
    "an id of a window join": (window_join(time="t", id="f"), NAMES),
    "a time of a window join": (window_join(time="f"), MOMENTS),
    "an id of a band join": (band_join(id=...), (*NAMES, "unsigned")),
    "a value of a band join": (band_join(value=...), NUMBERS),
    "an id of a moving join": (moving_join("id"), (*NAMES, "unsigned")),
    "a side of a moving join": (moving_join("x"), NUMBERS),
    "a speed of a moving join": (moving_join("vx"), NUMBERS),
    "ids of queries": (query_ids, (*NAMES, "unsigned")),
}


@pytest.mark.parametrize("use", USES)
def test_other_columns_are_read_exactly_or_refused(use):
    answer, kinds = USES[use]
    for stored in HELD:
        values = without_nulls(stored)
        if not len(stored.column):
            continue  # nothing to read; whether its type is refused does not matter
        try:
            got = answer(stored.column)
        except (vd.RowError, vd.QueryError) as error:
            got = error
        if stored.kind in kinds and values is not None and len(set(values)) == len(values):
            assert got == answer(list(values)), stored.name
        elif stored.kind not in kinds or stored.values is None or None in stored.values:
            assert isinstance(got, vd.VedetteError), stored.name
