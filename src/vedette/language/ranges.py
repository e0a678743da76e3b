"""A comparison of a field with constants as ranges of the field's values, for all texts of a shape at once.

Spark may compare in a wider type than the field's: a bigint against `9007199254740992e0` is compared as doubles, so
several integers are equal to it. The cast is monotone, so what a comparison accepts is still a range of field values.
It is given by the first and the last value whose cast equals the constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED
from vedette.data.columns import flat_dtype
from vedette.data.schema import INTEGER_BITS, Type
from vedette.language.literals import exact_decimals
from vedette.language.numerals import rescale
from vedette.language.times import Zone
from vedette.language.types import as_decimal, wider_decimal

_FEW = 8  # so many ranges are intersected one by one


@dataclass(frozen=True)
class Band:
    """One range per text. Where `alive` is False the range is empty."""

    lows: NDArray[Any]
    highs: NDArray[Any]
    low_ends: NDArray[np.int8]
    high_ends: NDArray[np.int8]
    alive: NDArray[np.bool_]

    def meet(self, other: Band) -> Band:
        """The intersection."""
        low = _later(self.lows, self.low_ends, other.lows, other.low_ends, above=True)
        high = _later(self.highs, self.high_ends, other.highs, other.high_ends, above=False)
        lows, low_ends = np.where(low, other.lows, self.lows), np.where(low, other.low_ends, self.low_ends)
        highs, high_ends = np.where(high, other.highs, self.highs), np.where(high, other.high_ends, self.high_ends)
        return Band(
            lows, highs, low_ends, high_ends, self.alive & other.alive & _holds(lows, highs, low_ends, high_ends)
        )

    def part(self, start: int, end: int) -> Band:
        """The ranges of some texts."""
        return Band(*(getattr(self, each.name)[start:end] for each in fields(self)))

    def hull(self, other: Band) -> Band:
        """The smallest range that contains both."""
        low = _later(self.lows, self.low_ends, other.lows, other.low_ends, above=True)
        high = _later(self.highs, self.high_ends, other.highs, other.high_ends, above=False)
        low, high = (
            np.where(self.alive & other.alive, ~low, ~self.alive),
            np.where(self.alive & other.alive, ~high, ~self.alive),
        )
        return Band(
            np.where(low, other.lows, self.lows),
            np.where(high, other.highs, self.highs),
            np.where(low, other.low_ends, self.low_ends),
            np.where(high, other.high_ends, self.high_ends),
            self.alive | other.alive,
        )


def meet_all(bands: Sequence[Band]) -> Band:
    """The intersection of all. A long list is halved repeatedly, which takes few calls."""
    n, left = len(bands[0].alive), len(bands)
    if left <= _FEW:
        return reduce(Band.meet, bands)
    joined = Band(*(np.concatenate([getattr(band, each.name) for band in bands]) for each in fields(Band)))
    while left > 1:
        half = left // 2
        met = joined.part(0, half * n).meet(joined.part(half * n, 2 * half * n))
        rest = joined.part(2 * half * n, left * n)
        parts = [(getattr(met, each.name), getattr(rest, each.name)) for each in fields(Band)]
        joined, left = Band(*map(np.concatenate, parts)), left - half
    return joined


def less(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """a < b in Spark's order, in which NaN is the greatest double and equal to itself."""
    smaller = np.asarray(a < b, np.bool_)
    if a.dtype.kind == "f":
        nan = np.isnan(b)
        if nan.any():
            smaller |= nan & ~np.isnan(a)
    return smaller


def _later(
    a: NDArray[Any], a_ends: NDArray[np.int8], b: NDArray[Any], b_ends: NDArray[np.int8], *, above: bool
) -> NDArray[np.bool_]:
    """Where end b is stricter than end a: a greater low end, or a smaller high end."""
    beyond, behind = (less(a, b), less(b, a)) if above else (less(b, a), less(a, b))
    tie = ~beyond & ~behind & (b_ends == OPEN)
    return np.where(b_ends == UNBOUNDED, False, np.where(a_ends == UNBOUNDED, True, beyond | tie))


def _holds(
    lows: NDArray[Any], highs: NDArray[Any], low_ends: NDArray[np.int8], high_ends: NDArray[np.int8]
) -> NDArray[np.bool_]:
    """Where a range is not empty."""
    both = (low_ends != UNBOUNDED) & (high_ends != UNBOUNDED)
    crossed = less(highs, lows)
    point = ~crossed & ~less(lows, highs)
    empty: NDArray[np.bool_] = both & (crossed | (point & ((low_ends == OPEN) | (high_ends == OPEN))))
    return ~empty


