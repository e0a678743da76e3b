"""Comparisons of a timestamp without a zone with a constant timestamp.

The optimiser of Spark does not cast each local time to an instant but the constant to a local time, unless the constant
is the second of two instants with that local time. The answers differ where a change of clocks skips local times.
"""

from __future__ import annotations

import numpy as np

from vedette.data.moments import NOW
from vedette.language.comparison import compare
from vedette.language.expressions import TIMESTAMP, TIMESTAMP_NTZ, Typed
from vedette.language.times import Zone
from vedette.language.vectors import Vector

UNWRAPPED = "unwrapped"  # the value of the node of such a comparison


def is_unwrapped(left: Typed, right: Typed) -> bool:
    """Whether Spark casts the constant of a comparison instead of the local time."""
    return any(
        _is_local(one) and not _is_constant(one) and other.type == TIMESTAMP and _is_constant(other)
        for one, other in ((left, right), (right, left))
    )


def _is_local(node: Typed) -> bool:
    """Whether a node is a local time, or one that is cast to an instant."""
    is_cast = node.op == "cast" and node.type == TIMESTAMP
    return node.type == TIMESTAMP_NTZ or (is_cast and node.args[0].type == TIMESTAMP_NTZ)


def _is_constant(node: Typed) -> bool:
    return not any(each.op == "element" or (each.op == "field" and each.name != NOW) for each in node.walk())


def cast_side(node: Typed) -> int:
    """Which argument of such a comparison is the local time."""
    return 0 if _is_local(node.args[0]) and not _is_constant(node.args[0]) else 1


def compare_unwrapped(node: Typed, sides: tuple[Vector, Vector], local: Vector, zone: str) -> Vector:
    """The comparison, of `sides` as instants, one of which was the local time `local`."""
    place, clock = cast_side(node), Zone(zone)
    constant = sides[1 - place]
    constants = clock.to_locals(constant.values)
    is_first = clock.from_locals(constants) == constant.values
    pair = (local, constant.with_values(constants)) if place == 0 else (constant.with_values(constants), local)
    by_local = compare(node.op, *pair, TIMESTAMP_NTZ)
    by_instant = compare(node.op, *sides, TIMESTAMP)
    return by_local.with_values(np.where(is_first, by_local.values, by_instant.values))
