"""Band joins: bands, stored values, and new values that arrive one by one.

A peer is built over the bands and the held, left values; `run` is timed, and finds for each right value that comes the
pairs of band and held value, or the bands that get any; or the bands that any of them affects. What it returns is in
the peer's own form until `answer` turns it into columns, outside the clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

DOMAIN = 2**29  # values are whole numbers below, held as doubles: every peer can take them exactly
Columns = tuple[NDArray[np.integer], ...]  # the number of the right value, the band, and the left value if asked


@dataclass(frozen=True)
class BandWorkload:
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    values: NDArray[np.float64]  # held
    rows: NDArray[np.float64]  # that come

    def head(self, n_rows: int) -> BandWorkload:
        return BandWorkload(self.lows, self.highs, self.values, self.rows[:n_rows])


def band_clusters(
    n_values: int,
    n_bands: int,
    n_clusters: int,
    n_rows: int,
    pairs_a_row: float,
    scattered: float = 0.0,
    seed: int = 21,
) -> BandWorkload:
    """Bands around some points, except for a share that is anywhere; widths are exponential, values uniform."""
    random = np.random.default_rng(seed)
    points = random.integers(-DOMAIN // 4, DOMAIN // 4, n_clusters)[random.integers(0, n_clusters, n_bands)]
    is_scattered = random.random(n_bands) < scattered
    points[is_scattered] = random.integers(-DOMAIN // 2, DOMAIN // 2, int(is_scattered.sum()))
    density = n_values / DOMAIN * 0.85  # of differences around the points
    half = pairs_a_row / n_bands / density / 2
    lows, highs = (np.round(points + side * random.exponential(half, n_bands)) for side in (-1, 1))
    values, rows = (random.integers(0, DOMAIN, n).astype(np.float64) for n in (n_values, n_rows))
    return BandWorkload(lows, highs, values, rows)


class BandPeer(ABC):
    """One tool in one formulation. `note` says what the table should tell about it."""

    name: ClassVar[str]
    note: ClassVar[str] = ""

    def __init__(self, workload: BandWorkload, report: str) -> None:
        self.workload = workload
        self.report = report  # "pairs", "queries", or "queries at once"
        self.rows = workload.rows

    def reset(self) -> None:  # noqa: B027  most keep nothing
        """Discard what a run has left behind, before the next one."""

    def run(self) -> Any:
        """The timed part."""
        if self.report == "queries at once":
            return self.find_all_queries()
        find = self.find_pairs if self.report == "pairs" else self.find_queries
        return [find(float(value)) for value in self.rows]

    def find_all_queries(self) -> Any:
        """The bands that any of the right values affects, each once."""
        is_affected = np.zeros(len(self.workload.lows), np.bool_)
        for value in self.rows:
            is_affected[self.read(self.find_queries(float(value)))[0]] = True
        return [(np.flatnonzero(is_affected),)]

    def read(self, result: Any) -> Sequence[NDArray[Any]]:
        """What one value makes, as columns."""
        return result  # type: ignore[no-any-return]

    @abstractmethod
    def find_pairs(self, value: float) -> Any:
        """The pairs that one right value makes."""

    @abstractmethod
    def find_queries(self, value: float) -> Any:
        """The bands that one right value affects."""

    def answer(self, result: Any) -> Columns:
        """What `run` returned as columns: the number of the value, the band, and the left value if asked."""
        results = result if self.report == "queries at once" else [self.read(each) for each in result]
        counts = [len(each[0]) for each in results]
        columns = [np.concatenate([each[i] for each in results]) for i in range(len(results[0]))]
        return np.repeat(np.arange(len(results)), counts), *columns

    def close(self) -> None:  # noqa: B027  most have nothing to free
        """Free what the peer holds."""


def brute_force(workload: BandWorkload, row: int, report: str) -> set[tuple[int, ...]]:
    """The pairs of one right value, by comparing every difference with every band, a few bands at a time."""
    differences = workload.values - workload.rows[row]
    found: set[tuple[int, ...]] = set()
    for start in range(0, len(workload.lows), 256):
        part = slice(start, start + 256)
        lows, highs = workload.lows[part, None], workload.highs[part, None]
        bands, lefts = np.nonzero((lows <= differences) & (differences <= highs))
        if report == "pairs":
            found |= set(zip((bands + start).tolist(), lefts.tolist(), strict=True))
        else:
            found |= {(band,) for band in (bands + start).tolist()}
    return found
