"""Carried columns in saved states: the field `carried` of a part, an Arrow stream with one row per row of the part.

A part has no such field if nothing was carried. Columns that a state does not have are null where it is loaded; columns
that are not asked for any more are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from vedette.operators.carried_rows import concat_carried, from_stream, to_stream
from vedette.operators.state import Content

CARRIED = "carried"


def write_carried(table: pa.Table | None) -> Content:
    """The field of a part; nothing if nothing is carried."""
    return {} if table is None else {CARRIED: to_stream(table)}


def validate_carried(part: Content, n: int) -> None:
    """Raise DamageError unless carried columns of `n` rows, or none, are valid."""
    if part.get(CARRIED) is not None:
        from_stream(part[CARRIED], n)


def read_carried(part: Content, names: Sequence[str], n: int) -> pa.Table:
    """Carried columns of a part of `n` rows."""
    saved = part.get(CARRIED)
    table = None if saved is None else from_stream(saved, n)
    known = {} if table is None else {name: table[name] for name in names if name in table.column_names}
    columns = [known.get(name, pa.chunked_array([pa.nulls(n)])) for name in names]
    return pa.Table.from_arrays(columns, names=list(names))


# Without monitors.


def take_carried(part: Content, positions: NDArray[Any], n: int) -> Content:
    """The field of some rows of a part of `n` rows."""
    saved = part.get(CARRIED)
    return {} if saved is None else {CARRIED: to_stream(from_stream(saved, n).take(pa.array(positions)))}


def join_carried(parts: Sequence[Content], lengths: Sequence[int]) -> Content:
    """The field of all rows of several parts."""
    if all(part.get(CARRIED) is None for part in parts):
        return {}
    tables = [
        pa.table({"": pa.nulls(n)}).select([]) if part.get(CARRIED) is None else from_stream(part[CARRIED], n)
        for part, n in zip(parts, lengths, strict=True)
    ]
    return {CARRIED: to_stream(concat_carried(tables, lengths))}
