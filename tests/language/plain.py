"""What boxes and residuals say of rows, in plain Python: the last step of an answer, without any index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.boxes import CLOSED, UNBOUNDED, BoxBlock, Nulls
from vedette.data.columns import Column, read_column
from vedette.data.schema import Schema
from vedette.language import CompiledTexts


def columns_of(rows: dict[str, list[Any]], schema: Schema) -> dict[str, Column]:
    arrow = schema.to_arrow()
    return {f.name: read_column(pa.array(rows[f.name], arrow.field(f.name).type), f) for f in schema if f.name in rows}


def answers(compiled: CompiledTexts, columns: dict[str, Column], n_rows: int) -> list[set[int]]:
    """The rows each text keeps."""
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
        value = values[name][row]
        if isinstance(ranges, Nulls):
            if value is not None:
                return False
            continue
        if value is None:
            return False
        low, high = ranges.lows[box], ranges.highs[box]
        low_end, high_end = ranges.low_ends[box], ranges.high_ends[box]
        if low_end != UNBOUNDED and not (_before(low, value) or (low_end == CLOSED and not _before(value, low))):
            return False
        if high_end != UNBOUNDED and not (_before(value, high) or (high_end == CLOSED and not _before(high, value))):
            return False
    return True


def _before(a: Any, b: Any) -> bool:
    """a < b, where NaN is the greatest number."""
    if isinstance(b, float) and math.isnan(b):
        return not math.isnan(a)
    return bool(a < b)
