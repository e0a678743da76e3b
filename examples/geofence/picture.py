"""The picture of a day: a map of the zones with tracks and events, and below it the stays of each van over time.

Kinds differ in hatching and line style as well as in colour, so the picture is readable in black and white.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.dates import DateFormatter, MinuteLocator, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, PathPatch, Rectangle
from matplotlib.path import Path as Outline
from PIL import Image
from town import BLOCK, COLUMNS, ROWS, Town, Zone

INK, STREET, TRACK, CHOSEN = "#1f2933", "#e4e7eb", "#9aa5b1", "#1d4f91"
LOOKS: dict[str, dict[str, Any]] = {
    "low emission": {"facecolor": "#e3eef7", "edgecolor": "#2f6f9f", "linewidth": 1.6},
    "school": {"facecolor": "#fdf0d5", "edgecolor": "#b7791f", "hatch": "////"},
    "road works": {"facecolor": "#f9dcd3", "edgecolor": "#b0413e", "hatch": "xxxx"},
    "depot": {"facecolor": "#d5d9de", "edgecolor": "#3e4c59", "hatch": "...."},
    "customer": {"facecolor": "none", "edgecolor": INK, "linestyle": (0, (2, 1.5))},
}


def draw(town: Town, positions: pa.Table, visits: pa.Table, stops: pa.Table, path: Path) -> None:
    figure = Figure(figsize=(11, 10), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, height_ratios=[2.6, 1])
    tracks = _tracks(positions)
    chosen = _busiest(visits)
    _draw_map(top, town, tracks, visits, stops, chosen)
    _draw_times(bottom, town, list(tracks), visits, stops, chosen, pc.max(positions["ts"]).as_py())
    figure.legend(handles=_legend(chosen), loc="outside right upper", frameon=False, fontsize=9, labelspacing=0.9)
    figure.canvas.draw()
    colours = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    colours.quantize(160).save(path, optimize=True)  # few colours make a small file


def _tracks(positions: pa.Table) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Times, x and y of each van."""
    tracks = {}
    for vehicle in positions["vehicle"].unique().to_pylist():
        track = positions.filter(pc.equal(positions["vehicle"], vehicle))
        seconds = track["ts"].cast(pa.int64()).to_numpy() / 1e6
        tracks[vehicle] = (seconds, track["x"].to_numpy(), track["y"].to_numpy())
    return dict(sorted(tracks.items(), key=lambda item: int(item[0].split()[1])))


def _busiest(visits: pa.Table) -> str:
    """The van with the most events; it is drawn on top."""
    counts = Counter(visits["key"].to_pylist())
    return max(counts, key=lambda vehicle: counts[vehicle], default="")


def _draw_map(axes: Axes, town: Town, tracks: dict[str, Any], visits: pa.Table, stops: pa.Table, chosen: str) -> None:
    east, north = (COLUMNS - 1) * BLOCK, (ROWS - 1) * BLOCK
    streets = [[(i * BLOCK, 0), (i * BLOCK, north)] for i in range(COLUMNS)]
    streets += [[(0, i * BLOCK), (east, i * BLOCK)] for i in range(ROWS)]
    axes.add_collection(LineCollection(streets, colors=STREET, linewidths=3, zorder=0))
    for zone in town.zones:
        axes.add_patch(PathPatch(_outline(zone), zorder=1, **LOOKS[zone.kind]))
    for customer in town.customers:
        axes.add_patch(Circle((customer.x, customer.y), customer.radius, zorder=2, **LOOKS["customer"]))
    for vehicle, (_, xs, ys) in tracks.items():
        if vehicle != chosen:
            axes.plot(xs, ys, color=TRACK, linewidth=0.6, zorder=3)
    if chosen:
        axes.plot(*tracks[chosen][1:], color=CHOSEN, linewidth=1.6, zorder=4)
    axes.plot(*_places(tracks, visits, "exit"), **_EXIT, zorder=5)
    axes.plot(*_places(tracks, visits, "enter"), **_ENTER, zorder=5)
    axes.plot(*_places(tracks, stops, "enter"), **_SERVED, zorder=6)
    axes.set(xlim=(-150, east + 150), ylim=(-150, north + 150), aspect="equal")
    axes.set_xlabel("metres east")
    axes.set_ylabel("metres north")
    n_zones = len(town.zones) + len(town.customers)
    _style(axes, f"{len(tracks)} vans, {n_zones} zones: where they enter and leave")


