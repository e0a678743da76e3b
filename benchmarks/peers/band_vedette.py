"""Vedette itself: `BandQuerySet.monitor`, a value in and a table of changes out; and the paper's scan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import vedette as vd
from benchmarks.peers.band_join import BandPeer, BandWorkload, Columns
from vedette.papers.bands import Scan


class VedetteBands(BandPeer):
    name = "Vedette, one value a call"

    def __init__(self, workload: BandWorkload, report: str) -> None:
        super().__init__(workload, report)
        self.bands = vd.BandQuerySet()
        self.bands.add_many(np.arange(len(workload.lows)), workload.lows, workload.highs)
        self.join = self.bands.monitor(report=report.split()[0])
        self.join.insert(left={"id": np.arange(len(workload.values)), "value": workload.values})
        self.state = self.join.save()

    def reset(self) -> None:
        self.join.load(self.state)
        self.ids = iter(range(len(self.rows)))

    def find_pairs(self, value: float) -> pa.Table:
        return self.join.insert(right={"id": [next(self.ids)], "value": [value]})

    find_queries = find_pairs

    def read(self, result: pa.Table) -> list[Any]:
        return _read(result, ["query", "left"] if self.report == "pairs" else ["query"])


class VedetteBandsAtOnce(VedetteBands):
    """The same with all values in one call."""

    name = "Vedette, all values in one call"

    def run(self) -> Any:
        return self.join.insert(right={"id": np.arange(len(self.rows)), "value": self.rows})

    def answer(self, result: pa.Table) -> Columns:
        if self.report == "pairs":
            return tuple(_read(result, ["right", "query", "left"]))
        return np.zeros(result.num_rows, np.int64), *_read(result, ["query"])


class ScanBands(BandPeer):
    """The structure known before the paper, compiled like ours."""

    name = "the scan of section 1"

    def __init__(self, workload: BandWorkload, report: str) -> None:
        super().__init__(workload, report)
        self.scan = Scan.build(workload.values, workload.lows, workload.highs)

    def find_pairs(self, value: float) -> Any:
        lefts, bands = self.scan.pairs(-value)
        return bands, lefts

    def find_queries(self, value: float) -> Any:
        return (self.scan.affected(-value),)


def _read(table: pa.Table, names: list[str]) -> list[Any]:
    return [table[name].combine_chunks().dictionary_decode().to_numpy() for name in names]
