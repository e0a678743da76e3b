"""DuckDB: a range join over in-memory tables, its result fetched as Arrow.

Two inequalities on one field run as an IEJoin, whichever table comes first. Unbounded ends are infinities: an OR of
"is null" would turn the join into a nested loop.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import N_THREADS
from benchmarks.answers import Answer
from benchmarks.peers import Peer
from benchmarks.workloads import Workload


class DuckDB(Peer):
    name = "DuckDB"
    type = "DOUBLE"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {N_THREADS}")
        columns = {"query": pa.array(np.arange(workload.n_queries, dtype=np.int32))}
        for axis, field in enumerate(workload.fields):
            columns[f"{field}_low"] = pa.array(workload.lows[axis])
            columns[f"{field}_high"] = pa.array(workload.highs[axis])
        self._create("queries", pa.table(columns))

    def load(self, rows: Workload) -> None:
        columns = {"row": pa.array(np.arange(rows.n_rows, dtype=np.int32))}
        self._create("rows", pa.table(columns | {field: pa.array(rows.rows[i]) for i, field in enumerate(rows.fields)}))

    def match(self) -> pa.Table:
        conditions = " AND ".join(f"{field} >= {field}_low AND {field} <= {field}_high" for field in self.fields)
        return self.connection.sql(f"SELECT row, query FROM rows JOIN queries ON {conditions}").to_arrow_table()

    def answer(self, result: pa.Table) -> Answer:
        return Answer(result["query"].to_numpy(), result["row"].to_numpy())

    def close(self) -> None:
        self.connection.close()

    @property
    def fields(self) -> list[str]:
        return self.workload.fields

    def _create(self, name: str, table: pa.Table) -> None:
        numbers = [column for column in table.column_names if column not in ("row", "query")]
        casts = ", ".join([table.column_names[0], *(f"{column}::{self.type} AS {column}" for column in numbers)])
        self.connection.register("incoming", table)
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {casts} FROM incoming")
        self.connection.unregister("incoming")


class DuckDBIntegers(DuckDB):
    """The same over 32-bit integers; the other contestants use doubles."""

    name = "DuckDB, 32-bit integers"
    type = "INTEGER"


class DuckDBFilter(DuckDB):
    """All pairs tested. A range join uses only two of many wide conditions; testing all is then three times faster."""

    name = "DuckDB, all pairs tested"

    def match(self) -> pa.Table:
        conditions = " AND ".join(f"{field} >= {field}_low AND {field} <= {field}_high" for field in self.fields)
        # IS TRUE hides the comparisons from the planner, which would make two of them a range join.
        return self.connection.sql(
            f"SELECT row, query FROM rows, queries WHERE ({conditions}) IS TRUE"
        ).to_arrow_table()