def dtype_of(field: Type) -> Any:
    """The dtype of a field's range ends."""
    if field.is_text or (field.name == "decimal" and field.precision > 18):
        return object
    return flat_dtype(field)


def _filler(field: Type, n: int) -> NDArray[Any]:
    return np.full(n, "" if field.is_text else 0, dtype_of(field))


def everything(field: Type, n: int) -> Band:
    """All values that are not null."""
    ends = np.full(n, UNBOUNDED, np.int8)
    return Band(_filler(field, n), _filler(field, n), ends, ends, np.ones(n, np.bool_))


@dataclass(frozen=True)
class Cut:
    """Where constants lie among a field's values.

    Where `hits`, values from `firsts` to `lasts` are equal to the constant. Elsewhere `firsts` is the first value above
    it; where `above`, the constant is above all values.
    """

    firsts: NDArray[Any]
    lasts: NDArray[Any]
    hits: NDArray[np.bool_]
    above: NDArray[np.bool_]

    def band(self, op: str) -> Band:
        """The values for which `value op constant` is true; `op` is one of = < <= > >=."""
        n = len(self.firsts)
        unbounded = np.full(n, UNBOUNDED, np.int8)
        if op == "=":
            closed = np.full(n, CLOSED, np.int8)
            return Band(self.firsts, self.lasts, closed, closed, self.hits & ~self.above)
        if op in (">", ">="):
            if op == ">":
                lows, ends = np.where(self.hits, self.lasts, self.firsts), np.where(self.hits, OPEN, CLOSED)
            else:
                lows, ends = self.firsts, np.full(n, CLOSED)
            return Band(lows, lows, ends.astype(np.int8), unbounded, ~self.above)
        if op == "<=":
            highs, ends = np.where(self.hits, self.lasts, self.firsts), np.where(self.hits, CLOSED, OPEN)
        else:
            highs, ends = self.firsts, np.full(n, OPEN)
        ends = np.where(self.above, UNBOUNDED, ends)
        return Band(highs, highs, unbounded, ends.astype(np.int8), np.ones(n, np.bool_))


def exact_cut(values: NDArray[Any]) -> Cut:
    """Constants of the field's own type."""
    n = len(values)
    return Cut(values, values, np.ones(n, np.bool_), np.zeros(n, np.bool_))


def limits_of(field: Type) -> tuple[int, int]:
    """The least and the greatest value of an integer field, or of an unscaled decimal one."""
    if field.is_integer:
        end = 1 << (INTEGER_BITS[field.name] - 1)
        return -end, end - 1
    return -(10**field.precision) + 1, 10**field.precision - 1


def integers_in_integers(constants: NDArray[np.int64], field: Type) -> Cut:
    """An integer field compared as a wider integer."""
    bottom, top = limits_of(field)
    inside = np.clip(constants, bottom, top)
    return Cut(inside, inside, inside == constants, constants > top)


def integers_in_doubles(constants: NDArray[np.float64], field: Type) -> Cut:
    """An integer field compared as doubles."""
    bottom, top = limits_of(field)
    safe = np.abs(constants) < min(2.0**53, top)  # no two integers share a double here; NaN is not safe
    ceilings = np.ceil(np.where(safe, constants, 0.0))
    firsts = ceilings.astype(np.int64)
    hits = safe & (ceilings == constants)
    cut = Cut(firsts, firsts.copy(), hits, np.zeros(len(constants), np.bool_))
    for i in np.flatnonzero(~safe):
        _search(cut, int(i), float, float(constants[i]), bottom, top)
    return cut


def decimal_in_doubles(constants: NDArray[np.float64], field: Type) -> Cut:
    """A decimal field compared as doubles."""
    n = len(constants)
    dtype = dtype_of(field)
    cut = Cut(np.zeros(n, dtype), np.zeros(n, dtype), np.zeros(n, np.bool_), np.zeros(n, np.bool_))
    top, unit = 10**field.precision - 1, 10**field.scale
    near = np.zeros(n, np.bool_)
    if field.precision <= 15:  # distinct values are distinct doubles, and the division below is exactly rounded
        with np.errstate(all="ignore"):
            scaled = constants * unit
            near = np.abs(scaled) < top - 2
            firsts = np.floor(np.where(near, scaled, 0.0)) - 1
            for _ in range(3):
                firsts += firsts / unit < constants
        cut.firsts[:] = firsts.astype(np.int64)
        cut.lasts[:] = cut.firsts
        cut.hits[:] = near & (firsts / unit == constants)
    for i in np.flatnonzero(~near):
        _search(cut, int(i), lambda unscaled: unscaled / unit, float(constants[i]), -top, top)
    return cut


