"""What boxes and residuals say of rows, in plain Python: the last step of an answer, without any index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.boxes import CLOSED, UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.columns import Column
from vedette.data.moments import NOW, read_moment, with_moment
from vedette.data.rows import read_rows
from vedette.data.schema import Schema
from vedette.data.views import ELEMENTS, SUBSTRINGS, is_computed, key_of, kind_of, source_of
from vedette.language import CompiledTexts
from vedette.language.computed import read_computed


def columns_of(rows: dict[str, list[Any]], schema: Schema) -> dict[str, Column]:
    arrow = schema.to_arrow()
    table = {name: pa.array(values, arrow.field(name).type) for name, values in rows.items()}
    fields = [field.name for field in schema if field.column in rows]
    return read_rows(table, schema, fields, "UTC")[0]


def answers(compiled: CompiledTexts, columns: dict[str, Column], n_rows: int) -> list[set[int]]:
    """The rows each text keeps."""
    used = {name for block in compiled.blocks for name in block.ranges}
    used |= {name for residual in compiled.residuals for name in residual.fields}
    columns = with_moment(columns, [name for name in used if name.endswith(NOW)], read_moment(None, "UTC"), n_rows)
    columns |= {name: read_computed(name).column(columns, n_rows)[0] for name in used if is_computed(name)}
    values = {name: _plain(column) for name, column in columns.items()}
    kept: list[set[int]] = [set() for _ in range(compiled.n_texts)]
    for block in compiled.blocks:
        for box in range(len(block)):
            kept[int(block.queries[box])] |= {row for row in range(n_rows) if _inside(block, box, values, row)}
    for residual in compiled.residuals:
        pairs = [(row, k) for k, query in enumerate(residual.queries.tolist()) for row in sorted(kept[query])]
        rows, members = (np.array(side, np.int64) for side in (zip(*pairs, strict=True) if pairs else ([], [])))
        keep, _ = residual.evaluate(columns, rows, members)
        for query in residual.queries.tolist():
            kept[query] = set()
        for (row, k), yes in zip(pairs, keep.tolist(), strict=True):
            if yes:
                kept[int(residual.queries[k])].add(row)
    return kept


def _plain(column: Column) -> list[Any]:
    items = column.values.to_pylist() if isinstance(column.values, pa.Array) else column.values.tolist()
    if column.valid is None:
        return list(items)
    return [item if ok else None for item, ok in zip(items, column.valid.tolist(), strict=True)]


def _inside(block: BoxBlock, box: int, values: dict[str, list[Any]], row: int) -> bool:
    for name, ranges in block.ranges.items():
        value = values[name if is_computed(name) else source_of(name)][row]
        key = key_of(name)
        if key is not None:
            value = None if value is None else {each["key"]: each["value"] for each in value}.get(key)
        if isinstance(ranges, Nulls):
            holds = value is None
        elif kind_of(name) == SUBSTRINGS:
            holds = value is not None and ranges.lows[box] in value
        elif kind_of(name) == ELEMENTS:
            holds = any(_between(ranges, box, element) for element in value or ())
        else:
            holds = _between(ranges, box, value)
        if not holds:
            return False
    return True


def _between(ranges: Ranges, box: int, value: Any) -> bool:
    low, high = ranges.lows[box], ranges.highs[box]
    low_end, high_end = ranges.low_ends[box], ranges.high_ends[box]
    if value is None:
        return False
    if low_end != UNBOUNDED and not (_before(low, value) or (low_end == CLOSED and not _before(value, low))):
        return False
    return bool(high_end == UNBOUNDED or _before(value, high) or (high_end == CLOSED and not _before(high, value)))


def _before(a: Any, b: Any) -> bool:
    """a < b, where NaN is the greatest number."""
    if isinstance(b, float) and math.isnan(b):
        return not math.isnan(a)
    return bool(a < b)
