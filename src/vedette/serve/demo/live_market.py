"""A market whose prices move for ever, and the alerts of its customers. The same seed gives the same market."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

SCHEMA = "symbol string, price double, volume bigint, ts timestamp"
OWNERS = ("ann", "bob", "cleo", "dan")
SYMBOLS = (
    *("AVON", "BIRD", "CLAY", "DUNE", "ECHO", "FERN", "GLEN", "HALO", "IRIS", "JADE", "KITE", "LIME", "MOSS", "NOVA"),
    *("OPAL", "PINE", "QUAY", "REED", "SAGE", "TIDE", "UMBR", "VALE", "WREN", "YARN", "ZINC", "ARCH", "BOLT", "CROW"),
    *("DELL", "ELMS", "FLAX", "GULL", "HIVE", "IBEX", "JUNO", "KELP", "LARK", "MINT", "NEST", "OAKS"),
)
_PULL = 0.01  # of a price back to its opening, at each tick
_STEP = 0.004  # relative, at each tick


class LiveMarket:
    """Prices that walk around their openings."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng([seed, 1])
        self.openings = np.random.default_rng([seed, 0]).lognormal(4.0, 0.7, len(SYMBOLS)).round(2)
        self._logs = np.zeros(len(SYMBOLS))

    def alerts(self, n: int) -> list[dict[str, Any]]:
        """Alerts as `POST /queries` takes them. Most wait for prices that are rare."""
        return [self._alert(number) for number in range(n)]

    def _alert(self, number: int) -> dict[str, Any]:
        random = self._random
        which = int(random.integers(len(SYMBOLS)))
        symbol, opening = SYMBOLS[which], float(self.openings[which])
        far = opening * float(0.06 + random.exponential(0.05))
        shape = number % 5
        options: dict[str, Any] = {}
        if shape == 0:
            where = f"symbol = '{symbol}' AND price < {max(0.01, opening - far):.2f}"
            options = {"cooldown": "1 minute"}
        elif shape == 1:
            where = f"symbol = '{symbol}' AND price > {opening + far:.2f}"
            options = {"margin": round(0.005 * opening, 2)}
        elif shape == 2:
            low = opening * float(1 + random.normal(0, 0.12))
            where = f"symbol = '{symbol}' AND price BETWEEN {low:.2f} AND {1.004 * low:.2f} AND volume >= 5000"
        elif shape == 3:
            where = f"symbol = '{symbol}' AND price * volume > {opening * random.uniform(9_000, 20_000):.0f}"
            options = {"cooldown": "2 minutes"}
        else:
            others = sorted({symbol, *random.choice(SYMBOLS, 2).tolist()})
            names = ", ".join(f"'{each}'" for each in others)
            where = f"symbol IN ({names}) AND volume >= {int(random.integers(12_000, 30_000))}"
            options = {"cooldown": "1 minute"}
        metadata = {"owner": OWNERS[number % len(OWNERS)]}
        return {"id": f"A{number:04d}", "where": where, "metadata": metadata, **options}

    def ticks(self, n: int, now: datetime) -> list[dict[str, Any]]:
        """One tick of each of `n` symbols."""
        random = self._random
        chosen = random.choice(len(SYMBOLS), min(n, len(SYMBOLS)), replace=False)
        steps = random.normal(0, _STEP, len(chosen))
        self._logs[chosen] = (1 - _PULL) * self._logs[chosen] + steps
        prices = (self.openings[chosen] * np.exp(self._logs[chosen])).round(2).tolist()
        volumes = np.ceil(random.lognormal(6.0, 1.1, len(chosen))).astype(np.int64).tolist()
        rows = zip(chosen.tolist(), prices, volumes, strict=True)
        return [
            {"symbol": SYMBOLS[which], "price": price, "volume": volume, "ts": now.isoformat()}
            for which, price, volume in rows
        ]
