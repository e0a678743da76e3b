"""The net change of rows on one side of a band join, compared with a loop over the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.operators.band_join.net_change import find_net_change
from vedette.operators.band_join.rows import ValueRows
from vedette.operators.band_join.side import Side

ids = st.integers(0, 5)
values = st.integers(0, 2).map(float)
rows_of_ids = st.lists(st.tuples(ids, values, st.booleans()), max_size=20)
KINDS = {"numbers": int, "strings": str}


def make_side(held, to_id, sign=1):
    side = Side(sign)
    if held:
        read = side.ids.read([to_id(id_) for id_ in held])
        side.put(read, np.array(list(held.values())), side.slots_for(read))
    return side


def to_rows(rows, to_id):
    names = [to_id(name) for name, _, _ in rows]
    read = np.array(names, np.int64) if to_id is int else pa.array(names, pa.large_string())
    return ValueRows(read, np.array([each[1] for each in rows], float), np.array([each[2] for each in rows], bool))


@pytest.mark.parametrize("kind", KINDS)
@given(held=st.dictionaries(ids, values), rows=rows_of_ids)
def test_the_net_change_is_the_difference_after_the_last_row(kind, held, rows):
    to_id = KINDS[kind]
    after, unknown = dict(held), []
    for id_, value, deletes in rows:
        if not deletes:
            after[id_] = value
        elif after.pop(id_, None) is None:
            unknown.append(to_id(id_))
    side = make_side(held, to_id)

    found = find_net_change(to_rows(rows, to_id), side, replaces=True)

    assert sorted(side.ids.at(found.deleted)) == sorted(to_id(i) for i, v in held.items() if after.get(i) != v)
    inserted = {to_id(i): value for i, value in after.items() if held.get(i) != value}
    assert dict(zip(found.inserted.tolist(), found.values.tolist(), strict=True)) == inserted
    assert sorted(found.unknown.tolist()) == sorted(unknown)


@given(held=st.dictionaries(ids, values), rows=rows_of_ids)
def test_an_id_that_has_a_value_is_refused_unless_it_was_deleted_before(held, rows):
    known, is_repeated = set(held), False
    for id_, _, deletes in rows:
        is_repeated |= not deletes and id_ in known
        known = known - {id_} if deletes else known | {id_}
    side = make_side(held, int, sign=-1)

    if is_repeated:
        with pytest.raises(vd.RowError, match=r"^known_id is 'error', and right id \d already has a value; delete it "):
            find_net_change(to_rows(rows, int), side, replaces=False)
    else:
        find_net_change(to_rows(rows, int), side, replaces=False)
