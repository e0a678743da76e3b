"""The database of a registry: transactions that are retried after temporary failures, and the database's clock.

PostgreSQL may be behind a PgBouncer in transaction mode, where each transaction may run in another session. So nothing
is set for a session, and the driver keeps no prepared statements.

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
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Table,
    cast,
    create_engine,
    event,
    extract,
    func,
    literal,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from vedette.errors import FileError, RegistryError
from vedette.extras import needs_extra
from vedette.host_files.private_files import create_file
from vedette.registry.store import postgres_dialect
from vedette.registry.store.address import read_address, show_address
from vedette.registry.store.failures import DeniedError, ReadOnlyError, explain_failure, is_retryable

Result = TypeVar("Result")
RETRY_SECONDS = 30.0
MOMENT_SECONDS = 0.25  # most changes of other processes take less
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0  # seconds between attempts
_CACHE_KB = 65_536  # SQLite's cache: the upper index levels of some million queries


class Database:
    """One database, for this process and its forks. Its str has no secrets.

    With `max_connections`, threads of this process that need more wait for each other.
    """

    def __init__(
        self, url: str | URL, retry_seconds: float = RETRY_SECONDS, max_connections: int | None = None
    ) -> None:
        self.url = read_address(url)
        self.retry_seconds = retry_seconds
        self.max_connections = max_connections
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

    @property
    def address(self) -> str:
        """The URL with which processes in other directories open it. It may contain a password."""
        url = self.url
        if self.file is not None and not str(url.database).startswith("file:"):
            url = url.set(database=os.path.abspath(str(url.database)))
        return url.render_as_string(hide_password=False)

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

    def write(
        self, work: Callable[[Connection], Result], *, limits_itself: bool = False, retry_seconds: float | None = None
    ) -> Result:
        """The result of `work`, after its changes are committed.

        `work` is called again if an attempt failed temporarily. SQLAlchemy's IntegrityError is raised to the caller.
        `limits_itself`: the first statement of `work` selects `lock_limit`, which saves a statement. `retry_seconds`
        overrides that of the database.
        """
        return self._run(work, True, limits_itself=limits_itself, retry_seconds=retry_seconds)

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
        return int(connection.scalar(select(_microseconds(func.clock_timestamp()))) or 0)

    def clock(self) -> ColumnElement[int]:
        """The same, as an expression: the time when its statement starts."""
        if not self.is_postgres:
            return literal(time.time_ns() // 1000, BigInteger)
        return _microseconds(func.statement_timestamp())

    def lock_limit(self) -> list[ColumnElement[Any]]:
        """Columns of a SELECT that limit the time for which the rest of the transaction waits for locks."""
        if not self.is_postgres:
            return []
        return [func.set_config("lock_timeout", f"{_milliseconds(self.retry_seconds)}ms", True).label("lock_limit")]

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

    def _run(
        self,
        work: Callable[[Connection], Result],
        writes: bool,
        limit: float | None = None,
        *,
        limits_itself: bool = False,
        retry_seconds: float | None = None,
    ) -> Result:
        """Run `work` and retry it. `limit` overrides `retry_seconds`, also for locks."""
        start, n_attempts, wait = time.monotonic(), 0, _FIRST_WAIT
        if retry_seconds is None:
            retry_seconds = self.retry_seconds if limit is None else limit
        while True:
            n_attempts += 1
            try:
                return self._attempt(work, writes, limit, limits_itself)
            except IntegrityError:
                raise
            except (DBAPIError, PoolTimeoutError) as error:
                waited = time.monotonic() - start
                if not is_retryable(error) or waited + wait > retry_seconds:
                    raise explain_failure(error, self.url, n_attempts, waited) from None
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _options(self, writes: bool, limit: float | None, limits_itself: bool) -> dict[str, Any]:
        """The options of a transaction."""
        options: dict[str, Any]
        if self.is_postgres:
            options = {"isolation_level": "READ COMMITTED" if writes else "REPEATABLE READ"}
            if not limits_itself:
                options["vedette_limit"] = _milliseconds(self.retry_seconds if limit is None else limit)
        else:
            options = {"vedette_begin": "BEGIN IMMEDIATE" if writes else "BEGIN"}
            if limit is not None:
                options["vedette_limit"] = _milliseconds(limit)
        return options

    def _attempt(
        self, work: Callable[[Connection], Result], writes: bool, limit: float | None, limits_itself: bool
    ) -> Result:
        options = self._options(writes, limit, limits_itself)
        with self._connected().connect().execution_options(**options) as connection, connection.begin():
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
        if self.max_connections is not None:
            options |= {"pool_size": self.max_connections, "max_overflow": 0}
        url = self.url
        if self.is_postgres:
            url = url.set(drivername=postgres_dialect.DRIVER)
            limits = {name: limit for name, limit in _limits(self.retry_seconds).items() if name not in url.query}
            options |= {"connect_args": limits | {"prepare_threshold": None}, "use_native_hstore": False}
        else:
            options["connect_args"] = {"timeout": self.retry_seconds}
            self._create_file()
        with needs_extra("postgres", "a registry on PostgreSQL", RegistryError):
            engine = create_engine(url, **options)
        if self.is_postgres:
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


def _microseconds(time_: ColumnElement[Any]) -> ColumnElement[int]:
    """A time of PostgreSQL as microseconds since 1970."""
    return cast(extract("epoch", time_) * 1_000_000, BigInteger)


def _milliseconds(seconds: float) -> int:
    return max(1, int(1000 * seconds))


def _limits(retry_seconds: float) -> dict[str, int]:
    """Timeouts with which libpq detects an unreachable server."""
    milliseconds = max(2_000, int(1000 * retry_seconds))
    idle = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": milliseconds}
    return {"connect_timeout": max(2, min(10, int(retry_seconds))), **idle}


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
    """Limit the time for which the transaction waits for locks."""
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
