"""Options and metadata of queries: kept by position through every change, and refused if they are invalid."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.queries import query_set
from vedette.queries.set_changes import Changes

values = {
    "dwell": st.sampled_from(["5 minutes", 3, 2.5, None]),
    "margin": st.sampled_from([0.0, 1.5, None]),
    "expire_after": st.sampled_from(["1 day", 7, None]),
    "cooldown": st.sampled_from(["1 hour", 1, None]),
    "once": st.sampled_from([True, False, "query", None]),
}
documents = st.sampled_from([None, {}, {"owner": "ann"}, {"owner": "bob", "n": 3, "deep": {"a": [1]}}])
step = st.tuples(
    st.sampled_from(["put", "put", "remove", "compact", "save"]),
    st.sampled_from("pqrs"),
    st.fixed_dictionaries({}, optional=values),
    documents,
)


def plain(options):
    return {name: value for name, value in options.items() if value is not None}


@given(st.lists(step, max_size=12))
def test_options_and_metadata_belong_to_their_queries_after_any_changes(steps):
    few, query_set.FEW_REMOVED = query_set.FEW_REMOVED, 2
    queries, model = vd.QuerySet("x double"), {}
    queries.retain()
    try:
        for kind, name, options, document in steps:
            if kind == "put" and name in model:
                queries.replace(name, "x < 2", metadata=document, **options)
                old, known = model[name]
                model[name] = {**old, **plain(options)}, known if document is None else document
            elif kind == "put":
                queries.add(name, "x < 1", metadata=document, **options)
                model[name] = plain(options), document or {}
            elif kind == "remove" and name in model:
                queries.remove(name)
                del model[name]
            elif kind == "compact":
                queries.compact()
            elif kind == "save":
                queries = vd.QuerySet.from_bytes(queries.to_bytes())
            view = queries.view()
            positions = view.ids.find(pa.array(sorted(model), pa.large_string())) if model else np.empty(0, np.int32)
            held = [view.attributes.options_at(each) for each in positions]
            assert held == [model[name][0] for name in sorted(model)]
            assert view.attributes.metadata_at(positions) == [model[name][1] for name in sorted(model)]
            assert len(view.retained.attributes) == len(view.retained)
    finally:
        query_set.FEW_REMOVED = few


def test_many_queries_have_options_as_columns():
    queries = vd.QuerySet("x double")
    hours = np.array([1, 2], "m8[h]")
    queries.add_many(["a", "b"], ["x < 1", "x < 2"], cooldown=hours, once=[None, True], dwell=datetime.timedelta(1))
    assert queries.view().attributes.options_at(1) == {
        "cooldown": "2 hours",
        "once": True,
        "dwell": "1 day",
    }
    queries.add_boxes(["c"], {"x": ([1.0], [2.0])}, margin=[0.5], metadata=[{"owner": "ann"}])
    assert queries.view().attributes.options_at(2) == {"margin": 0.5}
    with pytest.raises(vd.QueryError, match="cooldown has 3 values for 1 queries"):
        queries.add_boxes(["d"], {"x": ([1.0], [2.0])}, cooldown=[1, 2, 3])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coldown": 1}, "a query has no option 'coldown'; options are: .*; did you mean 'cooldown'?"),
        ({"cooldown": "soon"}, "cooldown must be a duration such as '5 minutes'; got 'soon'"),
        ({"dwell": -1}, "dwell must be a number above 0"),
        ({"expire_after": 2**53 + 1}, "expire_after of a query must be at most 9,007,199,254,740,992, or a multiple"),
        ({"cooldown": "9007199254740993 us"}, "cooldown of a query must be at most 9,007,199,254,740,992"),
        ({"margin": "wide"}, "margin of a query must be a number of 0 or more, or metres such as '50 m'; got 'wide'"),
        ({"margin": {"x": 1}}, "margin of a query must be a number"),
        ({"once": "twice"}, "once must be True, False or 'query'; got 'twice'"),
        ({"once": 1}, "once must be True, False or 'query'; got 1"),
        ({"metadata": "ann"}, "metadata must be one dict"),
        ({"metadata": {1: 2}}, "metadata must be a dict with string keys"),
    ],
)
def test_invalid_options_are_refused_and_change_nothing(options, words):
    queries = vd.QuerySet("x double")
    with pytest.raises(vd.QueryError, match=words):
        queries.add("a", "x < 1", **options)
    assert queries.version == 0


def test_sets_of_equal_queries_and_other_options_have_another_history():
    marks = set()
    for options in ({}, {"cooldown": 1}, {"cooldown": 2}, {"metadata": {"owner": "ann"}}):
        queries = vd.QuerySet("x double")
        queries.add("a", "x < 1", **options)
        marks.add(queries.history_mark(1))
    assert len(marks) == 4


def test_metadata_is_not_sent_unless_it_is_needed():
    queries = vd.QuerySet("x double")
    queries.add("a", "x < 1", metadata={"owner": "a secret"}, cooldown=3)
    sent = queries.without_metadata()
    assert b"a secret" in queries.to_bytes()
    assert b"a secret" not in sent.to_bytes()
    assert vd.QuerySet.from_bytes(sent.to_bytes()).view().attributes.options_at(0) == {"cooldown": 3}


def test_changes_of_a_registry_have_options_and_metadata():
    queries = vd.QuerySet("x double")
    more = {"added_ids": ["a", "b"], "added_versions": np.array([1, 1]), "texts": ["x < 1"] * 2}
    more |= {"options": ['{"cooldown":3}', None], "metadata": [None, '{"n":1}']}
    queries.apply(Changes(np.array([1]), np.array([7]), **more))
    attributes = queries.view().attributes
    assert [attributes.options_at(each) for each in range(2)] == [{"cooldown": 3}, {}]
    assert attributes.metadata_at(np.arange(2)) == [{}, {"n": 1}]
