"""How much memory the evaluation of an expression takes for a pair: the strings that it reads and makes, and values.

An evaluation keeps the value of every distinct node. A string function may repeat a field many times, so the strings of
a pair may be much larger than its row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column, string_buffers
from vedette.language.expressions import Typed
from vedette.language.geofences import POLYGON_TESTS
from vedette.native.budget import cut_by_bytes

STRING_BYTES_AT_ONCE = 1 << 24  # of strings that an evaluation reads and makes, about
MOST_STRING_BYTES = 1 << 30  # for a single pair; one that needs more fails
VALUES_AT_ONCE = 1 << 26  # of all nodes
_CAST_BYTES = 64  # of a number, a date or a timestamp as a string, at most


@dataclass(frozen=True)
class StringUse:
    """How often an evaluation holds the string of a field or a slot, and how many distinct nodes it has."""

    fields: dict[str, int]
    slots: dict[int, int]
    n_casts: int  # strings that come from other types
    n_nodes: int

    @classmethod
    def of(cls, expression: Typed) -> StringUse:
        leaves: dict[Typed, Counter[Any]] = {}
        _count_leaves(expression, leaves)
        total: Counter[Any] = Counter()
        for each in leaves.values():
            total.update(each)
        n_casts = total.pop(None, 0)
        fields = {key: n for key, n in total.items() if isinstance(key, str)}
        return cls(fields, {key: n for key, n in total.items() if key not in fields}, n_casts, len(leaves))

    def bytes_of(
        self, columns: dict[str, Column], constants: tuple[Any, ...], rows: NDArray[Any], members: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The bytes of strings by pair."""
        n_bytes = np.full(len(rows), self.n_casts * _CAST_BYTES, np.int64)
        for name, n in self.fields.items():
            n_bytes += n * _lengths(columns[name].values, rows)
        for slot, n in self.slots.items():
            n_bytes += n * _lengths(constants[slot], members)
        return n_bytes

    def cut(self, n_bytes: NDArray[np.int64]) -> list[int]:
        """Where to cut pairs, so that the parts take a bounded number of bytes or are single pairs."""
        step = max(1, VALUES_AT_ONCE // self.n_nodes)
        cuts = cut_by_bytes(n_bytes, STRING_BYTES_AT_ONCE)
        return sorted({*cuts, *range(step, len(n_bytes), step)}) if step < len(n_bytes) else cuts


def _count_leaves(node: Typed, leaves: dict[Typed, Counter[Any]]) -> Counter[Any]:
    """The fields and slots that make up the string of a node, as often as they occur in it; of all nodes below too."""
    if node in leaves:
        return leaves[node]
    args = node.args[:2] if node.op in POLYGON_TESTS else node.args  # a polygon is not read as a string
    below = [_count_leaves(arg, leaves) for arg in args]
    found: Counter[Any] = Counter()
    if node.type.name == "string":
        if node.op in ("field", "slot"):
            found[node.name if node.op == "field" else node.slot] = 1
        for each in below:
            found.update(each)
        if node.op == "cast" and not found:
            found[None] = 1
    leaves[node] = found
    return found


def _lengths(values: pa.LargeStringArray, places: NDArray[Any]) -> NDArray[np.int64]:
    offsets = string_buffers(values)[0]
    return np.asarray(offsets[places + 1] - offsets[places], np.int64)
