"""Constant folding: what a residual computes from literals alone is computed once, when a query is added.

`lower('ABC')` then costs nothing per row. A part that is null or fails for a query stays as it is, so that it is null
or fails at the same place as before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vedette.language.expressions import BOOLEAN, NULL, Typed
from vedette.language.geofences import FENCES

_MAX_BYTES = 1 << 26  # of strings made in this way; beyond it the part is computed per pair


def fold_literals(expression: Typed, constants: tuple[Any, ...], zone: str, n: int) -> tuple[Typed, tuple[Any, ...]]:
    """The expression with slots instead of parts without fields, and the constants of its slots."""
    values: dict[Typed, Any] = {}
    for part in _parts(expression):
        if part not in values:
            found = _evaluate(part, constants, zone, n)
            if found is not None:
                values[part] = found
    if not values:
        return expression, constants
    kept: list[Any] = []
    numbers: dict[Any, int] = {}

    def rebuild(node: Typed) -> Typed:
        key = node if node in values else (node.slot if node.op == "slot" else None)
        if key is not None:
            if key not in numbers:
                numbers[key] = len(kept)
                kept.append(values[node] if node in values else constants[node.slot])
            return Typed("slot", node.type, slot=numbers[key])
        args = tuple(map(rebuild, node.args))
        return Typed(node.op, node.type, args, node.name, -1, node.value, node.start, node.end)

    return rebuild(expression), tuple(kept)


def _parts(node: Typed) -> list[Typed]:
    """The largest parts that read literals and no fields."""
    if node.op in FENCES or node.op == "try":
        return []
    below = list(node.walk())
    is_constant = any(each.op == "slot" for each in below) and not any(
        each.op in ("field", "link", "element") or each.op in FENCES for each in below
    )
    if is_constant:
        return [] if node.op == "slot" or node.type in (BOOLEAN, NULL) else [node]
    return [part for arg in node.args for part in _parts(arg)]


def _evaluate(part: Typed, constants: tuple[Any, ...], zone: str, n: int) -> Any:
    """The value for each query, or None."""
    from vedette.language.evaluation import Evaluation
    from vedette.language.string_use import StringUse

    queries = np.arange(n)
    use = StringUse.of(part)
    if not use.is_empty and int(use.bytes_of({}, constants, queries, queries).sum()) > _MAX_BYTES:
        return None
    vector = Evaluation(constants, zone, {}, queries, queries, {}).of(part)
    return vector.values if vector.lost is None and vector.usable.all() else None
