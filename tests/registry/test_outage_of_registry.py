"""`on_registry_outage`: workers continue with the version of the last batch while PostgreSQL is stopped."""

from __future__ import annotations

import logging

import postgres
import pytest
from registry.test_host_reader import VALUES, expected, facts_of, make_alerts

import vedette as vd
from vedette.registry.host import reader, set_on_host
from vedette.spark.workers import following


@pytest.fixture
def cluster():
    """A PostgreSQL of its own, which the test stops."""
    try:
        made = postgres.Cluster()
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run on PostgreSQL: {reason}")
    yield made
    made.delete()


class Worker:
    """A worker in this process, with its own caches and leader."""

    def __init__(self, monkeypatch, directory):
        self.patch, self.directory = monkeypatch, directory
        self.restart()

    def restart(self):
        """Forget all that is in memory, as a new process."""
        for each in reader._leaders.values():
            each._leader.resign()
        self.patch.setattr(following, "_kept", following._Kept())
        self.patch.setattr(reader, "_leaders", {})
        self.patch.setattr(reader, "account_directory", lambda name: self.directory)

    def open(self, facts, batch, run="run"):
        """The version of a batch, and the ids that match each value."""
        self.patch.setattr(following, "_find_batch", lambda calls: following._Batch("stream", batch, run))
        opened = following.open_queries(facts)
        return opened.version, [sorted(opened.queries.match_one({"x": value})) for value in VALUES]


@pytest.fixture
def worker(monkeypatch, tmp_path):
    made = Worker(monkeypatch, tmp_path)
    yield made
    made.restart()


@pytest.fixture
def registry(cluster):
    made = vd.Registry(cluster.new_database(), retry_seconds=0.5)
    make_alerts(made)
    yield made
    made.close()


pytestmark = pytest.mark.full


def test_batches_continue_with_the_last_version_and_their_pins_are_written_afterwards(
    cluster, registry, worker, monkeypatch, caplog
):
    monkeypatch.setattr(set_on_host, "PROBE_SECONDS", 0.0)
    facts = facts_of(registry, on_registry_outage="last")
    before = worker.open(facts, 0)
    registry.replace("alerts", "q3", "x > 6")
    known = worker.open(facts, 1)
    cluster.stop()
    with caplog.at_level(logging.WARNING, "vedette"):
        assert [worker.open(facts, batch) for batch in (2, 3, 3, 1)] == [known] * 4
    worker.restart()  # a new process of this host knows it, too
    assert worker.open(facts, 3, "another run") == known
    assert worker.open(facts, 4, "another run") == known
    cluster.start()
    registry.replace("alerts", "q3", "x > 0")
    after = worker.open(facts, 5, "another run")

    assert (before[0], known[0], after[0]) == (1, 2, 3)
    assert after[1] == expected(registry, 3)
    assert [registry.pin("stream", batch, "alerts") for batch in range(6)] == [1, 2, 2, 2, 2, 3]
    said = [record.getMessage() for record in caplog.records]
    assert any("batch 3 of stream 'stream' continues with version 2 of set 'alerts'" in each for each in said)
    assert any("this is batch number 2 of this outage" in each for each in said)


def test_without_the_option_an_outage_is_an_error(cluster, registry, worker):
    facts = facts_of(registry)
    worker.open(facts, 0)
    cluster.stop()
    with pytest.raises(vd.RegistryError, match=r"cannot be reached: .*; check that it is running") as caught:
        worker.open(facts, 1)
    assert caught.value.is_retryable


def test_what_the_host_does_not_know_is_an_error(cluster, registry, worker, tmp_path):
    facts = facts_of(registry, on_registry_outage="last")
    worker.open(facts, 4)
    cluster.stop()
    with pytest.raises(vd.RegistryError, match="this host has not answered batch 5, so it does not know which version"):
        worker.open(facts, 6)
    worker.restart()
    worker.directory = tmp_path / "cold"
    worker.directory.mkdir()
    with pytest.raises(vd.RegistryError, match="cannot continue with the last version") as caught:
        worker.open(facts, 5)
    assert caught.value.is_retryable
    assert postgres.PASSWORD not in str(caught.value)


def test_an_invalid_choice_is_refused(registry):
    with pytest.raises(vd.RegistryError, match="on_registry_outage must be one of: stop, last; got 'lst'; did you"):
        registry.follow("alerts", on_registry_outage="lst")


def test_a_batch_that_another_host_pinned_differently_is_reported(cluster, registry, worker, monkeypatch, caplog):
    monkeypatch.setattr(set_on_host, "PROBE_SECONDS", 0.0)
    facts = facts_of(registry, on_registry_outage="last")
    known = worker.open(facts, 0)
    cluster.stop()
    assert worker.open(facts, 1) == known
    cluster.start()
    version = registry.replace("alerts", "q3", "x > 6")
    assert registry.pin("stream", 1, "alerts", run="run") == version
    with caplog.at_level(logging.WARNING, "vedette"):
        assert worker.open(facts, 2)[0] == version
    said = [record.getMessage() for record in caplog.records]
    assert any("used version 1 of set 'alerts', but version 2 is recorded" in each for each in said)
