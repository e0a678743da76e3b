"""Plots of the matching experiments: one panel per case, a mark per contestant, readable in black and white."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PLOTS = {
    "match-1d": ["intervals-one", "intervals-ten", "intervals-hundred"],
    "match-2d": ["rectangles", "small-boxes"],
    "match-many": ["conjunctions"],
}


def draw_plots(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write one SVG per group of targets that has results."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vedette"  # the same plot is the same file
    folder.mkdir(parents=True, exist_ok=True)
    for name, targets in PLOTS.items():
        times = [row for row in rows if row["kind"] == "time" and row["target"] in targets and "ratio" in row]
        if times:
            _draw(times, folder / f"{name}.svg")


def _draw(times: list[dict[str, Any]], path: Path) -> None:
    from matplotlib import pyplot

    panels: dict[str, list[dict[str, Any]]] = {}
    for row in times:
        label = f"{row['case']}: {row['n_queries']:,} queries, {row['n_rows']:,} rows, {row['n_pairs']:,} pairs"
        panels.setdefault(label, []).append(row)
    heights = [len(panel) + 1.5 for panel in panels.values()]
    figure, all_axes = pyplot.subplots(
        len(panels), 1, figsize=(8, 0.24 * sum(heights) + 0.5), sharex=True, squeeze=False, height_ratios=heights
    )
    for axes, (label, panel) in zip(all_axes[:, 0], panels.items(), strict=True):
        panel = sorted(panel, key=lambda row: -row["seconds"])
        places = range(len(panel))
        ours = [row["contestant"].startswith("Vedette") for row in panel]
        colours = ["black" if own else "white" for own in ours]
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
