"""The chart: a spread and its bands, the alerts of each symbol over time, and differences between banks and mines.

Alerts differ in shape and shade as well as in colour, so the chart is readable in black and white.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from market import SECTORS, START, Alerts
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator
from PIL import Image

INK, FAINT, PALE, ALERT, LINE = "#1f2933", "#c9d0d8", "#9aa5b1", "#a8322f", "#1d4f91"
SECONDS_OF_A_CELL = 10
MARKER = {"marker": "^", "facecolor": ALERT, "edgecolor": "white", "linewidths": 0.4}


def draw(
    path: Path,
    left: pa.Table,
    right: pa.Table,
    alerts: Alerts,
    found: pa.Table,
    performances: list[dict[str, float]],
    history: list[Any],
    bands: tuple[np.ndarray, np.ndarray],
) -> None:
    figure = Figure(figsize=(11, 11.5), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(3, 2, width_ratios=[4.6, 1], height_ratios=[1.15, 1, 1.15], sharey="row")
    reported = _Reported(left, right, alerts, found)
    minutes = (len(performances) - 1) / 6
    _draw_spread(grid[0], reported, minutes)
    _draw_symbols(grid[1], reported, minutes)
    _draw_performances(grid[2], performances, history, bands, minutes)
    for axes in grid[:, 0]:
        axes.set_xlim(0, minutes)
        axes.xaxis.set_major_locator(MultipleLocator(max(1, round(minutes / 10))))
        axes.set_xlabel(f"minutes after {START:%H:%M}", labelpad=1)
    figure.canvas.draw()
    colours = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    colours.quantize(160).save(path, optimize=True)  # few colours make a small file


class _Reported:
    """The pairs that alerts reported, with their times and spreads."""

    def __init__(self, left: pa.Table, right: pa.Table, alerts: Alerts, found: pa.Table) -> None:
        self.left, self.right, self.alerts = left, right, alerts
        here, there = left.take(found["left"]), right.take(found["right"])
        self.queries = found["query"].to_numpy()
        self.symbols = here["symbol"].to_numpy()
        self.minutes = np.maximum(_minutes(here), _minutes(there))  # a pair is reported with the later of its quotes
        self.spreads = here["price"].to_numpy() - there["price"].to_numpy()
        self.chosen = (
            str(Counter(self.symbols.tolist()).most_common(1)[0][0]) if len(self.symbols) else alerts.symbols[0]
        )

    def spread_of(self, symbol: str) -> tuple[np.ndarray, np.ndarray]:
        """Times, and the spread between the last quotes of both exchanges."""
        quotes = []
        for side, table in enumerate((self.left, self.right)):
            own = table.filter(pc.equal(table["symbol"], symbol))
            quotes += [
                (minute, side, price) for minute, price in zip(_minutes(own), own["price"].to_numpy(), strict=True)
            ]
        last = [np.nan, np.nan]
        times, spreads = [], []
        for minute, side, price in sorted(quotes):
            last[side] = price
            times.append(minute)
            spreads.append(last[0] - last[1])
        return np.array(times), np.array(spreads)


def _minutes(quotes: pa.Table) -> np.ndarray:
    return (quotes["ts"].cast(pa.int64()).to_numpy() / 1e6 - START.timestamp()) / 60


def _draw_spread(row: Any, reported: _Reported, minutes: float) -> None:
    axes, right = row
    times, spreads = reported.spread_of(reported.chosen)
    axes.plot(times, spreads, color=INK, linewidth=0.6, drawstyle="steps-post", zorder=2, label="last quotes")
    mine = reported.symbols == reported.chosen
    pairs = Counter(zip(reported.minutes[mine].tolist(), reported.spreads[mine].tolist(), strict=True))
    at, of = np.array(list(pairs)).reshape(-1, 2).T
    sizes = 8 + 2.2 * np.array(list(pairs.values()))
    axes.scatter(at, of, s=sizes, zorder=3, label="reported pair of quotes;\nsize: number of alerts", **MARKER)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    axes.set_ylabel("left price minus right price", labelpad=2)
    axes.margins(y=0.12)
    axes.legend(loc="best", frameon=False, fontsize=8.5, labelspacing=0.6)
    _style(axes, f"Spread of {reported.chosen} between two exchanges, and the pairs that its alerts reported")

    lows, highs, known = reported.alerts.lows, reported.alerts.highs, set(reported.queries[mine].tolist())
    own = [i for i, symbol in enumerate(reported.alerts.symbols) if symbol == reported.chosen]
    own.sort(key=lambda i: (reported.alerts.ids[i] in known, lows[i] + highs[i], lows[i]))  # those without pairs first
    lines = [[(place, lows[i]), (place, highs[i])] for place, i in enumerate(own)]
    colours = [ALERT if reported.alerts.ids[i] in known else PALE for i in own]
    right.add_collection(LineCollection(lines, colors=colours, linewidths=1.0))
    right.set_xlim(-3, len(own) + 2)
    right.set_xticks([])
    right.set_xlabel(f"{len(own) - len(known)} without, {len(known)} with pairs", labelpad=4)
    _style(right, f"Bands of its {len(own)} alerts")


def _draw_symbols(row: Any, reported: _Reported, minutes: float) -> None:
    axes, right = row
    symbols = sorted(set(reported.alerts.symbols))
    places = np.array([symbols.index(symbol) for symbol in reported.symbols.tolist()], np.int64)
    n_cells = int(np.ceil(minutes * 60 / SECONDS_OF_A_CELL))
    cells = np.minimum((reported.minutes * 60 / SECONDS_OF_A_CELL).astype(np.int64), n_cells - 1)
    counts = np.zeros((len(symbols), n_cells))
    np.add.at(counts, (places, cells), 1)
    edges = np.arange(n_cells + 1) * SECONDS_OF_A_CELL / 60
    shades = np.log10(1 + counts)
    axes.pcolormesh(edges, np.arange(len(symbols) + 1) - 0.5, shades, cmap="Greys", vmin=0, vmax=max(1.0, shades.max()))
    axes.set_yticks(range(len(symbols)), symbols, fontsize=7)
    axes.set_ylim(len(symbols) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _style(axes, "Reported pairs per symbol and ten seconds (darker: more pairs)")
    for label in axes.get_yticklabels():
        if label.get_text() == reported.chosen:
            label.set(color=ALERT, fontweight="bold")

    total = Counter(reported.alerts.symbols)
    alerted = Counter(
        dict(zip(reported.alerts.ids, reported.alerts.symbols, strict=True))[query]
        for query in set(reported.queries.tolist())
    )
    right.barh(range(len(symbols)), [total[each] for each in symbols], color="white", edgecolor=INK, linewidth=0.6)
    right.barh(range(len(symbols)), [alerted[each] for each in symbols], color=INK)
    right.tick_params(axis="y", length=0)
    right.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    right.set_xlabel("alerts (dark: with pairs)", labelpad=1)
    _style(right, f"{len(set(reported.queries.tolist())):,} of {len(reported.alerts):,} alerts")


def _draw_performances(
    row: Any,
    performances: list[dict[str, float]],
    history: list[Any],
    bands: tuple[np.ndarray, np.ndarray],
    minutes: float,
) -> None:
    axes, right = row
    times = np.linspace(0, minutes, len(performances))
    couples = [(bank, mine) for bank in performances[0] for mine in performances[0] if _is_pair(bank, mine)]
    lines = {pair: np.array([now[pair[0]] - now[pair[1]] for now in performances]) for pair in couples}
    axes.add_collection(
        LineCollection([np.column_stack([times, each]) for each in lines.values()], colors=FAINT, linewidths=0.5)
    )
    held = [Counter((bank, mine) for _, bank, mine in current) for current in history]
    chosen = max(couples, key=lambda pair: (sum(pair in each for each in held), np.abs(lines[pair]).max()))
    axes.plot(times, lines[chosen], color=LINE, linewidth=1.6, zorder=3, label=f"{chosen[0]} minus {chosen[1]}")
    sizes = np.array([each[chosen] for each in held])
    some = sizes > 0
    axes.scatter(
        times[some], lines[chosen][some], s=10 + 0.35 * sizes[some], marker="o", facecolor="white", edgecolor=LINE,
        linewidths=1.2, zorder=4, label="in a band; size: number of bands",
    )  # fmt: skip
    axes.plot([], [], color=FAINT, linewidth=1.2, label="other pairs")
    reach = max(0.5, 1.08 * max(np.abs(each).max() for each in lines.values()))
    axes.set_ylim(-reach, reach)
    axes.set_ylabel("percentage points", labelpad=2)
    corner = "upper left" if lines[chosen].mean() < 0 else "lower left"  # lines fan out to the right
    axes.legend(loc=corner, frameon=False, fontsize=8.5)
    _style(axes, f"Difference in performance of {len(couples)} pairs of a bank and a mine")

    heights = np.linspace(-reach, reach, 400)
    holding = np.searchsorted(np.sort(bands[0]), heights, "right") - np.searchsorted(np.sort(bands[1]), heights, "left")
    right.fill_betweenx(heights, holding, color=FAINT, step="mid")
    right.plot(holding, heights, color=INK, linewidth=0.6)
    right.set_xlim(left=0)
    right.set_xlabel("bands with this value", labelpad=1)
    right.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    _style(right, f"{len(bands[0]):,} bands")


def _is_pair(bank: str, mine: str) -> bool:
    return bank.startswith(SECTORS[0]) and mine.startswith(SECTORS[1])


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
