"""Reads the set of a pipeline from the registry: active queries, pins, and whether pins can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, literal, or_, select

from vedette.registry.store.failures import ReadOnlyError
from vedette.registry.store.tables import pins, revisions, sets

if TYPE_CHECKING:
    from vedette.pipeline.file import RegistryPart
    from vedette.registry.read.set_info import SetInfo
    from vedette.registry.registry import Registry


def count_queries(registry: Registry, part: RegistryPart) -> int:
    """How many queries are active now, or at the fixed version of the pipeline."""
    info = registry.set(part.set)
    if part.version is None:
        return info.n_active
    active = revisions.c.added <= part.version, or_(revisions.c.removed.is_(None), revisions.c.removed > part.version)
    query = select(func.count()).where(revisions.c.set_id == info.row, *active)
    return registry.database.read(lambda connection: int(connection.scalar(query) or 0))


def find_pin(registry: Registry, part: RegistryPart, stream: str, batch: int) -> int | None:
    """The version that a micro-batch of a stream was answered with; None if it has no pin."""
    if part.version is not None:
        return part.version
    query = select(pins.c.version).join(sets, sets.c.id == pins.c.set_id)
    query = query.where(sets.c.name == part.set, pins.c.pipeline == stream, pins.c.batch == batch)
    return registry.database.read(lambda connection: connection.scalar(query))


class _TriedError(Exception):
    """Rolls the trial back."""


def try_to_pin(registry: Registry, info: SetInfo) -> None:
    """Raise RegistryError if a pin cannot be written. The trial leaves no pin."""
    database = registry.database

    def work(connection: Connection) -> None:
        now = select(sets.c.id, literal(""), literal(0), sets.c.version, literal(database.now(connection)))
        now = now.where(sets.c.uid == info.uid).with_for_update(read=True, key_share=True)
        columns = ["set_id", "pipeline", "batch", "version", "made_at"]
        connection.execute(database.insert_into(pins).from_select(columns, now))
        connection.execute(delete(pins).where(pins.c.set_id == info.row, pins.c.pipeline == ""))
        raise _TriedError

    try:
        database.write(work)
    except _TriedError:
        pass
    except ReadOnlyError:
        raise ReadOnlyError(
            f"the registry's database {database} is read-only, but following a set records there which version each "
            f"micro-batch sees; grant the pipeline write access, or set a fixed version: version = {info.version} "
            f"under [registry]"
        ) from None
