"""A synthetic market: banks and mines quoted by two exchanges, and traders' alerts on spreads. All follows from a seed.

Prices follow the market, their sector and their own random walk. Sometimes the second exchange is off for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

QUOTE = "id bigint, symbol string, price double, size bigint, ts timestamp"
START = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
SECTORS = ("bank", "mine")
NOISE = 0.0002  # of a quote, relative to the price
WITHIN = ("500 ms", "1 second", "2 seconds")


@dataclass(frozen=True)
class Alerts:
    """Alerts on both exchanges: a spread of one symbol, in quotes of some size, close in time."""

    ids: list[str]
    symbols: list[str]
    lows: np.ndarray
    highs: np.ndarray
    sizes: np.ndarray
    within: list[str]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def texts(self) -> list[str]:
        return [
            f"left.symbol = right.symbol AND left.price - right.price BETWEEN {low} AND {high} AND "
            f"left.symbol = '{symbol}' AND left.size >= {size} AND right.symbol = '{symbol}' AND right.size >= {size}"
            for symbol, low, high, size in zip(self.symbols, self.lows, self.highs, self.sizes, strict=True)
        ]


@dataclass(frozen=True)
class Market:
    """The symbols, their prices second by second, and how far the second exchange is off."""

    seed: int
    symbols: list[str]
    mids: np.ndarray = field(repr=False)  # by symbol and second
    gaps: np.ndarray = field(repr=False)

    @classmethod
    def build(cls, seed: int, n_symbols: int, minutes: int) -> Market:
        random = np.random.default_rng([seed, 0])
        n_seconds = minutes * 60 + 1
        symbols = [f"{SECTORS[i % 2]}-{i // 2 + 1:02d}" for i in range(n_symbols)]
        market, *sectors = np.cumsum(random.normal(0, 2.5e-4, (3, n_seconds)), axis=1)
        own = np.cumsum(random.normal(0, 2e-4, (n_symbols, n_seconds)), axis=1)
        walks = own + market + np.array([sectors[i % 2] for i in range(n_symbols)])
        opening = random.uniform(20, 200, (n_symbols, 1)).round(2)
        return cls(seed, symbols, opening * np.exp(walks - walks[:, :1]), cls._gaps(random, n_symbols, n_seconds))

    @staticmethod
    def _gaps(random: np.random.Generator, n_symbols: int, n_seconds: int) -> np.ndarray:
        """How far the second exchange is off, relative to the price: a jump, and a slow return."""
        seconds = np.arange(n_seconds)
        gaps = np.zeros((n_symbols, n_seconds))
        for gap in gaps:
            for _ in range(random.poisson(n_seconds / 300)):
                since = seconds - random.uniform(0, n_seconds)
                jump = random.choice([-1, 1]) * random.uniform(0.0015, 0.006)
                gap += np.where(since > 0, jump * np.exp(-np.maximum(since, 0) / random.uniform(15, 45)), 0)
        return gaps

    def quotes(self, exchange: int) -> pa.Table:
        """The quotes of the first or second exchange: about one per second and symbol, in time order."""
        random = np.random.default_rng([self.seed, 1, exchange])
        last = self.mids.shape[1] - 1
        n = random.poisson(last, len(self.symbols))
        of = np.repeat(np.arange(len(self.symbols)), n)
        seconds = random.uniform(0, last, len(of)).round(3)
        order = np.argsort(seconds, kind="stable")
        of, seconds = of[order], seconds[order]
        at = seconds.astype(np.int64)
        factors = 1 + (self.gaps[of, at] if exchange else 0) + random.normal(0, NOISE, len(of))
        microseconds = int(START.timestamp() * 1_000_000) + (seconds * 1000).astype(np.int64) * 1000
        return pa.table(
            {
                "id": np.arange(len(of)),
                "symbol": pa.array(self.symbols).take(pa.array(of)),
                "price": (self.mids[of, at] * factors).round(2),
                "size": random.choice([100, 200, 300, 500, 1000], len(of), p=[0.4, 0.25, 0.15, 0.15, 0.05]),
                "ts": pa.array(microseconds, pa.timestamp("us", tz="UTC")),
            }
        )

    def alerts(self, n: int) -> Alerts:
        """Spreads above or below zero, most of them wider than the noise."""
        random = np.random.default_rng([self.seed, 2])
        of = random.integers(0, len(self.symbols), n)
        price = self.mids[of, 0]
        near = random.uniform(0.0012, 0.005, n)
        far = near + random.uniform(0.0002, 0.0015, n)
        signs = random.choice([-1, 1], n)
        return Alerts(
            [f"alert-{i:05d}" for i in range(n)],
            [self.symbols[i] for i in of],
            (price * np.where(signs > 0, near, -far)).round(2),
            (price * np.where(signs > 0, far, -near)).round(2),
            random.choice([100, 200, 300, 500], n),
            [WITHIN[i] for i in random.choice(3, n, p=[0.1, 0.2, 0.7])],
        )

    def bands(self, n: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Ids and ends of bands for the difference of a bank and a mine: percentage points, mostly round numbers."""
        random = np.random.default_rng([self.seed, 3])
        centres = random.choice([0.75, 1.0, 1.5, 2.0, 2.5], n) * random.choice([-1, 1], n)
        centres += np.where(random.random(n) < 0.2, random.uniform(-0.4, 0.4, n), random.normal(0, 0.02, n))
        halves = random.uniform(0.01, 0.08, n)
        return [f"band-{i:05d}" for i in range(n)], (centres - halves).round(3), (centres + halves).round(3)

    def performances(self, seconds_between: int) -> list[dict[str, float]]:
        """At regular times, by how many per cent each symbol is above its opening price."""
        seconds = np.arange(0, self.mids.shape[1], seconds_between)
        changes = (100 * (self.mids[:, seconds] / self.mids[:, :1] - 1)).round(2)
        return [dict(zip(self.symbols, changes[:, i].tolist(), strict=True)) for i in range(len(seconds))]
