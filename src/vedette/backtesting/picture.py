"""The picture of a backtest: matches and notifications by day, and the queries with the most of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from vedette.errors import shortened
from vedette.extras import needs_extra

if TYPE_CHECKING:
    from vedette.backtesting.result import Backtest

_INK, _GRAY, _BLUE, _RED = "#1f2933", "#9aa5b1", "#2b6cb0", "#c05621"
_MOST_QUERIES = 15
_LONGEST_ID = 28


def draw(result: Backtest) -> bytes:
    """A PNG with days at the top and queries at the bottom."""
    with needs_extra("plots", "the picture of a backtest"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    has_events = bool(sum(result.totals[name] for name in result.totals if name.startswith("events")))
    upper = ["matches", "notifications"] if has_events else ["matches"]
    queries = result.top_queries(_MOST_QUERIES).to_pylist()
    n_bars = max(len(queries), 1)
    figure = Figure(figsize=(11, 2.6 * len(upper) + 1.2 + 0.3 * n_bars), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [2.6] * len(upper) + [1.2 + 0.3 * n_bars]
    *tops, bottom = figure.subplots(len(ratios), 1, height_ratios=ratios)
    days = result.by_day.to_pylist()
    for axes, measure in zip(tops, upper, strict=True):
        _draw_days(axes, days, measure, is_change=result.is_change)
    (_draw_change if result.is_change else _draw_queries)(bottom, queries[::-1], upper[-1])
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _draw_days(axes: Any, days: list[dict[str, Any]], measure: str, *, is_change: bool) -> None:
    when = [line["day"] for line in days]
    title = f"{measure.capitalize()} by day"
    if is_change:
        from matplotlib.dates import date2num

        numbers = [float(date2num(day)) for day in when]  # type: ignore[no-untyped-call]
        for side, shift, color in (("before", -0.2, _GRAY), ("after", 0.2, _BLUE)):
            heights = [line[f"{measure}_{side}"] for line in days]
            axes.bar([number + shift for number in numbers], heights, 0.38, color=color, label=side)
        axes.xaxis_date()
        axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    else:
        axes.bar(when, [line[measure] for line in days], 0.8, color=_BLUE)
    _format_days(axes)
    _style(axes, title)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _draw_queries(axes: Any, queries: list[dict[str, Any]], measure: str) -> None:
    names = [_label(line["query"]) for line in queries]
    values = [line[measure] for line in queries]
    bars = axes.barh(range(len(names)), values, 0.7, color=_BLUE)
    axes.bar_label(bars, labels=[f"{value:,}" for value in values], padding=3, color=_INK)
    axes.set_yticks(range(len(names)), names)
    _style(axes, f"{measure.capitalize()} by query, of those with the most matches")
    _format_counts(axes)


def _draw_change(axes: Any, queries: list[dict[str, Any]], _: str) -> None:
    """Rows that only one side matches: to the left what is taken away, to the right what is added."""
    places = range(len(queries))
    axes.barh(places, [-line["rows_only_before"] for line in queries], 0.7, color=_RED, label="rows taken away")
    axes.barh(places, [line["rows_only_after"] for line in queries], 0.7, color=_BLUE, label="rows added")
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_yticks(places, [f"{_label(line['query'])} ({line['change']})" for line in queries])
    _style(axes, "Rows that the change adds and takes away, by query")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    _format_counts(axes)


def _label(query: Any) -> str:
    return shortened(str(query), _LONGEST_ID).replace("$", r"\$")


def _format_days(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=2, maxticks=12)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _format_counts(axes: Any) -> None:
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    axes.margins(x=0.1)


def _style(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)
