"""Columns of rows and metadata of queries in the changes of a band join, compared with a plain model."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.errors import AnswerError, QueryError, RowError
from vedette.operators import carried_rows
from vedette.operators.band_join import side as band_side

COLUMNS = {"left": ["note", "n"], "right": ["note"]}
SIDES = ("left", "right")


class Model:
    """The last row of each id, the bands, and the changes of a step: every value with every value."""

    def __init__(self, bands):
        self.bands = dict(bands)  # by id: low, high, owner
        self.rows = {side: {} for side in SIDES}
        self.n = 0

    def pairs(self, touched=None):
        found = []
        for query, (low, high, _) in self.bands.items():
            for left, (value, *_) in self.rows["left"].items():
                for right, (other, *_) in self.rows["right"].items():
                    is_touched = touched is None or left in touched["left"] or right in touched["right"]
                    if is_touched and low <= value - other <= high:
                        found.append((query, left, right))
        return found

    def lines(self, sign, pairs, owners):
        return [
            (sign, query, left, right, *self.rows["left"][left][1:], self.rows["right"][right][1], owners[query])
            for query, left, right in pairs
        ]

    def change(self, added, removed):
        before = self.pairs()
        owners = {query: owner for query, (*_, owner) in (self.bands | added).items()}
        for query in removed:
            del self.bands[query]
        self.bands |= added
        after = self.pairs()
        gone = [pair for pair in before if pair not in after]
        return self.lines(-1, gone, owners) + self.lines(1, [pair for pair in after if pair not in before], owners)

    def step(self, rows):
        owners = {query: owner for query, (*_, owner) in self.bands.items()}
        after = {side: dict(known) for side, known in self.rows.items()}
        for side, key, value, op in rows:
            self.n += 1
            if op == "delete":
                after[side].pop(key, None)
            else:
                after[side][key] = (value, f"note {self.n}", self.n) if side == "left" else (value, f"note {self.n}")
        touched = {
            side: {
                key
                for key in self.rows[side].keys() | after[side].keys()
                if (self.rows[side].get(key) or (None,))[0] != (after[side].get(key) or (None,))[0]
            }
            for side in SIDES
        }
        found = self.lines(-1, self.pairs(touched), owners)
        self.rows = after
        return found + self.lines(1, self.pairs(touched), owners)


def to_tables(rows, n):
    """The rows of a step by side; the n-th row of a history has the note n."""
    tables = {}
    for side in SIDES:
        own = [(place, row) for place, row in enumerate(rows, n + 1) if row[0] == side]
        columns = {
            "id": pa.array([key for _, (_, key, *_) in own], pa.int64()),
            "value": pa.array([value for _, (*_, value, _) in own], pa.float64()),
            "op": pa.array([op for _, (*_, op) in own], pa.string()),
            "note": pa.array([f"note {place}" for place, _ in own]).dictionary_encode(),
            "n": pa.array([place for place, _ in own], pa.int32()),
        }
        tables[side] = pa.table(columns)
    return tables


def as_lines(table):
    return sorted((tuple(line.values()) for line in table.to_pylist()), key=str)


row = st.tuples(
    st.sampled_from(SIDES),
    st.integers(1, 5),
    st.integers(-3, 3).map(float),
    st.sampled_from(["insert", "insert", "insert", "delete"]),
)
ends = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(sorted)


@pytest.fixture(autouse=True)
def pack_early(monkeypatch):
    monkeypatch.setattr(carried_rows, "_FEW", 2)
    monkeypatch.setattr(band_side, "FEW_FREED", 2)


@given(
    st.lists(st.lists(row, max_size=8), max_size=6),
    st.lists(ends, min_size=1, max_size=4),
    st.lists(st.sampled_from(["save", "delta", "query", "nothing", "pieces"]), min_size=6, max_size=6),
)
def test_changes_carry_the_last_rows_of_both_ids(steps, bands, between):
    queries, model = vd.BandQuerySet(), Model({})
    options = {"columns": COLUMNS, "metadata": ["owner"], "known_id": "replace"}
    logging.disable(logging.WARNING)  # of unknown ids
    for number, (low, high) in enumerate(bands):
        queries.add(f"q{number}", low, high, metadata={"owner": f"o{number}"})
        model.bands[f"q{number}"] = (low, high, f"o{number}")
    join, copy = queries.monitor(**options), queries.monitor(**options)
    copy.load(join.save())
    for number, (rows, what) in enumerate(zip(steps, between, strict=False)):
        expected = []
        if what == "save":
            blob = join.save()
            join = queries.monitor(**options)
            join.load(blob)
            copy.load(blob)
        elif what == "delta":
            copy.apply_delta(join.take_delta())
            join, copy = copy, queries.monitor(**options)
            copy.load(join.save())
        elif what == "query":
            removed = list(model.bands)[:1]
            queries.remove_many(removed)
            queries.add(f"new{number}", -1, 1, metadata={"owner": number})
            expected = model.change({f"new{number}": (-1, 1, str(number))}, removed)
        tables = to_tables(rows, model.n)
        expected += model.step(rows)
        if what == "pieces":
            found = pa.concat_tables(list(join.step_batches(**tables, max_bytes=60)), promote_options="permissive")
        else:
            found = join.step(**tables)
        assert as_lines(found) == sorted(expected, key=str)
    assert sorted(join.left.carried.at(join.left.living)["note"].to_pylist()) == sorted(
        note for _, note, _ in model.rows["left"].values()
    )


def near(**options):
    bands = vd.BandQuerySet()
    bands.add("near", -1, 1, metadata={"owner": "ann", "level": 3})
    return bands, bands.monitor(**options)


def test_current_pairs_have_columns():
    _, join = near(columns=["note"])
    join.insert(left={"id": [1], "value": [5.0], "note": ["l"]}, right={"id": [2], "value": [5.5], "note": ["r"]})
    assert join.pairs("near").to_pylist() == [{"left": 1, "right": 2, "left_note": "l", "right_note": "r"}]
    assert join.values("left").to_pylist() == [{"id": 1, "value": 5.0, "note": "l"}]


def test_affected_queries_have_metadata():
    _, join = near(report="queries", metadata=["owner", "level", "none"])
    join.insert(left={"id": [1], "value": [5.0]})
    found = join.insert(right={"id": [1], "value": [5.0]}).to_pylist()
    assert found == [{"query": "near", "owner": "ann", "level": "3", "none": None}]


def test_a_removed_query_has_the_metadata_that_it_had():
    bands, join = near(metadata=["owner"])
    join.insert(left={"id": [1], "value": [5.0]}, right={"id": [1], "value": [5.0]})
    bands.replace("near", -2, 2, metadata={"owner": "bob"})
    bands.remove("near")
    bands.add("far", -9, 9)
    found = {(line["sign"], line["query"]): line["owner"] for line in join.refresh().to_pylist()}
    assert found == {(-1, "near"): "bob", (1, "far"): None}


def test_metadata_survives_a_file_and_many_changes():
    bands = vd.BandQuerySet()
    for number in range(30):
        bands.add(number, -1, 1, metadata={"n": number})
        bands.replace(number, -1, 2, metadata=None if number % 2 else {"n": -number})
    bands.remove_many(list(range(20)))
    copy = vd.BandQuerySet.from_bytes(bands.to_bytes())
    join = copy.monitor(metadata=["n"], report="queries")
    join.insert(left={"id": [1], "value": [0.0]})
    found = {line["query"]: line["n"] for line in join.insert(right={"id": [1], "value": [0.0]}).to_pylist()}
    assert found == {number: str(number if number % 2 else -number) for number in range(20, 30)}
    assert b'"n"' in copy.to_bytes()
    assert b'"n"' not in copy.without_metadata().to_bytes()


def test_unknown_ids_have_no_columns():
    _, join = near(columns=["note"], metadata=["owner"], unknown_id="report")
    (line,) = join.delete(left=[5]).to_pylist()
    assert line == {"sign": 0, "query": None, "left": 5, "right": None} | dict.fromkeys(
        ["left_note", "right_note", "owner"]
    )
    join.insert(left={"id": [1], "value": [5.0], "note": ["l"]}, right={"id": [2], "value": [5.5], "note": ["r"]})
    gone, unknown = sorted(join.delete(left=[1, 9]).to_pylist(), key=lambda line: line["sign"])
    assert (gone["left_note"], gone["right_note"], gone["owner"]) == ("l", "r", "ann")
    assert (unknown["left"], unknown["left_note"]) == (9, None)


def test_a_state_without_columns_has_nulls_for_them():
    bands, join = near()
    join.insert(left={"id": [1], "value": [5.0]})
    later = bands.monitor(columns=["note"])
    later.load(join.save())
    (line,) = later.insert(right={"id": [2], "value": [5.0], "note": ["r"]}).to_pylist()
    assert (line["left_note"], line["right_note"]) == (None, "r")
    plain = bands.monitor()
    plain.load(later.save())
    assert plain.delete(left=[1]).num_rows == 1


def test_large_columns_count_for_the_limit_of_an_answer(set_limits):
    _, join = near(columns={"left": ["note"]})
    join.insert(left={"id": [1], "value": [0.0], "note": ["x" * 5000]})
    set_limits(max_answer_bytes=50_000)
    many = {"id": list(range(100)), "value": [0.0] * 100}
    with pytest.raises(AnswerError, match="100 pairs with 500,800 bytes of columns"):
        join.insert(right=many)
    assert join.n_right == 0
    pieces = list(join.insert_batches(right=many, max_bytes=50_000))
    assert sum(piece.num_rows for piece in pieces) == 100
    assert max(piece.num_rows for piece in pieces) <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "note"}, "columns must be a list of names"),
        ({"columns": ["note", "Note"]}, "names 'Note', which is asked for twice"),
        (
            {"columns": {"left": ["a"], "rigth": ["b"]}},
            "unknown side 'rigth'; the sides are: left, right; did you mean",
        ),
        ({"columns": {"left": [3]}}, "it contains 3"),
        ({"columns": ["note"], "report": "queries"}, "with report='queries' there are no pairs"),
        ({"columns": ["note"], "metadata": ["left_note"]}, "metadata names 'left_note'"),
        ({"metadata": ["sign"]}, "metadata names 'sign', which is a column of the answer itself"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(QueryError, match=message):
        near(**options)


def test_rows_that_lack_a_column_are_refused_and_change_nothing():
    _, join = near(columns=["note"])
    with pytest.raises(RowError, match=r"left rows: columns names 'note', .*did you mean 'notes'"):
        join.insert(left={"id": [1], "value": [1.0], "notes": ["a"]})
    with pytest.raises(RowError, match="right rows: there are 1 ids but 2 values of 'note'"):
        join.insert(right={"id": [1], "value": [1.0], "note": ["a", "b"]})
    with pytest.raises(RowError, match="null"):
        join.insert(left={"id": [None], "value": [1.0], "note": ["a"]})
    assert join.n_left == join.n_right == 0
    join.insert(left={"id": [1], "value": [1.0], "note": ["a"]})
    with pytest.raises(RowError, match="'note' was large_string so far"):
        join.insert(left={"id": [2], "value": [1.0], "note": [{"a": 1}]})
    assert join.n_left == 1
