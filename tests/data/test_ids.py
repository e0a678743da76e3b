from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.data.ids import Ids
from vedette.errors import QueryError
from vedette.queries.versions import NOT_REMOVED, Versions

kinds = st.sampled_from([st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), st.text(max_size=3)])


@given(kinds.flatmap(lambda kind: st.tuples(st.lists(st.lists(kind, unique=True, max_size=6)), st.lists(kind))))
def test_an_id_leads_to_its_newest_position(drawn):
    batches, others = drawn
    ids, newest, in_order = Ids(), {}, []
    for batch in batches:
        newest |= {each: len(in_order) + place for place, each in enumerate(batch)}
        in_order += batch
        ids.append(ids.read(batch))
        views = ids.to_arrow()
        assert views.to_pylist() == in_order
    wanted = [*newest, *others]
    if in_order and wanted:
        assert ids.find(ids.read(list(dict.fromkeys(wanted)))).tolist() == [
            newest.get(each, -1) for each in dict.fromkeys(wanted)
        ]
        assert ids.at(np.arange(len(in_order), dtype=np.int32)) == in_order
        parts = ids.to_parts()
        assert [len(each) for each in parts[1][:-1]] in (
            [len(in_order)],
            [len(in_order) + 1, sum(len(str(each).encode()) for each in in_order)],
        )
        again = Ids.from_parts(*parts)
        assert again.to_arrow().to_pylist() == in_order


def test_a_view_of_the_ids_stays_as_it_is_while_they_grow():
    ids = Ids()
    ids.append(ids.read(["a", "b"]))
    view = ids.to_arrow()
    for i in range(1000):
        ids.append(ids.read([f"more {i}"]))

    assert view.to_pylist() == ["a", "b"]
    assert len(ids.to_arrow()) == 1002


@pytest.mark.parametrize(
    ("given_ids", "words"),
    [
        (["a", 1], "ids must be all strings or all 64-bit integers"),
        ([2**64], "ids must be all strings or all 64-bit integers"),
        ([True], "ids must be all strings or all 64-bit integers; got bool"),
        (["a", None], "an id is null"),
        (["\ud800"], "ids must be all strings or all 64-bit integers"),
        ([1, True], "ids must be all strings or all 64-bit integers; got ids cannot be read"),
        ([1.0], "ids must be all strings or all 64-bit integers; got double"),
        (np.array([1.0]), "ids must be all strings or all 64-bit integers; got double"),
        (5, "ids must be a list or an array; got 5; for one id, give a list of one"),
        (None, "ids must be a list or an array; got None"),
        ("ab", "ids must be a list or an array; got 'ab'; for one id, give a list of one"),
        (pa.array([b"a", b"\xff"]).view(pa.string()), "ids must be all strings .* got Invalid UTF8 sequence"),
        (b"ab", "ids must be a list or an array; got b'ab'"),
        ({"a": 1}, "ids must be a list or an array; got {'a': 1}"),
        (pa.array(["b", "a", "b"]).dictionary_encode(), "id 'b' is given twice"),
    ],
)
def test_invalid_ids_are_refused(given_ids, words):
    with pytest.raises(QueryError, match=words):
        Ids().read(given_ids)


def test_a_query_carries_the_versions_that_added_and_removed_it():
    versions = Versions()
    for n in (2, 1):
        versions.current += 1
        versions.add(n)
    versions.current += 1
    versions.remove(np.array([0], np.int32))

    assert [versions.added(position) for position in range(3)] == [1, 1, 2]
    assert [versions.removed(position) for position in range(3)] == [3, NOT_REMOVED, NOT_REMOVED]
    again = Versions.from_parts(*versions.to_parts())
    assert [again.added(position) for position in range(3)] == [1, 1, 2]
    assert again.is_removed.tolist() == [True, False, False]
    kept = versions.without_removed()
    assert [kept.added(position) for position in range(2)] == [1, 2]
    assert (kept.current, kept.n_active) == (3, 2)
