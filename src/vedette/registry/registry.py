"""The registry: named query sets with versions, in a database that applications and running pipelines share."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from vedette.errors import RegistryError, nearest
from vedette.queries.set_changes import Changes
from vedette.registry.kinds import MATCH
from vedette.registry.read import inspection, listing, pinning, pins, reader, retention
from vedette.registry.read.inspection import RegistryStats
from vedette.registry.read.pins import PinnedStream
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.address import show_address
from vedette.registry.store.database import RETRY_SECONDS, Database, Result
from vedette.registry.store.migrations import migrate
from vedette.registry.write import alteration, sets
from vedette.registry.write.change import Change
from vedette.registry.write.locked_set import LockedSet, is_due
from vedette.registry.write.reports import remove_reported
from vedette.registry.write.samples import alter_sample

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed
    from vedette.registry.snapshots.files import SnapshotFiles

_WORKER_CONNECTIONS = 2  # one for batches, one for writing a base in the background


class Registry:
    """Named query sets in a SQLite file or in PostgreSQL.

    >>> import tempfile, pathlib
    >>> registry = Registry(f"sqlite:///{pathlib.Path(tempfile.mkdtemp(), 'alerts.db')}")
    >>> alerts = registry.create("alerts", schema="symbol string, price double")
    >>> registry.add("alerts", "cheap-ibm", "symbol = 'IBM' AND price < 40", metadata={"owner": "ann"})
    1
    >>> registry.changes("alerts", since=0).added_ids
    ['cheap-ibm']

    Each change of a set is one transaction and creates one version; see docs/operations.md. Examples of `url`:
    sqlite:///alerts.db, postgresql://user:password@host/database. Missing tables are created, unless `create` is
    False. `snapshots` is the directory or object store for compiled sets. If the database is locked or unreachable,
    calls are retried for `retry_seconds`. A registry can be used by several threads, and pickled.
    """

    def __init__(
        self, url: str, snapshots: str | None = None, *, create: bool = True, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._assign(Database(url, retry_seconds), snapshots)
        migrate(self._database, create)

    @classmethod
    def _of_worker(cls, url: str, snapshots: str | None, retry_seconds: float) -> Registry:
        """A registry in a worker, with few connections. The process that sent its address has checked the tables."""
        made = cls.__new__(cls)
        made._assign(Database(url, retry_seconds, _WORKER_CONNECTIONS), snapshots)
        if not made._database.is_postgres:  # the file may not exist here
            migrate(made._database, create=False)
        return made

    def _assign(self, database: Database, snapshots: str | None) -> None:
        self._database = database
        self.snapshots = snapshots
        self._snapshot_files: SnapshotFiles | None = None

    def __repr__(self) -> str:
        return f"Registry({show_address(self._database.url)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        url = self._database.url.render_as_string(hide_password=False)
        return _reopen, (url, self.snapshots, self._database.retry_seconds)

    @property
    def database(self) -> Database:
        """The connection to the database."""
        return self._database

    @property
    def snapshot_files(self) -> SnapshotFiles:
        """The files of compiled sets, opened once per process."""
        from vedette.registry.snapshots.files import SnapshotFiles, place_of

        if self._snapshot_files is None or self._snapshot_files.process != os.getpid():
            self._snapshot_files = SnapshotFiles(place_of(self.snapshots, self._database.file))
        return self._snapshot_files

    def close(self) -> None:
        """Close all connections. A later call opens new ones."""
        self._database.close()

    # Sets.

    def create(
        self,
        name: str,
        kind: str = MATCH,
        schema: Any = None,
        *,
        time_zone: str = "UTC",
        windows: str | None = None,
        ids: str | None = None,
        sample: Any = None,
        max_match_share: float | None = None,
        dimensions: int | None = None,
        **streams: Any,
    ) -> SetInfo:
        """Create an empty set of a kind: match, border, window join, band join or moving join.

        `ids` is the type of the queries' ids, "string" or "integer". By default the first added query decides. If a
        pipeline follows the set before that, ids are strings.

        A window join has a schema per stream, left="..." and right="...". `windows` says whether its queries have
        windows of "time" (the default), of "rows", or either ("any"). Band joins and moving joins have no schema. The
        queries of a moving join are zones; `dimensions` is 2 (the default) or 3.

        With a `sample` of rows, queries that match more than `max_match_share` of it are refused.
        """
        return sets.create_set(
            self._database, name, kind, schema, time_zone, windows, ids, streams, sample, max_match_share, dimensions
        )

    def sets(self) -> builtins.list[SetInfo]:
        """All sets, sorted by name."""
        return self._database.read(sets.list_sets)

    def set(self, name: str) -> SetInfo:
        """The current state of a set."""
        return self._database.read(lambda connection: sets.find_set(self._database, connection, name))

    def drop(self, name: str) -> None:
        """Delete a set with its queries, history and compiled snapshots."""
        from vedette.registry.snapshots.bases import Snapshots

        info = self.set(name)
        bases = Snapshots(self, info)
        bases.remove(sets.drop_set(self._database, info))

    def alter(
        self,
        name: str,
        schema: Any = None,
        *,
        time_zone: str | None = None,
        force: bool = False,
        sample: Any = None,
        max_match_share: Any = None,
        author: str | None = None,
    ) -> int:
        """Change the schema of a set; returns the version from which it applies. A window join takes a dict by stream.

        If active queries are invalid under the new schema, RegistryError is raised and lists them as `broken`. With
        `force`, those queries are parked instead. An invalid sample is also an error, unless `force` is set.

        A separate call changes the `sample` or the `max_match_share`; max_match_share="none" clears both. `author` is
        recorded with the version.
        """
        info = self.set(name)
        if sample is None and max_match_share is None:
            return alteration.alter_set(self._database, info, schema, time_zone, force, author)
        if schema is not None or time_zone is not None:
            raise RegistryError(
                "alter the schema and time zone in one call, and the sample and max_match_share in a second one"
            )
        clear = max_match_share == "none"
        alter_sample(self._database, info, sample, max_match_share, clear=clear)
        return info.version

    # Changes. Each is one transaction and creates one version, or raises and changes nothing. ConflictError is raised
    # if `expect_version` is given and the set is at another version.

    def change(self, name: str, *, expect_version: int | None = None, author: str | None = None) -> Change:
        """Several steps as one change: `with registry.change("alerts") as change:`, then change.add and others.

        `author` is recorded with the version.
        """
        return Change(self._database, self.set(name), expect_version, author)

    def add(
        self,
        name: str,
        query_id: str | int,
        text: str | None = None,
        *,
        expect_version: int | None = None,
        **given: Any,
    ) -> int:
        """Add a query; returns the new version.

        `given`: `within` or `rows` in window joins; `low` and `high` in band joins; `x_low`, `x_high`, `y_low`,
        `y_high` in moving joins (and `z_low`, `z_high` in three dimensions). In all kinds: `metadata`, a dict, and
        `expires_at`, a datetime with a time zone, or `ttl`, such as "5 minutes". In sets for border: `dwell`, `margin`,
        `expire_after`, `cooldown` and `once`.
        """
        change = self.change(name, expect_version=expect_version)
        change.add(query_id, text, **given)
        return change.commit()

    def add_many(
        self, name: str, ids: Any, texts: Any = None, *, expect_version: int | None = None, **given: Any
    ) -> int:
        """Add many queries; returns the new version.

        `given`: as in `add`, one value for all or a list with one per query; in band joins `lows` and `highs`.
        """
        change = self.change(name, expect_version=expect_version)
        change.add_many(ids, texts, **given)
        return change.commit()

    def replace(
        self,
        name: str,
        query_id: str | int,
        text: str | None = None,
        *,
        expect_version: int | None = None,
        **given: Any,
    ) -> int:
        """Change an active or parked query; returns the new version. Arguments that are not given keep their values."""
        change = self.change(name, expect_version=expect_version)
        change.replace(query_id, text, **given)
        return change.commit()

    def remove(self, name: str, query_id: str | int, *, expect_version: int | None = None) -> int:
        """Remove a query; returns the new version."""
        return self.remove_many(name, [query_id], expect_version=expect_version)

    def remove_many(self, name: str, ids: Any, *, expect_version: int | None = None) -> int:
        """Remove queries; returns the new version. If any id is unknown, none is removed."""
        change = self.change(name, expect_version=expect_version)
        change.remove_many(ids)
        return change.commit()

    def remove_reported(self, name: str, streams: Mapping[str, int] | None = None) -> builtins.list[Any]:
        """Remove queries with once="query" that streams have reported; returns their ids.

        `streams` has the last committed batch of each stream by its id: all of them must have reported a query. Without
        it, one stream is enough. Call it on the driver, after a micro-batch; see `vs.RemoveReported`.
        """
        return remove_reported(self._database, self.set(name), streams)

    # Queries.

    def get(self, name: str, query_id: str | int) -> QueryInfo:
        """An active or parked query."""
        return self._look(name, lambda connection, info: listing.get_query(connection, info, query_id))

    def find_ids(self, name: str, ids: Any) -> dict[Any, str]:
        """The ids that exist, each with its state: "active" or "parked"."""
        return self._look(name, lambda connection, info: listing.find_ids(self._database, connection, info, ids))

    def list(
        self,
        name: str | SetInfo,
        *,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        search: str | None = None,
        state: str = "active",
        after: str | int | None = None,
        limit: int | None = 100,
        at: int | None = None,
    ) -> builtins.list[QueryInfo]:
        """A page of queries in id order, beginning after the id `after`; with `limit=None` all of them.

        `state`: active, parked, removed or expired. `metadata`: names and values that a query's metadata must have.
        `search`: characters that a query's text must contain, ignoring case.
        `at`: list the queries that were active at a version, so that all pages show the same version.
        """

        def find(connection: Connection, info: SetInfo) -> builtins.list[QueryInfo]:
            return listing.list_queries(
                self._database, connection, info, prefix, metadata, search, state, after, limit, at
            )

        return self._look(name, find, ends_due=at is None)

    def history(self, name: str, query_id: str | int) -> builtins.list[QueryInfo]:
        """The revisions of a query, oldest first: text, start, end, and the reason for the end."""
        return self._look(name, lambda connection, info: listing.get_history(connection, info, query_id))

    # Versions.

    def changes(self, name: str, since: int, until: int | None = None) -> Changes:
        """The changes after version `since`, up to and including `until` (default: the current version), as columns."""
        if until is None:
            self.end_due(name)
        return reader.read_changes(self._database, name, since, until)

    def active(self, name: str, at: int | None = None, **options: Any) -> Iterator[Changes]:
        """All queries that are active now, or were at version `at`, in pieces: the added queries of each piece."""
        if at is None:
            self.end_due(name)
        return reader.read_active(self._database, name, at, **options)

    def marks(self, name: str, until: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The readable versions up to and including `until`, and the mark of each."""
        return reader.read_marks(self._database, name, until)

    def authors(self, name: str, among: Iterable[int]) -> dict[int, str]:
        """Who made each of these versions, as far as that is recorded."""
        return self._look(name, lambda connection, info: reader.read_authors(connection, info, among), ends_due=False)

    def count_by_author(self, name: str, author: str) -> int:
        """The number of active queries whose last revision an author has made."""
        return self._look(name, lambda connection, info: reader.count_by_author(connection, info, author))

    def schema_at(self, name: str, version: int) -> tuple[dict[str, str], str]:
        """The schemas by stream, and the time zone, at a version."""
        return reader.read_schema_at(self._database, name, version)

    def pin(self, pipeline: str, batch: int, name: str | SetInfo, *, run: str | None = None) -> int:
        """The version of a set that a batch of a pipeline is evaluated against: the same on every call.

        `run` identifies a run of the pipeline. A new run may repeat the newest batch; an earlier one is refused.
        """
        info = name if isinstance(name, SetInfo) else self.set(name)
        return pinning.pin_version(self._database, info, pipeline, batch, run).version

    def pins(self, name: str | None = None) -> builtins.list[PinnedStream]:
        """The pins of each stream, of all sets or of one, latest first."""
        if name is not None:
            self.set(name)
        return self._database.read(lambda connection: pins.list_pins(connection, name))

    def unpin(
        self, stream: str, *, from_batch: int | None = None, name: str | None = None, dry_run: bool = False
    ) -> int:
        """Delete the pins of a stream, all or from `from_batch` on, of all sets or of one; returns how many.

        If these batches are repeated, they see the current version. The stream must not be running. Versions that only
        these pins needed can be forgotten afterwards. With `dry_run` nothing is deleted.
        """
        if from_batch is not None and (isinstance(from_batch, bool) or not isinstance(from_batch, int)):
            raise RegistryError(f"from_batch must be the number of a batch; got {from_batch!r}")
        row = None if name is None else self.set(name).row
        known = [each.stream for each in self.pins(name)]
        if stream not in known:
            what = f"; streams with pins are: {', '.join(known[:10])}" if known else ""
            raise RegistryError(f"stream {stream!r} has no pins{what}{nearest(str(stream), known)}")
        if dry_run:
            return self._database.read(lambda connection: pins.count_pins(connection, stream, from_batch, row))
        return self._database.write(lambda connection: pins.unpin(connection, stream, from_batch, row))

    def end_due(self, name: str | SetInfo) -> SetInfo:
        """End expired queries under one version; returns the set after that.

        This does not wait: if the database is read-only or another process has locked the set, they stay active.
        """

        def look(connection: Connection) -> tuple[SetInfo, bool]:
            info = sets.find_set(self._database, connection, name)
            is_some = select(is_due(info.row, self._database.now(connection)))
            return info, bool(connection.scalar(is_some))

        info, is_some = self._database.read(look)
        if not is_some:
            return info

        def end(connection: Connection) -> None:
            locked = LockedSet(self._database, connection, info)
            locked.end_due()
            locked.save()

        self._database.try_to_write(end)
        return self._database.read(lambda connection: sets.find_set(self._database, connection, info))

    def forget(self, name: str, before: Any) -> int:
        """Forget queries that ended before a version, a datetime, or an age ("30 days"); returns the oldest version.

        What streams need for a restart is kept: the version that the newest batch of each has pinned, and for border
        monitoring and band joins the versions that their state may refer to. `unpin` releases these versions.
        """
        return retention.forget(self._database, self.set(name), before)

    # Pipelines.

    def follow(self, name: str, version: int | None = None, *, on_registry_outage: str = "stop") -> Followed:
        """A handle that the transforms of vedette.spark accept as a set: it follows changes, or stays at `version`.

        `on_registry_outage` is about a database that cannot be reached for `retry_seconds`: the stream stops ("stop"),
        or continues with the version of its last micro-batch ("last") until the database is back.
        """
        from vedette.registry.read.followed import Followed

        return Followed.of(self, name, version, on_registry_outage)

    def compact(self, name: str) -> Any:
        """Write a compiled snapshot of a set, so that opening it is fast."""
        from vedette.registry.snapshots.bases import compact

        return compact(self, name)

    def stats(self) -> RegistryStats:
        """The size of the registry and of each set."""
        return inspection.collect_stats(self._database)

    def verify(self, name: str | None = None) -> builtins.list[str]:
        """Inconsistencies in the tables of all sets, or of one, one sentence each; empty if there are none."""
        if name is not None:
            self.set(name)
        return inspection.find_faults(self._database, name)

    def _look(
        self, name: str | SetInfo, read: Callable[[Connection, SetInfo], Result], *, ends_due: bool = True
    ) -> Result:
        which = self.end_due(name) if ends_due else name

        def work(connection: Connection) -> Result:
            return read(connection, sets.find_set(self._database, connection, which))

        return self._database.read(work)


def _reopen(url: str, snapshots: str | None, retry_seconds: float) -> Registry:
    return Registry(url, snapshots, create=False, retry_seconds=retry_seconds)
