"""The rows that a query set matches, and their matches: as a whole, or in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.data.answer_limit import too_large
from vedette.data.columns import Column
from vedette.data.ids import Ids
from vedette.data.matches import Matches
from vedette.errors import count
from vedette.language import naming
from vedette.native.budget import Pieces
from vedette.native.threads import limited
from vedette.queries.match import concat
from vedette.queries.parts import Parts

FIRST_ROWS = 1 << 14  # in the first piece; later pieces follow from its size
PIECE_BYTES = 1 << 26  # of matches, if pieces are joined again


@dataclass(frozen=True)
class ReadRows:
    """The columns that the compiled queries use."""

    parts: Parts
    columns: dict[str, Column]
    n_rows: int
    is_removed: NDArray[np.bool_]
    ids: Ids

    def match(self) -> Matches:
        with naming(self.ids.at):
            return self.parts.match(self.columns, self.n_rows, self.is_removed)

    def pieces(self, most: int, threads: int | None = None) -> Iterator[tuple[int, int, Matches]]:
        """For consecutive rows: the first row, the row after the last, and their matches in `most` bytes."""

        def find(start: int, end: int) -> Matches:
            columns = {name: column.slice(start, end) for name, column in self.columns.items()}
            with naming(self.ids.at), limited(threads):
                return self.parts.match(columns, end - start, self.is_removed)

        return Pieces(FIRST_ROWS, most // 2, most).of(find, self.n_rows)

    def match_in_pieces(self, most: int) -> Matches:
        """The matches of all rows, found a few rows at a time. Raises AnswerError if they exceed `most` bytes."""
        found: list[Matches] = []
        n_bytes = 0
        for _, end, matches in self.pieces(min(most, PIECE_BYTES)):
            found.append(matches)
            n_bytes += matches.nbytes
            if n_bytes > most:
                raise too_large(
                    f"has more than {count(most // 4, 'pair')}, after {end:,} of {count(self.n_rows, 'row')}",
                    "match fewer rows at once, or get the answer in pieces with match_batches",
                )
        return concat(found)
