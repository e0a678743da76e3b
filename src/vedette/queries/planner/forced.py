"""A forced index: which groups of boxes are not merged for it, and why it does not serve others."""

from __future__ import annotations

from vedette.errors import QueryError, count, nearest
from vedette.indexes.names import INDEXES, PLANNED_INDEXES


def check_index_name(name: str | None) -> None:
    if name is not None and name not in INDEXES:
        raise QueryError(f"unknown index {name!r}; indexes are: {', '.join(INDEXES)}{nearest(str(name), INDEXES)}")


def is_not_merged(name: str | None, n_fields: int) -> bool:
    """Whether boxes on this many fields could not use the index if they were merged with boxes on other fields."""
    return name is not None and list(INDEXES[name].n_fields) == [n_fields]


def explain_unsuited(name: str, n_fields: int) -> str:
    """Why a forced index does not serve boxes on this many fields."""
    numbers = INDEXES[name].n_fields
    needs = PLANNED_INDEXES[name].needs if name in PLANNED_INDEXES else ""
    if needs and n_fields >= numbers.start:
        return f"{name} was requested but needs {needs}"
    fields = count(numbers.start, "field") + (" or more" if len(numbers) > 1 else "")
    return f"{name} was requested but supports {fields}; this group has {n_fields or 'none'}"
