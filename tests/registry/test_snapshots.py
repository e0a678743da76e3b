"""Compiled bases of a set: every version opens exactly, even without its files, and one process writes them."""

from __future__ import annotations

import dataclasses
import errno
import io
import logging
import os
import pickle
import re
import threading
import zlib
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pyarrow.fs
import pytest
from sqlalchemy import func, select

import vedette as vd
from vedette.host_files import checked_files, file_lease
from vedette.queries import snapshot
from vedette.registry.read import reader
from vedette.registry.snapshots import bases as snapshots
from vedette.registry.snapshots import compiled_set, host_copy
from vedette.registry.snapshots import files as snapshot_files
from vedette.registry.snapshots.bases import Snapshots
from vedette.registry.snapshots.compiled_set import build_set
from vedette.registry.snapshots.lease import Lease
from vedette.registry.store.tables import revisions, sets, versions
from vedette.registry.write import sets as named_sets

ROWS = {"x": [float(x) for x in range(10)]}


@pytest.fixture(autouse=True)
def few_changes(monkeypatch):
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 3)


@pytest.fixture
def registry(open_registry, tmp_path):
    made = open_registry(snapshots=str(tmp_path / "bases"))
    made.create("alerts", kind="border", schema="x double")
    return made


def fill(registry, n_versions=12, seed=1):
    """Change the set at random; returns the active queries by version."""
    random, active, states = np.random.default_rng(seed), {}, [{}]
    for _ in range(n_versions):
        with registry.change("alerts") as change:
            for number in random.permutation(6)[: random.integers(1, 4)].tolist():
                low, query = int(random.integers(0, 8)), f"q{number}"
                if query not in active:
                    change.add(query, f"x BETWEEN {low} AND {low + 2}")
                elif low % 2:
                    change.replace(query, f"x BETWEEN {low} AND {low + 2}")
                else:
                    change.remove(query)
                    del active[query]
                    continue
                active[query] = low
        states.append(dict(active))
    return states


def matched(queries):
    found = queries.match(ROWS).to_arrow().to_pylist()
    return sorted((row["row"], row["query"]) for row in found)


def expected(state):
    return sorted((x, query) for x in range(10) for query, low in state.items() if low <= x <= low + 2)


def build(bases, version):
    """The set at a version, compiled without a base."""
    return build_set(bases._database, bases._info, version)


def bases_of(registry):
    return Snapshots(registry, registry.set("alerts"))


def files(tmp_path):
    return sorted((tmp_path / "bases").glob("*.queries"))


def test_every_version_opens_exactly_with_and_without_bases(registry, tmp_path):
    states = fill(registry)
    bases = bases_of(registry)
    for round_ in range(2):
        for version in (3, 12, 0, 7, 11):
            queries = bases.open(version).queries
            assert (queries.version, matched(queries)) == (version, expected(states[version]))
            bases.compact(version)
            if round_:
                assert matched(build(bases, version)) == expected(states[version])
    assert [each.version for each in bases._list(12)] == [12, 11, 7]
    bases.compact(2)  # for a pipeline at this fixed version
    assert [each.version for each in bases._list(12)] == [12, 11, 2]
    assert len(files(tmp_path)) == 3


def test_a_set_moves_forward_by_applying_changes(registry):
    states = fill(registry)
    followed = registry.follow("alerts")
    queries = followed.open(2)
    for version in (5, 6, 12):
        followed.advance(queries, version)
        assert matched(queries) == expected(states[version])


@pytest.mark.parametrize("harm", ["missing", "damaged", "empty", "of another set", "recomputed"])
def test_an_unreadable_base_is_built_again_with_a_warning(registry, tmp_path, caplog, harm):
    states = fill(registry)
    made = registry.compact("alerts")
    path = tmp_path / "bases" / made.file
    if harm == "missing":
        path.unlink()
    elif harm == "damaged":
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "recomputed":  # other constants with a correct checksum: only the digest detects it
        with_checksum = bytearray(path.read_bytes().replace(np.float64(3).tobytes(), np.float64(3.5).tobytes()))
        with_checksum[12:16] = zlib.crc32(with_checksum[16:]).to_bytes(4, "little")
        path.write_bytes(with_checksum)
        assert len(vd.QuerySet.load(path)) == len(states[12])
    else:
        vd.QuerySet("x double").save(path)
    with caplog.at_level(logging.WARNING):
        queries = bases_of(registry).open(12).queries

    assert matched(queries) == expected(states[12])
    assert "cannot use the snapshot of set 'alerts' at version 12, so it is built again" in caplog.text
    caplog.clear()
    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert [each.name for each in files(tmp_path)] == [made.file]
    assert not caplog.records


