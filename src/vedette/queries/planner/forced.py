"""A forced index: which groups of boxes are kept for it, and in words why it does not answer for one."""

from __future__ import annotations

from vedette.errors import QueryError, count, nearest
from vedette.indexes.names import INDEXES, N_FIELDS

NEEDS = {
    "Lists": "a single field, and boxes short enough to be listed in every cell",
    "Keyed": "a selective field of which every box has one value",
    "Quadtree": "two fields on which boxes are ranges, and not too long ones",
}


def check_index_name(name: str | None) -> None:
    if name is not None and name not in INDEXES:
        raise QueryError(f"unknown index {name!r}; indexes are: {', '.join(INDEXES)}{nearest(str(name), INDEXES)}")


def is_kept_apart(name: str | None, n_fields: int) -> bool:
    """Whether boxes on so many fields would lose the index if they were put together with boxes on others."""
    return name is not None and len(N_FIELDS[name]) == 1 and n_fields in N_FIELDS[name]


def tell_unsuited(name: str, n_fields: int) -> str:
    """Why an index that was asked for does not answer for boxes on so many fields."""
    numbers = N_FIELDS[name]
    if name in NEEDS and n_fields >= numbers.start:
        return f"{name} was asked for and needs {NEEDS[name]}"
    fields = count(numbers.start, "field") + (" or more" if len(numbers) > 1 else "")
    return f"{name} was asked for and answers on {fields}; this group has {n_fields or 'none'}"
