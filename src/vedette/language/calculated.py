"""Calculations with literals that a field is compared with, done once per text, when a query is added.

`ts > TIMESTAMP '2024-03-01 00:00:00' - INTERVAL 1 HOUR` is then a comparison with a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.data.schema import Type
from vedette.language.evaluation import Evaluation
from vedette.language.expressions import BOOLEAN, STRING, Typed
from vedette.language.function_table import EVALUATORS

if TYPE_CHECKING:
    from vedette.language.leaves import Leaf

_NOT_LITERAL = ("field", "element", "link")
_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "pmod", "cast")
_READ = {  # casts that are part of reading a literal: those that fail are errors
    "int": ("bigint", "decimal", "double"),
    "bigint": ("decimal", "double"),
    "decimal": ("double", "decimal"),
    "string": ("int", "bigint", "double", "decimal", "boolean", "date", "timestamp", "timestamp_ntz"),
    "date": ("timestamp", "timestamp_ntz"),
    "timestamp_ntz": ("timestamp",),
}


@dataclass
class Folder:
    """Turns trees over the literals of a shape into trees over constants: slot `k` has the values `pool[k]`."""

    leaf: Leaf
    pool: list[Any] = field(default_factory=list)
    _places: dict[tuple[int, Type], int] = field(default_factory=dict)

    def fold(self, node: Typed, *, reads: bool = True) -> Typed:
        """The tree with calculations of literals evaluated; those that are null or fail for a text stay."""
        inner = node.args[0] if node.op == "cast" else node
        if reads and node.op == "cast" and inner.op == "slot" and node.type.name in _READ.get(inner.type.name, ()):
            node = Typed("slot", node.type, slot=inner.slot)
        if node.op == "slot":
            return Typed("slot", node.type, slot=self._literal(node.slot, node.type))
        args = tuple(self.fold(arg, reads=node.op != "try") for arg in node.args)
        folded = Typed(node.op, node.type, args, node.name, -1, None if node.op == "cast" else node.value)
        return self._calculate(folded) if reads and _is_calculation(folded) else folded

    def _literal(self, slot: int, type_: Type) -> int:
        place = self._places.get((slot, type_))
        if place is None:
            values = self.leaf.values(slot, type_)
            self.pool.append(pa.array(values, pa.large_string()) if type_ == STRING else values)
            place = self._places[slot, type_] = len(self.pool) - 1
        return place

    def _calculate(self, node: Typed) -> Typed:
        texts = np.arange(self.leaf.n)
        result = Evaluation(tuple(self.pool), self.leaf.zone, {}, texts, texts, {}).of(node)
        if not result.usable.all() or result.lost is not None:
            return node
        self.pool.append(result.values)
        return Typed("slot", node.type, slot=len(self.pool) - 1)


def fold_constant(node: Typed, leaf: Leaf) -> Any | None:
    """The values of an expression of literals, one per text; None if it is not one, or if it is null or fails."""
    if any(
        each.op in _NOT_LITERAL or (each.type.name == "decimal" and not each.type.precision) for each in node.walk()
    ):
        return None
    folder = Folder(leaf)
    folded = folder.fold(node)
    return folder.pool[folded.slot] if folded.op == "slot" else None


def _is_calculation(node: Typed) -> bool:
    """Whether an operation on constants, with a value of a few bytes, can be evaluated."""
    if not node.args or node.type in (BOOLEAN, STRING) or (node.type.name == "decimal" and not node.type.precision):
        return False
    return (node.op in _ARITHMETIC or node.op in EVALUATORS) and all(arg.op == "slot" for arg in node.args)
