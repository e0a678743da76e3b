"""Plots of the experiments, readable in black and white.

Contestants over cases: a panel per case and a mark per contestant. A paper's figure: a panel per measure and a line
per contestant. Our marks are filled.
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
    *("vci-fig6", "vci-fig7", "vcr-fig12", "vcr-fig13"),
    *("sjcq-fig15", "sjcq-fig16", "sjcq-fig17", "sjcq-fig18"),
    *("bmq-fig6", "bmq-fig7", "bmq-fig8", "bmq-fig9", "bmq-axes"),
    *("band-tau", "band-values", "band-bands", "band-output"),
    "moving-growth",
    *(f"mtb-fig{number}" for number in (*range(20, 34), *range(35, 42))),
]
# Logarithmic scales: on both axes, or on the y axis.
BOTH_LOGARITHMIC = {
    "vci-fig6",
    "vci-fig7",
    "vcr-fig12",
    "vcr-fig13",
    "moving-growth",
    "mtb-fig21",
    "mtb-fig24",
    "mtb-fig29",
}
BOTH_LOGARITHMIC |= {"bmq-axes", "sjcq-fig15", "band-tau", "band-values", "band-bands", "band-output"}
Y_LOGARITHMIC = {"sjcq-fig16", "sjcq-fig17", *(f"mtb-fig{n}" for n in (25, 26, 27, 28, 30, 31, 32, 33))}
OWN_PLOTS = {name for name, targets in PLOTS.items() if targets == [name]} | set(FIGURES)  # shown with their target
OURS = ("Vedette", "BMQ", "our index")
MARKS = "os^Dv*PX<>"
LINES = ("-", "--", ":", "-.")
PANELS_A_ROW = 2


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
            _draw_lines(points, folder / f"{name}.svg", name)


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


def _draw_lines(points: list[Row], path: Path, name: str) -> None:
    """A panel for each measure and what it is drawn against, a line for each contestant, one legend for all."""
    from matplotlib import pyplot

    panels = _panels(points)
    contestants = list(dict.fromkeys(row["contestant"] for row in points))
    n_columns = min(PANELS_A_ROW, len(panels))
    n_rows = -(-len(panels) // n_columns)
    n_legend_rows = -(-len(contestants) // 3)
    height = 2.9 * n_rows + 0.2 * n_legend_rows + 0.1
    figure, all_axes = pyplot.subplots(n_rows, n_columns, figsize=(8, height), squeeze=False)
    for axes, ((y_name, x_name), lines) in zip(all_axes.flat, panels.items(), strict=False):
        for contestant, line in lines.items():
            at = contestants.index(contestant)
            style = {"color": "0.45", "linewidth": 1, "linestyle": LINES[at % len(LINES)], "markeredgecolor": "black"}
            style |= {"marker": MARKS[at % len(MARKS)], "markersize": 5}
            style["markerfacecolor"] = "black" if contestant.startswith(OURS) else "white"
            if isinstance(line[0][0], str):  # categories, in the order of their appearance, without a line
                style["linestyle"] = "none"
            else:
                line.sort()
            axes.plot(*zip(*line, strict=True), label=contestant, **style)
        _scale(axes, name, [point for line in lines.values() for point in line])
        axes.set_xlabel(x_name, fontsize=8)
        axes.set_title(y_name, fontsize=8, loc="left")
        axes.tick_params(which="both", labelsize=7)
        axes.grid(color="0.9")
    for axes in all_axes.flat[len(panels) :]:
        axes.set_visible(False)
    shown = {label: handle for axes in all_axes.flat for handle, label in zip(*axes.get_legend_handles_labels())}  # noqa: B905
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncols=3, fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, (0.2 * n_legend_rows + 0.1) / height, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _panels(points: list[Row]) -> dict[tuple[str, str], dict[str, list[tuple[Any, float]]]]:
    """Points by measure, x axis and contestant. Times are per row or per reading."""
    panels: dict[tuple[str, str], dict[str, list[tuple[Any, float]]]] = {}
    for row in points:
        is_time = row["kind"] == "time"
        y_name = row.get("y_name") or f"microseconds a {'reading' if row['answers'] == 'events' else 'row'}"
        y = 1e6 * row["seconds"] / row["n_rows"] if is_time else row["value"]
        panels.setdefault((y_name, row["x_name"]), {}).setdefault(row["contestant"], []).append((row["x"], y))
    return panels


def _scale(axes: Any, name: str, points: list[tuple[Any, float]]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    plain = FuncFormatter(lambda value, _: _short(value))
    if name in BOTH_LOGARITHMIC:
        axes.set_xscale("log")
        axes.set_xticks(xs, [_short(x) for x in xs])
        axes.xaxis.set_minor_formatter(NullFormatter())
    elif not isinstance(xs[0], str):
        axes.xaxis.set_major_formatter(plain)
    if name in BOTH_LOGARITHMIC | Y_LOGARITHMIC:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(plain if max(ys) < 10 * min(ys) else NullFormatter())
    else:
        axes.set_ylim(0, 1.08 * max(ys) or 1)
    axes.yaxis.set_major_formatter(plain)


def _short(number: float) -> str:
    """A short number, such as 64k."""
    if number >= 1_000_000:
        return f"{number / 1_000_000:g}M"
    return f"{number / 1_000:g}k" if number >= 1_000 else f"{number:.6g}"
