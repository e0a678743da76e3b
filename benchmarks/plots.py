"""Plots of the experiments, readable in black and white.

Of contestants over cases: a panel per case and a mark per contestant. Of a paper's figure: a panel per measure, a line
per contestant. Ours is filled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

Row = dict[str, Any]

PLOTS = {
    "match-1d": ["intervals-one", "intervals-ten", "intervals-hundred"],
    "match-2d": ["rectangles", "small-boxes"],
    "match-many": ["conjunctions"],
    "border-1d": ["border-1d"],
    "border-2d": ["border-2d"],
    "window-join": ["window-join"],
}
FIGURES = [
    *("bmq-fig6", "bmq-fig7", "bmq-fig8", "bmq-fig9"),
    "sjcq-fig18",
    *("band-tau", "band-values", "band-bands", "band-output"),
    "moving-growth",
    *(f"mtb-fig{number}" for number in (20, 21, 22, 23, 24, 29, 30, 31, 32, 33, 35, 36, 37, 38, 39, 40, 41)),
]
LOGARITHMIC = {"moving-growth", "mtb-fig21", "mtb-fig24", "mtb-fig29"}  # where the first and the last are worlds apart
OWN_PLOTS = {name for name, targets in PLOTS.items() if targets == [name]} | set(FIGURES)  # shown with their target
OURS = ("Vedette", "BMQ")
MARKS = "os^Dv*"


def draw_plots(rows: list[Row], folder: Path) -> None:
    """Write one SVG per group of targets, or figure, that has results."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vedette"  # the same plot is the same file
    folder.mkdir(parents=True, exist_ok=True)
    for name, targets in PLOTS.items():
        times = [row for row in rows if row["kind"] == "time" and row["target"] in targets and "ratio" in row]
        if times:
            _draw(times, folder / f"{name}.svg")
    for name in FIGURES:
        points = [row for row in rows if row["target"] == name and "x" in row]
        if points:
            _draw_lines(points, folder / f"{name}.svg", is_log=name in LOGARITHMIC)


def _draw(times: list[Row], path: Path) -> None:
    from matplotlib import pyplot

    panels: dict[str, list[Row]] = {}
    for row in times:
        found = f"{row['n_pairs']:,} {row.get('answers', 'pairs')}"
        panels.setdefault(f"{row['case']}: {row['n_queries']:,} queries, {row['n_rows']:,} rows, {found}", []).append(
            row
        )
    heights = [len(panel) + 1.5 for panel in panels.values()]
    figure, all_axes = pyplot.subplots(
        len(panels), 1, figsize=(8, 0.24 * sum(heights) + 0.5), sharex=True, squeeze=False, height_ratios=heights
    )
    for axes, (label, panel) in zip(all_axes[:, 0], panels.items(), strict=True):
        panel = sorted(panel, key=lambda row: -row["seconds"])
        places = range(len(panel))
        colours = ["black" if row["contestant"].startswith(OURS) else "white" for row in panel]
        axes.hlines(places, 1e-6, [row["seconds"] for row in panel], colors="0.75", linewidth=1)
        axes.scatter([row["seconds"] for row in panel], places, c=colours, edgecolors="black", s=28, zorder=3)
        axes.set_yticks(places, [row["contestant"] for row in panel], fontsize=7)
        axes.set_title(label, fontsize=8, loc="left")
        axes.set_xscale("log")
        axes.grid(axis="x", color="0.9")
        axes.set_ylim(-0.7, len(panel) - 0.3)
    seconds = [row["seconds"] for row in times]
    all_axes[0, 0].set_xlim(min(seconds) / 2, max(seconds) * 2)
    all_axes[-1, 0].set_xlabel("seconds (logarithmic); filled: Vedette", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_lines(points: list[Row], path: Path, *, is_log: bool) -> None:
    from matplotlib import pyplot

    panels: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for row in points:
        is_time = row["kind"] == "time"
        y_name = "microseconds a reading" if is_time else row["y_name"]
        y = 1e6 * row["seconds"] / row["n_rows"] if is_time else row["value"]
        panels.setdefault((y_name, row["x_name"]), {}).setdefault(row["contestant"], []).append((row["x"], y))
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(8, 3.2), squeeze=False)
    for axes, ((y_name, x_name), lines) in zip(all_axes[0], panels.items(), strict=True):
        for mark, (name, line) in zip(MARKS, lines.items(), strict=False):
            colour = "black" if name.startswith(OURS) else "white"
            style = {"color": "0.6", "linewidth": 1, "markerfacecolor": colour, "markeredgecolor": "black"}
            axes.plot(*zip(*sorted(line), strict=True), marker=mark, markersize=5, label=name, **style)
        if is_log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x_name, fontsize=8)
        axes.set_title(y_name, fontsize=8, loc="left")
        axes.tick_params(labelsize=7)
        axes.grid(color="0.9")
        axes.legend(fontsize=6, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
