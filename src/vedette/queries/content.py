"""The content of a change of a query set as bytes. The same change gives the same bytes in every process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.boxes import BoxBlock, Ranges
from vedette.data.columns import string_buffers


def of_ids(ids: NDArray[np.int64] | pa.LargeStringArray) -> Iterator[Any]:
    if isinstance(ids, np.ndarray):
        yield np.ascontiguousarray(ids).data
    else:
        offsets, data = string_buffers(ids)
        yield (offsets - offsets[0]).data
        yield data[offsets[0] : offsets[-1]].data


def of_texts(texts: Sequence[str]) -> Iterator[bytes]:
    yield "\0".join(texts).encode("utf-8", "surrogatepass")


def of_blocks(blocks: Iterable[BoxBlock]) -> Iterator[Any]:
    for block in blocks:
        yield np.ascontiguousarray(block.queries).data
        for name, ranges in block.ranges.items():
            yield name.encode()
            if isinstance(ranges, Ranges):
                for values in (ranges.lows, ranges.highs, ranges.low_ends, ranges.high_ends):
                    yield from _of_values(values)


def _of_values(values: NDArray[Any]) -> Iterator[Any]:
    yield from (
        of_texts([str(value) for value in values]) if values.dtype == object else [np.ascontiguousarray(values).data]
    )
