"""The share of a set's rows that queries match. A query that matches nearly every row costs every row, of all owners.

New queries are measured on the set's recent rows, or on its stored sample. The queries of a set are measured together
when somebody looks at them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.columns import null_column
from vedette.errors import RowError, count, shown
from vedette.language import CompiledTexts
from vedette.queries.selectivity import BROAD_SHARE, Selectivity, percent
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.registry.write.samples import selectivity_of
from vedette.serve.bodies import RowsOf
from vedette.serve.problems import Problem
from vedette.serve.recent_rows import RecentRows

LEAST_ROWS = 100  # of recent rows; fewer say little
_PAIRS_AT_ONCE = 10_000_000  # of a row and a query, if all match
_MOST_LISTED = 1000
_FRESH_SECONDS = 60.0  # for which the shares of a set's queries are not measured again


@dataclass(frozen=True)
class Sample:
    """Rows that new queries are measured on, and the share of them that one may match."""

    selectivity: Selectivity
    rows: str  # in words
    max_share: float

    @classmethod
    def of(cls, registry: Registry, info: SetInfo, recent: RecentRows | None, max_share: float) -> Sample | None:
        """The recent rows of a set, or its stored sample. None if there is neither."""
        schema = info.read_schema()
        if schema is None or "" not in info.schema:
            return None
        rows = None if recent is None else recent.sample(RowsOf(schema, info.time_zone, 0))
        if rows is not None and rows.num_rows >= LEAST_ROWS:
            with suppress(RowError):  # rows of a schema that the set had before
                read = _with_all_fields(Selectivity.read(rows, max_share, schema, info.time_zone))
                return cls(read, f"{count(read.n_rows, 'row')} of the last ones", max_share)
        stored = selectivity_of(registry.database, info)
        return None if stored is None else cls(stored, f"the {count(stored.n_rows, 'row')} of the sample", max_share)

    def measure(self, compiled: CompiledTexts, n: int) -> list[float] | None:
        """The share of each query. None if one of them uses a field that the stored sample lacks."""
        if self.selectivity.find_lacking(compiled.blocks, compiled.residuals) is not None:
            return None
        return [float(share) for share in self.selectivity.shares(compiled.blocks, compiled.residuals, n)]

    def check(self, query_id: Any, share: float) -> None:
        """Raise a problem if a query matches more than it may."""
        if share > self.max_share:
            message = (
                f"query {shown(query_id)} {self._describe(share)}; at most {percent(self.max_share)} are allowed "
                f"(--max-match-share); narrow it"
            )
            raise Problem(400, "broad_query", message, query=query_id)

    def to_record(self, share: float) -> dict[str, Any]:
        """What the answer to a change says about the share."""
        if share <= BROAD_SHARE:
            return {"match_share": share}
        return {
            "match_share": share,
            "warnings": [f"the query {self._describe(share)}; narrow it if that is not meant"],
        }

    def _describe(self, share: float) -> str:
        return f"matches {percent(share)} of {self.rows}"


@dataclass(frozen=True)
class BroadQueries:
    """The queries of a set that match more than a tenth of its recent rows, as they were at a version."""

    version: int
    n_rows: int  # of the sample
    n_queries: int  # that are broad
    shares: dict[Any, float]  # by id, those with the largest shares first
    measured_at: float

    @classmethod
    def find(cls, queries: Any, rows: pa.Table) -> BroadQueries:
        """Match the rows with all queries, a few rows at a time. On the thread of the set."""
        n = len(queries.ids)
        counts = np.zeros(n, np.int64)
        step = max(1, _PAIRS_AT_ONCE // max(1, n))
        for start in range(0, rows.num_rows, step):
            counts += np.bincount(queries.match(rows.slice(start, step)).positions, minlength=n)
        broad = np.flatnonzero(counts > BROAD_SHARE * rows.num_rows)
        largest = broad[np.argsort(-counts[broad], kind="stable")][:_MOST_LISTED]
        ids: Sequence[Any] = queries.ids.take(pa.array(largest)).to_pylist()
        shares = dict(zip(ids, (counts[largest] / rows.num_rows).tolist(), strict=True))
        return cls(queries.version, rows.num_rows, len(broad), shares, time.monotonic())

    def is_current(self, version: int) -> bool:
        return self.version == version and time.monotonic() < self.measured_at + _FRESH_SECONDS


def _with_all_fields(rows: Selectivity) -> Selectivity:
    """Fields that rows of Arrow lack are null, as in rows of JSON."""
    nulls = {field.name: null_column(field.type, rows.n_rows) for field in rows.schema}
    return replace(rows, columns=nulls | rows.columns)
