"""Matches: the queries that each row of a batch matches, in Arrow's list layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vedette.data.answer_limit import check_answer
from vedette.data.dictionaries import count_taken_bytes, encode_distinct
from vedette.native.budget import cut_by_bytes
from vedette.native.buffers import empty_int32
from vedette.native.kernels import kernel

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(eq=False)  # not frozen, because that would double the time to create one, and a single row creates many
class Matches:
    """Row `i` matches the queries at `positions[starts[i]:starts[i + 1]]`; their order within a row is not defined."""

    starts: NDArray[np.int64]
    positions: NDArray[np.int32]
    query_ids: pa.Array | None = None  # the id of the query at each position
    has_removed: bool = False  # `query_ids` also has ids of removed queries, so an id may occur twice
    n_failed: int = 0  # comparisons for which ANSI mode would have failed the job; they count as null
    first_row: int = 0  # of a piece of an answer: the place of its first row in the batch

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def none(cls, n_rows: int) -> Matches:
        return cls(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32))

    def write(self, positions: NDArray[np.int32]) -> None:
        """Copy the positions into an array."""
        positions[:] = self.positions

    @property
    def nbytes(self) -> int:
        """The memory of the pairs."""
        return self.positions.nbytes

    def cut_to_convert(self, most: int) -> Iterator[Matches]:
        """Pieces of consecutive rows, so that `to_arrow` of each takes at most `most` bytes, or is a single row."""
        from vedette.data.row_sizes import bytes_per_row

        line_bytes = 4 + bytes_per_row(self.query_ids) if self.query_ids is not None else np.zeros(0, np.int64)
        if len(self.positions) * int(line_bytes.max(initial=0)) <= most:
            yield self
            return
        ends = np.concatenate([[0], np.cumsum(line_bytes[self.positions])])[self.starts]
        cuts = cut_by_bytes(np.diff(ends), most)
        for start, end in pairwise([0, *cuts, len(self)]):
            first, last = self.starts[start], self.starts[end]
            yield Matches(
                self.starts[start : end + 1] - first,
                self.positions[first:last],
                self.query_ids,
                self.has_removed,
                self.n_failed if start == 0 else 0,
                self.first_row + start,
            )

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of matches of each row."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int32]:
        """The row of each pair."""
        rows = empty_int32(len(self.positions))
        _write_rows(self.starts, self.first_row, rows)
        return rows

    @property
    def ids(self) -> pa.DictionaryArray:
        """The id of each pair's query: a dictionary over `positions`.

        Neither is copied, unless queries were removed or replaced and the set has not been compacted since.
        """
        import pyarrow as pa

        if self.query_ids is None:
            raise ValueError("these matches have only positions, not ids")
        if self.has_removed:
            return encode_distinct(self.positions, self.query_ids)
        return pa.DictionaryArray.from_arrays(pa.array(self.positions), self.query_ids)

    def to_arrow(self) -> pa.Table:
        """One line per pair: `row` and `query`.

        Raises AnswerError if the lines of several rows exceed the setting max_answer_bytes. Pieces of `match_batches`
        never do.
        """
        import pyarrow as pa

        if len(self) > 1:
            n_bytes = 4 * len(self.positions) + count_taken_bytes(self.query_ids, self.positions)
            check_answer(len(self.positions), n_bytes, "pair", "take the ids from `ids`, which are not copied")
        return pa.table({"row": self.rows, "query": self.ids.dictionary_decode()})


@kernel
def _write_rows(starts: NDArray[np.int64], first_row: int, rows: NDArray[np.int32]) -> None:
    for row in range(len(starts) - 1):
        for pair in range(starts[row], starts[row + 1]):
            rows[pair] = first_row + row
