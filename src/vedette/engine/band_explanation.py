"""How a band join is answered, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.errors import count

if TYPE_CHECKING:
    from vedette.engine.band_monitor import BandMonitor


def explain(monitor: BandMonitor) -> str:
    """Which structure answers, why, and what it costs."""
    queries, groups = monitor.queries, monitor.queries.groups()
    n_values = max(monitor.n_left, monitor.n_right)
    lines = [
        f"{count(len(queries), 'query', 'queries')} at version {queries.version}, {_megabytes(queries.nbytes)}; "
        f"{count(monitor.n_left, 'left value')} and {count(monitor.n_right, 'right value')}, "
        f"{_megabytes(monitor.nbytes)}"
    ]
    if not len(groups):
        return f"{lines[0]}\n  nothing to report yet"
    points = count(groups.n_points, "point")
    least = f"{groups.least_points:,} at least are needed" if groups.least_points < groups.n_points else "no fewer can"
    lines += [
        f"  stabbing groups: the bands hold {points} between them ({least}), in {count(groups.n_groups, 'group')}",
        f"  a value that comes or goes is looked up in each group once, by a table over the {count(n_values, 'value')} "
        f"of the other side; from there on the work follows the pairs it makes",
        f"  why: memory is that of values and bands; an interval tree over values and groups (Lemma 5) would look up "
        f"in logarithmic time, and hold {n_values * groups.n_points:,} intervals",
    ]
    if monitor.report == "queries":
        lines.append("  of each group only the values next to its point are looked at: queries are named, not pairs")
    return "\n".join(lines)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
