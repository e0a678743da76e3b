"""Leaves of a predicate as forms: a comparison of one field with constants, or unknown.

`Leaf` has the literals of all texts of a shape, and returns the form of one node at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED
from vedette.data.schema import INTEGER_BITS, Type, is_nested
from vedette.data.views import ELEMENTS, SUBSTRINGS, kind_of, view_at, view_of
from vedette.language.calculated import fold_constant
from vedette.language.computed import MAX_COMPUTED, as_computed_field
from vedette.language.expressions import BOOLEAN, QUANTIFIERS, Typed, field_in
from vedette.language.fence_bounds import Bounds, bounds_of
from vedette.language.functions import regular_expressions
from vedette.language.functions.regular_expressions import why_refused
from vedette.language.geofences import distance_test, is_fence
from vedette.language.links import link_form
from vedette.language.literals import BadLiteralError, Kind, SlotError, physical, read_strings
from vedette.language.normal_form import NOTHING, UNKNOWN, Disjunct, Form, either, form_of, is_null, not_null
from vedette.language.patterns import BadPatternError, classify
from vedette.language.ranges import (
    Band,
    Cut,
    dates_in_timestamps,
    decimal_in_doubles,
    exact_cut,
    integers_in_decimals,
    integers_in_doubles,
    integers_in_integers,
    prefix_band,
)
from vedette.language.required_strings import required_string
from vedette.language.shifts import compare_shifted

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "<=>": "<=>"}
# Field type -> the types in which a comparison with it is still a range of the field's values.
_MONOTONE = {
    "tinyint": ("tinyint", "smallint", "int", "bigint", "decimal", "double"),
    "smallint": ("smallint", "int", "bigint", "decimal", "double"),
    "int": ("int", "bigint", "decimal", "double"),
    "bigint": ("bigint", "decimal", "double"),
    "float": ("float", "double"),
    "double": ("double",),
    "decimal": ("decimal", "double"),
    "string": ("string",),
    "binary": ("binary",),
    "boolean": ("boolean",),
    "date": ("date", "timestamp", "timestamp_ntz"),
    "timestamp": ("timestamp",),
    "timestamp_ntz": ("timestamp_ntz",),
}
_SUBSTRINGS = ("contains", "endswith", "regexp_like")
_CALCULATED = ("date", "timestamp", "timestamp_ntz", "bigint", "double")
_COMPUTED_OPS = (*_FLIPPED, "in", "like", "startswith")
_REGEXES = {each.name for each in regular_expressions.FUNCTIONS}
_READ_AS_LITERAL = ("binary", "date", "timestamp", "timestamp_ntz", "boolean", *INTEGER_BITS, "float", "double")


class Leaf:
    """Forms of leaves over the literals of `n` texts. `columns[slot]` are the literals of a slot as written."""

    def __init__(
        self,
        columns: Sequence[Sequence[str]],
        kinds: Sequence[Kind],
        negated: Sequence[bool],
        n: int,
        zone: str,
        *,
        views: bool = True,
        computes: bool = False,
    ) -> None:
        self.columns = columns
        self.kinds = kinds
        self.negated = negated
        self.n = n
        self.zone = zone
        self.views = views  # whether a form may have ranges of views
        self.computes = computes  # whether it may have ranges of computed fields
        self._n_computed = 0
        self._values: dict[tuple[int, Type], Any] = {}
        self._bounds: dict[Typed, tuple[Bounds, ...]] = {}

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

    def bounds(self, fence: Typed) -> tuple[Bounds, ...]:
        """The boxes around a geofence; none if they are not known. An invalid geofence is a SlotError."""
        if fence not in self._bounds:
            self._bounds[fence] = bounds_of(fence, self.columns, self.values)
        return self._bounds[fence]

    def form(self, node: Typed, wanted: bool) -> Form:
        """Where the node is TRUE, or FALSE. UNKNOWN if that is not a union of boxes."""
        form = self._form_of_fields(_with_views(node) if self.views else node, wanted)
        if form.exact or not form.is_everything or not self.computes or node.op not in _COMPUTED_OPS:
            return form
        return self._form_of_computed(node, wanted)

    def _form_of_computed(self, node: Typed, wanted: bool) -> Form:
        """The form of a condition on an expression of fields, as one on a computed field."""
        is_unequal = node.op in ("<>", "<=>", "=", "in") and wanted == (node.op == "<>")  # true for most values
        is_special = node.op in _FLIPPED and node.value is not None  # its constant is not compared as it is
        if is_unequal or is_special or self._n_computed >= MAX_COMPUTED:
            return UNKNOWN
        varying = [place for place, arg in enumerate(node.args) if any(each.op == "field" for each in arg.walk())]
        if len(varying) != 1:
            return UNKNOWN
        (place,) = varying
        for expression in _below_casts(node.args[place]):
            field = as_computed_field(expression, self)
            if field is not None:
                casts = _replaced(node.args[place], expression, field)
                args = (*node.args[:place], casts, *node.args[place + 1 :])
                form = self._form_of_fields(replace(node, args=args), wanted)
                if not form.is_everything:
                    self._n_computed += 1
                    return Form(form.disjuncts, exact=False, longest=form.longest)
        return UNKNOWN

    def _form_of_fields(self, node: Typed, wanted: bool) -> Form:
        op = node.op
        if is_fence(node):
            return self._fence(node, wanted)
        if op in _FLIPPED:
            return self._comparison(node, wanted)
        if op == "link":
            return link_form(node, wanted, self.n)
        if op == "in":
            return self._membership(node, wanted)
        if op == "field":
            return self._compare_cut(node, "=", self._constant_cut(wanted))
        if op == "isnull" and node.args[0].op == "field" and not is_nested(node.args[0].type):
            field = node.args[0]
            return is_null(field.name) if wanted else not_null(field.name, field.type, self.n)
        if op == "isnull" and node.args[0].op in ("slot", "constant"):
            null = node.args[0].op == "constant" and node.args[0].value is None
            return Form([{}]) if null == wanted else NOTHING
        if op in ("like", "startswith") and node.args[0].op == "field" and node.args[1].op == "slot":
            return self._prefix(node, wanted)
        if op in _SUBSTRINGS and wanted and node.args[0].op == "field" and node.args[1].op == "slot":
            return self._substring(node)
        if op == "exists" and wanted and self.views and node.args[0].op == "field":
            return self._some_element(node)
        return UNKNOWN

    # -- comparisons

    def _comparison(self, node: Typed, wanted: bool) -> Form:
        left, right = node.args
        op = node.op
        field, constant = field_in(left), right
        if field is None:
            field, constant, op = field_in(right), left, _FLIPPED[op]
        if field is None:
            return compare_shifted(node, wanted, self)
        if constant.op == "constant" and constant.value is None:
            if op != "<=>":
                return NOTHING  # null for every row
            return is_null(field.name) if wanted else not_null(field.name, field.type, self.n)
        cut = self._cut(field, constant, exact=op in ("<", "<=", ">", ">="))
        if cut is None:
            return compare_shifted(node, wanted, self)
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
        if node.args[0].type.name == "decimal" and self._has_long_decimals(node.args[1:]):
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

    def _has_long_decimals(self, items: Sequence[Typed]) -> bool:
        """Whether a literal has so many places that Spark may round it to the type of the whole list."""
        slots = [slot for item in items if (slot := _slot_in(item)) is not None]
        return any("." in raw and len(raw) > 18 for slot in slots for raw in self.columns[slot])

    def _cut(self, field: Typed, constant: Typed, *, exact: bool = False) -> Cut | None:
        """Where a constant lies among the field's values; None if it is not a constant or the cast is not monotone.

        With `exact`, an integer and a decimal are compared without rounding.
        """
        to = constant.type
        if to.name not in _MONOTONE[field.type.name]:
            return None
        if constant.op == "constant":
            if isinstance(constant.value, float):
                return _cut_at_doubles(field.type, np.full(self.n, constant.value))
            return self._constant_cut(bool(constant.value)) if to == BOOLEAN else None
        slot = _slot_in(constant)
        if slot is None:
            return self._calculated_cut(field, constant)
        kind = self.kinds[slot].name
        if to.name == "decimal":
            if kind == "string":
                return None
            self.values(slot, Type("double"))  # checks the digits
            exact = exact and field.type.is_integer
            return integers_in_decimals(self.columns[slot], self.negated[slot], field.type, exact=exact)
        values = self.values(slot, to)
        if to.is_floating:
            return _cut_at_doubles(field.type, values)
        if field.type.name == to.name:
            return exact_cut(values)
        if to.is_integer:
            return integers_in_integers(values, field.type)
        assert to.name in ("timestamp", "timestamp_ntz"), kind
        return dates_in_timestamps(values, self.zone if to.name == "timestamp" else "UTC")

    def _calculated_cut(self, field: Typed, constant: Typed) -> Cut | None:
        """Where a calculation of literals, such as DATE '2024-03-01' - 7, lies among the field's values."""
        values = fold_constant(constant, self) if constant.type.name in _CALCULATED else None
        if values is None:
            return None
        if field.type == constant.type:
            return exact_cut(values)
        if constant.type.name == "double":
            return _cut_at_doubles(field.type, values)
        if field.type.name != "date":
            return None
        return dates_in_timestamps(values, self.zone if constant.type.name == "timestamp" else "UTC")

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
            return self._substring(node) if wanted else UNKNOWN
        band = prefix_band(texts)
        if wanted:
            return Form([{field.name: band}])
        unbounded = np.full(self.n, UNBOUNDED, np.int8)
        below = Band(band.lows, band.lows, unbounded, np.full(self.n, OPEN, np.int8), band.lows != "")
        ends = np.full(self.n, CLOSED, np.int8)
        above = Band(band.highs, band.highs, ends, unbounded, band.high_ends != UNBOUNDED)
        return Form([{field.name: below}, {field.name: above}])

    def _substring(self, node: Typed) -> Form:
        """Texts that have the string which the condition requires: a value of the view of substrings."""
        field, slot = node.args[0], node.args[1].slot
        if not self.views or kind_of(field.name) or node.args[0].type.name != "string":
            return UNKNOWN
        required = [required_string(node.op, text, node.value) for text in read_strings(self.columns[slot])]
        if not any(string for string, _ in required):
            return UNKNOWN
        cut = exact_cut(np.array([string for string, _ in required], object))
        is_exact = all(is_all for _, is_all in required)
        return Form([{view_of(field.name, SUBSTRINGS): cut.band("=")}], exact=is_exact)

    def check_patterns(self, node: Typed) -> None:
        """Raise SlotError for a pattern that is invalid: of ILIKE, or a regular expression."""
        slot = pattern_slot(node)
        for position, text in enumerate(read_strings(self.columns[slot])):
            reason = why_refused(text, node.op) if node.op != "like" else _why_bad(text.lower(), str(node.value))
            if reason is not None:
                raise SlotError(reason, slot, position)

    # -- arrays

    def _some_element(self, node: Typed) -> Form:
        """Where an element meets a condition: the ranges of the condition, on the view of the elements."""
        array, condition = node.args
        one = view_of(array.name, "element")  # one and the same element, so that ranges are intersected
        form = form_of(_as_field(condition, node.name, one), True, self._form_of_element)
        if any(not isinstance(disjunct.get(one), Band) for disjunct in form.disjuncts):
            return UNKNOWN  # some part has no range, or elements that are null, which the view has not
        disjuncts = [{view_of(array.name, ELEMENTS): disjunct[one]} for disjunct in form.disjuncts]
        return Form(disjuncts, form.exact, form.longest)

    def _form_of_element(self, node: Typed, wanted: bool) -> Form:
        """The form of a leaf within a condition on elements; what is about other values has no range here."""
        fields = {each.name for each in node.walk() if each.op in ("field", "element")}
        if node.op in QUANTIFIERS or any(not kind_of(name) for name in fields):
            return UNKNOWN
        return self.form(node, wanted)

    # -- geofences

    def _fence(self, node: Typed, wanted: bool) -> Form:
        """The boxes around the fence, for the coordinates that are fields."""
        test = distance_test(node)
        if test is not None:
            is_near = (test.op if wanted else _NEGATED[test.op]) in ("<", "<=", "=")
            boxes = self.bounds(node) if is_near else ()
        else:
            boxes = self.bounds(node) if wanted else ()
        x, y = node.args[:2] if test is None else test.distance.args[:2]
        if field_in(x) is None:
            boxes = boxes[:1]  # the others differ only in x
        return Form([self._box(x, y, bounds) for bounds in boxes] or [{}], exact=False)

    def _box(self, x: Typed, y: Typed, bounds: Bounds) -> Disjunct:
        box: Disjunct = {}
        for arg, lows, highs in ((x, bounds.x_lows, bounds.x_highs), (y, bounds.y_lows, bounds.y_highs)):
            field = field_in(arg)
            if field is not None:
                least, greatest = _cut_at_doubles(field.type, lows), _cut_at_doubles(field.type, highs)
                band, other = least.band(">=").meet(greatest.band("<=")), box.get(field.name)
                band = band.meet(other) if isinstance(other, Band) else band
                box[field.name] = band if bounds.alive is None else replace(band, alive=band.alive & bounds.alive)
        return box


