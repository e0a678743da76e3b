"""An upper bound on the memory that an evaluation takes for a pair, computed before the evaluation.

An evaluation keeps the value of every distinct node. A string function may repeat a field many times, so the strings of
a pair may be much larger than its row. Most string functions work on Python strings, which take up to four bytes for a
character that takes one byte in Arrow; they exist for one node at a time.
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
from vedette.language.function_table import FUNCTIONS, TABLE
from vedette.language.geofences import POLYGON_TESTS
from vedette.native.budget import cut_by_bytes

STRING_BYTES_AT_ONCE = 1 << 24  # of strings that an evaluation reads and makes, about
MAX_STRING_BYTES = 1 << 30  # for a single pair; a pair that needs more fails
VALUES_AT_ONCE = 1 << 26  # of all nodes
_SMALL = 80  # bytes of a number or a date as a string, and of a Python string without its characters, at most
_PYTHON_WIDTH = 4
_PATTERN_WIDTH = 12  # a pattern of LIKE as a Python string, and twice in pieces
_IN_ARROW = {"=", "<>", "<", "<=", ">", ">=", "<=>", "in", "case"} | {each.name for each in TABLE if each.in_arrow}


@dataclass(frozen=True)
class StringUse:
    """How many times the bytes of fields and slots an evaluation takes, and how many distinct nodes it has."""

    fields: dict[str, int]
    slots: dict[int, int]
    n_small: int  # strings of at most `_SMALL` bytes
    n_nodes: int

    @classmethod
    def of(cls, expression: Typed) -> StringUse:
        leaves: dict[Typed, Counter[Any]] = {}
        _count_leaves(expression, leaves)
        total: Counter[Any] = Counter()
        largest: Counter[Any] = Counter()  # of a single node during its evaluation
        for node, each in leaves.items():
            total.update(each)
            largest |= _count_copies(node, leaves)
        total.update(largest)
        n_small = total.pop(None, 0)
        fields = {key: n for key, n in total.items() if isinstance(key, str)}
        return cls(fields, {key: n for key, n in total.items() if key not in fields}, n_small, len(leaves))

    @property
    def is_empty(self) -> bool:
        """Whether there are no strings."""
        return not (self.fields or self.slots or self.n_small)

    def bytes_of(
        self, columns: dict[str, Column], constants: tuple[Any, ...], rows: NDArray[Any], members: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The bytes of strings by pair."""
        n_bytes = np.full(len(rows), self.n_small * _SMALL, np.int64)
        for name, n in self.fields.items():
            n_bytes += n * _lengths(columns[name].values, rows)
        for slot, n in self.slots.items():
            n_bytes += n * _lengths(constants[slot], members)
        return n_bytes

    def cut(self, n_bytes: NDArray[np.int64]) -> list[int]:
        """Where to cut pairs, so that parts have a bounded number of bytes or are single pairs."""
        step = max(1, VALUES_AT_ONCE // self.n_nodes)
        cuts = cut_by_bytes(n_bytes, STRING_BYTES_AT_ONCE)
        return sorted({*cuts, *range(step, len(n_bytes), step)}) if step < len(n_bytes) else cuts


def _count_leaves(node: Typed, leaves: dict[Typed, Counter[Any]]) -> Counter[Any]:
    """The fields and slots that make up the string of a node, as often as they occur in it; of all nodes below too."""
    if node in leaves:
        return leaves[node]
    below = [_count_leaves(arg, leaves) for arg in _args(node)]
    found: Counter[Any] = Counter()
    if node.type.name == "string":
        if node.op in ("field", "slot"):
            found[node.name if node.op == "field" else node.slot] = 1
        for each in below:
            found.update(each)
        if node.op in FUNCTIONS:
            found = _times(found, FUNCTIONS[node.op].growth)
        if node.op == "cast" and not found:
            found[None] = 1
    leaves[node] = found
    return found


def _count_copies(node: Typed, leaves: dict[Typed, Counter[Any]]) -> Counter[Any]:
    """The fields and slots in copies of the strings of a node and its arguments, as often as they occur."""
    found: Counter[Any] = Counter()
    if not node.args:
        return found
    width = 1 if node.op in _IN_ARROW else _PYTHON_WIDTH
    for place, each in enumerate((node, *_args(node))):
        if each.type.name == "string":
            found.update(_times(leaves[each], _PATTERN_WIDTH if node.op == "like" and place == 2 else width))
            found[None] += width > 1
    return found


def _args(node: Typed) -> tuple[Typed, ...]:
    return node.args[:2] if node.op in POLYGON_TESTS else node.args  # a polygon is not read as a string


def _times(counted: Counter[Any], factor: int) -> Counter[Any]:
    return Counter({key: factor * n for key, n in counted.items()})


def _lengths(values: pa.LargeStringArray, places: NDArray[Any]) -> NDArray[np.int64]:
    offsets = string_buffers(values)[0]
    return np.asarray(offsets[places + 1] - offsets[places], np.int64)
