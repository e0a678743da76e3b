"""Comparisons of vectors in Spark's order."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from vedette.data.schema import Type
from vedette.language.ranges import less
from vedette.language.vectors import Vector, strict


def compare(op: str, a: Vector, b: Vector, type_: Type) -> Vector:
    """a op b in Spark's order: NaN is the greatest double, and equal to itself."""
    if op == "<=>":
        equal = compare("=", a, b, type_)
        both = a.nulls & b.nulls
        same = np.where(a.nulls | b.nulls, both, equal.values)
        return Vector(same, None, equal.failed, equal.lost)
    if type_.is_text:
        function = {
            "=": pc.equal,
            "<>": pc.not_equal,
            "<": pc.less,
            "<=": pc.less_equal,
            ">": pc.greater,
            ">=": pc.greater_equal,
        }
        result = function[op](a.values, b.values).fill_null(False).to_numpy(zero_copy_only=False)
        return strict(result, a, b)
    x, y = a.values, b.values
    if type_.name == "null":
        return strict(np.zeros(len(a), np.bool_), a, b)
    if op in ("<", ">="):
        below = less(x, y)
        return strict(below if op == "<" else ~below, a, b)
    if op in (">", "<="):
        above = less(y, x)
        return strict(above if op == ">" else ~above, a, b)
    same = np.asarray(x == y, np.bool_)
    if type_.is_floating:
        same = same | (np.isnan(x) & np.isnan(y))
    return strict(same if op == "=" else ~same, a, b)
