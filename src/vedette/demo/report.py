"""The demo's report: one HTML page that contains its picture."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, cast

_INK, _GRAY, _BLUE, _ORANGE = "#1f2933", "#9aa5b1", "#2f6f9f", "#d9822b"
_GREEN, _RED = "#2e8b57", "#b83232"


@dataclass(frozen=True)
class StreamTime:
    """How long a stream took, from its start to its end."""

    n_rows: int
    seconds: float
    steady_rate: float  # rows per second after warm-up
    n_answers: int

    @property
    def cold_rate(self) -> float:
        """Rows per second, including the start."""
        return self.n_rows / self.seconds


@dataclass
class Report:
    """The results of the demo, collected while it runs."""

    n_rows: int
    n_alerts: int
    seed: int
    match: StreamTime = field(default_factory=lambda: StreamTime(0, 1.0, 0.0, 0))
    border: StreamTime = field(default_factory=lambda: StreamTime(0, 1.0, 0.0, 0))
    n_triggered: int = 0
    symbols: list[tuple[Any, ...]] = field(default_factory=list)  # symbol, hits, alerts, lowest, highest
    alerts: list[tuple[Any, ...]] = field(default_factory=list)  # alert, text, hits, enters, first, last
    by_minutes: list[tuple[Any, ...]] = field(default_factory=list)  # start of ten minutes, hits, events
    shown_alert: str = ""
    shown_symbol: str = ""
    shown_text: str = ""
    prices: list[tuple[Any, ...]] = field(default_factory=list)  # time and price of the shown symbol
    hits: list[tuple[Any, ...]] = field(default_factory=list)  # time and price of ticks that hit the shown alert
    crossings: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: {"enter": [], "exit": []})
    n_checked: int = 0
    n_wrong: int = 0
    joins: dict[str, float] = field(default_factory=dict)  # other tools' seconds for all ticks
    measured_joins: set[str] = field(default_factory=set)  # those of them that are not extrapolated

    def choose_shown(self) -> None:
        """Choose the alert to draw: the most triggered one that names one symbol, preferably a band."""
        named = [alert for alert in self.alerts if re.search(r"symbol = '\w+'", alert[1])] or self.alerts
        shown = next((alert for alert in named if "BETWEEN" in alert[1]), named[0])
        self.shown_alert, self.shown_text = shown[0], shown[1]
        found = re.search(r"'(\w+)'", shown[1])
        self.shown_symbol = found.group(1) if found else self.symbols[0][0]

    def write(self, directory: Path) -> Path:
        """Write report.html and report.png. Returns the path of the page."""
        picture = self._draw()
        (directory / "report.png").write_bytes(picture)
        path = directory / "report.html"
        path.write_text(self._page(base64.b64encode(picture).decode()), encoding="utf-8")
        return path

    def _draw(self) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 9), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        top, bottom = cast("Any", figure.subfigures(2, 1, height_ratios=[5, 4]))
        self._draw_prices(top.subplots())
        (hits, rates), (events, times) = bottom.subplots(2, 2)
        self._draw_day(hits, 1, "Hits per ten minutes", _BLUE)
        self._draw_day(events, 2, "Enter and exit events per ten minutes", _GREEN)
        self._draw_rates(rates)
        self._draw_times(times)
        file = io.BytesIO()
        figure.savefig(file, format="png")
        return file.getvalue()

    def _draw_prices(self, axes: Any) -> None:
        axes.plot(*zip(*self.prices, strict=True), color=_GRAY, linewidth=0.8, label=f"price of {self.shown_symbol}")
        label = f"ticks that hit {self.shown_alert}"
        axes.plot(*zip(*self.hits, strict=True), ".", color=_ORANGE, markersize=4, label=label)
        for event, height, color in (("enter", 0.06, _GREEN), ("exit", 0.02, _RED)):
            times = [time for time, _ in self.crossings[event]]
            axes.plot(
                times, [height] * len(times), "|", color=color, transform=axes.get_xaxis_transform(),
                label=f"{event} events ({len(times):,})",
            )  # fmt: skip
        band = re.search(r"BETWEEN ([\d.]+) AND ([\d.]+)", self.shown_text)
        if band:
            axes.axhspan(float(band.group(1)), float(band.group(2)), color=_ORANGE, alpha=0.15, linewidth=0)
        _style(axes, f"One of {self.n_alerts:,} alerts:  {self.shown_text}")
        _format_hours(axes)
        axes.legend(frameon=False, loc="best")

    def _draw_day(self, axes: Any, column: int, title: str, color: str) -> None:
        starts, counts = zip(*((row[0], row[column]) for row in self.by_minutes), strict=True)
        axes.bar(starts, counts, width=8 / 24 / 60, color=color)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _style(axes, title)
        _format_hours(axes)

    def _draw_rates(self, axes: Any) -> None:
        names = ["events, cold", "events, steady", "hits, cold", "hits, steady"]
        rates = [self.border.cold_rate, self.border.steady_rate, self.match.cold_rate, self.match.steady_rate]
        bars = axes.barh(names, rates, color=[_GREEN, _GREEN, _BLUE, _BLUE], height=0.6)
        axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=4)
        axes.set_xlim(0, max(rates) * 1.3)
        axes.set_xticks([])
        _style(axes, "Ticks per second: with start-up, and in steady state")

    def _draw_times(self, axes: Any) -> None:
        times = {
            f"{name}\n({'measured' if name in self.measured_joins else 'extrapolated'})": seconds
            for name, seconds in self.joins.items()
        }
        times["Vedette\n(measured)"] = self.match.seconds
        bars = axes.barh(list(times), list(times.values()), color=[*[_GRAY] * len(self.joins), _BLUE], height=0.6)
        axes.bar_label(bars, [in_words(seconds) for seconds in times.values()], padding=4)
        axes.set_xscale("log")
        axes.set_xlim(min(1.0, min(times.values()) / 2), max(times.values()) * 1000)
        axes.set_xlabel("seconds, logarithmic")
        _style(axes, f"Time to match {self.n_rows:,} ticks with {self.n_alerts:,} alerts")

    def _page(self, picture: str) -> str:
        symbols = [(s, f"{n:,}", f"{a:,}", f"{low:.2f}", f"{high:.2f}") for s, n, a, low, high in self.symbols]
        alerts = [
            (a, f"{n:,}", f"{enters:,}", f"{first:%H:%M:%S}", f"{last:%H:%M:%S}", text)
            for a, text, n, enters, first, last in self.alerts
        ]
        return _PAGE.format(
            title=f"Vedette: {self.n_alerts:,} queries over {self.n_rows:,} ticks",
            summary=self._summary(),
            picture=picture,
            symbols=_table(["symbol", "hits", "alerts hit", "lowest", "highest"], symbols),
            alerts=_table(["alert", "hits", "enters", "first", "last", "text"], alerts),
            again=f"vedette demo --rows {self.n_rows} --alerts {self.n_alerts} --seed {self.seed}",
        )

    def _summary(self) -> str:
        """The findings as three paragraphs of HTML."""
        checked = f"{self.n_checked} alerts were checked against Spark's own <code>filter</code> over all ticks: " + (
            "hits and events agree." if not self.n_wrong else f"<b>{self.n_wrong} differ.</b>"
        )
        rates = "{:,.0f} ticks a second from a cold start, {:,.0f} in steady state".format
        others = " ".join(
            f"{name} needs about {in_words(seconds)} for the same hits, "
            f"{float(f'{seconds / self.match.seconds:.2g}'):,g} times as long."
            for name, seconds in self.joins.items()
        )
        return (
            f"<p><b>Hits.</b> {self.n_rows:,} ticks were matched with {self.n_alerts:,} alerts in "
            f"{in_words(self.match.seconds)}: {rates(self.match.cold_rate, self.match.steady_rate)}. "
            f"A tick hit an alert {self.match.n_answers:,} times; {self.n_triggered:,} alerts were hit at least once. "
            f"{others}</p>"
            f"<p><b>Events.</b> Finding the times at which a symbol enters or leaves an alert took "
            f"{in_words(self.border.seconds)}: {rates(self.border.cold_rate, self.border.steady_rate)}. "
            f"There are {self.border.n_answers:,} events.</p>"
            f"<p>{checked}</p>"
        )


def in_words(seconds: float) -> str:
    """A duration in words.

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


def _style(axes: Any, title: str) -> None:
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
{summary}
<img alt="One alert over the day, hits and events per ten minutes, rates, and the time of other tools"
  src="data:image/png;base64,{picture}">
<h2>Busiest symbols</h2>
{symbols}
<h2>Most triggered alerts</h2>
{alerts}
<p>Times are UTC. The market is generated; to generate it again: <code>{again}</code></p>
</body></html>
"""
