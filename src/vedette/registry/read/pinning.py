"""Pins a batch of a stream to a version of a set: the first task of a batch writes the pin, all others read it.

Spark commits a batch before it begins the next. So a new run of a stream can repeat the newest pinned batch, but no
earlier one. If it asks for an earlier one, its checkpoint was copied or restored, and that is an error: the old pin
belongs to another run.

The type of ids in the answers of a pipeline never changes. If a set has no type of ids yet, its first pin makes them
strings.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, and_, func, literal, select, update

from vedette.data.ids import STRING
from vedette.errors import RegistryError
from vedette.queries.set_changes import Changes
from vedette.registry.read.pins import SQL, Pin, clean, has_newer
from vedette.registry.read.reader import HistoryError, read_between
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.migrations import check_migrations
from vedette.registry.store.tables import migrations, pins, sets, versions
from vedette.registry.write.locked_set import LockedSet, is_due

_CLEANED_EVERY = 50  # batches
_COLUMNS = ("set_id", "pipeline", "batch", "version", "made_at", "run")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UsedPin:
    """A version that a batch was answered with while the database could not be reached."""

    pipeline: str
    batch: int
    version: int
    run: str | None


@dataclass(frozen=True)
class Known:
    """A version of a set that a process has compiled, with its mark."""

    version: int
    mark: int


def pin_version(database: Database, info: SetInfo, pipeline: str, batch: int, run: str | None = None) -> Pin:
    """The pin of a batch. If it does not exist, expired queries end and the current version is pinned.

    `run` identifies a run of the pipeline. A pin of another run is used only for the newest batch of that run.
    """
    return pin_and_read(database, info, pipeline, batch, run)[0]


def pin_and_read(
    database: Database,
    info: SetInfo,
    pipeline: str,
    batch: int,
    run: str | None = None,
    known: Known | None = None,
    *,
    used: Sequence[UsedPin] = (),
    retry_seconds: float | None = None,
) -> tuple[Pin, Changes | None]:
    """The pin of a batch, and the changes from a known version to the pinned one; None if they cannot be read.

    In PostgreSQL this is one transaction of at most four statements, unless queries have expired or the type of ids is
    not known. Only then is the set locked, so a long change does not delay batches. `used` are pins of an outage, which
    are written first.
    """
    if not isinstance(pipeline, str) or not pipeline or isinstance(batch, bool) or not isinstance(batch, int):
        raise RegistryError(
            f"a pin needs the name of a pipeline and the number of a batch; got {pipeline!r} and {batch!r}"
        )
    work = _Work(database, info, pipeline, batch, run, known, used)
    if not database.is_postgres and not used:  # in SQLite a write locks the file, so look first
        done = database.read(work.look)
        if done is not None:
            return done
    return database.write(work.pin, limits_itself=True, retry_seconds=retry_seconds)


@dataclass(frozen=True)
class _Work:
    """The transactions of `pin_and_read`."""

    database: Database
    info: SetInfo
    pipeline: str
    batch: int
    run: str | None
    known: Known | None
    used: Sequence[UsedPin]

    def look(self, connection: Connection) -> tuple[Pin, Changes | None] | None:
        """The pin and the changes; None if the batch is not pinned."""
        found = self._find(connection)
        if found.version is None or found.id_kind is None:
            return None
        return self._read(connection, found, _to_pin(found, self.info, self.pipeline, self.batch))

    def pin(self, connection: Connection) -> tuple[Pin, Changes | None]:
        """The pin and the changes. The pin is written unless it exists."""
        found = self._find(connection)
        if self.used:
            self._write_used(connection, found.now)
            found = self._find(connection)
        if found.version is None or found.id_kind is None:
            version = self._write(connection, found)
            is_current = version is not None and version == found.current_version
            if is_current and found.id_kind is not None and not found.has_due:
                pin = Pin(found.current_version, found.current_mark, found.schema_version, found.id_kind)
                return self._read(connection, found, pin)
            found = self._find(connection)  # another process was first, or the set has changed
        if found.version is None:
            raise RegistryError(
                f"the pin of batch {self.batch} of stream {self.pipeline!r} was deleted while it was written; try again"
            )
        return self._read(connection, found, _to_pin(found, self.info, self.pipeline, self.batch))

    def _find(self, connection: Connection) -> Any:
        """The row of the set, with the pin of the batch if there is one."""
        now, known = self.database.clock(), -1 if self.known is None else self.known.version
        of_known, of_current = versions.alias("of_known"), versions.alias("of_current")
        is_it = pins.c.set_id == sets.c.id, pins.c.pipeline == self.pipeline, pins.c.batch == self.batch
        joined = sets.outerjoin(pins, and_(*is_it))
        for table, version in ((versions, pins.c.version), (of_known, known), (of_current, sets.c.version)):
            joined = joined.outerjoin(table, and_(table.c.set_id == sets.c.id, table.c.version == version))
        query = select(
            pins.c.version,
            versions.c.mark,
            sets.c.schema_version,
            sets.c.id_kind,
            sets.c.oldest,
            sets.c.version.label("current_version"),
            of_current.c.mark.label("current_mark"),
            of_known.c.mark.label("known_mark"),
            now.label("now"),
            is_due(self.info.row, now).label("has_due"),
            select(func.max(migrations.c.number)).scalar_subquery().label("n_migrations"),
            _is_outdated(self.run),
            *self.database.lock_limit(),
        )
        found = connection.execute(query.select_from(joined).where(sets.c.uid == self.info.uid)).first()
        if found is None:
            raise DroppedError(f"set {self.info.name!r} was dropped by another process; nothing was changed")
        check_migrations(self.database, found.n_migrations)
        if found.is_outdated:
            raise RegistryError(
                f"batch {self.batch} of stream {self.pipeline!r} was answered by another run, which has continued with "
                f"later batches: the checkpoint was copied, or restored to an older state. "
                f"{_remedy(self.pipeline, self.batch)}. If the original stream also continues, write another UUID into "
                f"the file `metadata` of the copied checkpoint instead, and delete `.metadata.crc`"
            )
        return found

    def _write(self, connection: Connection, found: Any) -> int | None:
        """Write the pin; returns its version, or None if another process has written it."""
        if found.has_due:
            locked = LockedSet(self.database, connection, self.info)
            locked.end_due()
            locked.save()
        if found.id_kind is None:
            is_open = sets.c.uid == self.info.uid, sets.c.id_kind.is_(None)
            connection.execute(update(sets).where(*is_open).values(id_kind=STRING))
        of_pin = literal(self.pipeline), literal(self.batch)
        now_current = select(sets.c.id, *of_pin, sets.c.version, literal(found.now), literal(self.run, Text))
        now_current = now_current.where(sets.c.uid == self.info.uid).with_for_update(read=True, key_share=True)
        insertion = self.database.insert_into(pins).from_select(_COLUMNS, now_current).on_conflict_do_nothing()
        made = connection.scalar(insertion.returning(pins.c.version))
        if made is not None and (self.batch % _CLEANED_EVERY == 0 or self.pipeline.startswith(SQL)):
            clean(connection, self.info.row, self.pipeline, self.batch, found.now)
        return None if made is None else int(made)

    def _write_used(self, connection: Connection, now: int) -> None:
        """Write the pins of an outage, and report those for which another version was recorded meanwhile."""
        for each in self.used:
            values = (self.info.row, each.pipeline, each.batch, each.version, now, each.run)
            insertion = self.database.insert_into(pins).values(dict(zip(_COLUMNS, values, strict=True)))
            connection.execute(insertion.on_conflict_do_nothing())
            is_it = pins.c.set_id == self.info.row, pins.c.pipeline == each.pipeline, pins.c.batch == each.batch
            recorded = connection.scalar(select(pins.c.version).where(*is_it))
            if recorded != each.version:
                _log.warning(
                    "batch %d of stream %r: a host that could not reach the registry used version %d of set %r, but "
                    "version %s is recorded",
                    each.batch,
                    each.pipeline,
                    each.version,
                    self.info.name,
                    recorded,
                )

    def _read(self, connection: Connection, found: Any, pin: Pin) -> tuple[Pin, Changes | None]:
        """The pin, and the changes from the known version to it."""
        known = self.known
        if known is None or found.known_mark != known.mark or not found.oldest <= known.version <= pin.version:
            return pin, None
        if known.version < self.info.schema_version <= pin.version or found.id_kind is None:
            return pin, None
        try:
            return pin, read_between(connection, replace(self.info, id_kind=pin.id_kind), known.version, pin.version)
        except HistoryError:
            return pin, None


def _to_pin(found: Any, info: SetInfo, pipeline: str, batch: int) -> Pin:
    if found.mark is None:
        raise RegistryError(
            f"batch {batch} of stream {pipeline!r} is pinned to version {found.version} of set {info.name!r}, which is "
            f"forgotten, or was lost when the database was restored to an older state. {_remedy(pipeline, batch)}"
        )
    return Pin(found.version, found.mark, found.schema_version, found.id_kind)


def _remedy(pipeline: str, batch: int) -> str:
    return (
        f"To answer this batch and later ones with the current version, stop the stream, run "
        f"`vedette registry unpin {pipeline} --from-batch {batch}`, and start it again"
    )


def _is_outdated(run: str | None) -> ColumnElement[bool]:
    """Whether a pin belongs to another run, which has pinned a later batch."""
    if run is None:
        return literal(False).label("is_outdated")
    is_outdated = and_(pins.c.run != run, has_newer(lambda newer: newer.c.run != run))
    return func.coalesce(is_outdated, False).label("is_outdated")