@pytest.mark.parametrize("address", ["directory", "store"])
def test_the_digest_of_a_base_is_computed_once_per_host_and_state_of_the_file(registry, tmp_path, monkeypatch, address):
    fill(registry)
    made = registry.compact("alerts")
    path = tmp_path / "bases" / made.file
    if address == "store":
        path = tmp_path / "copies" / f"vedette-{os.geteuid()}" / "downloads" / made.file
        monkeypatch.setattr(
            snapshot_files, "settings", lambda: vd.settings.Settings(snapshot_dir=str(tmp_path / "copies"))
        )
        where = snapshot_files.SnapshotFiles(f"file://{tmp_path}/bases")
        where._store = pyarrow.fs.LocalFileSystem()
    else:
        where = snapshot_files.SnapshotFiles(str(tmp_path / "bases"))
    digested = []
    digest = checked_files.file_digest
    monkeypatch.setattr(checked_files, "file_digest", lambda path, n: digested.append(path) or digest(path, n))
    where.fetch(made.file, made.checksum)
    where.fetch(made.file, made.checksum)  # a copy is checked once as well
    n_digested = len(digested)
    monkeypatch.setattr(checked_files, "_checked", set())  # another process of this host
    for _ in range(3):
        assert where.fetch(made.file, made.checksum) == path
    assert len(digested) == n_digested

    os.utime(path)
    where.fetch(made.file, made.checksum)
    assert len(digested) == n_digested + 1


def test_a_full_disk_during_compaction_changes_nothing(registry, tmp_path, monkeypatch, caplog):
    states = fill(registry)
    bases = bases_of(registry)
    bases.compact(4)
    before = files(tmp_path)

    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(snapshot.os, "replace", no_space)
        with pytest.raises(vd.FileError, match="No space left on device"):
            registry.compact("alerts")
        assert files(tmp_path) == before
        assert sorted((tmp_path / "bases").iterdir()) == before
        assert [each.version for each in bases._list(12)] == [4]
        assert matched(bases.open(12).queries) == expected(states[12])
    assert registry.compact("alerts").version == 12


class FullDisk(io.FileIO):
    """A file on a disk with space for `room` bytes."""

    def __init__(self, path, mode, room):
        super().__init__(path, mode)
        self.room = room

    def write(self, piece):
        written = super().write(memoryview(piece).cast("B")[: self.room])
        self.room -= written
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_disk_that_becomes_full_while_a_base_is_written_leaves_the_old_base(registry, tmp_path, monkeypatch, share):
    states = fill(registry)
    registry.add_many("alerts", [f"many-{number}" for number in range(2000)], ["x > 99"] * 2000)
    bases = bases_of(registry)
    bases.compact(12)
    before = files(tmp_path)
    whole = build(bases, 13)
    whole.compact()
    whole.save(tmp_path / "whole")
    room = int(share * (tmp_path / "whole").stat().st_size)

    usual = snapshot.create_file
    monkeypatch.setattr(snapshot, "create_file", lambda path: io.BufferedWriter(FullDisk(path, "xb", room)))
    with pytest.raises(vd.FileError) as caught:
        registry.compact("alerts")
    assert re.fullmatch(
        r"cannot write the query set to '.*bases/\w+-13.queries': No space left on device", str(caught.value)
    )
    monkeypatch.setattr(snapshot, "create_file", usual)

    assert sorted((tmp_path / "bases").iterdir()) == before
    assert [each.version for each in bases._list(13)] == [12]
    assert matched(bases.open(12).queries) == expected(
        states[12]
    )  # from the old base, and the next one from it and changes
    assert (matched(bases.open(13).queries), len(bases.open(13).queries)) == (
        expected(states[12]),
        len(states[12]) + 2000,
    )
    assert registry.compact("alerts").version == 13


