"""The share of a sample of rows that queries match. A query that matches most rows produces an answer for most rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.boxes import BoxBlock
from vedette.data.columns import Column
from vedette.data.frames import as_frame
from vedette.data.ids import item
from vedette.data.moments import needed_fields, read_moment, with_moment
from vedette.data.rows import read_rows
from vedette.data.schema import Schema
from vedette.data.views import sources_of
from vedette.errors import QueryError, RowError, count, shown
from vedette.language import CompiledTexts, Residual
from vedette.queries.parts import Parts

BROAD_SHARE = 0.1  # of a sample; above it, `check` warns, unless the set has its own limit
MAX_SAMPLE_ROWS = 100_000
_PAIRS_AT_ONCE = 10_000_000  # of a row and a query, if all match


@dataclass(frozen=True, eq=False)
class Selectivity:
    """A sample of rows, and the share of it that a query may match."""

    schema: Schema
    columns: dict[str, Column]
    n_rows: int
    max_share: float

    @classmethod
    def read(cls, sample: Any, max_share: Any, schema: Schema, time_zone: str) -> Selectivity:
        """Read a sample of rows. It may lack fields, which queries then cannot use."""
        frame = as_frame(sample)
        present = [name for name in schema.names if frame.find(name) is not None]
        columns, n_rows = read_rows(frame, schema, present, time_zone, or_else="")
        if not 1 <= n_rows <= MAX_SAMPLE_ROWS:
            raise RowError(f"a sample must have 1 to {MAX_SAMPLE_ROWS:,} rows; got {n_rows:,}")
        return cls(schema, columns, n_rows, read_share(max_share))

    def shares(self, blocks: Iterable[BoxBlock], residuals: Iterable[Residual], n_queries: int) -> NDArray[np.float64]:
        """By query, the share of the sample that it matches. All queries are matched together.

        The sample must have the fields that they use.
        """
        parts = Parts(self.schema, None)
        parts.append(blocks, residuals, n_queries)
        is_removed = np.zeros(n_queries, np.bool_)
        parts.compile(is_removed)
        counts, now = np.zeros(n_queries, np.int64), read_moment(None, "UTC")
        step = max(1, _PAIRS_AT_ONCE // max(1, n_queries))
        for start in range(0, self.n_rows, step):
            end = min(start + step, self.n_rows)
            columns = {name: _slice(self.columns[name], start, end) for name in parts.fields}
            if parts.moments:
                columns = with_moment(columns, parts.moments, now, end - start)
            counts += np.bincount(parts.match(columns, end - start, is_removed).positions, minlength=n_queries)
        return counts / self.n_rows

    def check(self, ids: Any, blocks: Iterable[BoxBlock], residuals: Iterable[Residual]) -> None:
        """Refuse queries if one matches too many rows, or uses a field that the sample lacks."""
        blocks, residuals = list(blocks), list(residuals)
        lacking = self.find_lacking(blocks, residuals)
        if lacking is not None:
            raise QueryError(f"query {shown(_id_at(ids, lacking[0]))} uses {_explain_lacking(lacking[1])}")
        shares = self.shares(blocks, residuals, len(ids))
        broad = np.flatnonzero(shares > self.max_share)
        if len(broad):
            first = int(broad[0])
            more = f"; so do {count(len(broad) - 1, 'other query', 'other queries')}" if len(broad) > 1 else ""
            message = f"query {shown(_id_at(ids, first))} {self._describe(shares[first])}{more}"
            raise QueryError(f"{message}; narrow it, or raise max_match_share of the set")

    def warn(self, compiled: CompiledTexts) -> list[str]:
        """Warnings if one text matches too many rows."""
        lacking = self.find_lacking(compiled.blocks, compiled.residuals)
        if lacking is not None:
            raise QueryError(f"the query uses {_explain_lacking(lacking[1])}")
        (share,) = self.shares(compiled.blocks, compiled.residuals, 1)
        if share <= self.max_share:
            return []
        return [f"{self._describe(share)}: the query matches about that share of all rows, if the sample is typical"]

    def find_lacking(self, blocks: Iterable[BoxBlock], residuals: Iterable[Residual]) -> tuple[int, str] | None:
        """The first query that uses a field that the sample lacks, and the field."""
        used = [(each.queries, each.ranges) for each in blocks] + [(each.queries, each.fields) for each in residuals]
        found = [
            (int(queries.min()), name)
            for queries, names in used
            for name in needed_fields(source for name in names for source in sources_of(name))
            if len(queries) and name not in self.columns
        ]
        return min(found, default=None)

    def _describe(self, share: float) -> str:
        rows = count(self.n_rows, "row")
        return f"matches {percent(share)} of the {rows} of the sample, more than {percent(self.max_share)}"


def read_share(value: Any) -> float:
    """A share, above 0 and at most 1."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1 or not math.isfinite(value):
        raise QueryError(f"max_match_share must be a number above 0 and at most 1, such as 0.5; got {shown(value)}")
    return float(value)


def read_selectivity(sample: Any, max_share: Any, schema: Schema, time_zone: str) -> Selectivity | None:
    """The sample and share of a set, or None. One without the other is an error."""
    if max_share is None and sample is None:
        return None
    if max_share is None or sample is None:
        given, missing = ("sample", "max_match_share") if max_share is None else ("max_match_share", "sample")
        raise QueryError(f"{given} needs {missing}: queries that match more than that share of the sample are refused")
    return Selectivity.read(sample, max_share, schema, time_zone)


def _explain_lacking(field: str) -> str:
    return f"field {field!r}, which the sample lacks; give a sample that has it, or clear max_match_share"


def _id_at(ids: Any, place: int) -> Any:
    return ids[place] if isinstance(ids, list) else item(ids, place)


def percent(share: float) -> str:
    """A share in words: 12.5%."""
    return f"{100 * share:.3g}%"


def _slice(column: Column, start: int, end: int) -> Column:
    values = (
        column.values.slice(start, end - start) if isinstance(column.values, pa.Array) else column.values[start:end]
    )
    return Column(values, None if column.valid is None else column.valid[start:end])
