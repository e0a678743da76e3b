"""Rows of users (Arrow, pandas, polars, dicts) as columns that are found by name, ignoring case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.errors import RowError, shown


class Frame:
    """Columns by name. A lookup raises RowError if several columns have the name, ignoring case."""

    def __init__(self, names: Iterable[Any], column_at: Callable[[int], Any], n_rows: int | None = None) -> None:
        self.names = [str(name) for name in names]
        self._column_at = column_at
        self._n_rows = n_rows  # None: the columns may differ in length
        self._places: dict[str, int] = {}
        self._twins: set[str] = set()
        for place, name in enumerate(self.names):
            if self._places.setdefault(name.lower(), place) != place:
                self._twins.add(name.lower())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._places

    @property
    def lower_names(self) -> Set[str]:
        """The names in lower case."""
        return self._places.keys()

    def find(self, name: str) -> Any:
        """The column of that name, or None."""
        folded = name.lower()
        place = self._places.get(folded)
        if place is None:
            return None
        if folded in self._twins:
            raise ambiguous(name, self.names)
        return self._column_at(place)

    def count_rows(self, or_else: str = "") -> int:
        """The length of the columns; raises RowError if one is not an array, or lengths differ."""
        if self._n_rows is None:
            columns = [self._column_at(place) for place in range(len(self.names))]
            for name, column in zip(self.names, columns, strict=True):
                check_array(column, name, or_else)
            lengths = {len(column) for column in columns}
            if len(lengths) > 1:
                each = ", ".join(f"{name}: {len(column)}" for name, column in zip(self.names, columns, strict=True))
                raise RowError(f"the arrays of the rows differ in length ({each})")
            self._n_rows = lengths.pop() if lengths else 0
        return self._n_rows


def as_frame(rows: Any) -> Frame:
    """Rows as columns by name. Columns are read lazily."""
    if type(rows) is dict:
        return Frame(rows, list(rows.values()).__getitem__)
    if isinstance(rows, Frame):
        return rows
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        return Frame(rows.schema.names, rows.column, rows.num_rows)
    if isinstance(rows, Mapping):
        names = list(rows)
        return Frame(names, lambda place: rows[names[place]])
    library = library_of(rows)
    if library == "pandas" and hasattr(rows, "columns"):
        return Frame(rows.columns, lambda place: rows.iloc[:, place], len(rows))
    if library == "polars" and hasattr(rows, "to_series"):
        return Frame(rows.columns, rows.to_series, rows.height)
    if hasattr(rows, "__arrow_c_stream__") and library != "polars":  # such as DuckDB relations
        try:
            return as_frame(pa.table(rows))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise RowError(f"rows of type {type(rows).__name__} cannot be read as an Arrow table: {error}") from None
    raise RowError(
        f"rows must be an Arrow table or batch, a pandas or polars frame, or a dict of arrays; "
        f"got {type(rows).__name__}"
    )


def library_of(value: Any) -> str:
    """The package of a value's type, found without an import."""
    return type(value).__module__.partition(".")[0]


def check_array(values: Any, name: str, or_else: str = "") -> None:
    """Raise if a column is a single value, or a container without an order."""
    if type(values) is list or (isinstance(values, np.ndarray) and values.ndim > 0):
        return  # the usual case
    is_one = isinstance(values, (str, bytes, bytearray, memoryview)) or getattr(values, "ndim", 1) == 0
    if is_one or not hasattr(values, "__len__"):
        raise RowError(f"field {name!r} is {shown(values)}, not an array; give arrays of one value{or_else}")
    if isinstance(values, (Mapping, Set)):
        raise RowError(f"field {name!r} is a {type(values).__name__}, not an array; give a list or an array")


def ambiguous(name: str, names: Iterable[str]) -> RowError:
    """The error for a name that several columns have."""
    alike = [each for each in names if each.lower() == name.lower()]
    return RowError(
        f"the rows have {len(alike)} columns named {name!r}, ignoring case: {', '.join(map(repr, alike))}; "
        f"keep or rename one of them"
    )


@lru_cache(maxsize=256)
def find_twins(names: tuple[Any, ...]) -> frozenset[str]:
    """The names, in lower case, that occur more than once. Rows of one stream mostly have the same names."""
    folded = Counter(str(name).lower() for name in names)
    return frozenset(name for name, n in folded.items() if n > 1)