def test_the_next_write_removes_files_of_a_killed_process(registry, tmp_path):
    fill(registry, 3)
    made = registry.compact("alerts")
    left = tmp_path / "bases" / f".{made.file.replace('-3', '-2')}.0f0f"
    left.write_bytes(b"half")
    registry.add("alerts", "new", "x > 1")
    registry.compact("alerts")

    assert not left.exists()
    assert len(files(tmp_path)) == 2


def test_compaction_needs_a_lease_that_expires(registry, clock):
    fill(registry, 2)
    row, database = registry.set("alerts").row, registry.database
    with Lease.take(database, row, "compaction"):
        assert Lease.take(database, row, "compaction") is None
    dead = Lease.take(database, row, "compaction")
    dead._done.set()  # its process no longer renews it
    assert Lease.take(database, row, "compaction") is None
    clock.advance(31)
    assert registry.compact("alerts").version == 2


def test_a_process_that_finds_many_changes_compacts_and_others_use_the_base(registry):
    states = fill(registry)
    bases = bases_of(registry)
    bases.compact(3)
    opened = bases.open(3)
    bases.move(opened, 12)
    assert bases.is_outdated(opened)
    assert not bases.has_newer(opened.base, 12)
    bases.compact_soon(12)
    for thread in threading.enumerate():
        if thread.name == "vedette-compaction":
            thread.join(300)
    assert bases.has_newer(opened.base, 12)
    again = bases.open(12)
    assert (again.base, again.n_changes, matched(again.queries)) == (12, 0, expected(states[12]))


def test_a_base_that_is_built_from_the_database_has_recently_removed_queries(registry, monkeypatch):
    monkeypatch.setattr(compiled_set, "RETAINED_VERSIONS", 2)
    for number in range(4):
        registry.add("alerts", f"q{number}", "x < 5")
    for number in range(4):
        registry.remove("alerts", f"q{number}")
    queries = build(bases_of(registry), 8)

    assert sorted(queries.view().retained.ids.to_arrow().to_pylist()) == ["q2", "q3"]


def test_bases_may_be_in_a_store_and_are_copied_once_to_this_host(open_registry, tmp_path, monkeypatch, caplog):
    store = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    real = pyarrow.fs.FileSystem.from_uri
    fakes = type("Fakes", (), {"from_uri": staticmethod(lambda uri: (store, "bucket") if "s3" in uri else real(uri))})
    monkeypatch.setattr(snapshot_files.fs, "FileSystem", fakes)
    monkeypatch.setattr(snapshot_files, "settings", lambda: vd.settings.Settings(snapshot_dir=str(tmp_path / "host")))
    registry = open_registry(snapshots="s3://bucket")
    registry.create("alerts", kind="border", schema="x double")
    states = fill(registry)
    made = registry.compact("alerts")
    copy = tmp_path / "host" / f"vedette-{os.geteuid()}" / "downloads" / made.file

    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert copy.exists()
    copy.write_bytes(b"torn")  # a damaged copy is copied again
    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert not caplog.records
    (tmp_path / "bucket" / made.file).write_bytes(b"torn")
    copy.unlink()
    with caplog.at_level(logging.WARNING):
        assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert "is damaged: its checksum is wrong" in caplog.text


def test_a_handle_can_be_pickled_shows_no_secrets_and_may_have_a_fixed_version(registry):
    states = fill(registry)
    followed = pickle.loads(pickle.dumps(registry.follow("alerts")))
    frozen = registry.follow("alerts", version=5)
    registry.add("alerts", "late", "x > 100")

    assert (followed.name, followed.kind, followed.id_kind) == ("alerts", "border", "string")
    assert followed.current_version() == followed.pin("p", 1) == 13
    assert frozen.current_version() == frozen.pin("p", 1) == 5
    assert matched(frozen.open(5)) == expected(states[5])
    assert type(followed).from_plain(followed.to_plain()) == followed
    secret = type(followed)(**{**vars(followed), "url": "postgresql://ann:hunter2@db/alerts"})
    assert "hunter2" not in repr(secret)
    assert "hunter2" not in str(secret)


