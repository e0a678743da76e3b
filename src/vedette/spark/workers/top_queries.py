"""The queries with the most answers in a task, for its report."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_serial = itertools.count()  # of the texts of this process
MOST = 50  # queries of a report; a task with more distinct ones reports the most frequent of each batch


class TopQueries:
    """Counts answers by the ids of their queries."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()

    def add_ids(self, ids: pa.ChunkedArray | pa.Array) -> None:
        """Count one answer for each id."""
        found = pc.value_counts(ids)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        self._add(found.field("values"), found.field("counts"))

    def add_positions(self, positions: NDArray[np.int32], ids: pa.Array) -> None:
        """Count one answer for each position of an id."""
        if len(positions):
            counts = np.bincount(positions)
            found = np.flatnonzero(counts)
            if len(found) > MOST:
                found = found[np.argpartition(counts[found], -MOST)[-MOST:]]
            self._add(ids.take(pa.array(found)), pa.array(counts[found]))

    def _add(self, values: pa.Array, counts: pa.Array) -> None:
        if len(counts) > MOST:
            kept = pc.top_k_unstable(counts, k=MOST)
            values, counts = values.take(kept), counts.take(kept)
        self._counts.update(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))

    def write(self, task: int) -> str | None:
        """The counts as a text that differs from all others; None if there are none."""
        top = [[str(query), n] for query, n in self._counts.most_common(MOST)]
        return json.dumps([f"{task}-{next(_serial)}", top], ensure_ascii=False) if top else None


def read_top(texts: str, most: int) -> dict[str, int]:
    """The queries with the most answers, from the lines of all tasks, the most frequent first.

    >>> read_top('[0, [["a", 2], ["b", 1]]]\\n[1, [["b", 5]]]', 10)
    {'b': 6, 'a': 2}
    """
    total: Counter[str] = Counter()
    for line in filter(None, texts.split("\n")):
        total.update(dict(json.loads(line)[1]))
    return dict(total.most_common(most))
