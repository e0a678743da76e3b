"""DiffRMQ of Lee et al., section 5, over a query set: the queries of a reading minus those of the previous reading.

A reading is matched once; its queries are the current ones and then the previous ones, also across batches. The
difference is computed with a stamp for every query.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import vedette as vd
from benchmarks.peers.border import BorderPeer, ByKey, Events
from benchmarks.peers.vedette import boxes
from benchmarks.workloads import Workload


class DiffRmq(BorderPeer):
    name = "DiffRMQ over our index"

    def __init__(self, workload: Workload, index: str | None = None) -> None:
        super().__init__(workload)
        if index is not None:
            self.name = f"DiffRMQ over {index}"  # type: ignore[misc]
        self.queries = vd.QuerySet(", ".join(f"{field} double" for field in workload.fields), index=index)
        self.queries.add_boxes(np.arange(workload.n_queries), boxes(workload), closed="both")
        self.difference = Difference(workload.n_queries)

    def reset(self) -> None:
        matches = self.queries.match(dict(zip(self.moves.fields, self.moves.origins, strict=True)))
        self.last = matches.starts, matches.positions

    def step(self, batch: Any) -> Events:
        rows, keys, values = batch
        by_key = ByKey(keys)
        columns = {field: values[axis, by_key.order] for axis, field in enumerate(self.workload.fields)}
        matches = self.queries.match(columns)
        found = matches.starts, matches.positions
        lists = np.arange(len(keys))
        previous = lists - 1
        previous[by_key.firsts] = -1 - by_key.keys.astype(np.int64)
        events = self.difference.find(rows[by_key.order], lists, previous, found, self.last)
        newest = np.full(self.moves.n_keys, -1)
        newest[by_key.keys] = by_key.lasts
        self.last = _keep_newest(newest, *found, *self.last)
        return events


Lists = tuple[NDArray[np.int64], NDArray[np.int32]]  # list `i` is `items[starts[i]:starts[i + 1]]`


class Difference:
    """Set differences of lists of queries."""

    def __init__(self, n_queries: int) -> None:
        self.stamps = np.full(n_queries, -1, np.int32)
        self.n_stamps = 0

    def find(
        self, rows: NDArray[np.int32], lists: NDArray[np.int64], previous: NDArray[np.int64], found: Lists, last: Lists
    ) -> Events:
        """The events of readings whose queries are `found[lists[i]]`, and before `found[previous[i]]`.

        A `previous` below 0 is the list `last[-1 - previous[i]]`.
        """
        if self.n_stamps + len(rows) >= 1 << 31:
            self.stamps[:], self.n_stamps = -1, 0
        most = 2 * len(found[1]) + len(last[1])
        events = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.bool_)
        n = _find_difference(rows, lists, previous, *found, *last, self.stamps, self.n_stamps, *events)
        self.n_stamps += len(rows)
        return events[0][:n], events[1][:n], events[2][:n]


@numba.njit(cache=True)
def _find_difference(
    rows, lists, previous, starts, queries, last_starts, last_queries, stamps, stamp, out_rows, out_queries, out_exits
):  # type: ignore[no-untyped-def]
    """Write the events. Returns their number. Unchanged queries are written, too, and overwritten by the next."""
    n = 0
    for i in range(len(rows)):
        start, end = starts[lists[i]], starts[lists[i] + 1]
        if previous[i] >= 0:
            old, old_start, old_end = queries, starts[previous[i]], starts[previous[i] + 1]
        else:
            old, old_start, old_end = last_queries, last_starts[-1 - previous[i]], last_starts[-previous[i]]
        for place in range(old_start, old_end):
            stamps[old[place]] = stamp
        first = n
        for place in range(start, end):
            query = queries[place]
            out_queries[n] = query
            n += stamps[query] != stamp
            stamps[query] = -1  # neither entered nor left, or entered: not left in any case
        for event in range(first, n):
            out_rows[event] = rows[i]
            out_exits[event] = False
        first = n
        for place in range(old_start, old_end):
            out_queries[n] = old[place]
            n += stamps[old[place]] == stamp
        for event in range(first, n):
            out_rows[event] = rows[i]
            out_exits[event] = True
        stamp += 1
    return n


@numba.njit(cache=True)
def _keep_newest(newest, starts, queries, last_starts, last_queries):  # type: ignore[no-untyped-def]
    """By key, the list `newest[key]`, or the last one if that is -1."""
    n_keys = len(newest)
    kept_starts = np.empty(n_keys + 1, np.int64)
    kept_starts[0] = 0
    for key in range(n_keys):
        at = newest[key]
        size = last_starts[key + 1] - last_starts[key] if at < 0 else starts[at + 1] - starts[at]
        kept_starts[key + 1] = kept_starts[key] + size
    kept = np.empty(kept_starts[n_keys], np.int32)
    for key in range(n_keys):
        at, out = newest[key], kept_starts[key]
        if at < 0:
            for i in range(last_starts[key + 1] - last_starts[key]):
                kept[out + i] = last_queries[last_starts[key] + i]
        else:
            for i in range(starts[at + 1] - starts[at]):
                kept[out + i] = queries[starts[at] + i]
    return kept_starts, kept
