"""Counts for the experiments: nodes accessed, pages read, rectangles compared.

The paper counts page reads with an LRU buffer of 50 pages (section 8.1), and node accesses for algorithms without one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

ACCESSES, READS, COMPARISONS, CLOCK = 0, 1, 2, 3  # in a tally; the clock orders the uses of pages
N_TALLIED = 4
BUFFER_PAGES = 50
PAGES_A_TREE = 1 << 28  # page numbers of different trees are disjoint


@dataclass(frozen=True)
class Tally:
    """Counts since the tally was made, of joins only: updates of the trees are not counted."""

    search: NDArray[np.int64]
    pages: NDArray[np.int64]  # (2, n): the pages in the buffer, and when each was used last

    @classmethod
    def make(cls, buffer_pages: int = BUFFER_PAGES) -> Tally:
        pages = np.full((2, buffer_pages), -1, np.int64)
        return cls(np.zeros(N_TALLIED, np.int64), pages)

    def reset(self) -> None:
        """Count from zero again; the buffer is kept."""
        self.search[:CLOCK] = 0

    @property
    def node_accesses(self) -> int:
        """Nodes that joins accessed."""
        return int(self.search[ACCESSES])

    @property
    def page_reads(self) -> int:
        """Nodes that joins accessed and that were not in the buffer."""
        return int(self.search[READS])

    @property
    def comparisons(self) -> int:
        """Pairs of moving rectangles that were compared."""
        return int(self.search[COMPARISONS])


@kernel
def read_page(pages: NDArray[np.int64], tally: NDArray[np.int64], page: int) -> None:
    """Count an access, and a read if the page is not in the buffer."""
    tally[ACCESSES] += 1
    tally[CLOCK] += 1
    oldest = 0
    for i in range(pages.shape[1]):
        if pages[0, i] == page:
            pages[1, i] = tally[CLOCK]
            return
        if pages[1, i] < pages[1, oldest]:
            oldest = i
    tally[READS] += 1
    if pages.shape[1] > 0:
        pages[0, oldest], pages[1, oldest] = page, tally[CLOCK]
