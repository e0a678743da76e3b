"""Columns of rows, metadata and ids in the pairs of a window join, compared with the rows themselves."""

from __future__ import annotations

import datetime
import decimal
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.errors import AnswerError, QueryError, RowError
from vedette.operators.window_join import monitor as join_monitor

seeds = st.integers(0, 2**32)
SCHEMA = "id string, x double, at bigint"
ROLES = {"left_time": "at", "right_time": "at", "left_id": "id", "right_id": "id"}


def make_set():
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    pairs.add("below", "left.x < right.x", within=5, metadata={"owner": "ann", "tags": ["a", 1]})
    pairs.add("either", "left.x = right.x OR left.x > 1", within={"left": 2, "right": 8}, metadata={"owner": "bob"})
    pairs.add("last", "left.x <= right.x", rows=3)
    return pairs


OWNERS = {"below": "ann", "either": "bob", "last": None}


def make_rows(random_, n):
    """Rows in time order, as (stream, id, x, at)."""
    at, rows = 0, []
    for number in range(n):
        at += random_.choice([1, 1, 2, 4])
        rows.append((random_.choice(["left", "right"]), f"r{number}", random_.choice([0.0, 1.0, 2.0]), at))
    return rows


def to_tables(rows):
    tables = {}
    for stream in ("left", "right"):
        own = [row for row in rows if row[0] == stream]
        tables[stream] = pa.table(
            {
                "id": pa.array([row[1] for row in own], pa.string()),
                "x": pa.array([row[2] for row in own], pa.float64()),
                "at": pa.array([row[3] for row in own], pa.int64()),
                "note": pa.array([{"of": row[1]} for row in own], pa.struct([("of", pa.string())])),
                "n": pa.array([None if row[3] % 3 else row[3] for row in own], pa.int32()),
            }
        )
    return tables


def run(pairs, rows, random_, saves, **options):
    """The pairs of rows, cut into batches at random."""
    join, copy = pairs.window(**ROLES, **options), pairs.window(**ROLES, **options)
    copy.load(join.save())
    found, start = [], 0
    while start < len(rows):
        end = start + random_.choice([1, 2, 5, 20])
        for table in join.step_batches(random_.choice([40, 1 << 20]), **to_tables(rows[start:end])):
            found += table.to_pylist()
        start = end
        if saves and random_.random() < 0.5:
            copy.apply_delta(join.take_delta())
            join, copy = copy, pairs.window(**ROLES, **options)
            copy.load(join.save())
    return found


@given(seeds)
def test_pairs_carry_their_rows_and_ids_for_any_batches_and_saves(seed):
    random_ = random.Random(seed)
    rows, pairs = make_rows(random_, 60), make_set()
    options = {"columns": {"left": ["note", "n"], "right": ["note"]}, "metadata": ["owner"]}
    plain = run(pairs, rows, random_, False)
    carrying = [run(pairs, rows, random_, saves, **options) for saves in (False, True)]
    at = {row[1]: row[3] for row in rows}
    for found in carrying:
        own = [{name: line[name] for name in ("query", "left", "right")} for line in found]
        assert sorted(map(str, own)) == sorted(map(str, plain))
        for line in found:
            assert line["left_note"] == {"of": line["left"]}
            assert line["right_note"] == {"of": line["right"]}
            assert line["left_n"] == (None if at[line["left"]] % 3 else at[line["left"]])
            assert line["owner"] == OWNERS[line["query"]]
    ids = [{line["event_id"]: (line["query"], line["left"], line["right"]) for line in found} for found in carrying]
    assert ids[0] == ids[1]
    assert len(ids[0]) == len(plain)


def test_a_step_of_several_parts_carries_rows_that_have_expired_since(monkeypatch):
    monkeypatch.setattr(join_monitor, "ROWS_AT_ONCE", 2)
    random_ = random.Random(5)
    rows, pairs = make_rows(random_, 80), make_set()
    join = pairs.window(**ROLES, columns=["note"])
    found = join.step(**to_tables(rows)).to_pylist()
    assert found
    assert len({line["event_id"] for line in found}) == len(found)
    assert all(line[f"{side}_note"] == {"of": line[side]} for line in found for side in ("left", "right"))


def test_an_event_id_depends_on_the_set_the_query_its_revision_and_both_rows():
    def ids(name="", text="left.x < right.x", n_changes=0, at=1, right="b"):
        pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
        pairs.name = name
        for number in range(n_changes):
            pairs.add(f"other{number}", "left.x < 0", rows=1)
        pairs.add("q", text, rows=5)
        join = pairs.window(**ROLES, event_id=True)
        rows = {"left": {"id": ["a"], "x": [0.0], "at": [at]}, "right": {"id": [right], "x": [1.0], "at": [2]}}
        return join.step(**rows)["event_id"].to_pylist()

    assert ids() == ids(text="left.x <= right.x") == ["20859f586f2fd221ca8e09a920d34dea"]
    assert len({*ids(), *ids("other"), *ids(n_changes=1), *ids(at=2), *ids(right="c")}) == 5


def test_event_ids_are_made_if_pairs_carry_something_or_on_request():
    pairs = make_set()
    for options, has_ids in (
        ({}, False),
        ({"event_id": True}, True),
        ({"columns": ["n"]}, True),
        ({"metadata": ["owner"]}, True),
        ({"columns": ["n"], "event_id": False}, False),
    ):
        assert ("event_id" in pairs.window(**ROLES, **options).step().column_names) == has_ids


