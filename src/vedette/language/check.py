"""Warnings about a valid text: it never or always matches, has no box, or a polygon seems to cross the antimeridian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vedette.data.boxes import CLOSED, UNBOUNDED, Nulls, Ranges
from vedette.data.schema import Schema
from vedette.language.compiler import CompiledTexts, compile_texts
from vedette.language.expressions import Typed, field_in
from vedette.language.fence_bounds import find_wrapped
from vedette.language.geofences import POLYGON_TESTS
from vedette.language.polygons import find_faults
from vedette.language.residual import Residual
from vedette.language.spelling import write_name
from vedette.settings import settings

_COMPARED = ("<", "<=", ">", ">=", "=")


def check_text(text: str, schema: Schema, time_zone: str = "UTC") -> list[str]:
    """Warnings about a valid text. An invalid text raises QueryError.

    >>> check_text("price > 5 AND price < 3", Schema.parse("price double"))
    ['never matches: no value of price lies in all its ranges']
    """
    compiled = compile_texts([text], schema, time_zone, limits=settings())
    if not compiled.blocks:
        return [f"never matches: {_why_never(text, schema, time_zone)}"]
    if compiled.residuals and not any(residual.fields for residual in compiled.residuals):
        return _check_constant(compiled)
    if not compiled.residuals and _covers_everything(compiled):
        return ["always true: it matches every row"]
    warnings = [warning for residual in compiled.residuals for warning in _check_polygons(residual)]
    return [*_check_boxes(compiled, schema), *warnings]


def _check_boxes(compiled: CompiledTexts, schema: Schema) -> list[str]:
    """A query that no index finds: a box of it constrains no field, or only whether fields are null."""
    loose = [block for block in compiled.blocks if not block.ranges]
    if not loose or schema.streams:
        return []
    numbers = [field.name for field in schema if field.type.is_number]
    example = f"{write_name(numbers[0])} > 0" if numbers else f"{write_name(schema.names[0])} = '...'"
    rewrites = [words for residual in compiled.residuals for words in _rewrites(residual.expression)]
    instead = f"; {rewrites[0]}" if rewrites else ""
    return [
        "every row is a candidate: no comparison with a constant limits the rows, so no index can find the query; add "
        f"one with AND that is rarely true, such as {example} (each branch of an OR needs one){instead}"
    ]


def _rewrites(condition: Typed) -> Iterator[str]:
    """Other ways to write parts of a condition, in which they have a range."""
    for node in condition.walk():
        if node.op in _COMPARED:
            sides = [[each.name for each in arg.walk() if each.op == "field"] for arg in node.args]
            if all(sides) and all(arg.type.is_number for arg in node.args):
                x, y = (write_name(names[0]) for names in sides)
                yield f"a comparison of two fields has a range if it is written as {x} - {y} {node.op} 0"
        elif node.op == "like" and node.args[0].op == "lower":
            yield "ILIKE has a range if it is written as lower(...) LIKE 'abc%', in lower case"


def _check_polygons(residual: Residual) -> list[str]:
    """Polygons that seem to cross the antimeridian."""
    found: list[str] = []
    for node in residual.expression.walk():
        if node.op in POLYGON_TESTS:
            x, polygon = field_in(node.args[0]), node.args[2]
            geometries, _ = find_faults(residual.constants[polygon.slot].to_pylist())
            wrapped = find_wrapped(geometries, None if x is None else x.name)
            found += [f"the polygon {words}" for words in wrapped.values()]
    return list(dict.fromkeys(found))


def _covers_everything(compiled: CompiledTexts) -> bool:
    """Whether boxes contain every row: one has no ranges, or those on one field cover all values and null."""
    if any(not block.ranges for block in compiled.blocks):
        return True
    alone = [block.ranges for block in compiled.blocks if len(block.ranges) == 1]
    with_null = {name for ranges in alone for name, part in ranges.items() if isinstance(part, Nulls)}
    return any(
        _joins_ends(
            [part for ranges in alone for key, part in ranges.items() if key == name and isinstance(part, Ranges)]
        )
        for name in with_null
    )


def _joins_ends(parts: list[Ranges]) -> bool:
    """Whether one range covers all values, or a range without a low end meets one without a high end."""
    upwards: list[tuple[Any, bool]] = []  # the high ends of ranges without a low end, and whether they are inclusive
    downwards: list[tuple[Any, bool]] = []
    for part in parts:
        for k in range(len(part)):
            low_end, high_end = part.low_ends[k], part.high_ends[k]
            if low_end == UNBOUNDED and high_end == UNBOUNDED:
                return True
            if low_end == UNBOUNDED:
                upwards.append((part.highs[k], high_end == CLOSED))
            if high_end == UNBOUNDED:
                downwards.append((part.lows[k], low_end == CLOSED))
    if not upwards or not downwards:
        return False
    high, low = max(high for high, _ in upwards), min(low for low, _ in downwards)
    return bool(low < high or (low == high and ((high, True) in upwards or (low, True) in downwards)))


def _why_never(text: str, schema: Schema, time_zone: str) -> str:
    """The reason: the field that has no value left, if there is one."""
    from vedette.language.compiler import emptied_fields

    fields = emptied_fields(text, schema, time_zone)
    if fields:
        return f"no value of {' or '.join(fields)} lies in all its ranges"
    return "it is false or null for every row"


def _check_constant(compiled: CompiledTexts) -> list[str]:
    """Warnings about a residual without fields, which has the same answer for all rows."""
    nothing = np.zeros(1, np.int64)
    if all(residual.evaluate({}, nothing, nothing)[0].all() for residual in compiled.residuals):
        return [] if any(block.ranges for block in compiled.blocks) else ["always true: it matches every row"]
    return ["never matches: it is false or null for every row"]