def pattern_slot(node: Typed) -> int:
    """The slot of a literal that is a pattern of ILIKE or a regular expression; -1 if the node has none."""
    if node.op in _REGEXES or node.op == "like":
        pattern = node.args[1]
        inner = pattern.args[0] if node.op == "like" and pattern.op == "lower" else pattern
        if inner.op == "slot" and inner.type.name == "string" and (node.op != "like" or inner is not pattern):
            return inner.slot
    return -1


def _why_bad(pattern: str, escape: str) -> str | None:
    try:
        classify(pattern, escape)
    except BadPatternError as bad:
        return str(bad)
    return None


def _cut_at_doubles(field: Type, constants: NDArray[np.float64]) -> Cut:
    """Where doubles lie among the values of a numeric field that is compared as double."""
    if field.is_floating:
        return exact_cut(constants)  # a float field may have no value that equals the constant
    return integers_in_doubles(constants, field) if field.is_integer else decimal_in_doubles(constants, field)


def _with_views(node: Typed) -> Typed:
    """The node with fields instead of the values that maps have at literal keys: views of these maps."""
    if node.op == "map value" and node.value is not None and node.args[0].op == "field":
        return replace(node, op="field", args=(), value=None, name=view_at(node.args[0].name, str(node.value)))
    args = tuple(_with_views(arg) for arg in node.args)
    return node if args == node.args else replace(node, args=args)


def _below_casts(node: Typed) -> list[Typed]:
    """An expression without casts that Spark inserted, then with each of them."""
    found = [node]
    while node.op == "cast" and node.value is None:
        node = node.args[0]
        found.append(node)
    return found[::-1]


def _replaced(node: Typed, old: Typed, new: Typed) -> Typed:
    """Casts around an expression, around another one."""
    return new if node is old else replace(node, args=(_replaced(node.args[0], old, new),))


def _as_field(node: Typed, element: str, name: str) -> Typed:
    """A condition on an element as one on a field."""
    if node.op == "element" and node.name == element:
        return replace(node, op="field", name=name)
    return replace(node, args=tuple(_as_field(arg, element, name) for arg in node.args))


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
