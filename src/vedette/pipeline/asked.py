"""What a pipeline asks the registry about its set without changing anything: how many stand, what was pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, or_, select

from vedette.registry.tables import lives, pins, sets

if TYPE_CHECKING:
    from vedette.pipeline.file import RegistryPart
    from vedette.registry.registry import Registry


def count_queries(registry: Registry, part: RegistryPart) -> int:
    """How many queries stand: now, or at the version that the pipeline stays at."""
    info = registry.set(part.set)
    if part.at is None:
        return info.n_standing
    stood = lives.c.added <= part.at, or_(lives.c.removed.is_(None), lives.c.removed > part.at)
    query = select(func.count()).where(lives.c.set_id == info.row, *stood)
    return registry.database.read(lambda connection: int(connection.scalar(query) or 0))


def find_pin(registry: Registry, part: RegistryPart, stream: str, batch: int) -> int | None:
    """The version that a micro-batch of a stream was answered with; None where it needed none."""
    if part.at is not None:
        return part.at
    query = select(pins.c.version).join(sets, sets.c.id == pins.c.set_id)
    query = query.where(sets.c.name == part.set, pins.c.pipeline == stream, pins.c.batch == batch)
    return registry.database.read(lambda connection: connection.scalar(query))
