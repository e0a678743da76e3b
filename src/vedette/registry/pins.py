"""Which version each batch of a pipeline is evaluated against: the first who asks decides, all others are told it.

Spark repeats a batch that it has not committed, so a pin must outlive the process. It is kept for the last batches of
its pipeline; of a pipeline that is silent for long only the newest stays.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select

from vedette.errors import RegistryError
from vedette.registry.database import Database
from vedette.registry.locked_set import LockedSet
from vedette.registry.set_info import SetInfo
from vedette.registry.tables import pins

KEPT_BATCHES = 1000
KEPT_DAYS = 7
_CLEANED_EVERY = 50  # batches
_DAY = 86_400_000_000  # microseconds


def pin_version(database: Database, info: SetInfo, pipeline: str, batch: int) -> int:
    """The version of the set in that batch: the current one, after what is due has ended, where nobody has asked."""
    if not isinstance(pipeline, str) or not pipeline or isinstance(batch, bool) or not isinstance(batch, int):
        raise RegistryError(f"a pin is of a pipeline's name and a batch's number; got {pipeline!r} and {batch!r}")
    chosen = pins.c.set_id == info.row, pins.c.pipeline == pipeline, pins.c.batch == batch
    query = select(pins.c.version).where(*chosen)
    known = database.read(lambda connection: connection.scalar(query))
    if known is not None:
        return int(known)

    def pin(connection: Connection) -> int:
        locked = LockedSet(database, connection, info)  # so of several who ask one is first
        known = connection.scalar(query)
        if known is not None:
            return int(known)
        locked.end_due()
        values = {"set_id": info.row, "pipeline": pipeline, "batch": batch, "version": locked.version}
        connection.execute(insert(pins).values(**values, made_at=locked.now))
        if batch % _CLEANED_EVERY == 0:
            _clean(connection, info.row, pipeline, batch, locked.now)
        locked.save()
        return locked.version

    return database.write(pin)


def _clean(connection: Connection, set_row: int, pipeline: str, batch: int, now: int) -> None:
    """Delete the pins of old batches, and those of silent pipelines but the newest."""
    own = pins.c.set_id == set_row
    connection.execute(delete(pins).where(own, pins.c.pipeline == pipeline, pins.c.batch <= batch - KEPT_BATCHES))
    newer = pins.alias("newer")
    has_newer = select(newer.c.batch).where(
        newer.c.set_id == pins.c.set_id, newer.c.pipeline == pins.c.pipeline, newer.c.batch > pins.c.batch
    )
    connection.execute(delete(pins).where(own, pins.c.made_at < now - KEPT_DAYS * _DAY, has_newer.exists()))


def pinned_versions(connection: Connection, set_row: int, now: int) -> list[int]:
    """The versions that the newest batch of each pipeline needs, of pipelines that were not silent for long."""
    newer = pins.alias("newer")
    has_newer = select(newer.c.batch).where(
        newer.c.set_id == pins.c.set_id, newer.c.pipeline == pins.c.pipeline, newer.c.batch > pins.c.batch
    )
    recent: Any = (pins.c.set_id == set_row, pins.c.made_at >= now - KEPT_DAYS * _DAY, ~has_newer.exists())
    return [int(version) for version in connection.scalars(select(pins.c.version).where(*recent))]
