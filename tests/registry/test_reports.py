"""Reports of queries with once="query": which batch emits each, and their removal."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from vedette.errors import RegistryError
from vedette.registry.store.tables import reports


@pytest.fixture
def registry(open_registry):
    made = open_registry()
    made.create("alerts", kind="border", schema="k string, x double, t bigint", ids="string")
    made.add_many("alerts", ["a", "b"], ["x < 1", "x < 2"], once="query")
    return made


def test_the_first_batch_that_notes_a_report_emits_it_in_every_repetition(registry):
    followed = registry.follow("alerts")
    assert followed.has_once_per_query
    for _ in range(2):
        assert followed.note_reports("s", 3, 1, ["a"]) == ["a"]
    assert sorted(followed.note_reports("s", 4, 1, ["a", "b"])) == ["b"]
    assert followed.note_reports("other", 0, 1, ["a"]) == ["a"]
    assert followed.note_reports("s", 3, 1, ["a"]) == ["a"]


def test_of_several_parts_one_emits_a_report(registry):
    followed = registry.follow("alerts")
    assert followed.note_reports("s", 3, 1, ["a"], 5) == ["a"]
    assert followed.note_reports("s", 3, 1, ["a"], 2) == []
    assert followed.note_reports("s", 3, 1, ["a"], 5) == ["a"]


def test_queries_are_removed_when_all_streams_have_committed_their_reports(registry):
    followed = registry.follow("alerts")
    followed.note_reports("s", 3, 1, ["a", "b"])
    followed.note_reports("other", 7, 1, ["a"])
    assert registry.remove_reported("alerts", {"s": 2, "other": 7}) == []
    assert registry.remove_reported("alerts", {"s": 3, "other": 7}) == ["a"]
    assert registry.set("alerts").version == 2
    assert registry.remove_reported("alerts", {"s": 3, "other": 7}) == []
    assert registry.set("alerts").version == 2
    assert registry.remove_reported("alerts") == ["b"]
    assert [query.state for query in registry.history("alerts", "a")] == ["removed"]
    assert followed.note_reports("s", 4, 1, ["a"]) == []  # a batch that still sees the old version


def test_a_query_that_was_replaced_meanwhile_stays_and_can_be_reported(registry):
    followed = registry.follow("alerts")
    followed.note_reports("s", 3, 1, ["a"])
    registry.replace("alerts", "a", "x < 5")
    assert registry.remove_reported("alerts") == []
    assert followed.note_reports("s", 4, 2, ["a"]) == ["a"]
    assert registry.remove_reported("alerts") == ["a"]


def test_reports_are_forgotten_with_their_queries(registry):
    registry.follow("alerts").note_reports("s", 3, 1, ["a"])
    registry.remove_reported("alerts")
    registry.forget("alerts", registry.set("alerts").version)
    counted = select(func.count()).select_from(reports)
    assert registry.database.read(lambda connection: connection.scalar(counted)) == 0
    registry.drop("alerts")


def test_batches_must_be_numbers(registry):
    with pytest.raises(RegistryError, match="streams must have the number of a batch by the id of each stream"):
        registry.remove_reported("alerts", {"s": "3"})
