"""Seeded workloads: boxes, rows, moving keys, and texts of alerts.

Coordinates of one-dimensional workloads are integers below 2^30 stored as doubles, so that every peer reads them
exactly, including those limited to 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

DOMAIN = 2**30
PRICES = 1_000_000  # the domain of Lee et al., section 5.1: the highest price of most Korean stocks
GRID_SIDE = 245  # 245 x 245 = 60,025: the 60,000 cells of Wu, Chen and Yu, sections 3.5 and 3.6


@dataclass(frozen=True)
class Workload:
    """`n_queries` boxes with inclusive bounds over `k` fields, and rows. An unbounded end is an infinity."""

    name: str
    lows: NDArray[np.float64]  # (k, n_queries)
    highs: NDArray[np.float64]
    rows: NDArray[np.float64]  # (k, n_rows)

    answers: ClassVar[str] = "pairs"  # what a contestant finds

    @property
    def fields(self) -> list[str]:
        return [f"x{axis}" for axis in range(len(self.rows))]

    @property
    def n_queries(self) -> int:
        return self.lows.shape[1]

    @property
    def n_rows(self) -> int:
        return self.rows.shape[1]

    def head(self, n_rows: int) -> Workload:
        """The same queries with the first rows only."""
        return Workload(self.name, self.lows, self.highs, np.ascontiguousarray(self.rows[:, :n_rows]))

    def sorted_rows(self) -> Workload:
        """The same with rows sorted by their first field."""
        return Workload(self.name, self.lows, self.highs, self.rows[:, np.argsort(self.rows[0], kind="stable")])


@dataclass(frozen=True)
class Moves(Workload):
    """Boxes, and keys that move: reading `i` takes key `keys[i]` from `before[:, i]` to `rows[:, i]`.

    Readings are in time order: one of each key, then the next of each key. They come in batches, and a contestant may
    drop the events of a batch afterwards: there may be hundreds of events per reading.
    """

    keys: NDArray[np.int32]  # (n_rows,): whole numbers from 0
    before: NDArray[np.float64]  # (k, n_rows)
    origins: NDArray[np.float64]  # (k, n_keys): where keys are before the first reading
    batch_rows: int = 100_000

    answers: ClassVar[str] = "events"

    @property
    def n_keys(self) -> int:
        return self.origins.shape[1]

    def head(self, n_rows: int) -> Moves:
        rows, before = (np.ascontiguousarray(each[:, :n_rows]) for each in (self.rows, self.before))
        keys = np.ascontiguousarray(self.keys[:n_rows])
        return Moves(self.name, self.lows, self.highs, rows, keys, before, self.origins, self.batch_rows)

    def batches(self) -> Iterator[slice]:
        """The readings of each micro-batch."""
        for start in range(0, self.n_rows, self.batch_rows):
            yield slice(start, min(start + self.batch_rows, self.n_rows))


def price_streams(
    n_queries: int,
    n_streams: int,
    n_readings: int,
    width: float,
    fluctuation: float,
    n_fields: int = 1,
    seed: int = 12,
) -> Moves:
    """Streams and ranges of Lee et al., section 5.1: prices as random walks, and ranges of one width over their domain.

    `width` and `fluctuation`, the average step on each field, are shares of the domain. Each stream has `n_readings`
    after its first. Prices and bounds are integers.
    """
    random = np.random.default_rng(seed)
    lows = random.integers(1, PRICES, (n_fields, n_queries)).astype(np.float64)
    highs = np.minimum(lows + round(width * PRICES), PRICES)
    paths = np.round(_walk(random, (n_fields, n_readings, n_streams), fluctuation * PRICES, PRICES))
    return _interleave("prices", lows, highs, paths, random)


def moving_keys(
    n_queries: int, n_keys: int, n_readings: int, matches_a_row: float, steps: float, seed: int = 13
) -> Moves:
    """The boxes of `small_boxes`, and keys as random walks in the unit square, `steps` mean sides per step and axis."""
    boxes = small_boxes(n_queries, 1, matches_a_row, seed)
    random = np.random.default_rng(seed + 1)
    step = steps * (matches_a_row / n_queries) ** 0.5
    return _interleave("keys", boxes.lows, boxes.highs, _walk(random, (2, n_readings, n_keys), step, 1.0), random)


def _walk(random: np.random.Generator, shape: tuple[int, int, int], step: float, highest: float) -> NDArray[np.float64]:
    """Random walks from a random place in [0, highest], reflected at both ends; (fields, readings + 1, keys).

    Steps are uniform with the average length `step`. Folding a walk reflects it.
    """
    n_fields, n_readings, n_keys = shape
    paths = np.empty((n_fields, n_readings + 1, n_keys))
    paths[:, 0] = random.uniform(0, highest, (n_fields, n_keys))
    paths[:, 1:] = random.uniform(-2 * step, 2 * step, shape)
    np.cumsum(paths, axis=1, out=paths)
    paths %= 2 * highest
    return np.minimum(paths, 2 * highest - paths)


def _interleave(
    name: str,
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    paths: NDArray[np.float64],
    random: np.random.Generator,
) -> Moves:
    """The readings of all keys in time order; at each time, the keys are in another order."""
    n_fields, n_times, n_keys = paths.shape
    keys = random.permuted(np.tile(np.arange(n_keys, dtype=np.int32), (n_times - 1, 1)), axis=1)
    rows, before = (
        np.take_along_axis(part, np.broadcast_to(keys, part.shape), axis=2).reshape(n_fields, -1)
        for part in (paths[:, 1:], paths[:, :-1])
    )
    return Moves(name, lows, highs, rows, keys.reshape(-1), before, np.ascontiguousarray(paths[:, 0]))


def intervals(n_queries: int, n_rows: int, matches_a_row: float, widths: str = "uniform", seed: int = 1) -> Workload:
    """Intervals with about `matches_a_row` matches; widths uniform or heavy-tailed (Pareto, shape 1.2)."""
    random = np.random.default_rng(seed)
    mean = matches_a_row * DOMAIN / n_queries
    if widths == "uniform":
        sizes = random.uniform(0, 2 * mean, n_queries)
    elif widths == "pareto":
        sizes = random.pareto(1.2, n_queries)
        sizes = _scale_to_mean(sizes, mean, DOMAIN / 2)
    else:
        raise ValueError(f"widths must be 'uniform' or 'pareto', not {widths!r}")
    lows = np.floor(random.uniform(0, DOMAIN, n_queries))
    highs = np.minimum(lows + np.floor(sizes), DOMAIN - 1)
    values = np.floor(random.uniform(0, DOMAIN, n_rows))
    return Workload(f"{widths} widths", lows[None, :], highs[None, :], values[None, :])


def disjoint_intervals(n_queries: int, n_rows: int, seed: int = 7) -> Workload:
    """One-dimensional intervals. A row is in one of them or, as often, in none."""
    random = np.random.default_rng(seed)
    slot = DOMAIN // n_queries
    lows = random.permutation(n_queries).astype(np.float64) * slot
    values = np.floor(random.uniform(0, n_queries * slot, n_rows))
    return Workload("disjoint", lows[None, :], lows[None, :] + slot // 2, values[None, :])


def _scale_to_mean(sizes: NDArray[np.float64], mean: float, largest: float) -> NDArray[np.float64]:
    """The sizes multiplied by one factor, limited to `largest`, with this mean."""
    below, above = 0.0, 1e6 * mean / sizes.mean()
    for _ in range(100):
        factor = (below + above) / 2
        if np.minimum(factor * sizes, largest).mean() < mean:
            below = factor
        else:
            above = factor
    return np.minimum(above * sizes, largest)


def vcr_rectangles(n_queries: int, n_rows: int, max_side: int, placed: str = "uniform", seed: int = 2) -> Workload:
    """Rectangles on an integer grid as in Wu, Chen and Yu, section 3.6; points lie off the grid lines.

    Sides are uniform in 1..max_side. With "90-10", the lower left corners of 90% lie in a tenth of the region, as do
    90% of the rows: with uniform rows, most would lie where few queries are, but in the paper this is the harder case.
    """
    random = np.random.default_rng(seed)
    corners = random.integers(0, GRID_SIDE, (2, n_queries)).astype(np.float64)
    points = random.uniform(0, GRID_SIDE, (2, n_rows))
    if placed == "90-10":
        hot_side = round(GRID_SIDE * 0.1**0.5)
        hot_start = (GRID_SIDE - hot_side) // 2
        hot, hot_rows = random.random(n_queries) < 0.9, random.random(n_rows) < 0.9
        corners[:, hot] = random.integers(0, hot_side, (2, int(hot.sum()))) + hot_start
        points[:, hot_rows] = random.uniform(0, hot_side, (2, int(hot_rows.sum()))) + hot_start
    elif placed != "uniform":
        raise ValueError(f"placed must be 'uniform' or '90-10', not {placed!r}")
    sides = random.integers(1, max_side + 1, (2, n_queries))
    return Workload(f"{placed}, W = {max_side}", corners, np.minimum(corners + sides, GRID_SIDE), points)


def small_boxes(n_queries: int, n_rows: int, matches_a_row: float, seed: int = 3) -> Workload:
    """Small boxes of two fields at random places in the unit square; a point is in about `matches_a_row` of them."""
    random = np.random.default_rng(seed)
    mean_side = (matches_a_row / n_queries) ** 0.5
    lows = random.random((2, n_queries))
    highs = lows + random.uniform(0, 2 * mean_side, (2, n_queries))
    return Workload("small boxes", lows, highs, random.random((2, n_rows)))


def boxes_around_towns(n_queries: int, n_rows: int, n_towns: int, seed: int = 14) -> Workload:
    """Boxes of two fields around towns in the unit square, and rows around the same towns, largest town first.

    A town has a fifth fewer than the previous one, at normal distances with a standard deviation of a hundredth.
    """
    random = np.random.default_rng(seed)
    towns, shares = random.random((2, n_towns)), 0.8 ** np.arange(n_towns)
    chosen = [random.choice(n_towns, n, p=shares / shares.sum()) for n in (n_queries, n_rows)]
    middles, rows = (towns[:, each] + random.normal(0, 0.01, (2, len(each))) for each in chosen)
    sides = random.exponential(0.0005, (2, n_queries))
    return Workload("towns", middles - sides, middles + sides, rows)


def boxes_of_widths(shares: Sequence[float], n_queries: int, n_rows: int, seed: int = 15) -> Workload:
    """Boxes with this average share of each field's domain at random places, and uniform rows."""
    random = np.random.default_rng(seed)
    widths = np.minimum(random.uniform(0, 2, (len(shares), n_queries)) * np.array(shares)[:, None], 1)
    lows = random.random(widths.shape) * (1 - widths)
    return Workload("widths", lows, lows + widths, random.random((len(shares), n_rows)))