def test_a_pipeline_must_restart_if_its_set_is_altered_or_created_again(registry):
    fill(registry)
    followed = registry.follow("alerts")
    assert followed.pin("p", 1) == 12
    registry.alter("alerts", "x double, y double")
    with pytest.raises(vd.RegistryError, match="was altered with version 13, after this pipeline began"):
        followed.pin("p", 2)
    registry.add("alerts", "new", "y > 1")
    again = registry.follow("alerts")
    assert [again.pin("p", batch) for batch in (1, 2, 3)] == [12, 13, 14]  # the first two are repeated
    assert matched(again.open(12)) == matched(registry.follow("alerts", version=12).open(12))
    registry.drop("alerts")
    registry.create("alerts", kind="border", schema="x double, y double")
    with pytest.raises(vd.RegistryError, match="was dropped and created again since this pipeline began to follow it"):
        again.pin("p", 4)


def test_queries_that_a_new_schema_parks_are_not_active_in_earlier_batches(registry):
    registry.add("alerts", "fits", "1 < 2")
    registry.add("alerts", "breaks", "x > 2")
    before = registry.follow("alerts").pin("p", 1)
    registry.alter("alerts", "y double", force=True)
    followed = registry.follow("alerts")

    opened = followed.bases.open(before)
    assert opened.queries.ids.to_pylist() == ["fits"]
    assert not followed.bases.can_move(opened, followed.current_version())


def test_a_dropped_set_leaves_no_file(registry, tmp_path):
    fill(registry)
    registry.compact("alerts")
    assert files(tmp_path)

    registry.drop("alerts")

    assert not files(tmp_path)


def test_a_border_set_that_is_built_has_queries_removed_since_the_version_of_a_state(registry):
    registry.add("alerts", "goes", "x < 5")
    registry.add("alerts", "stays", "x < 9")
    registry.remove("alerts", "goes")
    queries = bases_of(registry).open(3, since=3).queries

    assert queries.view().retained.ids.to_arrow().to_pylist() == ["goes"]


def test_a_set_at_a_fixed_version_is_not_confused_with_another_of_its_name(registry):
    fill(registry)
    registry.compact("alerts")
    frozen = registry.follow("alerts", version=5)
    queries = frozen.open(5)
    registry.drop("alerts")
    registry.create("alerts", kind="border", schema="x double")
    fill(registry, seed=2)
    registry.compact("alerts")

    for work in (lambda: frozen.open(5), lambda: frozen.open(12), lambda: frozen.advance(queries, 7)):
        with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped; if it was created again, read it again"):
            work()


def test_a_forgotten_version_with_a_base_opens_but_later_ones_do_not_use_that_base(registry, caplog):
    states = fill(registry)
    frozen = registry.follow("alerts", version=5)
    frozen.bases.compact(5)
    assert registry.forget("alerts", before=9) == 9

    with caplog.at_level(logging.WARNING):
        assert matched(frozen.open(5)) == expected(states[5])
        assert matched(registry.follow("alerts").open(12)) == expected(states[12])
    assert not caplog.records
    assert registry.marks("alerts")[0].tolist() == [9, 10, 11, 12]
    assert registry.verify() == []


def test_a_batch_from_before_a_schema_change_writes_no_base(registry, tmp_path):
    states = fill(registry)
    registry.alter("alerts", "x double, y double")
    bases = bases_of(registry)

    assert matched(bases.open(12).queries) == expected(states[12])
    with pytest.raises(vd.RegistryError, match="of version 12 of set 'alerts': its schema was altered with version 13"):
        bases.compact(12)
    bases.compact_soon(12)
    assert files(tmp_path) == []
    assert str(registry.follow("alerts", version=12).open(12).schema) == "x double"


def restore(registry, version):
    """Restore the database to an earlier version, as from a backup."""
    info = registry.set("alerts")

    def work(connection):
        connection.execute(revisions.delete().where(revisions.c.set_id == info.row, revisions.c.added > version))
        ended = revisions.c.set_id == info.row, revisions.c.removed > version
        connection.execute(revisions.update().where(*ended).values(removed=None, reason=None, ended_at=None))
        connection.execute(versions.delete().where(versions.c.set_id == info.row, versions.c.version > version))
        active = (
            select(func.count()).where(revisions.c.set_id == info.row, revisions.c.removed.is_(None)).scalar_subquery()
        )
        connection.execute(sets.update().where(sets.c.id == info.row).values(version=version, n_active=active))

    registry.database.write(work)


