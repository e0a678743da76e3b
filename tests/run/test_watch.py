"""The watch of a running pipeline reads the version of each micro-batch and the number of active queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

import vedette as vd
from vedette.pipeline.file import RegistryPart
from vedette.run.progress import Batch
from vedette.run.status import Status
from vedette.run.watch import Watch

BATCH = Batch("events", 3, "5a5f", 1000, 7, 0, 1.25, None, None, 0, 0)


@pytest.fixture
def registry(tmp_path):
    """A set with two queries at version 1 and one at version 3."""
    made = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    made.create("alerts", schema="price double")
    made.add_many("alerts", ["cheap", "dear"], ["price < 40", "price > 100"])
    made.remove("alerts", "cheap")
    made.replace("alerts", "dear", "price > 101")
    return made


@dataclass
class Shown:
    """A fake display."""

    shown: list = field(default_factory=list)

    def show(self, status, sink):
        self.shown.append((status.n_queries, None if sink is None else sink.version))


@dataclass
class Ran:
    """A fake running pipeline that reports these micro-batches, one per look."""

    batches: list

    def new_batches(self):
        return [self.batches.pop(0)]


def watch(registry, tmp_path, at=None):
    part = RegistryPart(url=f"sqlite:///{tmp_path}/alerts.db", set="alerts", version=at)
    return Watch(registry, part, Status.begin("ticks", ["events"]), Shown())


def test_the_version_of_a_batch_is_its_pin(registry, tmp_path):
    registry.pin("5a5f", 3, "alerts")
    registry.add("alerts", "new", "price = 1")
    looking = watch(registry, tmp_path)

    looking.look(Ran([BATCH]))

    assert looking.display.shown == [(2, 3)]


def test_warnings_of_workers_are_shown_and_their_counts_added(registry, tmp_path):
    looking, warnings = watch(registry, tmp_path), []
    looking.warn = warnings.append
    counted = replace(BATCH, counts={"late": 2}, warnings=("one", "two"))

    looking.look(Ran([counted]))
    looking.look(Ran([replace(counted, number=4, warnings=())]))

    assert warnings == ["one", "two"]
    assert looking.status.sinks["events"].counts == {"late": 4}


def test_watching_a_batch_does_not_pin_it(registry, tmp_path):
    looking = watch(registry, tmp_path)

    looking.look(Ran([BATCH]))

    assert looking.display.shown == [(1, None)]
    assert registry.stats().sets[0].n_pins == 0


def test_a_batch_without_a_pin_keeps_the_last_version(registry, tmp_path):
    registry.pin("5a5f", 3, "alerts")
    looking, ran = watch(registry, tmp_path), Ran([BATCH, replace(BATCH, number=4)])

    looking.look(ran)
    looking.look(ran)

    assert looking.display.shown == [(1, 3), (1, 3)]


@pytest.mark.parametrize(("at", "n_queries"), [(0, 0), (1, 2), (2, 1), (3, 1)])
def test_a_fixed_version_is_shown_with_its_own_queries(registry, tmp_path, at, n_queries):
    looking = watch(registry, tmp_path, at)

    looking.look(Ran([BATCH]))

    assert looking.display.shown == [(n_queries, at)]


def test_an_unreachable_registry_does_not_stop_the_watch(registry, tmp_path):
    looking = watch(registry, tmp_path)
    registry.drop("alerts")

    looking.look(Ran([BATCH]))

    assert looking.display.shown == [(None, None)]


def test_a_query_is_removed_when_all_sinks_have_committed_its_report(tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", kind="border", schema="price double")
    registry.add_many("alerts", ["cheap", "dear"], ["price < 40", "price > 100"], once=["query", None])
    part = RegistryPart(url=f"sqlite:///{tmp_path}/alerts.db", set="alerts")
    looking = Watch(registry, part, Status.begin("ticks", ["one", "two"]), Shown(), removes_reported=True)
    followed = registry.follow("alerts")
    for stream, batch in (("s1", 4), ("s2", 9)):
        assert followed.note_reports(stream, batch, 1, ["cheap"]) == ["cheap"]
    found = []
    for sink, stream, number in (("one", "s1", 4), ("two", "s2", 8), ("two", "s2", 9)):
        looking.look(Ran([replace(BATCH, sink=sink, query_id=stream, number=number)]))
        found.append(sorted(query.id for query in registry.list("alerts")))
    assert found == [["cheap", "dear"], ["cheap", "dear"], ["dear"]]
