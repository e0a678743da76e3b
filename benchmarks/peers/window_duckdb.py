"""DuckDB: the pairs of new rows with the windows, fetched as Arrow, in three formulations.

All left rows of a step come before its right ones, so it is two joins: new left rows with the old right window, and new
right rows with the new left window. No row is joined with its own window.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import N_THREADS
from benchmarks.peers.window_join import STREAMS, Columns, WindowPeer, WindowWorkload

_LEFT, _RIGHT = "a BETWEEN left_low AND left_high", "a BETWEEN right_low AND right_high"


class DuckDBWindows(WindowPeer):
    """The plain join. Updating the windows is not timed."""

    name = "DuckDB, plain join"

    def __init__(self, workload: WindowWorkload, n_new: int) -> None:
        super().__init__(workload, n_new)
        assert workload.lows.shape[1] == 1
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {N_THREADS}")
        columns: dict[str, Any] = {"query": np.arange(workload.n_queries, dtype=np.int32)}
        for stream, name in enumerate(STREAMS):
            columns |= {f"{name}_low": workload.lows[stream, 0], f"{name}_high": workload.highs[stream, 0]}
        if workload.bands is not None:
            columns |= {"low": workload.bands[0], "high": workload.bands[1]}
        self._create("queries", columns)
        self._loaded: tuple[int, int] | None = None

    def prepare(self) -> None:
        if self._loaded == (self.position, self.n_new):
            return
        self._loaded = self.position, self.n_new
        window, old, now = self.workload.window, self.position, self.position + self.n_new
        self._create_rows("new_left", 0, old, now)
        self._create_rows("new_right", 1, old, now)
        self._create_rows("right_before", 1, old - window, old)
        self._create_rows("left_after", 0, now - window, now)

    def run(self) -> pa.Table:
        link = self._link("l", "r")
        return self.connection.sql(
            f"""
            SELECT query, l.id AS left_id, r.id AS right_id
            FROM new_left l JOIN queries ON l.{_LEFT} JOIN right_before r ON r.{_RIGHT} AND {link}
            UNION ALL
            SELECT query, l.id, r.id
            FROM new_right r JOIN queries ON r.{_RIGHT} JOIN left_after l ON l.{_LEFT} AND {link}
            """
        ).to_arrow_table()

    def answer(self, result: pa.Table) -> Columns:
        query, left, right = (column.to_numpy() for column in result.columns)
        return query, left, right

    def close(self) -> None:
        self.connection.close()

    def _link(self, left: str, right: str, bands: str = "queries") -> str:
        if self.workload.bands is None:
            assert self.workload.ops is not None
            (op,) = set(self.workload.ops)
            return f"{left}.x {op} {right}.x"
        return f"{left}.x - {right}.x BETWEEN {bands}.low AND {bands}.high"

    def _qualifying(self, rows: str, condition: str) -> str:
        """Rows with the queries that select them, and their bands."""
        band = "" if self.workload.bands is None else ", low, high"
        return f"SELECT query, id, x{band} FROM {rows} JOIN queries ON {condition}"

    def _create_rows(self, name: str, stream: int, start: int, end: int) -> None:
        values = self.workload.take(stream, start, end)
        numbers = np.arange(start, end, dtype=np.int32)
        self._create(name, {"id": numbers, "a": values[0], "x": values[self.workload.joined]})

    def _create(self, name: str, columns: dict[str, Any]) -> None:
        self.connection.register("incoming", pa.table(columns))
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")


class DuckDBRangesThenQuery(DuckDBWindows):
    """A range join on each side finds the rows of each query, then an equality on the query joins them."""

    name = "DuckDB, two range joins, then by query"

    def run(self) -> pa.Table:
        new_left, right = self._qualifying("new_left", _LEFT), self._qualifying("right_before", _RIGHT)
        new_right, left = self._qualifying("new_right", _RIGHT), self._qualifying("left_after", _LEFT)
        link = self._link("l", "r", "l")
        return self.connection.sql(
            f"""
            SELECT l.query, l.id AS left_id, r.id AS right_id
            FROM ({new_left}) l JOIN ({right}) r ON l.query = r.query AND {link}
            UNION ALL
            SELECT r.query, l.id, r.id
            FROM ({new_right}) r JOIN ({left}) l ON l.query = r.query AND {link}
            """
        ).to_arrow_table()


class DuckDBKept(DuckDBWindows):
    """A table has the rows of the windows that each query selects; updating it is timed."""

    name = "DuckDB, qualifying rows kept"

    def prepare(self) -> None:
        if self._loaded != (self.position, self.n_new):
            super().prepare()
            self._create_rows("left_before", 0, self.position - self.workload.window, self.position)
            for side, condition in (("left", _LEFT), ("right", _RIGHT)):
                select = self._qualifying(f"{side}_before", condition)
                self.connection.execute(f"CREATE OR REPLACE TABLE {side}_saved AS {select}")
        for side in STREAMS:
            self.connection.execute(f"CREATE OR REPLACE TABLE {side}_kept AS SELECT * FROM {side}_saved")

    def run(self) -> pa.Table:
        execute = self.connection.execute
        oldest = self.position + self.n_new - self.workload.window
        for side, condition in (("left", _LEFT), ("right", _RIGHT)):
            execute(f"CREATE OR REPLACE TABLE {side}_come AS {self._qualifying(f'new_{side}', condition)}")
        execute(f"DELETE FROM left_kept WHERE id < {oldest}")
        execute("INSERT INTO left_kept SELECT * FROM left_come")
        link = self._link("l", "r", "l")
        found = self.connection.sql(
            f"""
            SELECT l.query, l.id AS left_id, r.id AS right_id
            FROM left_come l JOIN right_kept r ON l.query = r.query AND {link}
            UNION ALL
            SELECT r.query, l.id, r.id
            FROM right_come r JOIN left_kept l ON l.query = r.query AND {link}
            """
        ).to_arrow_table()
        execute(f"DELETE FROM right_kept WHERE id < {oldest}")
        execute("INSERT INTO right_kept SELECT * FROM right_come")
        return found
