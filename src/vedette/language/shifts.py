"""Times moved by a constant: `ts - INTERVAL 1 HOUR > TIMESTAMP '...'` is a range of `ts`.

That is exact if the move is the same for every value: an interval of less than a day, or any number of days in a time
zone without changes of the clocks. For other days, and for months, the range is wider than the condition, which is then
also a residual. A comparison with now() is a range of the virtual field `ts - now()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED
from vedette.data.moments import NOW, relative_to_now
from vedette.language.calculated import fold_constant
from vedette.language.expressions import TIMESTAMP, TIMESTAMP_NTZ, Typed
from vedette.language.normal_form import UNKNOWN, Form, both, either
from vedette.language.ranges import Band, Cut
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone

if TYPE_CHECKING:
    from vedette.language.leaves import Leaf

_LIMITS = {
    "date": (-(2**31), 2**31 - 1),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (-(2**63), 2**63 - 1)),
}
_SLACK = 26 * 3600 * 1_000_000  # more than the offset of any time zone changes by
_MONTH = (28, 31)  # days
FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Shift:
    """A field, or now(), plus something between `least` and `most`, one per text, in the units of the field."""

    field: Typed
    least: Integers
    most: Integers

    @property
    def is_exact(self) -> bool:
        return bool((self.least == self.most).all())

    def fitting(self) -> Form:
        """Where the sum does not leave the type of the field."""
        bottom, top = _LIMITS[self.field.type.name]
        band = Band(
            np.where(self.least < 0, bottom - np.minimum(self.least, 0), 0),
            np.where(self.most > 0, top - np.maximum(self.most, 0), 0),
            np.where(self.least < 0, CLOSED, UNBOUNDED).astype(np.int8),
            np.where(self.most > 0, CLOSED, UNBOUNDED).astype(np.int8),
            np.ones(len(self.least), np.bool_),
        )
        return Form([{self.field.name: band}])


def compare_shifted(node: Typed, wanted: bool, leaf: Leaf) -> Form:
    """The form of a comparison of a moved time with a constant, or with now(); UNKNOWN if it is neither."""
    (left, right), op = node.args, node.op
    if op not in FLIPPED:
        return UNKNOWN
    if right.op == "timestamp - timestamp":
        left, right, op = right, left, FLIPPED[op]
    if left.op == "timestamp - timestamp":
        return _compare_age(left, op if wanted else NEGATED[op], right, leaf)
    first, second = shift_of(left, leaf), shift_of(right, leaf)
    if first is None or (second is not None and first.field.name == NOW):
        first, second, left, right, op = second, first, right, left, FLIPPED[op]
    op = op if wanted else NEGATED[op]
    if first is None:
        return UNKNOWN
    if second is not None:
        if second.field.name != NOW or first.field.name == NOW or first.field.type != TIMESTAMP:
            return UNKNOWN
        name, least, most = relative_to_now(first.field.name), second.least, second.most
    else:
        constants = fold_constant(right, leaf)
        if constants is None:
            return UNKNOWN
        name, least, most = first.field.name, constants, constants
    type_ = first.field.type.name
    form = _form(name, op, type_, (least, first.most), (most, first.least))
    if not (first.least.any() or first.most.any()):
        return form
    if not first.is_exact:
        return form
    if type_ == "date":
        return _with_wrapped(form, op, first, least)
    return both([form, first.fitting()])


def _with_wrapped(form: Form, op: str, shift: Shift, constants: Integers) -> Form:
    """The form of a moved date: a sum that leaves 32 bits wraps around, from the last date to the first."""
    offsets, (bottom, top) = shift.least, _LIMITS["date"]
    if op == "<>":
        return form
    if (np.abs(constants) >= 2**30).any() or (np.abs(offsets) >= 2**30).any():
        return UNKNOWN
    if op == "=":
        return form
    rises, falls = offsets > 0, offsets < 0
    wanted = rises if op in ("<", "<=") else falls  # where a sum that wraps meets the comparison
    fitting = both([form, shift.fitting()])
    if not wanted.any():
        return fitting
    n = len(offsets)
    above = op in ("<", "<=")
    ends = np.where(rises, top - offsets, bottom - offsets)
    unbounded, open_ = np.full(n, UNBOUNDED, np.int8), np.full(n, OPEN, np.int8)
    wrapped = Band(ends, ends, open_ if above else unbounded, unbounded if above else open_, wanted)
    return either([fitting, Form([{shift.field.name: wrapped}])])


def _compare_age(node: Typed, op: str, right: Typed, leaf: Leaf) -> Form:
    """`now() - ts` or `ts - now()` against an interval, where a local time is always an instant plus a constant."""
    first, second = (shift_of(arg, leaf) for arg in node.args)
    bounds = fold_constant(right, leaf) if Zone(leaf.zone).is_fixed else None
    if first is None or second is None or bounds is None or (bounds == -(2**63)).any():
        return UNKNOWN
    if first.field.name == NOW:
        first, second, op, bounds = second, first, FLIPPED[op], -bounds
    is_plain = not any(each.any() for each in (first.least, first.most, second.least, second.most))
    if second.field.name != NOW or first.field.name == NOW or not is_plain:
        return UNKNOWN
    return _form(relative_to_now(first.field.name), op, "timestamp", (bounds, first.least), (bounds, first.least))


def _form(name: str, op: str, type_: str, least: tuple[Integers, Integers], most: tuple[Integers, Integers]) -> Form:
    """Values that compare with something between two differences."""
    low, high = _cut(*least, type_), _cut(*most, type_)
    is_exact = np.array_equal(low.firsts, high.firsts) and np.array_equal(low.hits, high.hits)
    if is_exact:
        return Form([{name: low.band(each)} for each in (("<", ">") if op == "<>" else (op,))])
    if op == "<>":
        return UNKNOWN
    if op == "=":
        return Form([{name: low.band(">=").meet(high.band("<="))}], exact=False)
    return Form([{name: (low if op in (">", ">=") else high).band(op)}], exact=False)


def _cut(constants: Integers, offsets: Integers, type_: str) -> Cut:
    """Where `constants - offsets` lie among the values of a type."""
    bottom, top = _LIMITS[type_]
    with np.errstate(over="ignore"):
        values = constants - offsets
    wrapped = ((constants ^ offsets) & (constants ^ values)) < 0
    above = np.where(wrapped, constants > 0, values > top)
    below = np.where(wrapped, constants < 0, values < bottom)
    values = np.where(above, top, np.where(below, bottom, values))
    return Cut(values, values, ~above & ~below, above)


def shift_of(node: Typed, leaf: Leaf) -> Shift | None:
    """A field or now() that may be moved by constants; None if the node is something else."""
    if node.op == "field" and node.type.name in _LIMITS:
        zeros = np.zeros(leaf.n, np.int64)
        return Shift(node, zeros, zeros)
    if node.op == "cast" and node.type == TIMESTAMP and node.args[0].op == "field":
        return _instant_of(node.args[0], leaf)
    what, _, by = node.op.partition(" - " if " - " in node.op else " + ")
    if what not in _LIMITS or by not in ("interval", "days", "months"):
        return None
    inner = shift_of(node.args[0], leaf)
    amounts = None if inner is None else fold_constant(node.args[1], leaf)
    if inner is None or amounts is None or inner.field.type.name != what:
        return None
    zone = leaf.zone if what == "timestamp" else "UTC"
    moves = _moves(what, by, -amounts if " - " in node.op else amounts, zone)
    sums = [a.astype(object) + b for a, b in zip((inner.least, inner.most), moves, strict=True)]
    if any(len(each) and (min(each) <= -(2**62) or max(each) >= 2**62) for each in sums):
        return None
    return Shift(inner.field, *(each.astype(np.int64) for each in sums))


def _instant_of(field: Typed, leaf: Leaf) -> Shift | None:
    """A local time as an instant: moved by the offset of the zone."""
    if field.type != TIMESTAMP_NTZ:
        return None
    zone = Zone(leaf.zone)
    if not zone.is_fixed:
        return Shift(field, np.full(leaf.n, -_SLACK), np.full(leaf.n, _SLACK))
    offset = np.full(leaf.n, -zone.offset(0) * MICROS_PER_SECOND)
    return Shift(field, offset, offset)


def _moves(what: str, by: str, amounts: Integers, zone: str) -> tuple[Integers, Integers]:
    """The least and the greatest move by an interval."""
    if by == "months":
        days = [amounts * days for days in _MONTH]
        least, most = np.minimum(*days), np.maximum(*days)
        if what == "date":
            return least, most
        return least * MICROS_PER_DAY - _SLACK, most * MICROS_PER_DAY + _SLACK
    if what == "date":
        days_only = np.sign(amounts) * (np.abs(amounts) // MICROS_PER_DAY) if by == "interval" else amounts
        return days_only, days_only
    slack = np.where(np.abs(amounts) >= MICROS_PER_DAY, 0 if Zone(zone).is_fixed else _SLACK, 0)
    return amounts - slack, amounts + slack
