"""Which version each batch of a pipeline is evaluated against: the first who asks decides, all others are told it.

Spark repeats a batch that it has not committed, so a pin must outlive the process. It is kept for the last batches of
its pipeline; of a pipeline that is silent for long only the newest stays.

Answers have one type of ids for as long as their pipeline lives, so the first pin of a set whose ids nobody has spoken
of makes them strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, literal, select, update

from vedette.errors import RegistryError
from vedette.ids import STRING
from vedette.registry.database import Database
from vedette.registry.failures import DroppedError
from vedette.registry.locked_set import LockedSet, is_due
from vedette.registry.set_info import SetInfo
from vedette.registry.tables import pins, sets, versions

KEPT_BATCHES = 1000
KEPT_DAYS = 7
_CLEANED_EVERY = 50  # batches
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Pin:
    """The version of a set in a batch, with its mark, which is None where it is forgotten."""

    version: int
    mark: int | None
    schema_version: int  # of the set now: from which its schema is in force
    id_kind: str  # of the set now


def pin_version(database: Database, info: SetInfo, pipeline: str, batch: int) -> Pin:
    """The version of the set in that batch: the current one, after what is due has ended, where nobody has asked.

    Only where something is due, or the kind of the ids is open, the set is locked: who changes it for long holds no
    batch up in PostgreSQL.
    """
    if not isinstance(pipeline, str) or not pipeline or isinstance(batch, bool) or not isinstance(batch, int):
        raise RegistryError(f"a pin is of a pipeline's name and a batch's number; got {pipeline!r} and {batch!r}")
    is_it = pins.c.set_id == sets.c.id, pins.c.pipeline == pipeline, pins.c.batch == batch
    marked = versions.c.set_id == sets.c.id, versions.c.version == pins.c.version
    joined = sets.outerjoin(pins, and_(*is_it)).outerjoin(versions, and_(*marked))
    told = select(pins.c.version, versions.c.mark, sets.c.schema_version, sets.c.id_kind)
    query = told.select_from(joined).where(sets.c.uid == info.uid)

    def find(connection: Connection) -> Any:
        found = connection.execute(query).first()
        if found is None:
            raise DroppedError(f"set {info.name!r} was dropped meanwhile; nothing was changed")
        return found

    known = database.read(find)
    if None not in (known.version, known.id_kind):
        return Pin(*known)

    def pin(connection: Connection) -> Any:
        now = database.now(connection)
        if connection.scalar(select(is_due(info.row, now))):
            locked = LockedSet(database, connection, info)
            locked.end_due()
            locked.save()
        if known.id_kind is None:
            is_open = sets.c.uid == info.uid, sets.c.id_kind.is_(None)
            connection.execute(update(sets).where(*is_open).values(id_kind=STRING))
        now_current = select(sets.c.id, literal(pipeline), literal(batch), sets.c.version, literal(now))
        now_current = now_current.where(sets.c.uid == info.uid).with_for_update(read=True, key_share=True)
        columns = ["set_id", "pipeline", "batch", "version", "made_at"]
        asked = database.insert_into(pins).from_select(columns, now_current).on_conflict_do_nothing()
        is_first = connection.execute(asked.returning(pins.c.version)).first() is not None  # of several who ask
        if is_first and batch % _CLEANED_EVERY == 0:
            _clean(connection, info.row, pipeline, batch, now)
        return find(connection)

    made = database.write(pin)
    if made.version is None:
        raise RegistryError(f"the pin of batch {batch} of pipeline {pipeline!r} was deleted as it was made; ask again")
    return Pin(*made)


def _clean(connection: Connection, set_row: int, pipeline: str, batch: int, now: int) -> None:
    """Delete the pins of old batches, and those of silent pipelines but the newest."""
    own = pins.c.set_id == set_row
    connection.execute(delete(pins).where(own, pins.c.pipeline == pipeline, pins.c.batch <= batch - KEPT_BATCHES))
    connection.execute(delete(pins).where(own, pins.c.made_at < now - KEPT_DAYS * _DAY, _has_newer()))


def pinned_versions(connection: Connection, set_row: int, now: int) -> list[int]:
    """The versions that the newest batch of each pipeline needs, of pipelines that were not silent for long."""
    recent: Any = (pins.c.set_id == set_row, pins.c.made_at >= now - KEPT_DAYS * _DAY, ~_has_newer())
    return [int(version) for version in connection.scalars(select(pins.c.version).where(*recent))]


def _has_newer() -> ColumnElement[bool]:
    """Whether the pipeline of a pin has pinned a later batch of the same set."""
    newer = pins.alias("newer")
    same = newer.c.set_id == pins.c.set_id, newer.c.pipeline == pins.c.pipeline, newer.c.batch > pins.c.batch
    return select(newer.c.batch).where(*same).exists()
