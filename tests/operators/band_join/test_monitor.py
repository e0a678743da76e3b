"""What a band join reports, beside a model of it in plain Python."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numba import config
from operators.band_join.plain import KINDS

import vedette as vd
from tests.profiles import examples

SLOW = bool(config.DISABLE_JIT)


def lines(table):
    return [(row["sign"], row["query"], row["left"], row["right"]) for row in table.to_pylist()]


def names(table):
    return [row["query"] for row in table.to_pylist()]


def to_rows(rows, kind=str):
    """Rows (id, value, op) as a table."""
    ids, values, ops = zip(*rows, strict=True) if rows else ((), (), ())
    types = pa.string() if kind is str else pa.int64(), pa.float64(), pa.string()
    columns = [pa.array(each, type_) for each, type_ in zip((ids, values, ops), types, strict=True)]
    return pa.table(columns, ["id", "value", "op"])


class Machine(RuleBasedStateMachine):
    """Values and queries come and go. What was reported with + less what was with - is the answer at every call."""

    @initialize(
        number=st.sampled_from(KINDS), kind=st.sampled_from([str, int]), known_id=st.sampled_from(["error", "replace"])
    )
    def begin(self, number, kind, known_id):
        self.number, self.kind, self.known_id = number, kind, known_id
        self.bands = vd.BandQuerySet()
        self.join = self.bands.monitor(known_id=known_id)
        self.affected = self.bands.monitor(known_id=known_id, report="queries")
        self.queries, self.sides = {}, {"left": {}, "right": {}}
        self.gone = {"left": set(), "right": set()}
        self.reported = set()
        self.n_ids = 0

    def new_ids(self, n):
        self.n_ids += n
        return [self.kind(i) for i in range(self.n_ids - n, self.n_ids)]

    def answer(self, left=None, right=None):
        """All that is true, of some values."""
        return {
            (query, l_id, r_id)
            for query, (low, high) in self.queries.items()
            for l_id, r in (self.sides["left"] if left is None else left).items()
            for r_id, s in (self.sides["right"] if right is None else right).items()
            if low <= r - s <= high
        }

    def take(self, table):
        for sign, *pair in lines(table):
            assert (tuple(pair) in self.reported) == (sign == -1)  # nothing twice, and nothing out of nothing
            (self.reported.add if sign == 1 else self.reported.remove)(tuple(pair))
        assert self.reported == self.answer()

    def check_affected(self, table, side, values):
        expected = {query for query, _, _ in self.answer(**{side: values})}
        assert sorted(names(table), key=str) == sorted(expected, key=str)

    @rule(data=st.data(), side=st.sampled_from(["left", "right"]), n=st.sampled_from([0, 1, 2, 9]))
    def insert(self, data, side, n):
        ids = [*[each for each in self.gone[side] if data.draw(st.booleans())], *self.new_ids(n)]
        self.gone[side] -= set(ids)
        new = dict(zip(ids, [data.draw(self.number) for _ in ids], strict=True))
        rows = {"id": list(new), "value": np.array(list(new.values()), np.float64)}
        self.sides[side].update(new)
        self.take(self.join.insert(**{side: rows}))
        self.check_affected(self.affected.insert(**{side: rows}), side, new)

    @rule(data=st.data())
    def insert_both(self, data):
        new = {
            side: dict(zip(self.new_ids(2), [data.draw(self.number) for _ in range(2)], strict=True))
            for side in self.sides
        }
        rows = {side: pa.table({"id": list(of), "value": list(of.values())}) for side, of in new.items()}
        for side, of in new.items():
            self.sides[side].update(of)
        self.take(self.join.insert(**rows))
        expected = {query for side in new for query, _, _ in self.answer(**{side: new[side]})}
        assert sorted(names(self.affected.insert(**rows)), key=str) == sorted(expected, key=str)

    @rule(
        source=st.randoms(use_true_random=False), side=st.sampled_from(["left", "right"]), n=st.sampled_from([1, 2, 9])
    )
    def delete(self, source, side, n):
        there = sorted(self.sides[side])
        ids = source.sample(there, min(n, len(there)))
        unknown = [*self.new_ids(1), *self.gone[side]] if source.random() < 0.3 else []
        gone = {each: self.sides[side][each] for each in ids}
        table = self.affected.delete(**{side: [*ids, *unknown]})
        self.check_affected(table, side, gone)
        for each in ids:
            del self.sides[side][each]
        self.gone[side] |= set(ids)
        self.take(self.join.delete(**{side: [*ids, *unknown]}))
        assert self.join.unknown == self.affected.unknown == unknown

    def draw_rows(self, data, side):
        """Rows that insert, replace and delete values of a side, applied to the model; the unknown ids."""
        now, rows, unknown = self.sides[side], [], []
        for _ in range(data.draw(st.integers(0, 6))):
            known = sorted({*now, *self.gone[side]})
            id_ = data.draw(st.sampled_from(known)) if known and data.draw(st.booleans()) else self.new_ids(1)[0]
            deletes = data.draw(st.booleans()) or (id_ in now and self.known_id == "error")
            rows.append((id_, None if deletes else data.draw(self.number), "DELETE" if deletes else "insert"))
            if not deletes:
                now[id_] = rows[-1][1]
            elif now.pop(id_, None) is None:
                unknown.append(id_)
        return to_rows(rows, self.kind), unknown

    @rule(data=st.data(), sides=st.sampled_from([["left"], ["right"], ["left", "right"]]))
    def step(self, data, sides):
        before = {side: dict(values) for side, values in self.sides.items()}
        old = self.answer()
        rows, unknown = {}, []
        for side in sides:
            rows[side], more = self.draw_rows(data, side)
            unknown += more
        for side, now in self.sides.items():
            self.gone[side] = (self.gone[side] | set(before[side])) - set(now)
        changed = {
            side: {id_ for id_ in {*now, *before[side]} if now.get(id_) != before[side].get(id_)}
            for side, now in self.sides.items()
        }
        expected = {
            query for query, left, right in old | self.answer() if left in changed["left"] or right in changed["right"]
        }
        assert sorted(names(self.affected.step(**rows)), key=str) == sorted(expected, key=str)
        self.take(self.join.step(**rows))
        assert sorted(self.join.unknown) == sorted(self.affected.unknown) == sorted(unknown)
        for side in self.sides:
            held = self.join.values(side)
            assert dict(zip(held["id"].to_pylist(), held["value"].to_pylist(), strict=True)) == self.sides[side]

    @rule(data=st.data(), n=st.sampled_from([1, 2, 30]))
    def add_queries(self, data, n):
        ends = [sorted([data.draw(self.number) - data.draw(self.number), data.draw(self.number)]) for _ in range(n)]
        new = dict(zip([f"q{each}" for each in self.new_ids(n)], ends, strict=True))
        self.bands.add_many(list(new), [low for low, _ in ends], [high for _, high in ends])
        self.queries.update(new)

    @rule(source=st.randoms(use_true_random=False), share=st.sampled_from([0.2, 1]))
    def remove_queries(self, source, share):
        gone = [query for query in self.queries if source.random() < share]
        self.bands.remove_many(gone)
        for query in gone:
            del self.queries[query]

    @rule(data=st.data(), source=st.randoms(use_true_random=False))
    def replace_query(self, data, source):
        if self.queries:
            query = source.choice(sorted(self.queries))
            self.queries[query] = sorted([data.draw(self.number) - data.draw(self.number), data.draw(self.number)])
            self.bands.replace(query, *self.queries[query])

    @rule(source=st.randoms(use_true_random=False))
    def remove_and_add_again(self, source):
        if self.queries:
            query = source.choice(sorted(self.queries))
            self.bands.remove(query)
            self.bands.add(query, *self.queries[query])

    @rule()
    def refresh(self):
        self.take(self.join.refresh())
        assert self.affected.refresh().num_rows == 0

    @rule()
    def ask_for_the_pairs_of_a_query(self):
        for query in list(self.queries)[:2]:
            pairs = {(query, row["left"], row["right"]) for row in self.join.pairs(query).to_pylist()}
            assert pairs == {pair for pair in self.answer() if pair[0] == query}

    @rule()
    def go_on_elsewhere(self):
        """Save, and load into another monitor."""
        for name in ("join", "affected"):
            monitor = getattr(self, name)
            other = self.bands.monitor(report=monitor.report, known_id=self.known_id)
            other.load(monitor.save())
            setattr(self, name, other)

    @invariant()
    def counts_its_values(self):
        if hasattr(self, "join"):
            assert (self.join.n_left, self.join.n_right) == tuple(map(len, self.sides.values()))
            assert len(self.bands) == len(self.queries)
            assert sorted(self.bands.ids.to_pylist()) == sorted(self.queries)


TestMonitor = Machine.TestCase
TestMonitor.settings = examples(0.6, stateful_step_count=20)


@pytest.fixture
def bands():
    made = vd.BandQuerySet()
    made.add_many(["near", "above"], [-1.0, 0.0], [1.0, float("inf")])
    return made


def test_a_pair_is_reported_when_it_is_added_and_when_it_is_retracted(bands):
    join = bands.monitor()

    assert lines(join.insert(left={"id": ["a"], "value": [5.0]})) == []
    assert sorted(lines(join.insert(right={"id": [1, 2], "value": [4.5, 9.0]}))) == [
        (1, "above", "a", 1),
        (1, "near", "a", 1),
    ]
    assert sorted(lines(join.delete(left=["a"]))) == [(-1, "above", "a", 1), (-1, "near", "a", 1)]
    assert lines(join.delete(right=[1])) == []


def test_answers_are_arrow_tables_with_the_ids_as_dictionaries(bands):
    join = bands.monitor()
    join.insert(left={"id": ["a"], "value": [5.0]})
    table = join.insert(right={"id": [1], "value": [4.5]})

    assert table.column_names == ["sign", "query", "left", "right"]
    assert table.schema.field("sign").type == pa.int8()
    assert table.schema.field("query").type.value_type == pa.large_string()
    assert table.schema.field("right").type.value_type == pa.int64()
    assert table.to_pandas()["query"].astype(str).tolist() == table["query"].to_pylist()
    assert bands.monitor(report="queries").insert(left={"id": [1], "value": [0]}).column_names == ["query"]


def test_tables_of_one_join_can_be_concatenated(bands):
    join = bands.monitor()
    tables = [join.insert(left={"id": [1], "value": [5.0]}), join.insert(right={"id": [7], "value": [4.5]})]
    bands.remove("near")
    tables.append(join.refresh())

    together = pa.concat_tables(tables)
    assert sorted(lines(together)) == [(-1, "near", 1, 7), (1, "above", 1, 7), (1, "near", 1, 7)]


def test_a_query_is_named_once_per_call_however_many_pairs_it_gets(bands):
    join = bands.monitor(report="queries")
    join.insert(left={"id": range(100), "value": np.linspace(0, 1, 100)})

    assert sorted(names(join.insert(right={"id": range(10), "value": np.linspace(0, 0.5, 10)}))) == ["above", "near"]
    assert names(join.insert(right={"id": [10], "value": [-50.0]})) == ["above"]
    assert sorted(names(join.delete(right=range(11)))) == ["above", "near"]


def test_a_new_query_reports_existing_pairs_at_the_next_call(bands):
    join = bands.monitor()
    join.insert(left={"id": ["a"], "value": [5.0]}, right={"id": ["b"], "value": [2.0]})
    bands.add("three", 3, 3)

    first, *others = lines(join.insert(left={"id": ["c"], "value": [5.0]}))

    assert first == (1, "three", "a", "b")  # first what the queries change, then what the values do
    assert sorted(others) == [(1, "above", "c", "b"), (1, "three", "c", "b")]
    assert lines(join.refresh()) == []


def test_a_replaced_query_reports_only_the_difference(bands):
    join = bands.monitor()
    join.insert(left={"id": [1, 2, 3], "value": [0.0, 1.0, 2.0]}, right={"id": [0], "value": [0.0]})
    bands.remove("above")
    join.refresh()
    bands.replace("near", 1.0, 2.0)

    assert sorted(lines(join.refresh())) == [(-1, "near", 1, 0), (1, "near", 3, 0)]


def test_a_query_that_is_added_and_removed_between_two_calls_reports_nothing(bands):
    join = bands.monitor()
    join.insert(left={"id": [1], "value": [0.0]}, right={"id": [0], "value": [0.0]})
    bands.add("brief", -1, 1)
    bands.remove("brief")

    assert lines(join.refresh()) == []


def test_new_queries_are_not_reported_as_affected(bands):
    join = bands.monitor(report="queries")
    join.insert(left={"id": [1], "value": [0.0]}, right={"id": [0], "value": [0.0]})
    bands.add("new", -1, 1)

    assert names(join.refresh()) == []
    assert sorted(names(join.delete(right=[0]))) == ["above", "near", "new"]


def test_unknown_ids_of_a_deletion_are_listed_and_counted(bands):
    join = bands.monitor()
    join.insert(left={"id": ["a", "b"], "value": [1.0, 2.0]})

    assert join.delete(left=["x", "a", "y"], right=["a"]).num_rows == 0
    assert join.unknown == ["x", "y", "a"]
    assert (join.n_unknown, join.n_left) == (3, 1)
    join.delete(left=["a"])
    assert (join.unknown, join.n_unknown) == (["a"], 4)
    join.refresh()
    assert (join.unknown, join.n_unknown) == ([], 4)


@pytest.mark.parametrize(
    "ids",
    [
        ["r12"],
        ("r12",),
        pa.array(["r12"]),
        pd.Series(["r12"]),
        pl.Series(["r12"]),
        np.array(["r12"]),
        {"id": ["r12"]},
        {"Id": ["r12"], "value": [0.0]},
        pa.table({"id": ["r12"]}),
        pa.record_batch({"id": ["r12"]}),
        pd.DataFrame({"value": [9.0], "id": ["r12"]}),
        pl.DataFrame({"id": ["r12"]}),
    ],
)
def test_values_are_deleted_by_a_list_of_ids_or_by_rows_with_an_id(bands, ids):
    join = bands.monitor()
    both = {"id": ["r", "1", "2", "r12", "id"], "value": [0.0] * 5}
    join.insert(left=both, right=both)

    join.delete(left=ids, right=ids)
    assert (join.n_left, join.n_right, join.unknown) == (4, 4, [])
    join.delete(left=ids)
    assert join.unknown == ["r12"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (
            "r12",
            "the left values to delete must be a list of ids, or rows with a column 'id'; got 'r12'; for one id, give",
        ),
        (b"r12", "or rows with a column 'id'; got b'r12'"),
        (12, "or rows with a column 'id'; got 12; for one id, give [12]"),
        (np.int64(12), "or rows with a column 'id'; got"),
        ({"ids": ["r"]}, "or rows with a column 'id'; these rows have: ids; did you mean 'ids'?"),
        (pd.DataFrame({"x": [1]}), "or rows with a column 'id'; these rows have: x"),
        (pa.table({"x": [1]}), "or rows with a column 'id'; these rows have: x"),
        ({"id": "r12"}, "field 'id' is 'r12', not an array"),
    ],
)
def test_invalid_ids_of_a_deletion_are_refused(bands, ids, words):
    join = bands.monitor()
    join.insert(left={"id": ["r", "1", "2", "id"], "value": [0.0] * 4})

    with pytest.raises(vd.RowError) as caught:
        join.delete(left=ids)
    assert words in str(caught.value)
    assert (join.n_left, join.n_unknown) == (4, 0)


def test_the_repr_of_a_monitor_has_its_sizes(bands):
    join = bands.monitor(report="queries")
    join.insert(left={"id": [1], "value": [0.0]}, right={"id": [1, 2], "value": [0.0, 1.0]})
    assert repr(join) == f"BandMonitor({len(bands)} queries, 1 left value, 2 right values, report='queries')"


def test_a_deleted_id_can_be_inserted_with_another_value(bands):
    join = bands.monitor()
    join.insert(right={"id": ["s"], "value": [0.0]})
    join.insert(left={"id": ["r"], "value": [100.0]})
    join.delete(left=["r"])

    assert sorted(lines(join.insert(left={"id": ["r"], "value": [0.5]}))) == [
        (1, "above", "r", "s"),
        (1, "near", "r", "s"),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        {"id": ["a", "b"], "value": [1, 2]},
        {"ID": np.array(["a", "b"]), "Value": np.array([1.0, 2.0], np.float32)},
        pa.table(
            {"value": pa.array([1.0, 2.0]), "other": [None, None], "id": pa.array(["a", "b"]).dictionary_encode()}
        ),
        pd.DataFrame({"id": ["a", "b"], "value": [1.0, 2.0]}),
        pl.DataFrame({"id": ["a", "b"], "value": [1.0, 2.0]}),
    ],
)
def test_rows_are_read_in_many_forms(bands, rows):
    join = bands.monitor()
    join.insert(right={"id": [1], "value": [1.5]})

    assert sorted(lines(join.insert(left=rows))) == [(1, "above", "b", 1), (1, "near", "a", 1), (1, "near", "b", 1)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"id": ["x"], "value": [float("nan")]}, "the value of left row 0, id 'x', is nan; values are finite numbers"),
        ({"id": ["x", "y"], "value": [1.0, None]}, "the value of left row 1, id 'y', is null; values are finite"),
        ({"id": ["x"], "value": [float("inf")]}, "the value of left row 0, id 'x', is inf; values are finite numbers"),
        (pd.DataFrame({"id": ["x"], "value": [np.nan]}), "the value of left row 0, id 'x', is null; values are"),
        ({"id": ["x"], "value": ["1"]}, "the left values cannot be read as finite numbers; the first is '1'"),
        (pa.table({"id": ["x"], "value": ["1"]}), "the left values cannot be read as finite numbers; the first is '1'"),
        ({"id": ["x"], "value": np.zeros((1, 1))}, "the left values cannot be read as finite numbers; the first is"),
        ({"id": ["x", "y"], "value": [1.0]}, "the left rows have 2 ids but 1 values"),
        ({"id": "x", "value": [1.0]}, "left rows: field 'id' is 'x', not an array; give arrays of one value"),
        ({"id": ["x"], "value": 1.0}, "left rows: field 'value' is 1.0, not an array; give arrays of one value"),
        (
            {"id": ["x"], "valeu": [1.0]},
            "the left rows lack column 'value'; they need id and value, and have: id, valeu; did",
        ),
        ({"value": [1.0]}, "the left rows lack column 'id'; they need id and value, and have: value"),
        ({"id": ["x", "x"], "value": [1.0, 2.0]}, "left ids: id 'x' is given twice"),
        ({"id": [None], "value": [1.0]}, "left ids: an id is null"),
        ({"id": [7], "value": [1.0]}, "left ids: the ids of this set are strings; got the integer 7"),
        (
            {"id": ["old"], "value": [1.0]},
            "known_id is 'error', and left id 'old' already has a value; delete it first, use another id, or use "
            "'replace'",
        ),
        ([1.0], "rows must be an Arrow table or batch, a pandas or polars frame, or a dict of arrays; got list"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(bands, rows, words):
    join = bands.monitor()
    join.insert(left={"id": ["old"], "value": [0.0]})

    with pytest.raises(vd.RowError) as caught:
        join.insert(left=rows, right={"id": ["r"], "value": [0.0]})

    assert words in str(caught.value)
    assert (join.n_left, join.n_right) == (1, 0)


# Ids that have a value, and ids that have none.


def test_a_known_id_gets_its_new_value_if_that_is_wanted(bands):
    join = bands.monitor(known_id="replace")
    join.insert(left={"id": ["a"], "value": [5.0]}, right={"id": [1], "value": [4.5]})

    changes = lines(join.insert(left={"id": ["a"], "value": [9.0]}))

    assert sorted(changes[:2]) == [(-1, "above", "a", 1), (-1, "near", "a", 1)]
    assert changes[2:] == [(1, "above", "a", 1)]
    assert join.values("left").to_pylist() == [{"id": "a", "value": 9.0}]
    assert lines(join.insert(left={"id": ["a"], "value": [9.0]})) == []  # the same value


def test_of_several_values_of_an_id_in_one_call_the_last_counts(bands):
    join = bands.monitor(known_id="replace")
    join.insert(right={"id": [1], "value": [4.5]})

    assert lines(join.insert(left={"id": ["a", "a"], "value": [4.0, 9.0]})) == [(1, "above", "a", 1)]


def test_values_of_both_sides_are_replaced_at_once(bands):
    bands.remove("above")
    join = bands.monitor(known_id="replace")
    join.insert(left={"id": ["a", "b"], "value": [5.0, 50.0]}, right={"id": [1, 2], "value": [5.0, 50.0]})

    changes = lines(join.insert(left={"id": ["a"], "value": [50.0]}, right={"id": [1], "value": [50.5]}))

    assert sorted(changes) == [(-1, "near", "a", 1), *((1, "near", *ids) for ids in (("a", 1), ("a", 2), ("b", 1)))]


def test_a_replaced_value_needs_no_room(bands):
    join = bands.monitor(known_id="replace", max_state_rows=2)
    join.insert(left={"id": ["a"], "value": [5.0]}, right={"id": [1], "value": [5.0]})

    join.insert(left={"id": ["a"], "value": [6.0]})
    with pytest.raises(vd.RowError, match="max_state_rows is 2, but the join keeps 2 values and would keep 3"):
        join.insert(left={"id": ["a", "b"], "value": [7.0, 7.0]})
    assert join.values("left")["value"].to_pylist() == [6.0]


def test_unknown_ids_are_logged_with_their_number_and_the_first_of_them(bands, caplog):
    join = bands.monitor()

    with caplog.at_level(logging.WARNING, "vedette.operators.band_join.monitor"):
        join.delete(left=list(range(12)), right=["x"])

    assert [record.getMessage() for record in caplog.records if record.name.startswith("vedette.")] == [
        "12 left ids to delete have no value: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...",
        "1 right id to delete has no value: 'x'",
    ]


@pytest.mark.parametrize("in_batches", [False, True])
def test_unknown_ids_may_be_reported_as_rows_of_sign_0(bands, in_batches):
    join = bands.monitor(unknown_id="report")

    def delete(**ids):
        tables = list(join.delete_batches(**ids)) if in_batches else [join.delete(**ids)]
        return [line for table in tables for line in lines(table)]

    assert delete(left=["x"], right=[9]) == [(0, None, "x", None), (0, None, None, 9)]
    join.insert(left={"id": ["a"], "value": [5.0]}, right={"id": [1], "value": [9.0]})
    bands.add("four", -4, -4)
    assert delete(left=["x", "a"]) == [
        (0, None, "x", None),
        (1, "four", "a", 1),
        (-1, "four", "a", 1),
    ]
    assert (join.unknown, join.n_unknown) == (["x"], 3)


def test_unknown_ids_may_be_an_error_that_changes_nothing(bands):
    join = bands.monitor(unknown_id="error")
    join.insert(left={"id": ["a"], "value": [5.0]})
    before = join.save()

    for call in (
        lambda: join.delete(left=["a"], right=["x"]),
        lambda: list(join.delete_batches(left=["a", "x"])),
        lambda: join.step(left=to_rows([("b", 1.0, "insert"), ("x", None, "delete")])),
    ):
        with pytest.raises(vd.RowError, match=r"^unknown_id is 'error', and 1 (left|right) id to delete has no value:"):
            call()
        assert join.save() == before


def test_rows_of_a_step_are_applied_in_order_and_only_their_net_change_is_reported(bands):
    join = bands.monitor()
    join.insert(right={"id": [1], "value": [5.0]})
    brief = [("a", 5.0, "insert"), ("a", None, "delete"), ("b", 5.0, "insert"), ("b", None, "delete")]

    assert lines(join.step(left=to_rows([*brief, ("b", 9.0, "insert")]))) == [(1, "above", "b", 1)]
    assert lines(join.step(left=to_rows([("b", None, "delete"), ("b", 9.0, "insert")]))) == []
    assert lines(join.step(left={"id": ["b"], "op": ["Delete"]})) == [(-1, "above", "b", 1)]
    assert lines(join.step(left={"id": ["b"], "value": [9.0]})) == [(1, "above", "b", 1)]
    with pytest.raises(vd.RowError, match="known_id is 'error', and left id 'b' already has a value"):
        join.step(left={"id": ["b"], "value": [10.0]})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            {"id": ["x"], "op": ["insert"]},
            "the left rows lack column 'value'; they need id and value, and have: id, op",
        ),
        ({"id": ["x"], "value": [1.0], "op": ["put"]}, "column 'op' of the left rows has 'put'; a row must say"),
        ({"id": ["x"], "value": [1.0], "op": [None]}, "column 'op' of the left rows has null; a row must say"),
        ({"id": ["x"], "value": [1.0], "op": [3]}, "column 'op' of the left rows has '3'; a row must say"),
        ({"id": ["x"], "value": [1.0], "op": [["a"]]}, "column 'op' of the left rows must say 'insert' or 'delete'"),
        ({"id": ["x"], "value": [1.0], "op": []}, "the left rows have 1 ids but 0 ops"),
        ({"id": ["x"], "value": [1.0], "op": ["d" * 10_000]}, "a row must say 'insert' or 'delete'"),
        ({"id": ["x", "y"], "value": [None, None], "op": ["delete", "insert"]}, "left row 1, id 'y', is null; values"),
    ],
)
def test_bad_rows_of_a_step_are_refused_and_change_nothing(bands, rows, words):
    join = bands.monitor()

    with pytest.raises(vd.RowError) as caught:
        join.step(left=rows, right={"id": ["r"], "value": [0.0]})

    assert words in str(caught.value)
    assert len(str(caught.value)) < 400
    assert (join.n_left, join.n_right) == (0, 0)


def test_a_step_in_batches_changes_nothing_before_the_last_batch(bands):
    join = bands.monitor(known_id="replace")
    rows = {"id": list(range(50)), "value": [1.0] * 50}
    join.insert(left=rows, right=rows)
    pieces = join.step_batches(left={"id": list(range(50)), "value": [1.5] * 50}, max_bytes=1_000)

    first = next(pieces)
    assert first.num_rows > 0
    assert set(join.values("left")["value"].to_pylist()) == {1.0}
    told = [line for table in (first, *pieces) for line in lines(table)]
    assert len(told) == len(set(told)) == 2 * 2 * 50 * 50
    assert set(join.values("left")["value"].to_pylist()) == {1.5}


def test_a_call_without_rows_is_refused(bands):
    with pytest.raises(vd.RowError, match="nothing is given; give left= or right=, or both"):
        bands.monitor().insert()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"report": "all"}, "report must be one of: 'pairs', 'queries'; got 'all'"),
        ({"known_id": "drop"}, "known_id must be one of: 'error', 'replace'; got 'drop'"),
        ({"unknown_id": "tell"}, "unknown_id must be one of: 'log', 'report', 'error'; got 'tell'"),
        (
            {"unknown_id": "report", "report": "queries"},
            "unknown_id is 'report', which adds ids to pairs; with report='queries' use 'log' or 'error'",
        ),
        ({"max_state_rows": 0}, "max_state_rows must be a whole number above 0, or None; got 0"),
        ({"max_state_rows": True}, "max_state_rows must be a whole number above 0, or None; got True"),
    ],
)
def test_a_bad_option_is_refused(bands, options, words):
    with pytest.raises(vd.QueryError) as caught:
        bands.monitor(**options)

    assert words in str(caught.value)


def test_more_values_than_allowed_are_refused_before_any_is_inserted(bands):
    join = bands.monitor(max_state_rows=3)
    join.insert(left={"id": [1, 2], "value": [0.0, 0.0]})

    with pytest.raises(vd.RowError) as caught:
        join.insert(left={"id": [3], "value": [0.0]}, right={"id": [1], "value": [0.0]})

    assert str(caught.value) == (
        "max_state_rows is 3, but the join keeps 2 values and would keep 4; delete values first, or allow more"
    )
    assert (join.n_left, join.n_right) == (2, 0)
    assert join.insert(right={"id": [1], "value": [0.0]}).num_rows == 4


def test_memory_is_freed_as_values_are_deleted(bands):
    n = 3_000 if SLOW else 30_000
    bands.remove("above")
    join = bands.monitor()
    for start in range(0, 10 * n, n):
        ids = np.arange(start, start + n)
        join.insert(left={"id": ids, "value": ids * 10.0})
        join.delete(left=ids[:-10])

    assert join.n_left == 100
    assert join.nbytes < 200_000
    assert join.insert(right={"id": [0], "value": [10.0 * (n - 1)]}).num_rows == 1


@pytest.mark.full
def test_a_large_batch_gives_the_pairs_of_its_values_one_by_one():
    n = 200 if SLOW else 3_000
    random = np.random.default_rng(1)
    bands = vd.BandQuerySet()
    centres = random.uniform(-0.5, 0.5, 10)[random.integers(0, 10, n)]
    bands.add_many(np.arange(n), centres - random.exponential(0.001, n), centres + random.exponential(0.001, n))
    values, others = random.random(n), random.random(50)
    at_once, singly = bands.monitor(), bands.monitor()
    for join in (at_once, singly):
        join.insert(left={"id": np.arange(n), "value": values})

    batch = sorted(lines(at_once.insert(right={"id": np.arange(50), "value": others})))
    one_by_one = [
        line for i in range(50) for line in lines(singly.insert(right={"id": [i], "value": others[i : i + 1]}))
    ]

    assert batch == sorted(one_by_one)
    assert len(batch) > n
    expected = sum(
        int(((values - s >= low) & (values - s <= high)).sum())
        for s in others.tolist()
        for low, high in [bands.band(q) for q in range(0, n, n // 20)]
    )
    assert sum(line[1] % (n // 20) == 0 for line in batch) == expected


def test_explain_names_the_structure_and_the_reason(bands):
    join = bands.monitor()
    join.insert(left={"id": [1, 2], "value": [0.0, 1.0]})

    told = join.explain()
    assert "2 queries at version 1" in told
    assert "2 left values and 0 right values" in told
    assert "stabbing groups: each band holds one of 1 point (the minimum), in 1 group; memory is that of values" in told
    assert "a left value has no pairs: there are no right values" in told
    assert "a right value is looked up by groups: each group once in a table over 2 left values" in told
    assert (
        "the tree of Lemma 5 would look up in logarithmic time, but hold 2 intervals, and it could not change" in told
    )
    assert "nothing to report yet" in vd.BandQuerySet().monitor().explain()
    assert "only the values next to its point" in bands.monitor(report="queries").explain()


def test_explain_says_when_few_values_are_looked_up_by_points():
    bands = vd.BandQuerySet()
    bands.add_many(range(2_000), np.arange(2_000.0), np.arange(2_000.0) + 0.5)
    join = bands.monitor()
    join.insert(left={"id": [1], "value": [0.0]})
    join.insert(right={"id": range(10), "value": -np.arange(10.0)})

    assert "a right value is looked up by points: each of 1 left value in a tree over the groups" in join.explain()
