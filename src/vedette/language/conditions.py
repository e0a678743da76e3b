"""The condition of one query as a typed tree: from its text, or from its boxes and residuals where there is no text.

A condition is a residual of one query that stands for the whole of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.boxes import CLOSED, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.moments import find_field, relative_to_now
from vedette.data.schema import Schema, Type, element_of, value_of
from vedette.data.views import ELEMENTS, SUBSTRINGS, is_computed, key_of, kind_of, source_of
from vedette.errors import SnapshotError
from vedette.language.expressions import BOOLEAN, DOUBLE, TIME_INTERVAL, Typed
from vedette.language.residual import Residual

_QUERY = np.zeros(1, np.int64)


def condition_of_boxes(
    blocks: Sequence[BoxBlock], residuals: Sequence[Residual], schema: Schema, time_zone: str
) -> Residual:
    """The condition of the only query of these boxes and residuals."""
    boxes = _Boxes(schema)
    tree = _join("or", [boxes.read(block, place) for block in blocks for place in range(len(block))])
    conjuncts = [tree]
    for residual in residuals:
        conjuncts.append(_shift(residual.expression, len(boxes.constants)))
        boxes.constants += residual.constants
    if len(conjuncts) > 1 and tree.op == "constant" and tree.value is True:
        conjuncts = conjuncts[1:]
    return Residual(_QUERY, _join("and", conjuncts), tuple(boxes.constants), time_zone)


def _shift(node: Typed, by: int) -> Typed:
    """The tree with slots numbered from `by`."""
    slot = node.slot + by if node.op == "slot" else node.slot
    return replace(node, slot=slot, args=tuple(_shift(arg, by) for arg in node.args))


def _join(op: str, nodes: Sequence[Typed]) -> Typed:
    if not nodes:
        return Typed("constant", BOOLEAN, value=op == "and")
    flat = tuple(inner for node in nodes for inner in (node.args if node.op == op else (node,)))
    return flat[0] if len(flat) == 1 else Typed(op, BOOLEAN, flat)


class _Boxes:
    """Boxes as trees; their ends are constants."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.constants: list[Any] = []

    def read(self, block: BoxBlock, place: int) -> Typed:
        """What is compared with a computed field is also a residual, so its range is left out."""
        held = {name: ranges for name, ranges in block.ranges.items() if not is_computed(name)}
        return _join("and", [self._read_range(name, ranges, place) for name, ranges in held.items()])

    def _read_range(self, name: str, ranges: Ranges | Nulls, place: int) -> Typed:
        field = find_field(self.schema, source_of(name))
        if field is None:
            raise SnapshotError(f"the set has a range of field {source_of(name)!r}, which is not in its schema")
        is_relative = field.name == relative_to_now(field.name.removesuffix(relative_to_now("")))
        node = Typed("field", TIME_INTERVAL if is_relative else field.type, name=field.name)
        key = key_of(name)
        if key is not None:
            node = Typed("map value", value_of(field.type), (node,), value=key)
        if isinstance(ranges, Nulls):
            return Typed("isnull", BOOLEAN, (node,))
        if kind_of(name) == SUBSTRINGS:
            return Typed("contains", BOOLEAN, (node, self._constant(ranges.lows[place], field.type)))
        if kind_of(name) == ELEMENTS:
            element = Typed("element", element_of(field.type), name="0")
            return Typed("exists", BOOLEAN, (node, self._compare(element, ranges, place)), name="0")
        return self._compare(node, ranges, place)

    def _compare(self, node: Typed, ranges: Ranges, place: int) -> Typed:
        low, high = ranges.lows[place], ranges.highs[place]
        low_end, high_end = int(ranges.low_ends[place]), int(ranges.high_ends[place])
        if low_end == CLOSED and high_end == CLOSED and low == high:
            return self._test("=", node, low)
        tests = []
        if low_end != UNBOUNDED:
            tests.append(self._test(">=" if low_end == CLOSED else ">", node, low))
        if high_end != UNBOUNDED:
            tests.append(self._test("<=" if high_end == CLOSED else "<", node, high))
        if not tests:
            return Typed("not", BOOLEAN, (Typed("isnull", BOOLEAN, (node,)),))
        return _join("and", tests)

    def _test(self, op: str, node: Typed, value: Any) -> Typed:
        if node.type.name == "float":  # the ends of its ranges are doubles
            node = Typed("cast", DOUBLE, (node,))
        return Typed(op, BOOLEAN, (node, self._constant(value, node.type)))

    def _constant(self, value: Any, type_: Type) -> Typed:
        if type_.is_text:
            held: Any = pa.array([value], pa.large_string())
        else:
            held = np.array([value], object) if isinstance(value, int) and abs(value) >= 1 << 63 else np.array([value])
        self.constants.append(held)
        return Typed("slot", type_, slot=len(self.constants) - 1)
