"""Limits in a registry apply to writes, not to reads."""

from __future__ import annotations

import pytest

import vedette as vd
from vedette.errors import QueryError


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="x double")
    registry.add("alerts", "z", "x > 100")
    registry.remove("alerts", "z")
    registry.add_many("alerts", ["a", "b"], ["x > 1 AND x < 3", "x IN (2, 4)"])
    return registry


def test_limits_apply_to_what_a_user_writes(alerts, set_limits):
    set_limits(max_terms=1, max_list_values=1, max_queries=3)

    with pytest.raises(QueryError, match=r"query 'c': .* 2 terms .*; the limit is 1 \(setting max_terms\)"):
        alerts.add("alerts", "c", "x > 1 AND x < 5")
    with pytest.raises(QueryError, match=r"query 'a': .*setting max_list_values"):
        alerts.replace("alerts", "a", "x IN (5, 6)")
    with pytest.raises(QueryError, match=r"the set would have 4 queries; the limit is 3 \(setting max_queries\)"):
        alerts.add_many("alerts", ["c", "d"], ["x > 1", "x > 2"])
    assert alerts.set("alerts").version == 3

    with alerts.change("alerts") as change:
        change.remove("a")
        change.replace("b", "x > 7")
        change.add_many(["c", "d"], ["x > 1", "x > 2"])
    assert alerts.set("alerts").n_active == 3


def test_a_set_that_exceeds_the_limits_can_be_read_followed_and_altered(alerts, set_limits):
    set_limits(max_terms=1, max_list_values=1, max_boxes=1, max_queries=1, max_text_length=1, max_nesting=1)

    followed = alerts.follow("alerts")
    queries = followed.open(1)
    followed.advance(queries, 3)
    for each in (queries, followed.open(3)):
        assert each.match_one({"x": 2.0}) == ["a", "b"]
    assert alerts.verify() == []
    alerts.replace("alerts", "a", metadata={"owner": "me"})
    alerts.alter("alerts", "x double, y double")
    alerts.remove("alerts", "b")
    assert [query.id for query in alerts.list("alerts")] == ["a"]
