"""By how much a test holds or misses: a difference, a duration, what was expected, or a distance in the plane."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from vedette.language.expressions import QUANTIFIERS, Typed, field_in
from vedette.language.fence_bounds import is_longitude
from vedette.language.geofences import DISTANCES, POLYGON_TESTS
from vedette.language.shown_values import show_number, show_value, write_duration
from vedette.language.writing import write_list

if TYPE_CHECKING:
    from vedette.language.clauses import ClauseReader

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_TEXT_TESTS = ("like", "regexp_like", "startswith", "endswith", "contains")
_DIGITS = 100  # of differences, more than any decimal has
_PATTERNS = ("like", "regexp_like")


def measure(reader: ClauseReader, test: Typed) -> tuple[float | None, str]:
    """The distance from the border of a test, if it has one, and words about it."""
    op = test.op
    if op in _COMPARISONS:
        return _compare(reader, test)
    if op == "in":
        return _find_nearest(reader, test)
    if op in _TEXT_TESTS and len(test.args) > 1:
        return None, f"the {'pattern' if op in _PATTERNS else 'text'} is {show_value(reader.value(test.args[1]))}"
    if op in QUANTIFIERS:
        return None, _describe_elements(reader, test)
    if op in POLYGON_TESTS:
        return _measure_polygon(reader, test)
    if op == "st_dwithin":
        return _measure_circle(reader, test)
    return None, ""


def _compare(reader: ClauseReader, test: Typed) -> tuple[float | None, str]:
    left, right = (reader.value(arg) for arg in test.args)
    if left is None or right is None:
        return None, ""
    if test.args[0].op in ("slot", "constant"):  # the row's side comes first
        left, right = right, left
    difference = subtract(left, right)
    if difference is None:
        is_text = isinstance(left, (str, bytes)) and test.op in ("=", "<=>") and left != right
        return None, f"not {show_value(right)}" if is_text else ""
    if any(arg.op in DISTANCES for arg in test.args):
        beyond = float(difference)
        return abs(beyond), f"{abs(beyond):.3f} metres {'more' if beyond > 0 else 'less'} than {show_value(right)}"
    return _words(difference, right)


def _words(difference: Any, right: Any) -> tuple[float | None, str]:
    distance = abs(as_float(difference))
    if not difference:
        return 0.0, f"equal to {show_value(right)}"
    side = "after" if isinstance(difference, dt.timedelta) else "above"
    if as_float(difference) < 0:
        side = "before" if side == "after" else "below"
    return distance, f"{_show_size(difference)} {side} {show_value(right)}"


def _show_size(difference: Any) -> str:
    if isinstance(difference, dt.timedelta):
        return write_duration(abs(difference))
    return show_number(float(f"{abs(difference):.12g}")) if isinstance(difference, float) else f"{abs(difference):f}"


def subtract(left: Any, right: Any) -> Any:
    """A difference of numbers or times; None where there is none."""
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, dt.datetime) != isinstance(right, dt.datetime):
        return None
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        return left - right
    if isinstance(left, dt.timedelta) and isinstance(right, dt.timedelta):
        return left - right
    if isinstance(left, float) and isinstance(right, float):
        return left - right if math.isfinite(left - right) else None
    if isinstance(left, (int, Decimal)) and isinstance(right, (int, Decimal)):
        with localcontext(prec=_DIGITS):
            return Decimal(left) - Decimal(right)
    return None


def as_float(difference: Any) -> float:
    """A difference as a number, a duration in seconds."""
    return difference / dt.timedelta(seconds=1) if isinstance(difference, dt.timedelta) else float(difference)


def _find_nearest(reader: ClauseReader, test: Typed) -> tuple[float | None, str]:
    value, *items = (reader.value(arg) for arg in test.args)
    known = [item for item in items if item is not None]
    if value is None or value in known:
        return None, ""
    differences = [(abs(as_float(found)), item) for item in known if (found := subtract(value, item)) is not None]
    if differences:
        distance, nearest = min(differences, key=lambda pair: pair[0])
        return distance, f"the nearest is {_words(subtract(value, nearest), nearest)[1]}"
    return None, f"none of {write_list([show_value(item) for item in known])}" if known else ""


def _describe_elements(reader: ClauseReader, test: Typed) -> str:
    """Which element decides: the first for which EXISTS is true, or FORALL is not."""
    array = reader.value(test.args[0])
    if array is None:
        return ""
    inner, _ = reader.evaluation.over_elements(test)
    truth = inner.of(test.args[1]).settled()
    wanted = test.op == "exists"
    deciding = np.flatnonzero(truth.usable & (truth.values == wanted))
    if not len(deciding):
        count = "the array is empty" if not array else f"{'none' if wanted else 'all'} of {len(array)}"
        nulls = int(np.count_nonzero(truth.nulls))
        return f"{count}{f', {nulls} of them null' if nulls else ''}"
    place = int(deciding[0])
    return f"element {place} {'meets' if wanted else 'fails'} it: {show_value(array[place])}"


def _measure_polygon(reader: ClauseReader, test: Typed) -> tuple[float | None, str]:
    import shapely  # type: ignore[import-untyped]

    x, y = (reader.value(arg) for arg in test.args[:2])
    if not (math.isfinite(x) and math.isfinite(y)):
        return None, "the point is not finite"
    polygon = reader.evaluation.polygons[test.args[2].slot].at(0)
    with np.errstate(all="ignore"):
        turned = [x, x + 360, x - 360] if is_longitude(field_in(test.args[0])) else [x]
        points = shapely.points(turned, y)
        distance = float(shapely.distance(shapely.boundary(polygon), points).min())
        inside = bool(shapely.intersects(polygon, points).any())
    if distance == 0:
        return 0.0, "on the border"
    return distance, f"{show_number(float(f'{distance:.6g}'))} {'inside' if inside else 'outside'} of the border"


def _measure_circle(reader: ClauseReader, test: Typed) -> tuple[float | None, str]:
    x, y, centre_x, centre_y, radius = (reader.value(arg) for arg in test.args)
    distance = math.hypot(x - centre_x, y - centre_y)
    if not math.isfinite(distance):
        return None, "the point is not finite"
    beyond = distance - radius
    side = "outside" if beyond > 0 else "inside"
    away = f"{show_number(float(f'{distance:.6g}'))} from the centre"
    return abs(beyond), f"{away}, {show_number(float(f'{abs(beyond):.6g}'))} {side} of the circle"
