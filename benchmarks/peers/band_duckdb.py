"""DuckDB: a range join of stored values and bands for each new value, fetched as Arrow."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import N_THREADS
from benchmarks.peers.band_join import BandPeer, BandWorkload

_JOIN = """
    FROM (SELECT id, value - {value!r}::DOUBLE AS difference FROM held)
    JOIN bands ON difference >= low AND difference <= high
"""


class DuckDBBands(BandPeer):
    name = "DuckDB"

    def __init__(self, workload: BandWorkload, report: str) -> None:
        super().__init__(workload, report)
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {N_THREADS}")
        numbers = np.arange(len(workload.lows), dtype=np.int32), np.arange(len(workload.values), dtype=np.int32)
        self._create("bands", {"band": numbers[0], "low": workload.lows, "high": workload.highs})
        self._create("held", {"id": numbers[1], "value": workload.values})

    def find_pairs(self, value: float) -> pa.Table:
        return self.connection.sql(f"SELECT band, id {_JOIN.format(value=value)}").to_arrow_table()

    def find_queries(self, value: float) -> pa.Table:
        return self.connection.sql(f"SELECT DISTINCT band {_JOIN.format(value=value)}").to_arrow_table()

    def read(self, result: pa.Table) -> list[Any]:
        return [column.to_numpy() for column in result.columns]

    def close(self) -> None:
        self.connection.close()

    def _create(self, name: str, columns: dict[str, Any]) -> None:
        self.connection.register("incoming", pa.table(columns))
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")
