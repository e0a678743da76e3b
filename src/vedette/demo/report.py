"""The demo's report: one HTML page with a picture inside, to look at and to send on."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, cast

_INK, _QUIET, _BLUE, _ORANGE = "#1f2933", "#9aa5b1", "#2f6f9f", "#d9822b"


@dataclass
class Report:
    """What the demo found, as far as it is known."""

    n_rows: int
    n_alerts: int
    seed: int
    stream_seconds: float = 0.0
    n_hits: int = 0
    n_triggered: int = 0
    symbols: list[tuple[Any, ...]] = field(default_factory=list)  # symbol, hits, alerts, lowest, highest
    alerts: list[tuple[Any, ...]] = field(default_factory=list)  # alert, text, hits, first, last
    by_minutes: list[tuple[Any, ...]] = field(default_factory=list)  # start of ten minutes, hits
    shown_alert: str = ""
    shown_symbol: str = ""
    shown_text: str = ""
    prices: list[tuple[Any, ...]] = field(default_factory=list)  # time and price of the shown symbol
    firings: list[tuple[Any, ...]] = field(default_factory=list)  # time and price of ticks that hit the shown alert
    n_checked: int = 0
    n_wrong: int = 0
    join_seconds: float = 0.0
    join_slice: tuple[int, float] = (0, 0.0)

    def choose_shown(self) -> None:
        """The alert to draw: the most triggered one that names one symbol, a band if there is one."""
        named = [alert for alert in self.alerts if re.search(r"symbol = '\w+'", alert[1])] or self.alerts
        shown = next((alert for alert in named if "BETWEEN" in alert[1]), named[0])
        self.shown_alert, self.shown_text = shown[0], shown[1]
        found = re.search(r"'(\w+)'", shown[1])
        self.shown_symbol = found.group(1) if found else self.symbols[0][0]

    def write(self, directory: Path) -> Path:
        """Write report.html and report.png; the path of the page."""
        picture = self._draw()
        (directory / "report.png").write_bytes(picture)
        path = directory / "report.html"
        path.write_text(self._page(base64.b64encode(picture).decode()), encoding="utf-8")
        return path

    def _draw(self) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 8), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        top, bottom = cast("Any", figure.subfigures(2, 1, height_ratios=[3, 2]))
        self._draw_prices(top.subplots())
        left, right = bottom.subplots(1, 2)
        self._draw_day(left)
        self._draw_times(right)
        file = io.BytesIO()
        figure.savefig(file, format="png")
        return file.getvalue()

    def _draw_prices(self, axes: Any) -> None:
        axes.plot(*zip(*self.prices, strict=True), color=_QUIET, linewidth=0.8, label=f"price of {self.shown_symbol}")
        axes.plot(
            *zip(*self.firings, strict=True),
            ".",
            color=_ORANGE,
            markersize=4,
            label=f"ticks that hit {self.shown_alert}",
        )
        band = re.search(r"BETWEEN ([\d.]+) AND ([\d.]+)", self.shown_text)
        if band:
            axes.axhspan(float(band.group(1)), float(band.group(2)), color=_ORANGE, alpha=0.15, linewidth=0)
        _dress(axes, f"One alert of {self.n_alerts:,}:  {self.shown_text}")
        _format_hours(axes)
        axes.legend(frameon=False, loc="best")

    def _draw_day(self, axes: Any) -> None:
        starts, counts = zip(*self.by_minutes, strict=True)
        axes.bar(starts, counts, width=8 / 24 / 60, color=_BLUE)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _dress(axes, "Hits in ten minutes")
        _format_hours(axes)

    def _draw_times(self, axes: Any) -> None:
        names = ["Spark's own join\n(extrapolated)", "Vedette in Spark\n(measured)"]
        bars = axes.barh(names, [self.join_seconds, self.stream_seconds], color=[_QUIET, _ORANGE], height=0.55)
        axes.bar_label(bars, [in_words(self.join_seconds), in_words(self.stream_seconds)], padding=4)
        axes.set_xscale("log")
        axes.set_xlim(min(1.0, self.stream_seconds / 2), self.join_seconds * 100)
        axes.set_xlabel("seconds, logarithmic")
        _dress(axes, f"Time for {self.n_rows:,} ticks and {self.n_alerts:,} alerts")

    def _page(self, picture: str) -> str:
        ratio = self.join_seconds / self.stream_seconds
        checked = f"{self.n_checked} alerts were checked against Spark's own <code>filter</code> over all ticks: " + (
            "the same ticks each time." if not self.n_wrong else f"<b>{self.n_wrong} differ.</b>"
        )
        symbols = [(s, f"{n:,}", f"{a:,}", f"{low:.2f}", f"{high:.2f}") for s, n, a, low, high in self.symbols]
        alerts = [
            (a, f"{n:,}", f"{first:%H:%M:%S}", f"{last:%H:%M:%S}", text) for a, text, n, first, last in self.alerts
        ]
        return _PAGE.format(
            title=f"Vedette: {self.n_alerts:,} standing queries over {self.n_rows:,} ticks",
            summary=f"{self.n_rows:,} ticks met {self.n_alerts:,} alerts in {in_words(self.stream_seconds)}, "
            f"{self.n_rows / self.stream_seconds:,.0f} ticks a second, and {self.n_hits:,} times a tick hit an alert. "
            f"{self.n_triggered:,} alerts were hit at least once. Spark's own nested-loop join took "
            f"{self.join_slice[1]:.1f} s for {self.join_slice[0]:,} ticks and would need about "
            f"{in_words(self.join_seconds)} for all: {ratio:,.0f} times as long. {checked}",
            picture=picture,
            symbols=_table(["symbol", "hits", "alerts hit", "lowest", "highest"], symbols),
            alerts=_table(["alert", "hits", "first", "last", "text"], alerts),
            again=f"vedette demo --rows {self.n_rows} --alerts {self.n_alerts} --seed {self.seed}",
        )


def in_words(seconds: float) -> str:
    """A length of time as one says it.

    >>> in_words(4.26), in_words(100), in_words(6_000), in_words(400_000)
    ('4.3 seconds', '1 minute 40 seconds', '1 hour 40 minutes', '4 days 15 hours')
    """
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    place = next(i for i, (_, size) in enumerate(units) if seconds >= size)
    (large, size), (small, part) = units[place], units[place + 1]
    n_large, n_small = divmod(round(seconds / part), size // part)
    return " ".join(f"{n} {name}{'s' if n != 1 else ''}" for n, name in ((n_large, large), (n_small, small)) if n)


def _dress(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)


def _format_hours(axes: Any) -> None:
    from matplotlib.dates import DateFormatter

    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]


def _table(names: list[str], rows: list[Any]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ width: 100%; }}
table {{ border-collapse: collapse; font-size: 14px; }}
th, td {{ text-align: right; padding: 2px 12px; border-bottom: 1px solid #e4e7eb; white-space: nowrap; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
<img alt="An alert over the day, hits in ten minutes, and the time needed" src="data:image/png;base64,{picture}">
<h2>Busiest symbols</h2>
{symbols}
<h2>Most triggered alerts</h2>
{alerts}
<p>Times are UTC. The market is made up; to make it again: <code>{again}</code></p>
</body></html>
"""
