"""Reading the ends of bands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import item
from vedette.data.rows import find_unreadable, read_values
from vedette.data.schema import Field, Type
from vedette.errors import QueryError, RowError, shown

_NO_END = {"low": -np.inf, "high": np.inf}


def read_ends(lows: Any, highs: Any, n_bands: int, ids: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and upper ends of `n_bands` bands; one number is used for all, and None means unbounded.

    Raises QueryError for an invalid band, and names it by its id if ids are given, as from `Ids.read`.
    """
    read = [_read_side(values, name, n_bands, ids) for values, name in ((lows, "low"), (highs, "high"))]
    crossed = np.flatnonzero(read[0] > read[1])
    if len(crossed):
        place = int(crossed[0])
        raise QueryError(
            f"low {read[0][place]:g} of {_band(ids, place)} is above its high {read[1][place]:g}; a band is low <= "
            f"high",
            query=_id_at(ids, place),
        )
    return read[0], read[1]


def _read_side(values: Any, name: str, n_bands: int, ids: Any) -> NDArray[np.float64]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        values = [values] * n_bands
    if len(values) != n_bands:
        raise QueryError(f"got {len(values)} {name}s but {n_bands} ids; each band needs both ends")
    if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind == "f":
        values = np.asarray(values, np.float64)  # pandas has NaN for computed NaN and for missing values
    try:
        column = read_values(values, Field(name, Type("double")), "UTC")
    except RowError:
        place, value = find_unreadable(values, Field(name, Type("double")), "UTC")
        raise QueryError(
            f"{name} of {_band(ids, place)} must be a number; got {shown(value)}", field=name, query=_id_at(ids, place)
        ) from None
    ends = np.array(column.values, np.float64)
    if column.valid is not None:
        ends[~column.valid] = _NO_END[name]
    is_nan = np.isnan(ends)
    if is_nan.any():
        place = int(np.argmax(is_nan))
        raise QueryError(
            f"{name} of {_band(ids, place)} is NaN; use None or float('{_NO_END[name]:g}') for an unbounded band",
            field=name,
            query=_id_at(ids, place),
        )
    return ends


def _band(ids: Any, place: int) -> str:
    return f"band {place if ids is None else shown(item(ids, place))}"


def _id_at(ids: Any, place: int) -> str | int | None:
    return None if ids is None else item(ids, place)
