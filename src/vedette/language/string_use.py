"""An upper bound on the memory that an evaluation takes for a pair, computed before the evaluation.

An evaluation keeps the value of every distinct node. A string function may repeat a field many times, so the strings of
a pair may be much larger than its row. Most string functions work on Python strings, which take up to four bytes for a
character that takes one byte in Arrow; they exist for one node at a time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column, string_buffers
from vedette.data.list_axes import flatten
from vedette.data.row_sizes import bytes_per_row
from vedette.data.schema import is_nested
from vedette.data.views import kind_of, source_of, view_of
from vedette.language.expressions import QUANTIFIERS, Typed
from vedette.language.function_table import FUNCTIONS, TABLE
from vedette.language.functions.function import Sizes
from vedette.language.geofences import POLYGON_TESTS
from vedette.native.budget import cut_by_bytes

STRING_BYTES_AT_ONCE = 1 << 24  # of strings that an evaluation reads and makes, about
MAX_STRING_BYTES = 1 << 30  # for a single pair; a pair that needs more fails
VALUES_AT_ONCE = 1 << 26  # of all nodes
_FEWER = {**dict.fromkeys(POLYGON_TESTS, 2), **dict.fromkeys(QUANTIFIERS, 1)}  # see `_args`
_VALUE = 8  # bytes of a number, and of the offset of a string
_SMALL = 80  # bytes of a number or a date as a string, and of a Python string without its characters, at most
_PYTHON_WIDTH = 4
_ENOUGH = 1 << 31  # more than a pair may take; products of two stay within 64 bits
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PATTERN_LETTERS = 8  # letters of a pattern of times that write at most `_SMALL` bytes
_PATTERN_WIDTH = 12  # a pattern of LIKE as a Python string, and twice in pieces
_IN_ARROW = {"=", "<>", "<", "<=", ">", ">=", "<=>", "in", "case"} | {each.name for each in TABLE if each.in_arrow}


@dataclass(frozen=True)
class StringUse:
    """How many times the bytes of fields and slots an evaluation takes, and how many distinct nodes it has."""

    fields: dict[str, int]
    slots: dict[int, int]
    made: dict[Typed, int]  # calls whose results have a size of their own
    n_small: int  # strings of at most `_SMALL` bytes
    n_nodes: int
    leaves: dict[Typed, Counter[Any]]  # of every node
    conditions: tuple[tuple[Typed, StringUse], ...] = ()  # on elements: the array, and what one element takes

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
        slots = {key: n for key, n in total.items() if isinstance(key, int)}
        made = {key: n for key, n in total.items() if isinstance(key, Typed)}
        conditions = [
            (node.args[0], cls.of(_of_array(node.args[1], node.name, node.args[0])))
            for node in leaves
            if node.op in QUANTIFIERS
        ]
        return cls(fields, slots, made, n_small, len(leaves), leaves, tuple(conditions))

    @property
    def is_empty(self) -> bool:
        """Whether there are no strings."""
        return not (self.fields or self.slots or self.made or self.n_small or self.conditions)

    def bytes_of(
        self, columns: dict[str, Column], constants: tuple[Any, ...], rows: NDArray[Any], members: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The bytes of strings by pair."""
        n_bytes = np.full(len(rows), self.n_small * _SMALL, np.int64)
        pairs = _Pairs(columns, constants, rows, members)
        counted: dict[Any, int] = {**self.fields, **self.slots}
        for key, n in counted.items():
            n_bytes += n * pairs.lengths(key)
        if self.made:
            known: dict[Any, NDArray[np.int64]] = {}
            for call, n in self.made.items():
                n_bytes += n * self._size(call, pairs, known)
        for array, use in self.conditions:
            each = use.bytes_of(columns, constants, rows, members) + _VALUE * use.n_nodes
            n_bytes += self._count_elements(array, pairs) * each
        return n_bytes

    def _count_elements(self, array: Typed, pairs: _Pairs) -> NDArray[np.int64]:
        """How many elements an array has, at most: of a computed one, as many as it has bytes, and one more."""
        if array.op == "field":
            return _count_elements(pairs.columns[array.name].values, pairs.rows)
        return 1 + self._sum(self.leaves[array], pairs, {})

    def _size(self, key: Any, pairs: _Pairs, known: dict[Any, NDArray[np.int64]]) -> NDArray[np.int64]:
        """The bytes of a field, a slot, or the result of a call with a size of its own."""
        if key in known:
            return known[key]
        if isinstance(key, Typed):
            sizes = Sizes(
                [self._sum(self.leaves[arg], pairs, known) for arg in key.args],
                [pairs.numbers(arg) for arg in key.args],
            )
            size_of = FUNCTIONS[key.op].size
            assert size_of is not None
            known[key] = np.minimum(size_of(sizes), _ENOUGH)
        else:
            known[key] = pairs.lengths(key)
        return known[key]

    def _sum(self, leaves: Counter[Any], pairs: _Pairs, known: dict[Any, NDArray[np.int64]]) -> NDArray[np.int64]:
        total = np.zeros(len(pairs.rows), np.int64)
        for key, n in leaves.items():
            total += n * self._size(key, pairs, known)
        return np.minimum(total, _ENOUGH)

    def cut(self, n_bytes: NDArray[np.int64]) -> list[int]:
        """Where to cut pairs, so that parts have a bounded number of bytes or are single pairs."""
        step = max(1, VALUES_AT_ONCE // self.n_nodes)
        cuts = cut_by_bytes(n_bytes, STRING_BYTES_AT_ONCE)
        return sorted({*cuts, *range(step, len(n_bytes), step)}) if step < len(n_bytes) else cuts


class _Pairs(NamedTuple):
    columns: dict[str, Column]
    constants: tuple[Any, ...]
    rows: NDArray[Any]
    members: NDArray[Any]

    def lengths(self, key: str | int | None) -> NDArray[np.int64]:
        """The bytes of a field, a slot, or a small string."""
        if key is None:
            return np.full(len(self.rows), _SMALL, np.int64)
        if isinstance(key, str) and kind_of(key):
            return np.asarray(_longest(self.columns[source_of(key)].values)[self.rows])
        if isinstance(key, str):
            return _lengths(self.columns[key].values, self.rows)
        return _lengths(self.constants[key], self.members)

    def numbers(self, node: Typed) -> NDArray[np.int64] | None:
        """The values of an integer field or literal, also under a cast."""
        while node.op == "cast" and node.type.name in _INTEGERS:
            node = node.args[0]
        if node.type.name not in _INTEGERS or node.op not in ("field", "slot"):
            return None
        if node.op == "slot":
            return np.asarray(self.constants[node.slot][self.members], np.int64)
        return np.asarray(self.columns[node.name].values[self.rows], np.int64)


def _count_leaves(node: Typed, leaves: dict[Typed, Counter[Any]]) -> Counter[Any]:
    """The fields and slots that make up the string of a node, as often as they occur in it; of all nodes below too."""
    if node in leaves:
        return leaves[node]
    below = [_count_leaves(arg, leaves) for arg in _args(node)]
    found: Counter[Any] = Counter()
    if node.type.is_text or is_nested(node.type):
        if node.op in ("field", "slot", "element"):
            found[node.slot if node.op == "slot" else node.name] = 1
        for each in below:
            found.update(each)
        function = FUNCTIONS.get(node.op)
        if function is not None and function.size is not None:
            found = Counter({node: 1})
        elif function is not None:
            found = _times(found, function.growth)
        if node.op == "cast" and node.type.name == "binary":
            found = _times(found, 2)  # a byte above 127 takes two in UTF-8
        if node.args and not found:  # a number or a time as a string
            found[None] = 1 + len(str(node.value or "")) // _PATTERN_LETTERS
    leaves[node] = found
    return found


def _count_copies(node: Typed, leaves: dict[Typed, Counter[Any]]) -> Counter[Any]:
    """The fields and slots in copies of the strings of a node and its arguments, as often as they occur."""
    found: Counter[Any] = Counter()
    if not node.args:
        return found
    width = 1 if node.op in _IN_ARROW else _PYTHON_WIDTH
    for place, each in enumerate((node, *_args(node))):
        if each.type.is_text:
            found.update(_times(leaves[each], _PATTERN_WIDTH if node.op == "like" and place == 2 else width))
            found[None] += width > 1
    return found


def _args(node: Typed) -> tuple[Typed, ...]:
    """The arguments whose strings are used for a pair: not a polygon, nor what is evaluated for each element."""
    return node.args[: _FEWER.get(node.op, len(node.args))]


def _of_array(condition: Typed, element: str, array: Typed) -> Typed:
    """A condition on elements in which these are named by their array; one of a computed array is at most all of it."""
    if condition.op == "element" and condition.name == element:
        if array.op == "field":
            return replace(condition, name=view_of(array.name, "longest element"))
        return replace(array, type=condition.type)
    return replace(condition, args=tuple(_of_array(arg, element, array) for arg in condition.args))


def _times(counted: Counter[Any], factor: int) -> Counter[Any]:
    return Counter({key: factor * n for key, n in counted.items()})


def _count_elements(values: pa.LargeListArray, places: NDArray[Any]) -> NDArray[np.int64]:
    lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(lengths[places], np.int64)


def _longest(lists: pa.LargeListArray) -> NDArray[np.int64]:
    """The bytes of the longest string in each list."""
    starts, strings = flatten(Column(lists))
    lengths = pc.binary_length(strings).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    longest = np.zeros(len(lists), np.int64)
    held = np.flatnonzero(np.diff(starts))
    if len(held):
        longest[held] = np.maximum.reduceat(lengths, starts[held])
    return longest


def _lengths(values: pa.LargeStringArray | pa.LargeListArray, places: NDArray[Any]) -> NDArray[np.int64]:
    if isinstance(values, pa.LargeListArray):
        return np.asarray(bytes_per_row(values)[places])
    offsets = string_buffers(values)[0]
    return np.asarray(offsets[places + 1] - offsets[places], np.int64)
