"""Band joins: bands, stored values, and new values that arrive one by one.

A peer is built over the bands and the stored, left values. `run` is timed. For each new right value it finds the pairs
of band and stored value, or the bands with pairs; or the bands that any new value affects. Its result is in the peer's
own form; `answer` converts it to columns outside the timing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

DOMAIN = 2**29  # values are integers below, stored as doubles: every peer reads them exactly
Columns = tuple[NDArray[np.integer], ...]  # the number of the right value, the band, and for pairs the left value


@dataclass(frozen=True)
class BandWorkload:
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    values: NDArray[np.float64]  # stored
    rows: NDArray[np.float64]  # new

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
    """Bands around some points, except for a share at random places; widths are exponential, values uniform."""
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
    """One tool in one formulation. `note` is shown in the table."""

    name: ClassVar[str]
    note: ClassVar[str] = ""

    def __init__(self, workload: BandWorkload, report: str) -> None:
        self.workload = workload
        self.report = report  # "pairs", "queries", or "queries at once"
        self.rows = workload.rows

    def reset(self) -> None:  # noqa: B027  most keep nothing
        """Discard the results of a run, before the next one."""

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
        """The result of one value, as columns."""
        return result  # type: ignore[no-any-return]

    @abstractmethod
    def find_pairs(self, value: float) -> Any:
        """The pairs of one right value."""

    @abstractmethod
    def find_queries(self, value: float) -> Any:
        """The bands that one right value affects."""

    def answer(self, result: Any) -> Columns:
        """The result of `run` as columns: the number of the value, the band, and for pairs the left value."""
        results = result if self.report == "queries at once" else [self.read(each) for each in result]
        counts = [len(each[0]) for each in results]
        columns = [np.concatenate([each[i] for each in results]) for i in range(len(results[0]))]
        return np.repeat(np.arange(len(results)), counts), *columns

    def close(self) -> None:  # noqa: B027  most have nothing to free
        """Free the resources of the peer."""


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
