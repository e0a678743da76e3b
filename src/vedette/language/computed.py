"""Computed fields: expressions of fields that queries compare with constants, as virtual fields.

`lower(symbol) = 'ibm'` is a range of the virtual field `lower(symbol)`, which is evaluated once per row, for any number
of queries. The name of a computed field has its expression, so it needs no place of its own in a saved set. The
condition itself stays a residual: an expression that too few queries share is not computed (see `planner`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.data.columns import Column, join_columns
from vedette.data.moments import is_moment
from vedette.data.schema import TYPE_NAMES, Schema, Type, check_time_zone, is_nested
from vedette.data.views import computed_view, content_of, kind_of, sources_of
from vedette.errors import SchemaError
from vedette.language.evaluation import evaluate_rows
from vedette.language.expressions import Typed, from_json, to_json
from vedette.language.geofences import DISTANCES, FENCES
from vedette.language.vectors import Mask, filler
from vedette.language.writing import write_expression
from vedette.native.damage import check

if TYPE_CHECKING:
    from vedette.language.leaves import Leaf

MAX_COMPUTED = 16  # computed fields of a shape, and of a part of a set: each one costs every row
_MAX_NAME = 4000  # characters
_MAX_CACHED = 1024
_UNKNOWN = ("element", "link", "exists", "forall", "try", *FENCES, *DISTANCES)


@dataclass(frozen=True, eq=False)
class Computed:
    """An expression over the fields of a row. Its slots have one constant each."""

    expression: Typed
    constants: tuple[Any, ...]
    zone: str

    def column(self, columns: dict[str, Column], n_rows: int) -> tuple[Column, Mask]:
        """The values for rows, null where the evaluation fails; and where it fails."""
        parts = list(evaluate_rows(self.expression, self.zone, columns, n_rows, self.constants))
        if len(parts) == 1:
            return parts[0]
        return reduce(join_columns, [column for column, _ in parts]), np.concatenate([failed for _, failed in parts])


@lru_cache(maxsize=_MAX_CACHED)
def read_computed(name: str) -> Computed:
    """The expression of a computed field from its name."""
    tree, values, zone = json.loads(content_of(name))
    expression = from_json(tree)
    types = {node.slot: node.type for node in expression.walk() if node.op == "slot"}
    return Computed(expression, tuple(_constant(types[slot], value) for slot, value in enumerate(values)), zone)


def validate_computed(name: str, schema: Schema) -> Type:
    """The type of a computed field from a file. Raises DamageError unless rows of the schema have it."""
    from vedette.language.validation import check_side, validate_expression

    try:
        computed = read_computed(name)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        check(False, "a computed field has no expression")
        raise
    try:
        check_time_zone(computed.zone)
    except SchemaError:
        check(False, "a computed field has an unknown time zone")
    validate_expression(computed.expression, schema, computed.constants)
    check_side(computed.expression, computed.constants, computed.zone)
    fields = {node.name for node in computed.expression.walk() if node.op == "field"}
    check(fields == set(sources_of(name)), "a computed field has other fields than its expression")
    return computed.expression.type


def as_computed_field(node: Typed, leaf: Leaf) -> Typed | None:
    """The virtual field of an expression; None if it has no fields, or literals that differ between the texts."""
    nodes = list(node.walk())
    fields = sorted({each.name for each in nodes if each.op == "field"})
    is_held = node.type.name in TYPE_NAMES and not is_nested(node.type)
    if not fields or not is_held or node.op == "field" or any(each.op in _UNKNOWN for each in nodes):
        return None
    if any(kind_of(name) or is_moment(name) for name in fields) or any(
        each.type.name == "decimal" and not each.type.precision for each in nodes
    ):
        return None
    slots = {(each.slot, each.type): None for each in nodes if each.op == "slot"}
    if any(len(set(leaf.columns[slot])) > 1 for slot, _ in slots):
        return None
    values = [leaf.values(slot, type_)[0] for slot, type_ in slots]
    expression = _renumbered(node, {key: number for number, key in enumerate(slots)})
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    content = json.dumps([to_json(expression), plain, leaf.zone])
    if len(content) > _MAX_NAME:
        return None
    return Typed(
        "field",
        node.type,
        name=computed_view(write_expression(expression, lambda slot: repr(plain[slot.slot])), content, fields),
    )


def _renumbered(node: Typed, numbers: dict[tuple[int, Type], int]) -> Typed:
    slot = numbers[node.slot, node.type] if node.op == "slot" else -1
    return replace(node, args=tuple(_renumbered(arg, numbers) for arg in node.args), slot=slot)


def _constant(type_: Type, value: Any) -> Any:
    like = filler(type_, 0)
    return pa.array([value], pa.large_string()) if isinstance(like, pa.Array) else np.array([value], like.dtype)