_ENTER: dict[str, Any] = {"marker": "^", "color": INK, "markersize": 4, "linestyle": "none"}
_EXIT: dict[str, Any] = {"marker": "v", "markerfacecolor": "white", "color": INK, "markersize": 4, "linestyle": "none"}
_SERVED: dict[str, Any] = {
    "marker": "*", "color": "#f0b429", "markeredgecolor": INK, "markersize": 10, "linestyle": "none",
}  # fmt: skip


def _outline(zone: Zone) -> Outline:
    """The rings as one path, so that holes are left open."""
    rings = [np.array(ring) for ring in zone.rings]
    turned = [_wind(ring, 1 if place == 0 else -1) for place, ring in enumerate(rings)]
    codes = [[Outline.MOVETO, *[Outline.LINETO] * (len(ring) - 2), Outline.CLOSEPOLY] for ring in turned]
    return Outline(np.concatenate(turned), np.concatenate(codes))


def _wind(ring: np.ndarray, sign: int) -> np.ndarray:
    x, y = ring.T
    area = np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])
    return ring if area * sign > 0 else ring[::-1]


def _places(tracks: dict[str, Any], events: pa.Table, event: str) -> tuple[list[float], list[float]]:
    """The positions of the vans at events of a kind."""
    found = events.filter(pc.equal(events["event"], event)).to_pylist()
    xs = [float(np.interp(one["time"].timestamp(), tracks[one["key"]][0], tracks[one["key"]][1])) for one in found]
    ys = [float(np.interp(one["time"].timestamp(), tracks[one["key"]][0], tracks[one["key"]][2])) for one in found]
    return xs, ys


def _draw_times(
    axes: Axes, town: Town, vehicles: list[str], visits: pa.Table, stops: pa.Table, chosen: str, end: datetime
) -> None:
    kinds = {zone.id: zone.kind for zone in town.zones}
    heights = {"low emission": 0.9}
    for start, stop, vehicle, query in [*_stays(visits, end), *_stays(stops, end)]:
        kind = kinds.get(query, "customer")
        look = {"facecolor": INK, "edgecolor": INK} if kind == "customer" else LOOKS[kind] | {"linewidth": 0.8}
        height = 0.26 if kind == "customer" else heights.get(kind, 0.6)
        left, right = date2num(start), date2num(stop)
        low = vehicles.index(vehicle) - height / 2
        axes.add_patch(Rectangle((left, low), right - left, height, zorder=1 + 1 / height, **look))
    axes.set_yticks(range(len(vehicles)), vehicles)
    axes.set_ylim(len(vehicles) - 0.4, -0.6)
    times = [*visits["time"].to_pylist(), end]
    axes.set_xlim(date2num(min(times)), date2num(end))
    axes.xaxis.set_major_locator(MinuteLocator(byminute=range(0, 60, 5)))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    axes.tick_params(axis="y", length=0)
    _style(axes, "When each van was where, from enter to exit")
    for label in axes.get_yticklabels():
        if label.get_text() == chosen:
            label.set(color=CHOSEN, fontweight="bold")


def _stays(events: pa.Table, end: datetime) -> list[tuple[datetime, datetime, str, str]]:
    """From each enter to its exit, or to the end."""
    inside: dict[tuple[str, str], datetime] = {}
    stays = []
    for event in events.to_pylist():
        pair = (event["key"], event["query"])
        if event["event"] == "enter":
            inside[pair] = event["time"]
        else:
            stays.append((inside.pop(pair), event["time"], *pair))
    return stays + [(start, end, *pair) for pair, start in inside.items()]


def _legend(chosen: str) -> list[Any]:
    zones = [Patch(label=kind, **look) for kind, look in LOOKS.items()]
    zones[0].set_label("low emission\n(for diesels)")
    zones[-1].set_label("customer's circle")
    return [
        *zones,
        Line2D([], [], color=CHOSEN, linewidth=1.6, label=f"track of {chosen}"),
        Line2D([], [], color=TRACK, linewidth=0.8, label="other tracks"),
        Line2D([], [], label="enter", **_ENTER),
        Line2D([], [], label="exit", **_EXIT),
        Line2D([], [], label="stood at a customer's\nfor 2 minutes", **_SERVED),
        Patch(facecolor=INK, label="below: from then on\nuntil it left"),
    ]


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
