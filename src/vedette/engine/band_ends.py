"""The ends of bands as owners hold them, read into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.errors import QueryError, RowError
from vedette.rows import read_values
from vedette.schema import Field, Type


def read_ends(lows: Any, highs: Any, n_bands: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and upper ends of so many bands; one number stands for all. Raises QueryError where no band can be."""
    read = [_read_side(values, name, n_bands) for values, name in ((lows, "low"), (highs, "high"))]
    crossed = np.flatnonzero(read[0] > read[1])
    if len(crossed):
        place = int(crossed[0])
        raise QueryError(
            f"low {read[0][place]:g} of band {place} is above its high {read[1][place]:g}; a band is low <= high"
        )
    return read[0], read[1]


def _read_side(values: Any, name: str, n_bands: int) -> NDArray[np.float64]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        values = [values] * n_bands
    if len(values) != n_bands:
        raise QueryError(f"got {len(values)} {name}s but {n_bands} ids; each band needs both ends")
    try:
        column = read_values(values, Field(name, Type("double")), "UTC")
    except RowError:
        raise QueryError(f"the {name} of a band is a number; got {next(iter(values))!r}") from None
    missing = np.isnan(column.values) if column.valid is None else ~column.valid | np.isnan(column.values)
    if missing.any():
        end = "-inf" if name == "low" else "inf"
        raise QueryError(
            f"{name} of band {int(np.argmax(missing))} is null or NaN; use float('{end}') where there is no end"
        )
    return np.array(column.values, np.float64)
