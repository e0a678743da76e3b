"""The state of the bay at a time: a map, news, and when each vessel meets which cell. All frames together are a GIF.

Kinds differ in hatching, line style and weight, so the picture is readable in black and white.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D
from PIL import Image
from sea import COAST, EAST, NORTH, PORTS, SIDES, SPEEDS, Sea, Vessel

INK, QUIET, LAND, STORM, ALARM = "#1f2933", "#7b8794", "#dcd8cc", "#cfdcea", "#e07a1f"
MIDDLE: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": INK}
BAR = 0.78  # of a vessel's line
N_NEWS = 11
LATER = 30  # minutes, after which cells are shown dashed
SECONDS = 0.16  # per frame of the GIF
COLOURS = 24  # few make a small file
CELL: dict[str, Any] = {"facecolor": STORM, "edgecolor": "#52708f", "hatch": "////", "linewidth": 0.8}
DRIFTED: dict[str, Any] = {"fill": False, "edgecolor": "#52708f", "linewidth": 0.8, "linestyle": (0, (4, 3))}
ZONE: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.9}
MEETING: dict[str, Any] = {"facecolor": ALARM, "edgecolor": INK, "linewidth": 2.2}
SHARED: dict[str, Any] = {"facecolor": INK, "edgecolor": INK, "linewidth": 0.5}
PASSED: dict[str, Any] = {"facecolor": ALARM, "edgecolor": "white", "linewidth": 0.4}
TO_COME: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.9, "linestyle": (0, (2, 1.5))}

Pair = tuple[str, int]  # a vessel and a cell
Span = tuple[float, float]  # from when until when they meet
News = tuple[float, Pair, str]
Box = np.ndarray  # x_low, x_high, y_low, y_high


@dataclass(frozen=True)
class Frame:
    """The known state at a time."""

    time: float
    met: list[Pair]  # that meet now
    coming: dict[Pair, float]  # that will meet, and when
    spans: list[tuple[Pair, Span]]  # all meetings, past and to come
    news: list[News]  # the latest


def clock(time: float) -> str:
    """Minutes as hours and minutes."""
    return f"{int(time) // 60:02d}:{int(time) % 60:02d}"


def draw(sea: Sea, vessels: pa.Table, storms: pa.Table, frame: Frame, path: Path) -> None:
    """One frame as a PNG."""
    _render(sea, _Rows.read(vessels), _Rows.read(storms), frame, dpi=110).quantize(160).save(path, optimize=True)


def animate(sea: Sea, vessels: pa.Table, storms: pa.Table, frames: Sequence[Frame], path: Path) -> None:
    """All frames as a GIF that repeats, with a pause at its end."""
    both = _Rows.read(vessels), _Rows.read(storms)
    images = [_render(sea, *both, frame, dpi=80) for frame in frames]
    palette = images[len(images) // 2].quantize(COLOURS)
    indexed = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    times = [int(1000 * SECONDS)] * (len(indexed) - 1) + [3000]
    indexed[0].save(path, save_all=True, append_images=indexed[1:], duration=times, loop=0, optimize=True)


@dataclass(frozen=True)
class _Rows:
    """Rows as arrays, in time order."""

    ids: list[Any]
    times: np.ndarray
    boxes: np.ndarray  # (n, 4)
    speeds: np.ndarray
    goes: list[bool]

    @classmethod
    def read(cls, table: pa.Table) -> _Rows:
        boxes, speeds = (np.stack([table[name].to_numpy() for name in names], axis=1) for names in (SIDES, SPEEDS))
        goes = table["removed"].to_pylist() if "removed" in table.column_names else [False] * len(table)
        return cls(table["id"].to_pylist(), table["time"].to_numpy(), boxes, speeds, goes)

    def last(self, time: float) -> dict[Any, int]:
        """The last row of each object that exists at a time."""
        rows = {self.ids[row]: row for row in range(int(np.searchsorted(self.times, time, side="right")))}
        return {name: row for name, row in rows.items() if not self.goes[row]}

    def box(self, row: int, time: float) -> Box:
        return self.boxes[row] + self.speeds[row] * (time - self.times[row])


def _render(sea: Sea, vessels: _Rows, storms: _Rows, frame: Frame, dpi: int) -> Image.Image:
    figure = Figure(figsize=(9.2, 9.9), dpi=dpi)
    FigureCanvasAgg(figure)
    _draw_map(figure.add_axes((0.02, 0.412, 0.96, 0.557)), sea, vessels, storms, frame)
    _draw_times(figure.add_axes((0.07, 0.035, 0.55, 0.318)), sea, frame)
    _write_news(figure.add_axes((0.645, 0.035, 0.35, 0.318)), frame)
    figure.legend(
        handles=_legend(), loc="center", bbox_to_anchor=(0.5, 0.395), ncols=6, fontsize=8, frameon=False,
        columnspacing=1.4,
    )  # fmt: skip
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")


def _draw_map(axes: Axes, sea: Sea, vessels: _Rows, storms: _Rows, frame: Frame) -> None:
    now = frame.time
    land = [*COAST, (150, -20), (-20, -20), (-20, 170), (66, 170)]
    axes.add_patch(Polygon(land, facecolor=LAND, edgecolor=QUIET, linewidth=1.2, zorder=1))
    for port, place in PORTS.items():
        axes.plot(*place, "s", color=INK, markersize=4, zorder=2)
        axes.annotate(port, place, (3, -10), textcoords="offset points", fontsize=7, color=INK, ha="left", zorder=2)
    rows = vessels.last(now), storms.last(now)
    zones = {name: vessels.box(row, now) for name, row in rows[0].items()}
    cells = {cell: storms.box(row, now) for cell, row in rows[1].items()}
    for cell, box in cells.items():
        axes.add_patch(_rectangle(box, zorder=3, **CELL))
        _draw_drift(axes, box, storms.speeds[rows[1][cell]])
    meeting = {vessel for vessel, _ in frame.met}
    for name, box in zones.items():
        is_met = name in meeting
        axes.add_patch(_rectangle(box, zorder=5 if is_met else 4, **(MEETING if is_met else ZONE)))
    for name, cell in frame.met:
        axes.add_patch(_rectangle(_common(zones[name], cells[cell]), zorder=6, **SHARED))
    for vessel in sea.vessels:
        _draw_vessel(axes, vessel, zones[vessel.name], now, vessel.name in meeting)
    for (name, cell), start in frame.coming.items():
        touch = _common(vessels.box(rows[0][name], start), storms.box(rows[1][cell], start))
        _draw_coming(axes, _middle(zones[name]), _middle(touch), start)
    for cell, box in cells.items():
        look = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": "#52708f"}
        axes.annotate(
            str(cell), _middle(box), fontsize=9, ha="center", va="center", fontweight="bold", color=INK, bbox=look,
            zorder=9, annotation_clip=True,
        )  # fmt: skip
    axes.set(xlim=(0, EAST), ylim=(0, NORTH), aspect="equal", xticks=[], yticks=[])
    axes.set_title(clock(now), loc="left", fontsize=16, fontweight="bold", color=INK)
    for line in range(30, int(EAST), 30):
        axes.axvline(line, color="0.88", linewidth=0.6, zorder=0)
        axes.axhline(line, color="0.88", linewidth=0.6, zorder=0)
    axes.plot([EAST - 36, EAST - 6], [5, 5], color=INK, linewidth=2, marker="|", zorder=2)
    axes.text(EAST - 21, 7, "30 miles", fontsize=7, color=INK, ha="center", zorder=2)
    n_coming = f"{len(frame.coming)} meeting{'' if len(frame.coming) == 1 else 's'}"
    words = f"{len(meeting)} of {len(sea.vessels)} vessels in a storm, {n_coming} to come"
    axes.set_title(words, loc="right", fontsize=10, color=INK)


def _draw_vessel(axes: Axes, vessel: Vessel, zone: Box, now: float, is_met: bool) -> None:
    """An arrowhead in the direction of travel, or a dot if the vessel does not move. The name is on its zone."""
    here, speed = vessel.place(now), vessel.velocity(now)
    dart = Affine2D().rotate(np.arctan2(speed[1], speed[0])).transform_path(DART) if speed.any() else "o"
    look = {"color": "white" if is_met else INK, "markeredgecolor": INK, "markeredgewidth": 0.8}
    axes.plot(*here, marker=dart, markersize=10 if speed.any() else 5, zorder=8, **look)
    axes.annotate(
        vessel.name, (zone[0], zone[3]), (0, 2.5), textcoords="offset points", fontsize=7.5, color=INK, zorder=8,
        fontweight="bold" if is_met else "normal", annotation_clip=True,
    )  # fmt: skip


DART = Outline([(1, 0), (-0.7, 0.6), (-0.35, 0), (-0.7, -0.6), (1, 0)], closed=True)


def _draw_drift(axes: Axes, box: Box, speeds: np.ndarray) -> None:
    """Where a cell will be in half an hour, and how large."""
    there = box + LATER * speeds
    if there[0] < there[1] and there[2] < there[3]:
        axes.add_patch(_rectangle(there, zorder=2.5, **DRIFTED))
    arrow = {"arrowstyle": "-|>", "color": "#52708f", "linewidth": 1.2, "shrinkA": 8, "shrinkB": 0}
    axes.annotate("", _middle(there), _middle(box), arrowprops=arrow, zorder=3.5, annotation_clip=True)


def _draw_coming(axes: Axes, here: tuple[float, float], there: tuple[float, float], start: float) -> None:
    """From a zone to where it will touch a cell, and when."""
    axes.plot(*zip(here, there, strict=True), color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=7)
    axes.plot(*there, marker="x", color=INK, markersize=7, markeredgewidth=2, zorder=7)
    look = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axes.annotate(
        clock(start), there, (6, -9), textcoords="offset points", fontsize=7, color=INK, bbox=look, zorder=7,
        annotation_clip=True,
    )  # fmt: skip


def _draw_times(axes: Axes, sea: Sea, frame: Frame) -> None:
    """A line for each vessel: when it met, meets and will meet which cells, as known now."""
    now, rows = frame.time, {vessel.name: row for row, vessel in enumerate(sea.vessels)}
    for name, meetings in groupby(_join(frame.spans), key=lambda each: each[0]):
        lanes = _lay_out([each[1:] for each in meetings])
        height = BAR / len(lanes)
        for lane, spans in enumerate(lanes):
            low = rows[name] - BAR / 2 + lane * height
            for cell, start, end in spans:
                if end > now:
                    begin = max(start, now)
                    axes.add_patch(Rectangle((begin, low), end - begin, height, zorder=2, **TO_COME))
                if start <= now:
                    axes.add_patch(Rectangle((start, low), min(end, now) - start, height, zorder=3, **PASSED))
                if end - start > 9 and len(lanes) < 3:
                    middle = (start + min(end, sea.minutes)) / 2, low + height / 2
                    size = 7 if len(lanes) == 1 else 5.5
                    axes.text(*middle, str(cell), fontsize=size, zorder=4, clip_on=True, **MIDDLE)
    axes.axvline(now, color=INK, linewidth=1.4, zorder=5)
    axes.set(xlim=(0, sea.minutes), ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), list(rows), fontsize=7.5)
    hours = range(0, sea.minutes + 1, 60)
    axes.set_xticks(hours, [clock(time) for time in hours], fontsize=8)
    axes.tick_params(axis="y", length=0, colors=INK)
    axes.set_title("In which cell, and what is expected", loc="left", fontsize=9, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)


def _join(spans: list[tuple[Pair, Span]]) -> list[tuple[str, int, float, float]]:
    """Adjacent spans of one pair merged, by vessel and cell."""
    joined: list[tuple[str, int, float, float]] = []
    for (name, cell), (start, end) in sorted(spans):
        if joined and joined[-1][:2] == (name, cell) and start - joined[-1][3] < 1e-6:
            start = joined.pop()[2]
        joined.append((name, cell, start, end))
    return joined


def _lay_out(meetings: list[tuple[int, float, float]]) -> list[list[tuple[int, float, float]]]:
    """Assign lanes so that no two spans overlap."""
    lanes: list[list[tuple[int, float, float]]] = []
    for meeting in sorted(meetings, key=lambda each: each[1]):
        free = next((lane for lane in lanes if lane[-1][2] < meeting[1]), None)
        if free is None:
            lanes.append(free := [])
        free.append(meeting)
    return lanes


def _write_news(axes: Axes, frame: Frame) -> None:
    """The latest news, newest first."""
    axes.axis("off")
    axes.set_title("News", loc="left", fontsize=9, color=INK)
    for line, (time, (vessel, _), words) in enumerate(reversed(frame.news)):
        look: dict[str, Any] = {"fontsize": 8, "color": INK, "transform": axes.transAxes}
        look |= {"fontweight": "bold"} if "MEETS" in words else {}
        axes.text(0, 0.95 - line * 0.09, clock(time), **look)
        axes.text(0.13, 0.95 - line * 0.09, f"{vessel} {words}", **look)


def _legend() -> list[Any]:
    return [
        Patch(label="alert zone", **ZONE),
        Patch(label="storm cell", **CELL),
        Patch(label=f"in {LATER} minutes", **DRIFTED),
        Patch(label="zone that meets a cell", **MEETING),
        Patch(label="where it does", **SHARED),
        Line2D(
            [], [], color=INK, marker="x", markeredgewidth=2, linestyle=(0, (1, 1.5)), label="will meet there, then"
        ),
    ]


def _rectangle(box: Box, **look: Any) -> Rectangle:
    return Rectangle((box[0], box[2]), box[1] - box[0], box[3] - box[2], **look)


def _common(one: Box, other: Box) -> Box:
    """The intersection of two boxes."""
    lows, highs = np.maximum(one[[0, 2]], other[[0, 2]]), np.minimum(one[[1, 3]], other[[1, 3]])
    return np.stack([lows, highs], axis=1).ravel()


def _middle(box: Box) -> tuple[float, float]:
    return float(box[:2].mean()), float(box[2:].mean())
