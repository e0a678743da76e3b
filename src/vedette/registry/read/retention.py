"""Forgets removed queries and old versions on request. Until then they are kept."""

from __future__ import annotations

import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from vedette.data.durations import read_duration
from vedette.queries.query_set import RETAINED_VERSIONS
from vedette.registry.kinds import KINDS
from vedette.registry.read.pins import pinned_versions
from vedette.registry.read.reader import check_version
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import reports, revisions, schemas, sets, snapshots, versions
from vedette.registry.store.times import to_microseconds
from vedette.registry.write.locked_set import LockedSet


def forget(database: Database, info: SetInfo, before: Any) -> int:
    """Forget queries that ended before a version, a time, or an age ("30 days"); returns the oldest readable version.

    Versions that the newest batch of each stream has pinned are kept; for border monitoring and band joins, also the
    versions before them that their state may refer to.
    """
    n_needed = RETAINED_VERSIONS if KINDS[info.kind].keeps_removed else 0

    def work(connection: Connection) -> int:
        locked = LockedSet(database, connection, info, alone=True)  # waits until other processes have written pins
        pinned = pinned_versions(connection, info.row, locked.now)
        oldest = min([_read_before(locked, before), *(version - n_needed for version in pinned)])
        oldest = max(oldest, locked.info.oldest)
        own = revisions.c.set_id == info.row
        connection.execute(delete(revisions).where(own, revisions.c.removed <= oldest, ~revisions.c.is_parked))
        known = select(revisions.c.id).where(own)
        connection.execute(delete(reports).where(reports.c.set_id == info.row, reports.c.revision.not_in(known)))
        has_base = select(snapshots.c.version).where(snapshots.c.set_id == info.row)  # a base needs its version's mark
        old = versions.c.set_id == info.row, versions.c.version < oldest, versions.c.version.not_in(has_base)
        connection.execute(delete(versions).where(*old))
        needed = select(func.max(schemas.c.version)).where(schemas.c.set_id == info.row, schemas.c.version <= oldest)
        older = schemas.c.set_id == info.row, schemas.c.version < needed.scalar_subquery()
        connection.execute(delete(schemas).where(*older))
        connection.execute(update(sets).where(sets.c.id == info.row).values(oldest=oldest))
        return oldest

    return database.write(work)


def _read_before(locked: LockedSet, before: Any) -> int:
    """The version that was current at `before`."""
    if isinstance(before, (str, datetime.timedelta)):
        before_time = locked.now - int(read_duration(before, "before", "timestamp"))
    elif isinstance(before, datetime.datetime):
        before_time = to_microseconds(before, "before")
    else:
        check_version(locked.info, before, "before")
        return int(before)
    made = versions.c.set_id == locked.row, versions.c.made_at <= before_time
    found = locked.connection.scalar(select(func.max(versions.c.version)).where(*made))
    return locked.info.oldest if found is None else int(found)