def keyed_ranges(n_queries: int, n_rows: int, matches_a_row: float, n_keys: int = 500, seed: int = 9) -> Workload:
    """An equality on the first field, one of `n_keys` numbers, and a range of the second."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, n_keys, n_queries).astype(np.float64)
    lows = random.random(n_queries)
    highs = lows + random.uniform(0, 2 * matches_a_row * n_keys / n_queries, n_queries)
    rows = np.stack([random.integers(0, n_keys, n_rows).astype(np.float64), random.random(n_rows)])
    return Workload("keyed ranges", np.stack([keys, lows]), np.stack([keys, highs]), rows)


def conjunctions(n_attributes: int, n_queries: int, n_rows: int, all_used: bool = True, seed: int = 4) -> Workload:
    """Random conjunctions as in Lim et al., section 7.1, over rows of `n_attributes` uniform values.

    A query constrains all attributes (R_pred = 1), or a random number of randomly chosen ones. A condition is bounded
    on the left, on the right or on both sides with equal probability; its constants are uniform in [0, 1].
    """
    random = np.random.default_rng(seed)
    n_used = np.full(n_queries, n_attributes) if all_used else random.integers(1, n_attributes + 1, n_queries)
    used = np.argsort(np.argsort(random.random((n_attributes, n_queries)), axis=0), axis=0) < n_used
    ends = np.sort(random.random((2, n_attributes, n_queries)), axis=0)
    kind = random.integers(0, 3, (n_attributes, n_queries))
    single = random.random((n_attributes, n_queries))
    lows = np.where(used & (kind != 0), np.where(kind == 1, single, ends[0]), -np.inf)
    highs = np.where(used & (kind != 1), np.where(kind == 0, single, ends[1]), np.inf)
    return Workload(f"{n_attributes} attributes", lows, highs, random.random((n_attributes, n_rows)))


MARKET_SCHEMA = "symbol string, price double, volume bigint"
N_SYMBOLS = 500


def symbols() -> list[str]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [letters[i % 26] + letters[i // 26 % 26] + letters[i * 7 % 26] + str(i) for i in range(N_SYMBOLS)]


def market_texts(n_queries: int, seed: int = 5) -> list[str]:
    """Alerts over a market as SQL texts of five shapes, each a fifth of them."""
    random = np.random.default_rng(seed)
    names = symbols()
    symbol = random.integers(0, N_SYMBOLS, n_queries).tolist()
    low = np.round(random.uniform(1, 900, n_queries), 2).tolist()
    width = np.round(random.uniform(0.1, 5, n_queries), 2).tolist()
    volume = random.integers(1_000, 1_000_000, n_queries).tolist()
    texts = []
    for i in range(n_queries):
        name, price, high = names[symbol[i]], low[i], round(low[i] + width[i], 2)
        shape = i % 5
        if shape == 0:
            texts.append(f"symbol = '{name}' AND price < {price / 100:.2f}")
        elif shape == 1:
            texts.append(f"symbol = '{name}' AND price BETWEEN {price} AND {high}")
        elif shape == 2:
            texts.append(f"symbol = '{name}' AND price >= {price} AND price < {high} AND volume > {volume[i]}")
        elif shape == 3:
            texts.append(
                f"symbol IN ('{name}', '{names[(symbol[i] + 7) % N_SYMBOLS]}') AND price > {900 + price / 10:.2f}"
            )
        else:
            texts.append(f"price > {price + 95:.2f} AND volume BETWEEN {volume[i]} AND {volume[i] + 50}")
    return texts


def market_rows(n_rows: int, seed: int = 6) -> dict[str, NDArray[np.generic]]:
    """Trades for those alerts: a symbol, a price and a volume each."""
    random = np.random.default_rng(seed)
    return {
        "symbol": np.array(symbols(), dtype=object)[random.integers(0, N_SYMBOLS, n_rows)],
        "price": np.round(random.uniform(0.01, 1000, n_rows), 2),
        "volume": random.integers(1, 1_000_000, n_rows),
    }