def integers_in_decimals(raws: Sequence[str], negated: bool, field: Type, *, exact: bool) -> Cut:
    """An integer or decimal field against numbers without exponent.

    Unless `exact`, numbers with more than 38 digits are rounded first, as in Spark.
    """
    as_field, (bottom, top) = as_decimal(field), limits_of(field)
    unscaled, scales = exact_decimals(raws, negated)
    n = len(unscaled)
    dtype = dtype_of(field)
    cut = Cut(np.zeros(n, dtype), np.zeros(n, dtype), np.zeros(n, np.bool_), np.zeros(n, np.bool_))
    firsts, hits = [0] * n, [False] * n
    powers = [10**power for power in range(77)]
    for i in range(n):
        value, scale = unscaled[i], scales[i]
        if exact:
            pass
        elif scale + as_field.precision > 38 or len(str(value)) + as_field.scale > 38:
            literal = Type("decimal", max(len(str(abs(value))), scale), scale)
            met = wider_decimal(as_field, literal)
            if met.scale < max(scale, as_field.scale):
                widen = partial(rescale, scale=as_field.scale, to=met.scale)
                _search(cut, i, widen, rescale(value, scale, met.scale), bottom, top)
                firsts[i], hits[i] = cut.firsts[i], cut.hits[i]
                continue
        if scale <= as_field.scale:
            first, hit = value * powers[as_field.scale - scale], True
        else:
            first, rest = divmod(value, powers[scale - as_field.scale])
            hit = rest == 0
            first += not hit
        if first > top:
            cut.above[i] = True
            first, hit = top, False
        elif first < bottom:
            first, hit = bottom, False
        firsts[i], hits[i] = first, hit
        cut.lasts[i] = first
    cut.firsts[:] = firsts
    cut.hits[:] = hits
    return cut


def dates_in_timestamps(constants: NDArray[np.int64], zone: str) -> Cut:
    """A date field compared as timestamps: a day counts as its midnight in the zone."""
    clock = Zone(zone)
    distinct, back = np.unique(constants, return_inverse=True)
    firsts, hits = [], []
    for instant in distinct.tolist():
        day = clock.to_local(instant) // 86_400_000_000 - 1
        while clock.midnight(day) < instant:
            day += 1
        firsts.append(day)
        hits.append(clock.midnight(day) == instant)
    days = np.array(firsts, np.int64)[back]
    return Cut(days, days, np.array(hits, np.bool_)[back], np.zeros(len(constants), np.bool_))


def _search(cut: Cut, i: int, widen: Callable[[int], Any], constant: Any, bottom: int, top: int) -> None:
    """Fill constant number i of a cut by bisection: `widen` is the cast, which is monotone."""
    if constant != constant:  # NaN is above all numbers
        first = after = top + 1
    else:
        first = _first(lambda value: widen(value) >= constant, bottom, top)
        after = _first(lambda value: widen(value) > constant, first, top)
    cut.above[i] = first > top
    cut.hits[i] = after > first
    cut.firsts[i] = min(first, top)
    cut.lasts[i] = min(max(after - 1, first), top)


def _first(is_there: Callable[[int], bool], low: int, high: int) -> int:
    """The first integer from `low` to `high` for which the condition is true, or high + 1."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if is_there(middle):
            high = middle
        else:
            low = middle + 1
    return low


def after_prefix(prefix: str) -> str | None:
    """The first string after all strings that begin with `prefix`, or None."""
    for length in range(len(prefix), 0, -1):
        code = ord(prefix[length - 1])
        if code < 0x10FFFF:
            code = 0xE000 if code + 1 == 0xD800 else code + 1  # surrogates are not characters
            return prefix[: length - 1] + chr(code)
    return None


def prefix_band(prefixes: Sequence[str]) -> Band:
    """The strings that begin with each prefix."""
    n = len(prefixes)
    after = [after_prefix(prefix) for prefix in prefixes]
    return Band(
        np.array(prefixes, object),
        np.array(["" if end is None else end for end in after], object),
        np.full(n, CLOSED, np.int8),
        np.array([UNBOUNDED if end is None else OPEN for end in after], np.int8),
        np.ones(n, np.bool_),
    )
