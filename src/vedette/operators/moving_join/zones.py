"""Zones as users pass them: one low and one high side per dimension, read into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import item
from vedette.data.rows import find_unreadable, read_values
from vedette.data.schema import Field, Type
from vedette.errors import QueryError, RowError, nearest, shown
from vedette.operators.moving_join.motion_rows import FARTHEST
from vedette.operators.moving_join.rows import AXES

SIDES = tuple(f"{axis}_{end}" for axis in AXES for end in ("low", "high"))  # of three dimensions


def sides_of(dimensions: int) -> tuple[str, ...]:
    """The names of the sides of a zone: x_low, x_high, y_low, y_high and, in three dimensions, z_low, z_high."""
    return SIDES[: 2 * dimensions]


def read_zones(given: Mapping[str, Any], dimensions: int, n_zones: int, ids: Any = None) -> NDArray[np.float64]:
    """The sides of `n_zones` zones, one row each, in the order of `sides_of`. One number is for all zones.

    Raises QueryError, which names the zone if `ids` are given as `Ids.read` returns them.
    """
    wanted = sides_of(dimensions)
    for name in given:
        if name not in SIDES:
            raise QueryError(f"a zone has no side {name!r}; its sides are: {', '.join(wanted)}{nearest(name, wanted)}")
        if name not in wanted:
            raise QueryError(f"got {name}, but the zones of this set have two dimensions; set dimensions to 3")
    missing = [name for name in wanted if given.get(name) is None]
    if missing:
        raise QueryError(f"a zone needs all its sides: {', '.join(wanted)}; got no {missing[0]}")
    zones = np.empty((n_zones, len(wanted)))
    for place, name in enumerate(wanted):
        zones[:, place] = _read_side(given[name], name, n_zones, ids)
    for place in range(0, len(wanted), 2):
        crossed = np.flatnonzero(zones[:, place] > zones[:, place + 1])
        if len(crossed):
            row = int(crossed[0])
            raise QueryError(
                f"{wanted[place]} {zones[row, place]:g} of {_zone(ids, row)} is above its {wanted[place + 1]} "
                f"{zones[row, place + 1]:g}; a low side must not be above its high side",
                field=wanted[place],
                query=_id_at(ids, row),
            )
    return zones


def _read_side(values: Any, name: str, n_zones: int, ids: Any) -> NDArray[np.float64]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        values = [values] * n_zones
    if len(values) != n_zones:
        raise QueryError(f"got {len(values)} values of {name} but {n_zones} ids; pass one value per id, or one for all")
    try:
        column = read_values(values, Field(name, Type("double")), "UTC")
    except RowError:
        row, value = find_unreadable(values, Field(name, Type("double")), "UTC")
        raise QueryError(
            f"{name} of {_zone(ids, row)} must be a number; got {shown(value)}", field=name, query=_id_at(ids, row)
        ) from None
    read = np.array(column.values, np.float64)
    if column.valid is not None:
        read[~column.valid] = np.nan
    is_wrong = ~(np.abs(read) <= FARTHEST)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        got = "null" if column.valid is not None and not column.valid[row] else f"{read[row]:g}"
        raise QueryError(
            f"{name} of {_zone(ids, row)} is {got}; sides are finite numbers from {-FARTHEST:g} to {FARTHEST:g}",
            field=name,
            query=_id_at(ids, row),
        )
    return read


def _zone(ids: Any, row: int) -> str:
    return f"zone {row if ids is None else shown(item(ids, row))}"


def _id_at(ids: Any, row: int) -> str | int | None:
    return None if ids is None else item(ids, row)