def test_streams_of_any_number_and_name_are_the_prefixes():
    pairs = vd.JoinQuerySet(bids="x bigint", asks="x bigint", trades="x bigint")
    pairs.add("same", "bids.x = asks.x AND asks.x = trades.x", rows=5)
    join = pairs.window(columns={"trades": ["venue"], "bids": ["x"]})
    rows = {"bids": {"x": [1]}, "asks": {"x": [1]}, "trades": {"x": [1], "venue": ["N"]}}
    (line,) = join.step(**rows).to_pylist()
    assert (line["bids_x"], line["trades_venue"], "asks_x" in line) == (1, "N", False)


TYPES = {
    "null": pa.array([None, None]),
    "dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "list": pa.array([[1], None], pa.list_(pa.int8())),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "decimal": pa.array([decimal.Decimal("1.50"), None]),
    "date": pa.array([datetime.date(2026, 1, 2), None]),
    "binary": pa.array([b"\x00", b""]),
    "bool": pa.array([True, None]),
}


@pytest.mark.parametrize("values", TYPES.values(), ids=TYPES)
def test_columns_may_have_any_type(values):
    pairs = vd.JoinQuerySet(left="x bigint", right="x bigint")
    pairs.add("all", "left.x = right.x", rows=5)
    join = pairs.window(columns={"left": ["value"]})
    join.step(left=pa.table({"x": [0, 1], "value": values}))
    copy = pairs.window(columns={"left": ["value"]})
    copy.load(join.save())
    found = {line["left"]: line["left_value"] for line in copy.step(right={"x": [0, 1]}).to_pylist()}
    assert [found[0], found[1]] == values.to_pylist()


def test_a_state_without_columns_has_nulls_for_them():
    pairs = make_set()
    join, later = pairs.window(**ROLES), pairs.window(**ROLES, columns=["note"])
    rows = to_tables([("left", "a", 0.0, 1), ("right", "b", 1.0, 2)])
    join.step(left=rows["left"])
    later.load(join.save())
    found = later.step(right=rows["right"]).to_pylist()
    assert {(line["left_note"], line["right_note"]["of"]) for line in found} == {(None, "b")}
    join.load(later.save())
    assert join.n_rows == 2


def test_a_step_that_is_refused_or_not_read_keeps_the_columns(set_limits):
    pairs = make_set()
    join = pairs.window(**ROLES, columns=["note"])
    row = {"id": ["a"], "x": [0.0], "at": [1], "note": ["x" * 4000]}
    join.step(left=row)
    many = {"id": [f"b{n}" for n in range(50)], "x": [1.0] * 50, "at": [2] * 50, "note": ["y"] * 50}
    set_limits(max_answer_bytes=50_000)
    with pytest.raises(AnswerError):
        join.step(right=many)
    unread = join.step_batches(20_000, right=many)
    assert next(unread).num_rows <= 5
    unread.close()
    assert join.n_rows == 1
    pieces = list(join.step_batches(20_000, right=many))
    assert {text for piece in pieces for text in piece["left_note"].to_pylist()} == {"x" * 4000}
    assert {text for piece in pieces for text in piece["right_note"].to_pylist()} == {"y"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"lft": ["x"]}}, "unknown side 'lft'; the sides are: left, right; did you mean 'left'"),
        ({"columns": [""]}, "it contains ''"),
        ({"columns": ["x", "x"]}, "asked for twice"),
        ({"columns": ["x"], "metadata": ["right_x"]}, "metadata names 'right_x'"),
        ({"metadata": ["event_id"]}, "a column of the answer itself"),
        ({"event_id": 3}, "event_id must be True or False"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(QueryError, match=message):
        make_set().window(**ROLES, **options)


def test_names_of_two_streams_that_collide_are_refused():
    pairs = vd.JoinQuerySet(a="x bigint", a_b="x bigint")
    with pytest.raises(QueryError, match="names 'a_b_c', which is asked for twice"):
        pairs.window(columns={"a": ["b_c"], "a_b": ["c"]})


def test_rows_that_lack_a_column_are_refused_and_change_nothing():
    join = make_set().window(**ROLES, columns=["note"])
    with pytest.raises(RowError, match=r"left rows: columns names 'note', .*did you mean 'notes'"):
        join.step(left={"id": ["a"], "x": [0.0], "at": [1], "notes": ["a"]})
    with pytest.raises(RowError, match="id 'id' is null"):
        join.step(left={"id": pa.array([None], pa.string()), "x": [0.0], "at": [1], "note": ["a"]})
    assert join.n_rows == 0


def test_metadata_of_a_replaced_query_is_that_of_its_last_form():
    pairs = make_set()
    join = pairs.window(**ROLES, metadata=["owner", "tags"])
    pairs.replace("below", "left.x < right.x", within=5, metadata={"owner": "eve"})
    pairs.replace("either", "left.x < right.x", within=5)
    pairs = vd.JoinQuerySet.from_bytes(pairs.to_bytes())
    join = pairs.window(**ROLES, metadata=["owner", "tags"])
    found = join.step(**to_tables([("left", "a", 0.0, 1), ("right", "b", 1.0, 2)])).to_pylist()
    assert {line["query"]: (line["owner"], line["tags"]) for line in found} == {
        "below": ("eve", None),
        "either": ("bob", None),
        "last": (None, None),
    }
