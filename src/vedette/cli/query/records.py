"""The columns of a registry's queries in files and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo


def columns_of(info: SetInfo) -> tuple[str, ...]:
    """The columns of a query in files and tables: its id and its definition."""
    from vedette.registry.kinds import KINDS

    written = KINDS[info.kind].form.written
    return ("id", *written[: 2 * info.dimensions]) if info.dimensions else ("id", *written)
