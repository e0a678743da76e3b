"""The picture: a map of zones, tracks and notifications, and what became of the requests to each owner."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import DateFormatter, MinuteLocator, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch
from PIL import Image
from region import METRES, NORTH, OWNERS, Zone

INK, TRACK = "#1f2933", "#9aa5b1"
LOOKS: dict[str, dict[str, Any]] = {
    "ann": {"facecolor": "#e3eef7", "edgecolor": "#2f6f9f", "hatch": "////"},
    "bob": {"facecolor": "#fdf0d5", "edgecolor": "#b7791f", "hatch": "...."},
    "cleo": {"facecolor": "#f9dcd3", "edgecolor": "#b0413e", "hatch": "xxxx"},
}
MARKS: dict[str, dict[str, Any]] = {
    "enter": {"marker": "^", "color": INK, "markersize": 5, "linestyle": "none"},
    "exit": {"marker": "v", "markerfacecolor": "white", "color": INK, "markersize": 5, "linestyle": "none"},
}
OUTCOMES = {
    "taken": ("o", INK),
    "taken, no answer": ("D", "#b7791f"),
    "no answer": ("x", "#b0413e"),
    "503": ("s", "#b0413e"),
    "429": ("P", "#2f6f9f"),
}


def draw(
    zones: list[Zone],
    rows: list[dict[str, Any]],
    events: list[dict[str, Any]],
    requests: list[tuple[str, str, int]],
    path: Path,
) -> None:
    figure = Figure(figsize=(11, 10.5), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    top, middle, bottom = figure.subplots(3, 1, height_ratios=[3.2, 0.9, 0.8])
    tracks = _tracks(rows)
    _draw_map(top, zones, tracks, events)
    _draw_times(middle, events, rows[0]["ts"], rows[-1]["ts"])
    _draw_requests(bottom, requests)
    figure.legend(handles=_legend(), loc="outside right upper", frameon=False, fontsize=9, labelspacing=0.9)
    figure.canvas.draw()
    colours = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    colours.quantize(160).save(path, optimize=True)  # few colours make a small file


def _tracks(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Time, longitude and latitude of each van."""
    vans = dict.fromkeys(str(row["van"]) for row in rows)
    return {
        van: np.array([(row["ts"].timestamp(), row["lon"], row["lat"]) for row in rows if row["van"] == van])
        for van in vans
    }


def _draw_map(axes: Axes, zones: list[Zone], tracks: dict[str, np.ndarray], events: list[dict[str, Any]]) -> None:
    east = METRES * np.cos(np.radians(NORTH))
    for zone in zones:
        size = 2 * zone.radius / east, 2 * zone.radius / METRES
        axes.add_patch(Ellipse((zone.lon, zone.lat), *size, zorder=1, **LOOKS[zone.owner]))
        axes.annotate(
            zone.name, (zone.lon, zone.lat + zone.radius / METRES), ha="center", va="bottom", fontsize=8, color=INK
        )
    for track in tracks.values():
        axes.plot(track[:, 1], track[:, 2], color=TRACK, linewidth=0.6, zorder=2)
    for event in events:
        track, at = tracks[event["van"]], datetime.fromisoformat(event["time"]).timestamp()
        lon, lat = (np.interp(at, track[:, 0], track[:, place]) for place in (1, 2))
        axes.plot(lon, lat, zorder=3, **MARKS[event["event"]])
    axes.set(aspect=1 / np.cos(np.radians(NORTH)), xlabel="longitude", ylabel="latitude")
    _style(axes, f"{len(zones)} zones with radii in metres, {len(tracks)} vans: what their owners were told")


def _draw_times(axes: Axes, events: list[dict[str, Any]], start: datetime, end: datetime) -> None:
    for event in events:
        at = date2num(datetime.fromisoformat(event["time"]))
        axes.plot(at, OWNERS.index(event["group"]), **MARKS[event["event"]])
    _rows_of_owners(axes)
    axes.set_xlim(date2num(start), date2num(end))
    axes.xaxis.set_major_locator(MinuteLocator(byminute=range(0, 60, 10)))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    _style(axes, "Notifications by owner, at the times of their events")


def _draw_requests(axes: Axes, requests: list[tuple[str, str, int]]) -> None:
    for number, (group, luck, _) in enumerate(requests):
        mark, colour = OUTCOMES[luck]
        axes.plot(number, OWNERS.index(group), marker=mark, color=colour, markersize=5, linestyle="none")
    _rows_of_owners(axes)
    axes.set_xlabel("requests, in the order in which they came")
    _style(axes, "What the receiver did with each request")


def _rows_of_owners(axes: Axes) -> None:
    axes.set_yticks(range(len(OWNERS)), OWNERS)
    axes.set_ylim(len(OWNERS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _legend() -> list[Any]:
    names = {"taken": "taken", "taken, no answer": "taken, but not\nanswered", "no answer": "closed, no answer"}
    return [
        *(Patch(label=f"zone of {owner}", **LOOKS[owner]) for owner in OWNERS),
        Line2D([], [], color=TRACK, linewidth=0.8, label="track of a van"),
        Line2D([], [], label="stayed for 2 minutes", **MARKS["enter"]),
        Line2D([], [], label="left", **MARKS["exit"]),
        *(
            Line2D([], [], marker=mark, color=colour, linestyle="none", label=names.get(luck, f"answered {luck}"))
            for luck, (mark, colour) in OUTCOMES.items()
        ),
    ]


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
