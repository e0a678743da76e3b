"""A synthetic market: symbols, prices as random walks, volumes, and the alerts on them.

All data follow from the seed, so two runs have the same ticks and the same alerts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

OPENING = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
SECONDS = 6.5 * 3600  # of the trading day, over which the ticks are spread
_VOLATILITY = 0.03  # of a price over the day
_WATCH_FROM_TO = (1, 5)  # hours after the opening from which an alert may watch

# The share of each kind of alert.
SHAPES = {"below": 0.30, "above": 0.30, "range": 0.20, "block": 0.10, "later": 0.05, "turnover": 0.04, "penny": 0.01}


@dataclass(frozen=True)
class Market:
    """Symbols with their opening prices and how often each is traded.

    >>> market = Market.open(seed=7, n_symbols=3)
    >>> market.alerts(2).column("where").to_pylist()
    ["symbol = 'VRM' AND price < 37.46", "symbol = 'FWG' AND price > 58.11"]
    """

    seed: int
    symbols: NDArray[np.str_]
    openings: NDArray[np.float64]
    shares: NDArray[np.float64] = field(repr=False)  # of all ticks, most traded symbol first

    schema = "tick bigint, symbol string, price double, volume bigint, ts timestamp"

    @classmethod
    def open(cls, seed: int, n_symbols: int = 500) -> Market:
        random = np.random.default_rng([seed, 0])
        shares = 1 / np.arange(3, n_symbols + 3)
        openings = random.lognormal(4.0, 0.9, n_symbols).round(2)
        return cls(seed, _names(random, n_symbols), openings, shares / shares.sum())

    def ticks(self, n_rows: int, n_batches: int = 1) -> Iterator[pa.RecordBatch]:
        """A day of trading in time order, in batches of equal size."""
        random = np.random.default_rng([self.seed, 1])
        symbols = random.choice(len(self.symbols), n_rows, p=self.shares)
        prices = self._walk(random, symbols)
        volumes = np.ceil(random.lognormal(5.0, 1.4, n_rows)).astype(np.int64)
        micros = np.sort(random.integers(0, int(SECONDS * 1e6), n_rows)) + int(OPENING.timestamp() * 1e6)
        names = pa.array(self.symbols.tolist())
        ends = np.linspace(0, n_rows, n_batches + 1).astype(np.int64)
        for start, end in pairwise(ends):
            part = slice(int(start), int(end))
            yield pa.RecordBatch.from_pydict(
                {
                    "tick": np.arange(start, end),
                    "symbol": names.take(pa.array(symbols[part])),
                    "price": prices[part],
                    "volume": volumes[part],
                    "ts": pa.array(micros[part], pa.timestamp("us", tz="UTC")),
                }
            )

    def _walk(self, random: np.random.Generator, symbols: NDArray[np.int64]) -> NDArray[np.float64]:
        """The price of each tick: each symbol starts at its opening price and changes by small relative steps."""
        order = np.argsort(symbols, kind="stable")
        counts = np.bincount(symbols, minlength=len(self.symbols))
        steps = random.standard_normal(len(symbols)) * np.repeat(_VOLATILITY / np.sqrt(np.maximum(counts, 1)), counts)
        sums = np.cumsum(steps)
        before = np.concatenate(([0.0], sums))[np.cumsum(counts) - counts]  # the sum of earlier symbols
        prices = np.empty(len(symbols))
        prices[order] = np.repeat(self.openings, counts) * np.exp(sums - np.repeat(before, counts))
        return np.maximum(prices, 0.01).round(2)

    def alerts(self, n: int) -> pa.Table:
        """Alerts: `id`, `where` (a text), and the bounds of the text as columns, null for no bound.

        A symbol has alerts in proportion to its share of the trade. Most are for a price that occurs rarely.
        """
        random = np.random.default_rng([self.seed, 2])
        shapes = random.choice(list(SHAPES), n, p=list(SHAPES.values()))
        alerts = [self._alert(random, str(shape)) for shape in shapes]
        columns = {name: [alert[name] for alert in alerts] for name in _ALERT_TYPES.names[3:]}
        ids, texts = [f"A{i:06d}" for i in range(n)], [_text(alert) for alert in alerts]
        return pa.table({"id": ids, "where": texts, "shape": shapes, **columns}, _ALERT_TYPES)

    def _alert(self, random: np.random.Generator, shape: str) -> dict[str, object]:
        alert: dict[str, object] = dict.fromkeys(_ALERT_TYPES.names)
        which = int(np.searchsorted(np.cumsum(self.shares), random.random() * 0.999999))
        opening = float(self.openings[which])
        distance = _VOLATILITY * (2.0 + random.exponential(1.0))
        alert["symbols"] = [str(self.symbols[which])]
        match shape:
            case "below":
                alert["price_high"] = round(opening * (1 - distance), 2)
            case "above":
                alert["price_low"] = round(opening * (1 + distance), 2)
            case "range" | "later":
                alert["price_low"] = round(opening * (1 + random.normal(0, _VOLATILITY)), 2)
                alert["price_high"] = round(float(str(alert["price_low"])) * (1 + random.exponential(0.0004)), 2)
                if shape == "range":
                    alert["volume_low"] = int(random.integers(1, 10)) * 100
                else:
                    alert["since"] = OPENING + timedelta(hours=int(random.integers(*_WATCH_FROM_TO)))
            case "block":
                others = random.choice(self.symbols, int(random.integers(1, 4)))
                alert["symbols"] = sorted({str(self.symbols[which]), *map(str, others)})
                alert["volume_low"] = int(random.integers(10, 60)) * 1000
            case "turnover":
                alert["volume_low"] = 1000
                alert["turnover_low"] = float(round(opening * 8_000 * (1 + random.exponential(2.0)), -3))
            case "penny":
                alert["symbols"] = None
                alert["price_high"] = round(random.uniform(0.5, 3.0), 2)
                alert["volume_low"] = int(random.integers(5, 60)) * 1000
        return alert


_ALERT_TYPES = pa.schema(
    {
        "id": pa.string(),
        "where": pa.string(),
        "shape": pa.string(),
        "symbols": pa.list_(pa.string()),
        "price_low": pa.float64(),
        "price_high": pa.float64(),
        "volume_low": pa.int64(),
        "turnover_low": pa.float64(),
        "since": pa.timestamp("us", tz="UTC"),
    }
)


def _text(alert: dict[str, object]) -> str:
    """The alert as a user would write it. One-sided prices are open ends, two-sided ones a BETWEEN."""
    parts = []
    symbols, low, high = alert["symbols"], alert["price_low"], alert["price_high"]
    if isinstance(symbols, list):
        names = ", ".join(f"'{symbol}'" for symbol in symbols)
        parts.append(f"symbol = {names}" if len(symbols) == 1 else f"symbol IN ({names})")
    if low is not None and high is not None:
        parts.append(f"price BETWEEN {low} AND {high}")
    elif low is not None:
        parts.append(f"price > {low}")
    elif high is not None:
        parts.append(f"price < {high}")
    if alert["volume_low"] is not None:
        parts.append(f"volume >= {alert['volume_low']}")
    if alert["turnover_low"] is not None:
        parts.append(f"price * volume > {alert['turnover_low']:.0f}")
    if isinstance(alert["since"], datetime):
        parts.append(f"ts >= TIMESTAMP '{alert['since']:%Y-%m-%d %H:%M:%S}'")
    return " AND ".join(parts)


def _names(random: np.random.Generator, n: int) -> NDArray[np.str_]:
    """Distinct symbols of three letters."""
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    chosen = random.choice(26**3, n, replace=False)
    return np.array(["".join(letters[[c // 676, c // 26 % 26, c % 26]]) for c in chosen])