def test_a_set_of_a_lost_history_does_not_move_forward(registry):
    fill(registry)
    followed = registry.follow("alerts")
    queries = followed.open(9)
    restore(registry, 4)
    for number in range(8):
        registry.add("alerts", f"other {number}", "x < 5")

    with pytest.raises(reader.HistoryError, match="the changes of set 'alerts' since version 9 are unknown"):
        followed.advance(queries, 12)


def test_a_base_that_is_missing_on_this_host_stays_recorded_and_is_written_here_too(registry, tmp_path, caplog):
    states = fill(registry)
    made = registry.compact("alerts")
    (tmp_path / "bases").rename(tmp_path / "elsewhere")
    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert len(caplog.records) == 1

    assert [each.version for each in bases_of(registry)._list(12)] == [12]
    assert [each.name for each in files(tmp_path)] == [made.file]


def test_a_base_of_another_format_stays_recorded_unless_it_is_replaced(registry, tmp_path, monkeypatch):
    states = fill(registry)
    made = registry.compact("alerts")
    monkeypatch.setattr(snapshot, "FORMAT", 99)
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 1000)

    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert [(each.version, each.checksum) for each in bases_of(registry)._list(12)] == [(12, made.checksum)]


@pytest.fixture
def stored(open_registry, tmp_path, monkeypatch):
    """A registry whose bases are in a store, and the directory of this host's copies."""
    store = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    fakes = type("Fakes", (), {"from_uri": staticmethod(lambda uri: (store, "bucket"))})
    monkeypatch.setattr(snapshot_files.fs, "FileSystem", fakes)
    monkeypatch.setattr(snapshot_files, "settings", lambda: vd.settings.Settings(snapshot_dir=str(tmp_path / "host")))
    made = open_registry(snapshots="s3://KEY:SECRET@bucket?secret_key=HIDDEN")
    made.create("alerts", kind="border", schema="x double")
    return made, tmp_path / "host" / f"vedette-{os.geteuid()}" / "downloads"


def test_copies_of_older_bases_are_deleted_and_those_of_other_sets_are_kept(stored):
    registry, cache = stored
    fill(registry, 4)
    first = registry.compact("alerts")
    bases_of(registry).open(4)
    (cache / "another-1-0f.queries").write_bytes(b"")
    registry.add("alerts", "new", "x > 1")
    second = registry.compact("alerts")
    bases_of(registry).open(5)

    assert first.file != second.file
    assert sorted(each.name for each in cache.iterdir()) == sorted(["another-1-0f.queries", second.file])


@pytest.mark.parametrize("full", ["fetch", "write"])
def test_the_error_about_a_full_disk_shows_no_keys(stored, monkeypatch, full):
    registry, _ = stored
    fill(registry, 4)
    made = registry.compact("alerts")

    def no_space(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    where, queries = registry.snapshot_files, build(bases_of(registry), 4)
    monkeypatch.setattr(host_copy, "_lock", no_space)
    monkeypatch.setattr(file_lease.tempfile, "mkdtemp", no_space)
    work = {"fetch": lambda: where.fetch(made.file, made.checksum), "write": lambda: where.write(queries, "new-4")}
    with pytest.raises(vd.FileError, match="No space left on device") as caught:
        work[full]()
    assert "s3://bucket" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("KEY", "SECRET", "HIDDEN"))


