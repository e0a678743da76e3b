"""The database of a registry: transactions that are retried after temporary failures, and the database's clock.

SQLite has a write-ahead log, so that readers and a writer do not wait for each other. A writer takes its lock when its
transaction begins. A read sees one state of the database from its first statement to its last.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from vedette.errors import FileError, RegistryError
from vedette.extras import needs_extra
from vedette.host_files.private_files import create_file
from vedette.registry.store.address import read_address, show_address
from vedette.registry.store.failures import DeniedError, ReadOnlyError, explain_failure, is_retryable

Result = TypeVar("Result")
RETRY_SECONDS = 30.0
MOMENT_SECONDS = 0.25  # most changes of other processes take less
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0  # seconds between attempts
_CACHE_KB = 65_536  # SQLite's cache: the upper index levels of some million queries


class Database:
    """One database, for this process and its forks. Its str has no secrets."""

    def __init__(self, url: str | URL, retry_seconds: float = RETRY_SECONDS) -> None:
        self.url = read_address(url)
        self.retry_seconds = retry_seconds
        self.is_postgres = self.url.get_backend_name() == "postgresql"
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return show_address(self.url)

    def __repr__(self) -> str:
        return f"Database({str(self)!r})"

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database."""
        return None if self.is_postgres else Path(str(self.url.database).removeprefix("file:"))

    def is_missing(self) -> bool:
        """Whether it is a SQLite file that does not exist. Connecting would create it."""
        try:
            if self.file is not None:
                self.file.stat()
        except FileNotFoundError:
            return True
        except OSError:
            pass  # SQLite reports the reason
        return False

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """The result of `work`, which reads from one state of the database."""
        return self._run(work, False)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """The result of `work`, after its changes are committed.

        `work` is called again if an attempt failed temporarily. SQLAlchemy's IntegrityError is raised to the caller.
        """
        return self._run(work, True)

    def try_to_write(self, work: Callable[[Connection], object]) -> None:
        """Like `write`, but do nothing if the database is read-only, or locked for more than MOMENT_SECONDS."""
        try:
            self._run(work, True, min(MOMENT_SECONDS, self.retry_seconds))
        except (ReadOnlyError, DeniedError):
            pass
        except RegistryError as error:
            if not error.is_retryable:
                raise

    def now(self, connection: Connection) -> int:
        """The database's clock, in microseconds since 1970. SQLite's is that of this host."""
        if not self.is_postgres:
            return time.time_ns() // 1000
        return int(connection.scalar(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")) or 0)

    def insert_into(self, table: Table) -> Any:
        """An insertion in the database's own dialect, which supports ON CONFLICT."""
        return (postgresql if self.is_postgres else sqlite).insert(table)

    def close(self) -> None:
        """Close all connections. The next use opens new ones."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose(close=self._process == os.getpid())
                self._engine = None

    # Private.

    def _run(self, work: Callable[[Connection], Result], writes: bool, limit: float | None = None) -> Result:
        """Run `work` and retry it. `limit` overrides `retry_seconds`."""
        start, n_attempts, wait = time.monotonic(), 0, _FIRST_WAIT
        retry_seconds = self.retry_seconds if limit is None else limit
        while True:
            n_attempts += 1
            try:
                return self._attempt(work, writes, limit)
            except IntegrityError:
                raise
            except (DBAPIError, PoolTimeoutError) as error:
                waited = time.monotonic() - start
                if not is_retryable(error) or waited + wait > retry_seconds:
                    raise explain_failure(error, self.url, n_attempts, waited) from None
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _attempt(self, work: Callable[[Connection], Result], writes: bool, limit: float | None) -> Result:
        engine = self._connected()
        options: dict[str, Any]
        if self.is_postgres:
            options = {"isolation_level": "READ COMMITTED" if writes else "REPEATABLE READ"}
        else:
            options = {"vedette_begin": "BEGIN IMMEDIATE" if writes else "BEGIN"}
        if limit is not None:
            options["vedette_limit"] = max(1, int(1000 * limit))  # milliseconds
        with engine.connect().execution_options(**options) as connection, connection.begin():
            return work(connection)

    def _connected(self) -> Engine:
        with self._lock:
            if self._engine is not None and self._process != os.getpid():  # the connections belong to the parent
                self._engine.dispose(close=False)
                self._engine = None
            if self._engine is None:
                self._engine, self._process = self._connect(), os.getpid()
            return self._engine

    def _connect(self) -> Engine:
        options: dict[str, Any] = {"hide_parameters": True, "pool_timeout": self.retry_seconds}
        if self.is_postgres:
            chosen = _limits(self.retry_seconds)
            options["connect_args"] = {name: limit for name, limit in chosen.items() if name not in self.url.query}
        else:
            options["connect_args"] = {"timeout": self.retry_seconds}
            self._create_file()
        with needs_extra("postgres", "a registry on PostgreSQL", RegistryError):
            engine = create_engine(self.url, **options)
        if self.is_postgres:
            event.listen(engine, "connect", partial(_prepare_postgres, self.retry_seconds))
            event.listen(engine, "begin", _begin_postgres)
        else:
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        weakref.finalize(self, _dispose, engine, os.getpid())
        return engine

    def _create_file(self) -> None:
        """Create a missing SQLite file with the mode of the settings. SQLite gives its other files the same mode."""
        if self.file is not None and "mode" not in self.url.query:
            try:
                create_file(self.file).close()
            except FileError:  # from the settings
                raise
            except OSError:
                pass  # it exists, or SQLite reports the reason


def _dispose(engine: Engine, process: int) -> None:
    """Close connections, except those of a parent process."""
    engine.dispose(close=process == os.getpid())


def _limits(retry_seconds: float) -> dict[str, int]:
    """Timeouts with which libpq detects an unreachable server."""
    milliseconds = max(2_000, int(1000 * retry_seconds))
    idle = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": milliseconds}
    return {"connect_timeout": max(2, min(10, int(retry_seconds))), **idle}


def _prepare_postgres(retry_seconds: float, connection: Any, record: object) -> None:
    """Wait for locks at most `retry_seconds`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {max(1, int(1000 * retry_seconds))}")
    connection.commit()


def _prepare_sqlite(connection: Any, record: object) -> None:
    """Disable the driver's own transactions, and use a write-ahead log if the file system supports it."""
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        (mode,) = cursor.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    except Exception as error:
        if "readonly" not in str(error) and "locked" not in str(error):  # these keep the current mode
            raise
    finally:
        cursor.close()


def _begin_postgres(connection: Connection) -> None:
    limit = connection.get_execution_options().get("vedette_limit")
    if limit is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {limit}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    with _limited(connection, options.get("vedette_limit")):  # the lock is taken as the transaction begins
        connection.exec_driver_sql(options.get("vedette_begin", "BEGIN"))


@contextmanager
def _limited(connection: Connection, limit: int | None) -> Iterator[None]:
    """Wait for SQLite's lock at most `limit` milliseconds inside the block."""
    if limit is None:
        yield
        return
    with closing(connection.connection.cursor()) as cursor:
        (usual,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {limit}").fetchone()
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}").fetchone()
