"""What rows of one micro-batch change in the end, against a loop over the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.operators.band_join.side import Side
from vedette.spark.workers.band_changes import find_changes

ids = st.integers(0, 5)
values = st.integers(0, 2).map(float)
rows_of_ids = st.lists(st.tuples(ids, values, st.booleans()), min_size=1, max_size=20)
KINDS = {"numbers": (pa.int64(), int), "strings": (pa.string(), str)}


def make_side(held, to_id):
    side = Side(1)
    if held:
        read = side.ids.read([to_id(id_) for id_ in held])
        side.put(read, np.array(list(held.values())), side.slots_for(read))
    return side


def to_table(rows, kind, to_id):
    names, numbers, deletes = zip(*rows, strict=True)
    columns = [pa.array([to_id(name) for name in names], kind), pa.array(numbers), pa.array(deletes)]
    return pa.table(columns, names=["id", "value", "deletes"])


@pytest.mark.parametrize("kind", KINDS)
@given(held=st.dictionaries(ids, values), rows=rows_of_ids)
def test_changes_are_what_is_different_after_the_last_row(kind, held, rows):
    type_, to_id = KINDS[kind]
    after, unknown = dict(held), []
    for id_, value, deletes in rows:
        if not deletes:
            after[id_] = value
        elif after.pop(id_, None) is None:
            unknown.append(to_id(id_))

    found = find_changes(to_table(rows, type_, to_id), make_side(held, to_id), "left", replaces=True)

    assert set(found.deleted.tolist()) == {to_id(i) for i, value in held.items() if after.get(i) != value}
    come = {to_id(i): value for i, value in after.items() if held.get(i) != value}
    assert dict(zip(found.inserted.tolist(), found.values.tolist(), strict=True)) == come
    assert sorted(found.unknown.tolist()) == sorted(unknown)
    assert len(set(found.deleted.tolist())) == len(found.deleted)


@given(held=st.dictionaries(ids, values), rows=rows_of_ids)
def test_an_id_that_has_a_value_cannot_come_again_unless_it_went(held, rows):
    there, has_again = set(held), False
    for id_, _, deletes in rows:
        has_again |= not deletes and id_ in there
        there = there - {id_} if deletes else there | {id_}
    side = make_side(held, int)

    if has_again:
        with pytest.raises(
            vd.RowError, match=r"right id \d comes again and has a value already; .*known_id=\"replace\""
        ):
            find_changes(to_table(rows, pa.int64(), int), side, "right", replaces=False)
    else:
        find_changes(to_table(rows, pa.int64(), int), side, "right", replaces=False)