class FullStore:
    """A store that accepts half of a file."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def open_output_stream(self, path):
        with self._store.open_output_stream(path) as stream:
            yield SimpleNamespace(write=lambda piece: self._fail(stream, piece))

    def _fail(self, stream, piece):
        stream.write(piece[: len(piece) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_store_that_becomes_full_while_a_base_is_written_keeps_no_partial_file(stored, tmp_path):
    registry, _ = stored
    states = fill(registry, 4)
    made = registry.compact("alerts")
    registry.add("alerts", "new", "x > 99")
    where = registry.snapshot_files
    store, where._store = where._store, FullStore(where._store)

    with pytest.raises(vd.FileError, match=r"cannot write the snapshot \w+-5 to s3://bucket: No space left on device"):
        registry.compact("alerts")

    assert [each.name for each in (tmp_path / "bucket").iterdir()] == [made.file]
    assert matched(bases_of(registry).open(5).queries) == expected(states[4])
    where._store = store
    assert registry.compact("alerts").version == 5


@pytest.mark.parametrize(
    "place",
    ["foo://KEY:SECRET@bucket", "foo://KEY:SE/CRET@bucket/a", "foo://KEY:SE?CRET@bucket", "foo://bucket?k=SECRET"],
)
def test_the_error_about_an_unusable_place_shows_no_keys(open_registry, place):
    registry = open_registry(snapshots=place)
    registry.create("alerts", schema="x double")
    with pytest.raises(vd.RegistryError, match="cannot use snapshots='foo://") as caught:
        registry.compact("alerts")

    assert not any(secret in str(caught.value) for secret in ("KEY", "SECRET", "CRET", "SE/", "SE?"))


def test_a_store_is_opened_once_per_process(stored, monkeypatch):
    registry, _ = stored
    fill(registry, 2)
    bases_of(registry).open(2)
    monkeypatch.setattr(snapshot_files.fs, "FileSystem", None)

    assert len(bases_of(registry).open(2).queries) == len(registry.list("alerts"))


def test_compacting_a_dropped_set_is_refused_and_leaves_no_file(registry, tmp_path, monkeypatch):
    fill(registry, 4)
    bases = bases_of(registry)
    build = compiled_set.build_set

    def build_slowly(*which):
        built = build(*which)
        registry.drop("alerts")
        return built

    monkeypatch.setattr(snapshots, "build_set", build_slowly)
    for _ in range(2):  # dropped during compilation, and before it
        with pytest.raises(vd.RegistryError, match="dropped"):
            bases.compact(4)
    assert files(tmp_path) == []


def test_compacting_writes_a_base_again_if_its_file_is_missing(registry, tmp_path):
    states = fill(registry)
    (tmp_path / "bases" / registry.compact("alerts").file).unlink()

    made = registry.compact("alerts")

    assert (made.version, [each.name for each in files(tmp_path)]) == (12, [made.file])
    assert matched(bases_of(registry).open(12).queries) == expected(states[12])


def test_a_base_stays_recorded_if_the_database_is_unreachable(registry, monkeypatch, caplog):
    states = fill(registry)
    made = registry.compact("alerts")
    bases = bases_of(registry)

    def unreachable(_):
        raise vd.RegistryError("the database cannot be reached", is_retryable=True)

    with monkeypatch.context() as patch:
        patch.setattr(bases, "mark_of", unreachable)
        with pytest.raises(vd.RegistryError, match="cannot be reached"):
            bases.open(12)

    assert list(bases._list(12)) == [made]
    assert matched(bases.open(12).queries) == expected(states[12])
    assert not caplog.records


def test_the_file_of_a_base_is_deleted_with_its_record(registry, tmp_path, monkeypatch):
    states = fill(registry)
    made = registry.compact("alerts")
    monkeypatch.setattr(snapshots, "FEW_CHANGES", 1000)  # no new one is written
    vd.QuerySet("x double").save(tmp_path / "bases" / made.file)

    assert matched(bases_of(registry).open(12).queries) == expected(states[12])
    assert (list(bases_of(registry)._list(12)), files(tmp_path)) == ([], [])


def test_a_base_that_replaced_a_damaged_one_is_kept(registry, tmp_path):
    fill(registry)
    made = registry.compact("alerts")

    bases_of(registry)._forget(dataclasses.replace(made, checksum="of the damaged one"))

    assert list(bases_of(registry)._list(12)) == [made]
    assert [each.name for each in files(tmp_path)] == [made.file]


def test_a_base_that_is_written_while_its_set_is_dropped_leaves_no_file(registry, tmp_path, monkeypatch):
    fill(registry)
    drop_set = named_sets.drop_set

    def drop_late(*arguments):
        bases_of(registry).compact(12)
        assert files(tmp_path)
        return drop_set(*arguments)

    monkeypatch.setattr(named_sets, "drop_set", drop_late)
    registry.drop("alerts")

    assert files(tmp_path) == []
