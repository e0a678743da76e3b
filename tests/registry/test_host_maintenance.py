"""What the leader of a host does besides answering: it deletes old files, and looks for newer bases."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest
from registry.test_host_reader import Worker, expected, facts_of, make_alerts

import vedette as vd
from vedette.errors import RegistryError
from vedette.registry.host import journal, line, reader
from vedette.registry.host.journal import Entry, Journal
from vedette.registry.read import followed
from vedette.registry.read.pins import Pin
from vedette.registry.snapshots import bases
from vedette.spark.workers import following


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    make_alerts(made)
    yield made
    made.close()


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "following"
    made.mkdir()
    return made


@pytest.fixture
def open_batch(monkeypatch):
    def open_(worker, facts, batch):
        monkeypatch.setattr(following, "_find_batch", lambda calls: following._Batch("stream", batch, "run"))
        with worker.running(monkeypatch):
            return following.open_queries(facts).version

    return open_


def test_leaders_that_live_for_one_batch_delete_old_files(registry, directory, monkeypatch, open_batch):
    monkeypatch.setattr(line, "_MOST_STEPS", 2)
    facts = facts_of(registry)
    for batch in range(10):
        registry.replace("alerts", "q3", f"x > {batch}")
        worker = Worker(directory)
        open_batch(worker, facts, batch)
        worker.die()
        for file in directory.glob("*.changes"):
            os.utime(file, (1e9, 1e9))  # long ago

    assert len(list(directory.glob("*.changes"))) <= 5


def test_an_outage_is_not_prolonged_by_the_search_for_a_newer_base(registry, directory, monkeypatch, open_batch):
    monkeypatch.setattr(bases, "FEW_CHANGES", 3)
    monkeypatch.setattr(bases.Snapshots, "compact_soon", lambda self, version: None)
    facts, worker, calls = facts_of(registry, on_registry_outage="last"), Worker(directory), []
    open_batch(worker, facts, 0)
    for number in range(5):
        registry.replace("alerts", "q3", f"x > {number}")

    def fail(*_, **__):
        raise RegistryError("the database cannot be reached", is_retryable=True)

    open_batch(worker, facts, 1)
    monkeypatch.setattr(followed, "pin_and_read", fail)
    monkeypatch.setattr(bases.Snapshots, "has_newer", lambda *_: calls.append("has_newer"))
    monkeypatch.setattr("vedette.registry.host.set_on_host.COMPACTION_SECONDS", 0.0)

    assert [open_batch(worker, facts, batch) for batch in (2, 3)] == [6, 6]
    assert calls == []
    worker.die()


def test_a_long_outage_is_recorded_as_far_back_as_the_registry_keeps_pins(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "KEPT_BATCHES", 50)
    pin = Pin(version=5, mark=1, schema_version=0, id_kind="string")
    noted = Journal(tmp_path, "uid", "stream")
    for batch in range(150):
        noted.note(batch, Entry(pin, "run", is_written=False))

    for each in (noted, Journal(tmp_path, "uid", "stream")):
        assert [pin.batch for pin in each.used()] == list(range(100, 150))


def test_a_leader_keeps_the_sets_that_were_used_last(registry, directory):
    host, alerts = reader.HostReader(directory, "job"), registry.follow("alerts")
    kept = host._set(alerts)
    for number in range(2 * reader._KEPT_SETS):
        host._set(replace(alerts, info=replace(alerts.info, uid=f"other{number}")))
        assert host._set(alerts) is kept
    assert len(host._sets) == reader._KEPT_SETS


def test_a_directory_that_was_deleted_is_made_again(registry, directory, monkeypatch, open_batch):
    facts, workers = facts_of(registry), [Worker(directory) for _ in range(2)]

    def make(name):
        directory.mkdir(exist_ok=True)
        return directory

    for batch in range(4):
        version = registry.replace("alerts", "q3", f"x > {batch}")
        if batch == 2:
            shutil.rmtree(directory)
        for worker in workers:
            with worker.running(monkeypatch):
                monkeypatch.setattr(reader, "account_directory", make)
                monkeypatch.setattr(following, "_find_batch", lambda calls, n=batch: following._Batch("s", n, "run"))
                opened = following.open_queries(facts)
            assert opened.version == version
            assert [sorted(opened.queries.match_one({"x": x})) for x in (0.5, 3.5, 6.5)] == expected(registry, version)
            assert not worker.kept.is_warned
    for worker in workers:
        worker.die()
