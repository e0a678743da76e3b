"""The size of a registry, and whether its tables are consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, or_, select, text

from vedette.errors import QueryError, RegistryError, count
from vedette.registry.read.reader import read_active
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import pins, revisions, snapshots, versions
from vedette.registry.write.samples import selectivity_of
from vedette.registry.write.sets import list_sets
from vedette.registry.write.steps import check_texts


@dataclass(frozen=True)
class SetStats:
    """The size of a set."""

    info: SetInfo
    n_remembered: int  # revisions that have ended and are not forgotten
    n_versions: int
    n_pins: int
    n_snapshots: int
    snapshot_bytes: int
    last_snapshot: int | None  # the version of the newest one


@dataclass(frozen=True)
class RegistryStats:
    """The size of a registry."""

    database: str
    database_bytes: int
    sets: list[SetStats]


def collect_stats(database: Database) -> RegistryStats:
    def read(connection: Connection) -> RegistryStats:
        if database.is_postgres:
            size = connection.scalar(text("SELECT pg_database_size(current_database())"))
        else:
            size = connection.scalar(text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))
        return RegistryStats(
            str(database), int(size or 0), [_stats_of(connection, each) for each in list_sets(connection)]
        )

    return database.read(read)


def _stats_of(connection: Connection, info: SetInfo) -> SetStats:
    def scalar(what: Any, *where: Any) -> Any:
        return connection.scalar(select(what).where(*where))

    own = snapshots.c.set_id == info.row
    return SetStats(
        info,
        int(scalar(func.count(), revisions.c.set_id == info.row, revisions.c.removed.is_not(None))),
        int(scalar(func.count(), versions.c.set_id == info.row)),
        int(scalar(func.count(), pins.c.set_id == info.row)),
        int(scalar(func.count(), own)),
        int(scalar(func.coalesce(func.sum(snapshots.c.n_bytes), 0), own)),
        scalar(func.max(snapshots.c.version), own),
    )


def find_faults(database: Database, name: str | None = None) -> list[str]:
    """The inconsistencies of the tables, one sentence each; empty if there are none."""
    infos = [info for info in database.read(list_sets) if name in (None, info.name)]
    return [fault for info in infos for fault in _faults_of(database, info)]


def _faults_of(database: Database, info: SetInfo) -> list[str]:
    def read(connection: Connection) -> list[str]:
        now = next((each for each in list_sets(connection) if each.uid == info.uid), None)
        return [] if now is None else [f"set {now.name!r}: {fault}" for fault in _count_faults(connection, now)]

    faults = database.read(read)
    for piece in read_active(database, info, info.version):
        try:
            check_texts(info, piece.added_ids, piece.texts or [], limits=None)
        except QueryError as error:
            faults.append(f"set {info.name!r}: {error.reason}")
    try:
        selectivity_of(database, info)
    except RegistryError as error:  # its message contains the name of the set
        faults.append(str(error))
    return faults


def _count_faults(connection: Connection, info: SetInfo) -> list[str]:
    own = revisions.c.set_id == info.row

    def number(*where: Any, what: Any = revisions.c.id) -> int:
        return int(connection.scalar(select(func.count(what)).where(*where)) or 0)

    faults = []
    recorded = {
        "active": (info.n_active, revisions.c.removed.is_(None)),
        "parked": (info.n_parked, revisions.c.is_parked),
    }
    for state, (n_recorded, which) in recorded.items():
        n_found = number(own, which)
        if n_found != n_recorded:
            faults.append(f"{count(n_found, f'{state} query', f'{state} queries')}, but its row says {n_recorded:,}")
    wrong = or_(
        revisions.c.removed <= revisions.c.added, revisions.c.added > info.version, revisions.c.removed > info.version
    )
    n_wrong = number(own, wrong)
    if n_wrong:
        faults.append(f"{count(n_wrong, 'revision')} with impossible versions")
    n_versions = number(versions.c.set_id == info.row, versions.c.version >= info.oldest, what=versions.c.version)
    if n_versions != info.version - info.oldest + 1:
        faults.append(f"{count(n_versions, 'version')} since version {info.oldest}, but it is at {info.version}")
    return faults
