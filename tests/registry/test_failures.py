"""Failures of the database: each is one sentence without secrets, and nothing is lost."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import pwd
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import postgres
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

import vedette as vd
from vedette.registry.store.database import Database
from vedette.registry.store.migrations import STEPS
from vedette.registry.store.tables import migrations


def write(registry: vd.Registry, statement: str) -> None:
    registry.database.write(lambda connection: connection.execute(text(statement)))


def test_a_registry_of_a_newer_vedette_is_refused(registry: vd.Registry, url: str) -> None:
    write(registry, "INSERT INTO vedette_migrations VALUES (99, 'from the future', '9.0', 0)")

    with pytest.raises(
        vd.RegistryError, match=r"was written by a newer Vedette: its tables have 99 migrations, and Vedette"
    ):
        vd.Registry(url)


def test_migrations_are_recorded(registry: vd.Registry, open_registry: Any) -> None:
    open_registry()
    found = registry.database.read(lambda connection: connection.execute(migrations.select()).all())

    assert [(each.number, each.name, each.vedette) for each in found] == [
        (number, name, vd.__version__) for number, (name, _) in enumerate(STEPS, 1)
    ]


def test_a_missing_registry_is_not_created_without_create(url: str) -> None:
    with pytest.raises(vd.RegistryError, match=r"no registry in .*; create one with `vedette set create`"):
        vd.Registry(url, create=False)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://ann:s3cret@host/x", "a registry needs SQLite or PostgreSQL, not 'mysql'"),
        ("ann:s3cret@host", "the registry's address is invalid"),
        ("postgresql://ann:s3cret@host:port/x", "the registry's address is invalid"),
        ("postgresql://ann:hun@s3cret@127.0.0.1/x", "user name or password: write '@' as %40"),
        ("postgresql://ann:hun@s3/cret@127.0.0.1/x", "user name or password: write '@' as %40"),
        ("sqlite://", "a SQLite registry must be a file"),
        ("sqlite:///:memory:", "a SQLite registry must be a file"),
        (None, "the registry's address must be a string"),
    ],
)
def test_an_invalid_address_is_refused_without_repeating_it(address: Any, message: str) -> None:
    with pytest.raises(vd.RegistryError, match=message) as caught:
        vd.Registry(address)

    assert "s3cret" not in str(caught.value)


def test_the_error_names_a_sqlite_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(
        vd.RegistryError,
        match=r"cannot open the registry's database sqlite:///.*no/such/a.db: check that the",
    ):
        vd.Registry(f"sqlite:///{tmp_path}/no/such/a.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(vd.RegistryError, match=r"text.db is not a SQLite database, or is damaged"):
        vd.Registry(f"sqlite:///{tmp_path}/text.db")


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    registry = vd.Registry(f"sqlite:///{tmp_path / 'a.db'}")
    registry.create("alerts", schema="price double")
    registry.add("alerts", "a", "price < 1")
    registry.close()
    return tmp_path / "a.db"


def test_a_locked_database_is_an_error_after_a_wait(sqlite_file: Path) -> None:
    registry = vd.Registry(f"sqlite:///{sqlite_file}", retry_seconds=0.5)
    other = sqlite3.connect(sqlite_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    assert [each.id for each in registry.list("alerts")] == ["a"]  # readers do not wait
    start = time.monotonic()
    with pytest.raises(vd.RegistryError, match="is locked by another process, so nothing was changed; try") as caught:
        registry.add("alerts", "b", "price < 2")
    assert 0.4 < time.monotonic() - start < 60
    assert caught.value.is_retryable

    timer = threading.Timer(0.2, other.interrupt)  # waits a little
    timer.start()
    timer.join()
    other.execute("ROLLBACK")
    other.close()
    assert registry.add("alerts", "b", "price < 2") == 2
    registry.close()


def test_after_a_read_that_did_not_wait_a_write_still_waits(sqlite_file: Path, clock: Any) -> None:
    registry = vd.Registry(f"sqlite:///{sqlite_file}", retry_seconds=30)
    registry.add("alerts", "short", "price < 1", ttl="1 second")
    clock.advance(5)
    other = sqlite3.connect(sqlite_file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    assert [each.id for each in registry.list("alerts")] == ["a", "short"]
    timer = threading.Timer(1.0, lambda: other.execute("ROLLBACK"))
    timer.start()
    assert registry.add("alerts", "b", "price < 2") == 4
    timer.join()

    assert [each.id for each in registry.list("alerts")] == ["a", "b"]
    other.close()
    registry.close()


def test_a_locked_set_is_an_error_after_a_wait(cluster: postgres.Cluster) -> None:
    import psycopg

    url = cluster.new_database()
    registry = vd.Registry(url, retry_seconds=1)
    registry.create("alerts", schema="price double")
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM vedette_sets FOR UPDATE")
        assert registry.list("alerts") == []
        with pytest.raises(vd.RegistryError, match="is locked by another process") as caught:
            registry.add("alerts", "a", "price < 1")
    assert caught.value.is_retryable
    assert registry.add("alerts", "a", "price < 1") == 1
    registry.close()
    cluster.drop_database(url)


def test_a_read_only_database_can_be_read_but_not_written(sqlite_file: Path, clock: Any) -> None:
    writer = vd.Registry(f"sqlite:///{sqlite_file}")
    writer.add("alerts", "short", "price < 1", ttl="1 second")
    clock.advance(5)
    registry = vd.Registry(f"sqlite:///file:{sqlite_file}?mode=ro&uri=true")

    assert [each.id for each in registry.list("alerts")] == ["a", "short"]  # read-only, so it is still active
    with pytest.raises(vd.RegistryError, match="is read-only, so nothing was changed; it can still be read") as caught:
        registry.add("alerts", "b", "price < 2")

    assert not caught.value.is_retryable
    registry.close()
    writer.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other tests may have left threads
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (0o644, r"ReadOnlyError: the registry's database .* is read-only, so nothing was changed"),
        (
            0o600,
            r"RegistryError: cannot open .* this account can read and write the file; .* setting file_mode",
        ),
    ],
)
def test_a_file_of_another_account_can_be_read_if_its_mode_allows_it(mode: int, message: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="vedette-owned-"))
    folder.chmod(0o755)
    url = f"sqlite:///{folder / 'a.db'}"
    (folder / "a.db").touch()
    (folder / "a.db").chmod(mode)
    owner = vd.Registry(url)
    owner.create("alerts", schema="price double")
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()

    child = fork.Process(target=_write_as_nobody, args=(url, answers))
    child.start()
    child.join(300)

    assert child.exitcode == 0
    assert re.match(message, answers.get())
    assert [each.name for each in owner.sets()] == ["alerts"]
    owner.close()
    shutil.rmtree(folder)


def _write_as_nobody(url: str, answers: Any) -> None:
    account = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    try:
        answers.put(
            str(Database(url, 1).write(lambda connection: connection.execute(text("DELETE FROM vedette_sets"))))
        )
    except Exception as error:
        answers.put(f"{type(error).__name__}: {error}")


def test_a_full_disk_is_an_error_and_changes_nothing(sqlite_file: Path) -> None:
    registry = vd.Registry(f"sqlite:///{sqlite_file}")
    registry.database.read(lambda connection: connection.execute(text("PRAGMA max_page_count = 40")))

    with pytest.raises(
        vd.RegistryError, match=r"the disk of the registry's database .* is full, so nothing was changed"
    ):
        registry.add_many("alerts", [f"q{i}" for i in range(20_000)], ["price < 1"] * 20_000)

    assert [each.id for each in registry.list("alerts")] == ["a"]
    assert registry.verify() == []
    registry.close()


def test_a_change_whose_answer_was_lost_is_not_applied_twice(
    registry: vd.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    attempt = Database._attempt
    lost: list[bool] = []

    def lose(self: Database, work: Callable[..., Any], writes: bool, *limits: Any) -> Any:
        answer = attempt(self, work, writes, *limits)
        if writes and lost and lost.pop():
            raise OperationalError(
                "COMMIT", None, psycopg.OperationalError("server closed the connection unexpectedly")
            )
        return answer

    monkeypatch.setattr(Database, "_attempt", lose)

    lost.append(True)
    assert registry.create("alerts", schema="price double").version == 0
    lost.append(True)
    assert registry.add("alerts", "a", "price < 1") == 1
    lost.append(True)
    assert registry.pin("job", 0, "alerts") == 1
    lost.append(True)
    assert registry.remove("alerts", "a") == 2

    assert registry.set("alerts").version == 2
    lost.append(True)
    assert registry.alter("alerts", "price double, volume bigint") == 3
    assert registry.set("alerts").version == 3
    assert registry.verify() == []
    lost.append(True)
    registry.drop("alerts")
    assert registry.sets() == []


def test_a_change_that_is_still_being_committed_is_not_applied_twice(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    url = cluster.new_database()
    registry = vd.Registry(url)
    registry.create("alerts", schema="price double")
    attempt = Database._attempt
    committing: list[threading.Thread] = []

    def lose(self: Database, work: Callable[..., Any], writes: bool, *limits: Any) -> Any:
        if not writes or committing:
            return attempt(self, work, writes, *limits)
        began = threading.Event()

        def commit_slowly(connection: Any) -> Any:
            done = work(connection)
            began.set()
            time.sleep(0.5)
            return done

        committing.append(threading.Thread(target=attempt, args=(self, commit_slowly, writes, *limits)))
        committing[0].start()
        began.wait(30)
        raise OperationalError("COMMIT", None, psycopg.OperationalError("server closed the connection unexpectedly"))

    monkeypatch.setattr(Database, "_attempt", lose)

    assert registry.add("alerts", "a", "price < 1") == 1
    committing.pop().join()
    assert registry.remove("alerts", "a") == 2
    committing.pop().join()
    assert registry.set("alerts").version == 2
    registry.close()
    cluster.drop_database(url)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(
        vd.RegistryError, match=r"needs psycopg, which is not installed; pip install 'vedette\[postgres\]'"
    ):
        vd.Registry("postgresql://ann@localhost/x")


def test_an_unreachable_postgresql_is_an_error_after_retries() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no process listens there
        port = taken.getsockname()[1]
        with pytest.raises(vd.RegistryError) as caught:
            vd.Registry(f"postgresql://ann:{postgres.PASSWORD}@127.0.0.1:{port}/x", retry_seconds=3)

    message = str(caught.value)
    assert f"the registry's database postgresql://ann:***@127.0.0.1:{port}/x cannot be reached" in message
    tried = re.search(r"tried (\d+) times in \d+ seconds; check that it is running and that this host", message)
    assert tried
    assert int(tried[1]) > 1
    assert caught.value.is_retryable
    assert postgres.PASSWORD not in message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["readonly", "malformed"])
def test_an_unreachable_postgresql_is_reported_as_such_for_any_host_name(tmp_path: Path, name: str) -> None:
    pytest.importorskip("psycopg")

    with pytest.raises(vd.RegistryError, match=f"cannot be reached: .*/{name}/") as caught:
        vd.Registry(f"postgresql://ann@/x?host={tmp_path / name}", retry_seconds=0.1)

    assert caught.value.is_retryable


def test_denied_access_to_postgresql_is_not_retried(cluster: postgres.Cluster) -> None:
    good = cluster.url("postgres")
    for bad, message in [
        (good.replace(postgres.PASSWORD, "wr0ng"), "password authentication failed"),
        (cluster.url("nowhere"), 'database "nowhere" does not exist'),
        (good.replace(f"{postgres.USER}:{postgres.PASSWORD}", "readonly:wr0ng"), 'failed for user "readonly"'),
    ]:
        start = time.monotonic()
        with pytest.raises(vd.RegistryError, match=f"denied access: .*{message}") as caught:
            vd.Registry(bad)
        assert time.monotonic() - start < 25  # less than retry_seconds
        assert not caught.value.is_retryable
        assert "wr0ng" not in str(caught.value)


def test_calls_wait_for_a_postgresql_that_restarts(cluster: postgres.Cluster) -> None:
    url = cluster.new_database()
    registry = vd.Registry(url, retry_seconds=200)
    registry.create("alerts", schema="price double")
    registry.add("alerts", "a", "price < 1")
    impatient = vd.Registry(url, retry_seconds=1)

    cluster.stop()
    try:
        with pytest.raises(vd.RegistryError, match="cannot be reached") as caught:
            impatient.list("alerts")
        assert postgres.PASSWORD not in str(caught.value)
        timer = threading.Timer(1.0, cluster.start)
        timer.start()
        assert registry.add("alerts", "b", "price < 2") == 2
        timer.join()
    finally:
        if cluster._server is None:
            cluster.start()

    assert [each.id for each in impatient.list("alerts")] == ["a", "b"]
    registry.close()
    impatient.close()
    cluster.drop_database(url)


def test_a_postgresql_account_with_read_access_can_read_but_not_write(cluster: postgres.Cluster, clock: Any) -> None:
    url = cluster.new_database()
    registry = vd.Registry(url)
    registry.create("alerts", schema="price double")
    registry.add("alerts", "short", "price < 1", ttl="1 second")
    clock.advance(5)
    for statement in (
        "CREATE USER reader PASSWORD 'reader-s3cret'",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    ):
        write(registry, statement)
    reader = vd.Registry(url.replace(f"{postgres.USER}:{postgres.PASSWORD}", "reader:reader-s3cret"))

    assert [each.name for each in reader.sets()] == ["alerts"]
    assert [each.id for each in reader.list("alerts")] == ["short"]  # a reader cannot end it
    with pytest.raises(vd.RegistryError, match="denied access: permission denied"):
        reader.add("alerts", "a", "price < 1")
    write(registry, "ALTER DATABASE " + url.rsplit("/", 1)[1] + " SET default_transaction_read_only = on")
    registry.close()
    with pytest.raises(vd.RegistryError, match="is read-only, so nothing was changed"):
        registry.add("alerts", "a", "price < 1")
    reader.close()
    registry.close()
    cluster.drop_database(url)


def test_passwords_are_in_no_message_repr_or_log(cluster: postgres.Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = cluster.new_database()
    shown = []
    for address in (url, url.replace(f":{postgres.PASSWORD}@", "@") + f"?password={postgres.PASSWORD}"):
        registry = vd.Registry(address)
        shown += [repr(registry), repr(registry.database), str(registry.database), str(registry.stats().database)]
        with pytest.raises(vd.RegistryError) as caught:
            registry.set("none")
        shown += [str(caught.value), repr(caught.value)]
        again = pickle.loads(pickle.dumps(registry))
        shown.append(repr(again))
        again.close()
        registry.close()

    assert "***" in shown[0]
    assert all(postgres.PASSWORD not in each for each in [*shown, caplog.text])
    cluster.drop_database(url)


def test_the_registry_is_imported_only_when_it_is_used() -> None:
    program = (
        "import sys, vedette; assert not any(name.startswith('sqlalchemy') for name in sys.modules); vedette.Registry"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
