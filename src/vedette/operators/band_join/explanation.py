"""Explains in words how a band join is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.errors import count
from vedette.operators.band_join.index import lookup
from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.rows import SIDES
from vedette.operators.band_join.side import Side

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor


def explain(monitor: BandMonitor) -> str:
    """Which structure answers, why, and what it costs."""
    queries, groups = monitor.queries, monitor.queries.groups()
    lines = [
        f"{count(len(queries), 'query', 'queries')} at version {queries.version}, {_megabytes(queries.nbytes)}; "
        f"{count(monitor.n_left, 'left value')} and {count(monitor.n_right, 'right value')}, "
        f"{_megabytes(monitor.nbytes)}"
    ]
    if not len(groups):
        return f"{lines[0]}\n  nothing to report yet"
    points, least = count(groups.n_points, "point"), groups.least_points
    fewest = "the minimum" if least == groups.n_points else f"at least {least:,} are needed"
    lines.append(
        f"  stabbing groups: each band holds one of {points} ({fewest}), in {count(groups.n_groups, 'group')}; "
        f"memory is that of values and bands"
    )
    lines += [f"  {_describe_look_up(groups, *sides)}" for sides in _sides(monitor)]
    n_intervals = max(monitor.n_left, monitor.n_right) * groups.n_points
    lines.append(
        f"  the rest of the work follows the output; the tree of Lemma 5 would look up in logarithmic time, but hold "
        f"{count(n_intervals, 'interval')}, and it could not change"
    )
    if monitor.report == "queries":
        lines.append(
            "  in each group only the values next to its point are looked at, because the answer is queries, not pairs"
        )
    return "\n".join(lines)


def _sides(monitor: BandMonitor) -> list[tuple[Side, Side]]:
    return [(monitor.left, monitor.right), (monitor.right, monitor.left)]


def _describe_look_up(groups: Groups, side: Side, other: Side) -> str:
    """How a value of a side is looked up."""
    name, values = SIDES[side.sign], count(len(other), f"{SIDES[other.sign]} value")
    if not len(other):
        return f"a {name} value has no pairs: there are no {SIDES[other.sign]} values"
    if lookup.choose_way(groups, other.points, 1) == lookup.BY_POINTS:
        return f"a {name} value is looked up by points: each of {values} in a tree over the groups"
    return f"a {name} value is looked up by groups: each group once in a table over {values}"


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
