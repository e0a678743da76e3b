"""Compiled bases of a registry's sets: files that processes map, so that opening a set reads only later changes.

A base is a compiled set at one version. To open a later version, a process maps the newest base before it and applies
the changes since. A process that finds too many changes writes a new base; only one process does so at a time. A
missing or damaged base is rebuilt from the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.exc import IntegrityError

from vedette.errors import RegistryError, VedetteError
from vedette.queries.query_set import QuerySet
from vedette.registry.kinds import KINDS
from vedette.registry.read.reader import read_changes
from vedette.registry.read.set_info import SetInfo
from vedette.registry.snapshots.compiled_set import build_set, mark_of, retaining
from vedette.registry.snapshots.lease import LEASE_SECONDS, Lease
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.tables import revisions, sets, snapshots
from vedette.registry.write.sets import find_set

if TYPE_CHECKING:
    from vedette.registry.registry import Registry

FEW_CHANGES = 1000  # up to so many changes never require a new base
GROWN = 20  # a base is outdated if more than one in 20 queries has changed since
KEPT_BASES = 2
COMPACTION = "compaction"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """A base, as recorded in the database."""

    version: int
    file: str
    checksum: str
    n_bytes: int


@dataclass
class OpenSet:
    """A compiled set, the version of its base, and the number of queries that were added or removed since."""

    queries: Any
    base: int
    n_changes: int = 0
    snapshot: Snapshot | None = None  # the record of the base, if it has one


class Snapshots:
    """The bases of one set, compiled with the schema of `info`."""

    def __init__(self, registry: Registry, info: SetInfo) -> None:
        self._database = registry.database
        self._info = info
        self._files = registry.snapshot_files
        self._unusable: set[int] = set()  # bases that this process could not read

    # Opening.

    def open(self, version: int, since: int | None = None) -> OpenSet:
        """The set at a version. With `since`, a band join can also read the changes after that version."""
        opened = self.open_base(version, since)
        self.move(opened, version)
        return opened

    def open_base(self, version: int, since: int | None = None) -> OpenSet:
        """The newest base up to a version. A set without one is built at the version itself."""
        self._find()  # raises if it was dropped
        opened = self._open_base(version)
        if opened is None and version >= self._info.schema_version and self._is_large(version):
            self._make_base(version)
            opened = self._open_base(version)
        if opened is None or (since is not None and since < _oldest_of(opened.queries)):
            opened = OpenSet(build_set(self._database, self._info, version, since), version)
        return opened

    def load_base(self, base: Snapshot, mark: int) -> OpenSet:
        """The base of a record. Raises VedetteError if it cannot be read, or has another mark."""
        opened = self.load_file(self._files.fetch(base.file, base.checksum), base.version, mark)
        opened.snapshot = base
        return opened

    def load_file(self, path: Path, version: int, mark: int) -> OpenSet:
        """The base of a file on this host."""
        queries: Any = KINDS[self._info.kind].load_class().load(path)
        if (queries.version, queries.history_mark(version)) != (version, mark):
            raise RegistryError("it belongs to another set or another history")
        return OpenSet(retaining(self._info, queries), version)

    def move(self, opened: OpenSet, version: int) -> None:
        """Update a set to a later version, in place.

        Raises HistoryError if it must be opened again: its version is forgotten, or belongs to another history.
        """
        if opened.queries.version == version:
            return
        now = opened.queries.version
        changes = read_changes(self._database, self._info, now, version, opened.queries.history_mark(now))
        opened.queries.apply(changes)
        opened.n_changes += changes.n_added + changes.n_removed

    def can_move(self, opened: OpenSet, version: int) -> bool:
        """Whether `move` can update a set to a version: not to an earlier one, nor to another schema."""
        now: int = opened.queries.version
        return now <= version and (now >= self._info.schema_version or now == version)

    def prepare(self, version: int) -> None:
        """Make sure that a version has a base near it, so that opening it compiles little."""
        if self._info.schema_version <= version:
            newest = next(self._list(version), None)
            if self._count_changes(0 if newest is None else newest.version, version) > FEW_CHANGES:
                opened = self._open_moved(version)
                if opened is None or self.is_outdated(opened):
                    self._make_base(version)

    def is_outdated(self, opened: OpenSet) -> bool:
        """Whether so much has changed since the base that a new one should be written."""
        return is_outdated(opened.n_changes, len(opened.queries))

    def has_newer(self, base: int, version: int) -> bool:
        """Whether a newer base than that of version `base` exists, up to a version."""
        return next((each.version > base for each in self._list(version)), False)

    def mark_of(self, version: int) -> int | None:
        """The mark of a version; None if it is forgotten and has no base."""
        return mark_of(self._database, self._info, version)

    # Writing.

    def compact(self, version: int) -> Snapshot:
        """Write a base of a version, unless one exists. If an error is raised, nothing has changed."""
        self._open_base(version)  # finds the bases that cannot be read here
        return self._under_lease(version)

    def compact_soon(self, version: int) -> None:
        """Write a base of a version in the background, unless another process is doing so."""
        if version < self._info.schema_version:
            return

        def work() -> None:
            try:
                lease = Lease.take(self._database, self._info.row, COMPACTION)
                if lease is not None:
                    with lease:
                        opened = self._open_moved(version)
                        if opened is None or self.is_outdated(opened):
                            self._compact(version, opened)
            except VedetteError as error:
                _log.warning("cannot compact set %r: %s", self._info.name, error)

        threading.Thread(target=work, name="vedette-compaction", daemon=True).start()

    # Deleting.

    def remove(self, files: list[str]) -> None:
        """Delete files of bases that are no longer recorded."""
        for file in files:
            self._files.remove(file)

    # Private.

    def _open_base(self, version: int) -> OpenSet | None:
        """The newest readable base up to a version. Records of damaged bases are deleted."""
        for each in self._list(version):
            if each.version in self._unusable:
                continue
            mark = self.mark_of(each.version)  # outside the try: an unreachable database is not a damaged base
            try:
                return self.load_base(each, mark or 0)
            except VedetteError as error:
                _log.warning(
                    "cannot use the snapshot of set %r at version %d, so it is built again: %s",
                    self._info.name,
                    each.version,
                    error,
                )
                self._unusable.add(each.version)
                # Other processes may be able to read a file that is not on this host, or has another format.
                if isinstance(error, RegistryError) or self._files.is_damaged(each.file, each.checksum):
                    self._forget(each)
        return None

    def _forget(self, base: Snapshot) -> None:
        """Delete the record and the file of a base, unless it was replaced meanwhile."""
        own = snapshots.c.set_id == self._info.row, snapshots.c.version == base.version
        it = delete(snapshots).where(*own, snapshots.c.checksum == base.checksum)
        try:
            n_forgotten = self._database.write(lambda connection: connection.execute(it).rowcount)
        except RegistryError as error:
            _log.warning("%s", error)
        else:
            self.remove([base.file] if n_forgotten else [])

    def _open_moved(self, version: int) -> OpenSet | None:
        """The set at a version, from its newest base; None if it has no base."""
        opened = self._open_base(version)
        if opened is not None:
            self.move(opened, version)
        return opened

    def _make_base(self, version: int) -> None:
        """Write a base, or wait for another process that does. Without a base, this process builds its own set."""
        try:
            self._under_lease(version)
        except VedetteError as error:
            _log.warning("set %r has no snapshot, and cannot write one: %s", self._info.name, error)

    def _under_lease(self, version: int) -> Snapshot:
        """The base of a version, or one near it that another process has written meanwhile."""
        if version < self._info.schema_version:
            raise RegistryError(
                f"cannot write a snapshot of version {version} of set {self._info.name!r}: its schema was altered with "
                f"version {self._info.schema_version}; use that version or a later one"
            )
        waits_until = time.monotonic() + 20 * LEASE_SECONDS
        while True:
            newest = next((each for each in self._list(version) if each.version not in self._unusable), None)
            if newest is not None and newest.version == version:
                return newest
            lease = Lease.take(self._database, self._info.row, COMPACTION)
            if lease is not None:
                with lease:
                    return self._compact(version, self._open_moved(version))
            if newest is not None and self._count_changes(newest.version, version) <= FEW_CHANGES:
                return newest
            if time.monotonic() > waits_until:
                raise RegistryError(
                    f"another process has been compacting set {self._info.name!r} for {20 * LEASE_SECONDS:.0f} "
                    f"seconds; try again later, or end that process"
                )
            time.sleep(0.1)

    def _compact(self, version: int, opened: OpenSet | None) -> Snapshot:
        queries = build_set(self._database, self._info, version) if opened is None else opened.queries
        if isinstance(queries, QuerySet):
            queries.compact()
        file, checksum, n_bytes = self._files.write(queries, f"{self._info.uid}-{version}")
        made = Snapshot(version, file, checksum, n_bytes)
        try:
            self.remove(self._database.write(lambda connection: self._record(connection, made)))
        except (IntegrityError, DroppedError):
            self.remove([file])
            raise DroppedError(
                f"set {self._info.name!r} was dropped by another process; no snapshot was written"
            ) from None
        self._unusable.discard(version)
        return made

    def _record(self, connection: Connection, made: Snapshot) -> list[str]:
        """Record a base; returns the files of bases that are now too old."""
        find_set(self._database, connection, self._info)
        values = {**vars(made), "made_at": self._database.now(connection)}
        insertion = self._database.insert_into(snapshots).values(set_id=self._info.row, **values)
        connection.execute(insertion.on_conflict_do_update(index_elements=["set_id", "version"], set_=values))
        own = snapshots.c.set_id == self._info.row
        known = connection.execute(
            select(snapshots.c.version, snapshots.c.file).where(own).order_by(snapshots.c.version.desc())
        ).all()
        old = [each for each in known[KEPT_BASES:] if each.version != made.version]
        for each in old:
            connection.execute(delete(snapshots).where(own, snapshots.c.version == each.version))
        return [each.file for each in old]

    def _list(self, version: int) -> Iterator[Snapshot]:
        """The bases up to a version that have the schema, and whose later changes are known, newest first."""
        usable = select(snapshots.c.version, snapshots.c.file, snapshots.c.checksum, snapshots.c.n_bytes).where(
            snapshots.c.set_id == self._info.row,
            snapshots.c.set_id == sets.c.id,
            sets.c.uid == self._info.uid,
            snapshots.c.version <= version,
            snapshots.c.version >= self._info.schema_version,
            or_(snapshots.c.version >= sets.c.oldest, snapshots.c.version == version),
        )
        found = self._database.read(
            lambda connection: connection.execute(usable.order_by(snapshots.c.version.desc())).all()
        )
        return (Snapshot(*each) for each in found)

    def _find(self) -> SetInfo:
        return self._database.read(lambda connection: find_set(self._database, connection, self._info))

    def _is_large(self, version: int) -> bool:
        return self._count_changes(0, version) > FEW_CHANGES

    def _count_changes(self, since: int, version: int) -> int:
        """How many queries were added after `since`, up to `version`; counting stops above FEW_CHANGES."""
        some = select(revisions.c.id).where(
            revisions.c.set_id == self._info.row, revisions.c.added > since, revisions.c.added <= version
        )
        counted = select(func.count()).select_from(some.limit(FEW_CHANGES + 1).subquery())
        return int(self._database.read(lambda connection: connection.scalar(counted)) or 0)


def compact(registry: Registry, name: str) -> Snapshot:
    """Write a base of the current version of a set."""
    info = registry.end_due(name)
    return Snapshots(registry, info).compact(info.version)


def is_outdated(n_changes: int, n_queries: int) -> bool:
    """Whether a set of so many queries should have a new base after so many changes."""
    return n_changes > max(FEW_CHANGES, n_queries // GROWN)


def _oldest_of(queries: Any) -> int:
    return int(getattr(queries, "oldest_version", 0))
