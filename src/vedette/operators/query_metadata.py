"""Metadata of queries in answers, as of the version that answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.operators.side_columns import find_distinct

Documents = list[dict[str, Any]]
_TEXTS = {str, type(None)}


def find_metadata(
    names: Sequence[str], queries: NDArray[np.int32], metadata_at: Callable[[NDArray[np.int32]], Documents]
) -> dict[str, pa.Array]:
    """By name: the values of the queries of answers, given by number. Null if a query has no such value.

    `metadata_at` reads the metadata of distinct queries, so that of no other query is read.
    """
    if not names:
        return {}
    distinct, codes = find_distinct(queries, int(queries.max(initial=-1)) + 1)
    columns, indices = to_columns(names, metadata_at(distinct.astype(np.int32))), pa.array(codes)
    return {name: column.take(indices) for name, column in columns.items()}


def to_columns(names: Sequence[str], documents: Documents) -> dict[str, pa.Array]:
    """Fields of documents as texts. Strings are as they are; other values are JSON."""
    columns = {}
    for name in names:
        values = [each.get(name) for each in documents]
        if not set(map(type, values)) <= _TEXTS:
            values = [as_text(value) for value in values]
        columns[name] = pa.array(values, pa.string())
    return columns


def as_text(value: Any) -> str | None:
    """A value of metadata as answers have it."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
