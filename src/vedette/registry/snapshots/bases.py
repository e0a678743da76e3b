"""Compiled bases of a registry's sets: files that processes map, so that opening a set reads only what is new.

A base is a set at one version. Who opens a later one maps the newest base before it and applies the changes since. Who
notices that these have become many writes a new base, one process at a time. A base that is missing or damaged is
built anew from the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.exc import IntegrityError

from vedette.data.ids import Ids
from vedette.errors import QueryError, RegistryError, VedetteError
from vedette.language import compile_texts
from vedette.queries.query_set import RETAINED_VERSIONS, QuerySet
from vedette.queries.set_changes import Changes
from vedette.registry.kinds import KINDS
from vedette.registry.read.reader import check_version, read_active, read_changes
from vedette.registry.read.set_info import SetInfo
from vedette.registry.snapshots.lease import LEASE_SECONDS, Lease
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.tables import revisions, sets, snapshots, versions
from vedette.registry.write.sets import find_set

if TYPE_CHECKING:
    from vedette.registry.registry import Registry

FEW_CHANGES = 1000  # are always borne
GROWN = 20  # a base is too old when one in so many of the queries has changed since
KEPT_BASES = 2
COMPACTION = "compaction"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """A base as the database knows it."""

    version: int
    file: str
    checksum: str
    n_bytes: int


@dataclass
class OpenSet:
    """A compiled set, the version of the base that it came from, and how many queries came or went since."""

    queries: Any
    base: int
    n_changes: int = 0


class Snapshots:
    """The bases of one set. `info` has the schema that they are compiled with."""

    def __init__(self, registry: Registry, info: SetInfo) -> None:
        self._database = registry.database
        self._info = info
        self._files = registry.snapshot_files
        self._unusable: set[int] = set()  # bases that this process could not read

    # Opening.

    def open(self, version: int, since: int | None = None) -> OpenSet:
        """The set at a version. With `since`, what has changed after that version is known to band joins."""
        self._find()  # or it was dropped
        opened = self._open_base(version)
        if opened is None and version >= self._info.schema_version and self._is_large(version):
            self._make_base(version)
            opened = self._open_base(version)
        if opened is None or (since is not None and since < _oldest_of(opened.queries)):
            opened = OpenSet(self.build(version, since), version)
        self.move(opened, version)
        return opened

    def move(self, opened: OpenSet, version: int) -> None:
        """Bring a set forward to a version, in place.

        HistoryError where it has to be opened anew: its own version is forgotten, or is of another history.
        """
        if opened.queries.version == version:
            return
        now = opened.queries.version
        changes = read_changes(self._database, self._info, now, version, opened.queries.history_mark(now))
        opened.queries.apply(changes)
        opened.n_changes += changes.n_added + changes.n_removed

    def can_move(self, opened: OpenSet, version: int) -> bool:
        """Whether a set can be brought forward to a version; not backward, nor to another schema."""
        now: int = opened.queries.version
        return now <= version and (now >= self._info.schema_version or now == version)

    def prepare(self, version: int) -> None:
        """See that there is a base near a version, so that whoever opens it has little to compile."""
        if self._info.schema_version <= version:
            newest = next(self._list(version), None)
            if self._count_changes(0 if newest is None else newest.version, version) > FEW_CHANGES:
                opened = self._open_moved(version)
                if opened is None or self.is_outgrown(opened):
                    self._make_base(version)

    def is_outgrown(self, opened: OpenSet) -> bool:
        """Whether so much has changed since the base that it is time for another."""
        return opened.n_changes > max(FEW_CHANGES, len(opened.queries) // GROWN)

    def has_newer(self, opened: OpenSet, version: int) -> bool:
        """Whether there is a newer base than the one that a set came from, up to a version."""
        return next((each.version > opened.base for each in self._list(version)), False)

    def mark_of(self, version: int) -> int | None:
        """The mark of a version; None where it is forgotten, and has no base."""
        told = select(versions.c.mark).where(versions.c.set_id == self._info.row, versions.c.version == version)
        return self._database.read(lambda connection: connection.scalar(told))

    # Making.

    def build(self, version: int, since: int | None = None) -> Any:
        """The set at a version, from the database alone, with what is known of queries that were removed lately."""
        info = self._info
        now = self._find()
        check_version(now, version, "version")
        first = version
        if KINDS[info.kind].keeps_removed:
            oldest = max(now.oldest, info.schema_version)
            wanted = version - RETAINED_VERSIONS
            first = min(version, max(oldest, wanted if since is None else min(wanted, since)))
        queries = make_empty(info)
        queries.begin(first, self.mark_of(first) or 0)
        for piece in read_active(self._database, info, first):
            fitting = piece if version >= info.schema_version else _take_fitting(piece, queries)
            queries.apply(replace(fitting, versions=piece.versions[:0], marks=piece.marks[:0]))
        queries.apply(read_changes(self._database, info, first, version))
        return queries

    def compact(self, version: int) -> Snapshot:
        """Write a base of a version, unless there is one. Raises, and leaves all as it was, where that cannot be."""
        self._open_base(version)  # notes which cannot be read here
        return self._under_lease(version)

    def compact_soon(self, version: int) -> None:
        """Write a base of a version in the background, unless somebody does already."""

        if version < self._info.schema_version:
            return

        def work() -> None:
            try:
                lease = Lease.take(self._database, self._info.row, COMPACTION)
                if lease is not None:
                    with lease:
                        opened = self._open_moved(version)
                        if opened is None or self.is_outgrown(opened):
                            self._compact(version, opened)
            except VedetteError as error:
                _log.warning("set %r was not compacted: %s", self._info.name, error)

        threading.Thread(target=work, name="vedette-compaction", daemon=True).start()

    # Dropping.

    def remove(self, files: list[str]) -> None:
        """Delete the files of bases that nobody knows of any more."""
        for file in files:
            self._files.remove(file)

    # Inside.

    def _open_base(self, version: int) -> OpenSet | None:
        """The newest base up to a version that can be read; those that are damaged are forgotten."""
        for each in self._list(version):
            if each.version in self._unusable:
                continue
            mark = self.mark_of(each.version)  # a database that is away says nothing about the base
            try:
                queries: Any = KINDS[self._info.kind].load_class().load(self._files.fetch(each.file, each.checksum))
                if (queries.version, queries.history_mark(each.version)) != (each.version, mark):
                    raise RegistryError("it is of another set, or of another history")
                return OpenSet(_retaining(self._info, queries), each.version)
            except VedetteError as error:
                _log.warning(
                    "the snapshot of set %r at version %d cannot be used, and is built anew: %s",
                    self._info.name,
                    each.version,
                    error,
                )
                self._unusable.add(each.version)
                # Others may be able to read what is not on this host, or of another format.
                if isinstance(error, RegistryError) or self._files.is_damaged(each.file, each.checksum):
                    self._forget(each)
        return None

    def _forget(self, base: Snapshot) -> None:
        """Let nobody know of a base any more, and delete its file, unless there is another in its place by now."""
        own = snapshots.c.set_id == self._info.row, snapshots.c.version == base.version
        it = delete(snapshots).where(*own, snapshots.c.checksum == base.checksum)
        try:
            n_forgotten = self._database.write(lambda connection: connection.execute(it).rowcount)
        except RegistryError as error:
            _log.warning("%s", error)
        else:
            self.remove([base.file] if n_forgotten else [])

    def _open_moved(self, version: int) -> OpenSet | None:
        """The set at a version from its newest base, if there is one."""
        opened = self._open_base(version)
        if opened is not None:
            self.move(opened, version)
        return opened

    def _make_base(self, version: int) -> None:
        """Write a base, or wait for who does; without one the set is built for this process alone."""
        try:
            self._under_lease(version)
        except VedetteError as error:
            _log.warning("there is no snapshot of set %r, and none can be written: %s", self._info.name, error)

    def _under_lease(self, version: int) -> Snapshot:
        """The base of a version, or one near it that another process has made meanwhile."""
        if version < self._info.schema_version:
            raise RegistryError(
                f"version {version} of set {self._info.name!r} is of another schema than that of version "
                f"{self._info.schema_version}, so that it has no snapshot with this one"
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
                raise RegistryError(f"another process has been compacting set {self._info.name!r} for very long")
            time.sleep(0.1)

    def _compact(self, version: int, opened: OpenSet | None) -> Snapshot:
        queries = self.build(version) if opened is None else opened.queries
        if isinstance(queries, QuerySet):
            queries.compact()
        file, checksum, n_bytes = self._files.write(queries, f"{self._info.uid}-{version}")
        made = Snapshot(version, file, checksum, n_bytes)
        try:
            self.remove(self._database.write(lambda connection: self._record(connection, made)))
        except (IntegrityError, DroppedError):
            self.remove([file])
            raise DroppedError(f"set {self._info.name!r} was dropped meanwhile; it has no snapshot") from None
        self._unusable.discard(version)
        return made

    def _record(self, connection: Connection, made: Snapshot) -> list[str]:
        """Let all know of a base; the files of those that are too old by now."""
        find_set(self._database, connection, self._info)
        values = {**vars(made), "made_at": self._database.now(connection)}
        asked = self._database.insert_into(snapshots).values(set_id=self._info.row, **values)
        connection.execute(asked.on_conflict_do_update(index_elements=["set_id", "version"], set_=values))
        own = snapshots.c.set_id == self._info.row
        known = connection.execute(
            select(snapshots.c.version, snapshots.c.file).where(own).order_by(snapshots.c.version.desc())
        ).all()
        old = [each for each in known[KEPT_BASES:] if each.version != made.version]
        for each in old:
            connection.execute(delete(snapshots).where(own, snapshots.c.version == each.version))
        return [each.file for each in old]

    def _list(self, version: int) -> Iterator[Snapshot]:
        """The bases up to a version that have the schema and from which one can go on, newest first."""
        told = select(snapshots.c.version, snapshots.c.file, snapshots.c.checksum, snapshots.c.n_bytes).where(
            snapshots.c.set_id == self._info.row,
            snapshots.c.set_id == sets.c.id,
            sets.c.uid == self._info.uid,
            snapshots.c.version <= version,
            snapshots.c.version >= self._info.schema_version,
            or_(snapshots.c.version >= sets.c.oldest, snapshots.c.version == version),
        )
        found = self._database.read(
            lambda connection: connection.execute(told.order_by(snapshots.c.version.desc())).all()
        )
        return (Snapshot(*each) for each in found)

    def _find(self) -> SetInfo:
        return self._database.read(lambda connection: find_set(self._database, connection, self._info))

    def _is_large(self, version: int) -> bool:
        return self._count_changes(0, version) > FEW_CHANGES

    def _count_changes(self, since: int, version: int) -> int:
        """How many queries were added after a version, up to another; not more than are of interest."""
        some = select(revisions.c.id).where(
            revisions.c.set_id == self._info.row, revisions.c.added > since, revisions.c.added <= version
        )
        counted = select(func.count()).select_from(some.limit(FEW_CHANGES + 1).subquery())
        return int(self._database.read(lambda connection: connection.scalar(counted)) or 0)


def compact(registry: Registry, name: str) -> Snapshot:
    """Write a base of a set as it is now."""
    info = registry.end_due(name)
    return Snapshots(registry, info).compact(info.version)


def _take_fitting(piece: Changes, queries: Any) -> Changes:
    """Of queries that stood before a schema was altered, those that fit it; the others are parked with it."""
    errors: list[tuple[int, QueryError]] = []
    texts = piece.texts or []
    compile_texts(texts, queries.schema, queries.time_zone, ids=piece.added_ids, errors=errors)
    wrong = {place for place, _ in errors}
    stays = [place for place in range(piece.n_added) if place not in wrong]
    return replace(
        piece,
        added_ids=[piece.added_ids[place] for place in stays],
        added_versions=piece.added_versions[stays],
        texts=[texts[place] for place in stays],
        windows=None if piece.windows is None else [piece.windows[place] for place in stays],
    )


def make_empty(info: SetInfo) -> Any:
    """A set of that kind and schema without queries, which knows of what kind ids to come are."""
    kind = KINDS[info.kind]
    queries = kind.make(kind.load_class(), info)
    ids: Ids = queries.view().ids if isinstance(queries, QuerySet) else queries.query_ids()
    ids.kind = info.id_kind
    return _retaining(info, queries)


def _retaining(info: SetInfo, queries: Any) -> Any:
    """The set, which lets removed queries be known where states of pipelines need them."""
    if KINDS[info.kind].keeps_removed:
        queries.retain()
    return queries


def _oldest_of(queries: Any) -> int:
    return int(getattr(queries, "oldest_version", 0))
