"""Geofences widened by a margin: a point is then inside as far as the margin from the fence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from vedette.language.expressions import Typed, field_in
from vedette.language.geofences import FENCES
from vedette.language.residual import Residual


def widen_fences(residual: Residual, margins: Mapping[str, float]) -> Residual:
    """The residual with its fences widened whose two fields have one margin; a negated fence stays as it is."""
    return dataclasses.replace(residual, expression=_widen(residual.expression, margins))


def _widen(node: Typed, margins: Mapping[str, float]) -> Typed:
    if node.op in ("and", "or"):
        return dataclasses.replace(node, args=tuple(_widen(arg, margins) for arg in node.args))
    if node.op not in FENCES:
        return node
    fields = [field_in(arg) for arg in node.args[:2]]
    x, y = (None if field is None else margins.get(field.name) for field in fields)
    return dataclasses.replace(node, value=x) if x is not None and x == y else node
