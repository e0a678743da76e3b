"""Metadata of queries in events, as of the version that answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.queries.set_view import SetView


def find_metadata(names: Sequence[str], queries: NDArray[np.int32], view: SetView) -> dict[str, pa.Array]:
    """By name: the values of the queries of events, given by number. Null if a query has no such value.

    Strings are as they are; other values are JSON. Only the metadata of these queries is read.
    """
    if not names:
        return {}
    distinct, codes = np.unique(queries, return_inverse=True)
    is_active = distinct < view.first_retained
    documents = view.attributes.metadata_at(distinct[is_active])
    documents += view.retained.attributes.metadata_at(distinct[~is_active] - view.first_retained)
    indices = pa.array(codes.astype(np.int32))
    return {name: pa.array([_text(each.get(name)) for each in documents], pa.string()).take(indices) for name in names}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
