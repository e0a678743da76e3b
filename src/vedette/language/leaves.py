"""Leaves of a predicate as forms: a comparison of one field with constants, or unknown.

`Leaf` has the literals of all texts of a shape, and returns the form of one node at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED
from vedette.data.schema import Type
from vedette.language.expressions import BOOLEAN, Typed, field_in
from vedette.language.geofences import FENCES, Bounds, bounds_of
from vedette.language.links import link_form
from vedette.language.literals import BadLiteralError, Kind, SlotError, physical, read_strings
from vedette.language.normal_form import NOTHING, UNKNOWN, Form, Part, either, is_null, not_null
from vedette.language.patterns import BadPatternError, classify
from vedette.language.ranges import (
    Band,
    Cut,
    bigint_in_doubles,
    dates_in_timestamps,
    decimal_in_doubles,
    exact_cut,
    integers_in_decimals,
    prefix_band,
)

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "<=>": "<=>"}
# Field type -> the types in which a comparison with it is still a range of the field's values.
_MONOTONE = {
    "bigint": ("bigint", "decimal", "double"),
    "double": ("double",),
    "decimal": ("decimal", "double"),
    "string": ("string",),
    "boolean": ("boolean",),
    "date": ("date", "timestamp"),
    "timestamp": ("timestamp",),
}
_READ_AS_LITERAL = ("date", "timestamp", "bigint", "double", "boolean")


class Leaf:
    """Forms of leaves over the literals of `n` texts. `columns[slot]` are the literals of a slot as written."""

    def __init__(
        self, columns: Sequence[Sequence[str]], kinds: Sequence[Kind], negated: Sequence[bool], n: int, zone: str
    ) -> None:
        self.columns = columns
        self.kinds = kinds
        self.negated = negated
        self.n = n
        self.zone = zone
        self._values: dict[tuple[int, Type], Any] = {}
        self._bounds: dict[Typed, Bounds] = {}

    def values(self, slot: int, to: Type) -> Any:
        """The literals of a slot in the physical form of a type."""
        key = (slot, to)
        if key not in self._values:
            try:
                kind = self.kinds[slot].name
                self._values[key] = physical(self.columns[slot], kind, self.negated[slot], to, self.zone)
            except BadLiteralError as bad:
                raise SlotError(bad.reason, slot, bad.position) from None
        return self._values[key]

    def bounds(self, fence: Typed) -> Bounds:
        """The boxes around a geofence. An invalid geofence is a SlotError."""
        if fence not in self._bounds:
            self._bounds[fence] = bounds_of(fence, self.columns, self.values)
        return self._bounds[fence]

    def form(self, node: Typed, wanted: bool) -> Form:
        """Where the node is TRUE, or FALSE. UNKNOWN if that is not a union of boxes."""
        op = node.op
        if op in _FLIPPED:
            return self._comparison(node, wanted)
        if op == "link":
            return link_form(node, wanted, self.n)
        if op == "in":
            return self._membership(node, wanted)
        if op == "field":
            return self._compare_cut(node, "=", self._constant_cut(wanted))
        if op == "isnull" and node.args[0].op == "field":
            field = node.args[0]
            return is_null(field.name) if wanted else not_null(field.name, field.type, self.n)
        if op == "isnull" and node.args[0].op in ("slot", "constant"):
            null = node.args[0].op == "constant" and node.args[0].value is None
            return Form([{}]) if null == wanted else NOTHING
        if op in ("like", "startswith") and node.args[0].op == "field" and node.args[1].op == "slot":
            return self._prefix(node, wanted)
        if op in FENCES and wanted:
            return self._fence(node)
        return UNKNOWN

    # -- comparisons

    def _comparison(self, node: Typed, wanted: bool) -> Form:
        left, right = node.args
        op = node.op
        field, constant = field_in(left), right
        if field is None:
            field, constant, op = field_in(right), left, _FLIPPED[op]
        if field is None:
            return UNKNOWN
        if constant.op == "constant" and constant.value is None:
            if op != "<=>":
                return NOTHING  # null for every row
            return is_null(field.name) if wanted else not_null(field.name, field.type, self.n)
        cut = self._cut(field, constant, exact=op in ("<", "<=", ">", ">="))
        if cut is None:
            return UNKNOWN
        if op == "<=>":
            equal = self._compare_cut(field, "=" if wanted else "<>", cut)
            return equal if wanted else either([equal, is_null(field.name)])
        return self._compare_cut(field, op if wanted else _NEGATED[op], cut)

    def _compare_cut(self, field: Typed, op: str, cut: Cut) -> Form:
        ops = ("<", ">") if op == "<>" else (op,)
        return Form([{field.name: cut.band(one)} for one in ops])

    def _membership(self, node: Typed, wanted: bool) -> Form:
        field = field_in(node.args[0])
        if field is None:
            return UNKNOWN
        cuts: list[Cut] = []
        has_null = False
        for item in node.args[1:]:
            if item.op == "constant" and item.value is None:
                has_null = True
                continue
            cut = self._cut(field, item)
            if cut is None:
                return UNKNOWN
            cuts.append(cut)
        if wanted:
            return either([self._compare_cut(field, "=", cut) for cut in cuts])
        if has_null:
            return NOTHING
        return either([Form([{field.name: band}]) for band in _between_cuts(cuts)])

    def _cut(self, field: Typed, constant: Typed, *, exact: bool = False) -> Cut | None:
        """Where a constant lies among the field's values; None if it is not a constant or the cast is not monotone.

        With `exact`, a bigint and a decimal are compared without rounding.
        """
        to = constant.type
        if to.name not in _MONOTONE[field.type.name]:
            return None
        if constant.op == "constant":
            return self._constant_cut(bool(constant.value)) if to == BOOLEAN else None
        slot = _slot_in(constant)
        if slot is None:
            return None
        kind = self.kinds[slot].name
        if to.name == "decimal":
            if kind == "string":
                return None
            self.values(slot, Type("double"))  # checks the digits
            exact = exact and field.type.name == "bigint"
            return integers_in_decimals(self.columns[slot], self.negated[slot], field.type, exact=exact)
        values = self.values(slot, to)
        if to.name == "double":
            return _cut_at_doubles(field.type, values)
        if field.type.name == to.name:
            return exact_cut(values)
        assert to.name == "timestamp", kind
        return dates_in_timestamps(values, self.zone)

    def _constant_cut(self, value: bool) -> Cut:
        return exact_cut(np.full(self.n, value, np.bool_))

    # -- strings

    def _prefix(self, node: Typed, wanted: bool) -> Form:
        field, slot = node.args[0], node.args[1].slot
        texts = read_strings(self.columns[slot])
        classes = {"prefix"}
        if node.op == "like":
            parsed = []
            for position, text in enumerate(texts):
                try:
                    parsed.append(classify(text, str(node.value)))
                except BadPatternError as bad:
                    raise SlotError(str(bad), slot, position) from None
            classes = {what for what, _ in parsed}
            texts = [stem for _, stem in parsed]
        if classes == {"equal"}:
            return self._compare_cut(field, "=" if wanted else "<>", exact_cut(np.array(texts, object)))
        if classes != {"prefix"}:
            return UNKNOWN
        band = prefix_band(texts)
        if wanted:
            return Form([{field.name: band}])
        unbounded = np.full(self.n, UNBOUNDED, np.int8)
        below = Band(band.lows, band.lows, unbounded, np.full(self.n, OPEN, np.int8), band.lows != "")
        ends = np.full(self.n, CLOSED, np.int8)
        above = Band(band.highs, band.highs, ends, unbounded, band.high_ends != UNBOUNDED)
        return Form([{field.name: below}, {field.name: above}])

    # -- geofences

    def _fence(self, node: Typed) -> Form:
        """The box around the fence, for the coordinates that are fields."""
        bounds = self.bounds(node)
        box: dict[str, Part] = {}
        ends = ((bounds.x_lows, bounds.x_highs), (bounds.y_lows, bounds.y_highs))
        for arg, (lows, highs) in zip(node.args[:2], ends, strict=True):
            field = field_in(arg)
            if field is not None:
                least, greatest = _cut_at_doubles(field.type, lows), _cut_at_doubles(field.type, highs)
                band, other = least.band(">=").meet(greatest.band("<=")), box.get(field.name)
                box[field.name] = band.meet(other) if isinstance(other, Band) else band
        return Form([box], exact=False)


def _cut_at_doubles(field: Type, constants: NDArray[np.float64]) -> Cut:
    """Where doubles lie among the values of a numeric field that is compared as double."""
    if field.name == "double":
        return exact_cut(constants)
    return bigint_in_doubles(constants) if field.name == "bigint" else decimal_in_doubles(constants, field)


def _slot_in(node: Typed) -> int | None:
    """The slot of a literal, or of a literal under a cast, such as CAST('2024-12-31' AS DATE)."""
    if node.op == "cast" and node.value is not None:
        inner = node.args[0]
        plain = inner.op == "slot" and inner.type.name == "string" and node.type.name in _READ_AS_LITERAL
        return inner.slot if plain else None
    while node.op == "cast" and node.value is None:
        node = node.args[0]
    return node.slot if node.op == "slot" else None


def _between_cuts(cuts: list[Cut]) -> list[Band]:
    """The ranges without any constant, for each text: below the least, between neighbours, above the greatest."""
    if len(cuts) > 1:
        cuts = _sorted_cuts(cuts)
    bands = [cuts[0].band("<")]
    for before, after in pairwise(cuts):
        bands.append(before.band(">").meet(after.band("<")))
    bands.append(cuts[-1].band(">"))
    return bands


def _sorted_cuts(cuts: list[Cut]) -> list[Cut]:
    firsts = np.stack([cut.firsts for cut in cuts])
    above = np.stack([cut.above for cut in cuts])
    hits = np.stack([cut.hits for cut in cuts])
    lasts = np.stack([cut.lasts for cut in cuts])
    order = np.argsort(hits, axis=0, kind="stable")  # at the same place, a constant without a hit comes first
    for keys in (firsts, above):
        inner = np.argsort(np.take_along_axis(keys, order, 0), axis=0, kind="stable")
        order = np.take_along_axis(order, inner, 0)
    firsts, lasts, hits, above = (np.take_along_axis(keys, order, 0) for keys in (firsts, lasts, hits, above))
    return [Cut(*parts) for parts in zip(firsts, lasts, hits, above, strict=True)]
