"""Crossings equal those that exact arithmetic finds on the straight line between two rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from operators.border.border_model import from_table

import vedette as vd

SCHEMA = "k bigint, x double, y bigint, s string, t bigint"
small = st.integers(-3, 3)
end = st.tuples(small, st.booleans())  # a bound, and whether it belongs to the range
interval = st.tuples(end, end) | st.none()
box = st.tuples(interval, interval, st.sampled_from(["u", None]))
point = st.tuples(small | st.none(), small | st.none(), st.sampled_from(["u", "v"]))


def to_text(drawn):
    terms = ["TRUE"]
    for name, ends in zip("xy", drawn[:2], strict=True):
        if ends:
            (low, low_closed), (high, high_closed) = ends
            terms += [f"{name} {'>=' if low_closed else '>'} {low}", f"{name} {'<=' if high_closed else '<'} {high}"]
    return " AND ".join(terms + ([f"s = '{drawn[2]}'"] if drawn[2] else []))


def holds(ends, value):
    if ends is None:
        return True
    (low, low_closed), (high, high_closed) = ends
    if value is None:
        return False
    return (low < value or (low_closed and low == value)) and (value < high or (high_closed and value == high))


def inside(drawn, at):
    return holds(drawn[0], at[0]) and holds(drawn[1], at[1]) and drawn[2] in (None, at[2])


def meets_line(drawn, old, new):
    """Whether some point of the line is inside: it is enough to check the ends of its parts and their middles."""
    if drawn[2] not in (None, old[2]) or drawn[2] not in (None, new[2]):
        return False
    moments = {Fraction(0), Fraction(1)}
    for ends, a, b in zip(drawn[:2], old, new, strict=False):
        if ends is None:
            continue
        if a is None or b is None:
            return False
        moments |= {Fraction(bound - a, b - a) for bound, _ in ends if a != b}
    moments = sorted(moment for moment in moments if 0 <= moment <= 1)
    moments += [(first + second) / 2 for first, second in pairwise(moments)]

    def at(moment, axis):
        a, b = old[axis], new[axis]
        return None if a is None or b is None else a + (b - a) * moment

    return any(holds(drawn[0], at(m, 0)) and holds(drawn[1], at(m, 1)) for m in moments)


@given(st.lists(st.lists(box, min_size=1, max_size=2), max_size=4), st.lists(point, max_size=5))
def test_a_key_crosses_what_the_line_meets_and_neither_row_is_inside(queries, points):
    alerts = vd.QuerySet(SCHEMA)
    texts = [" OR ".join(f"({to_text(each)})" for each in boxes) for boxes in queries]
    alerts.add_many(list(range(len(queries))), texts)
    monitor = alerts.border(key="k", time="t", cross=True)
    rows = pa.table(
        {
            "k": np.zeros(len(points), np.int64),
            "x": pa.array([x for x, _, _ in points], pa.float64()),
            "y": pa.array([y for _, y, _ in points], pa.int64()),
            "s": pa.array([s for _, _, s in points], pa.string()),
            "t": np.arange(len(points)),
        }
    )

    found = {(time, query) for _, time, query, event, _ in from_table(monitor.step(rows)) if event == "cross"}

    wanted = set()
    for time, (old, new) in enumerate(pairwise(points), start=1):
        for number, boxes in enumerate(queries):
            is_outside = not any(inside(each, old) or inside(each, new) for each in boxes)
            if is_outside and any(meets_line(each, old, new) for each in boxes):
                wanted.add((time, number))
    assert found == wanted
