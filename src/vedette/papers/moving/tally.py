"""What an algorithm did, counted for the experiments: nodes asked for, pages read, rectangles compared.

The paper counts page reads under a buffer of 50 pages that gives up the one used longest ago (section 8.1), and nodes
asked for where it looks at an algorithm without one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

ACCESSES, READS, COMPARISONS, CLOCK = 0, 1, 2, 3  # in a tally; the clock orders the uses of pages
N_TALLIED = 4
BUFFER_PAGES = 50
PAGES_A_TREE = 1 << 28  # page numbers of different trees do not meet


@dataclass(frozen=True)
class Tally:
    """Counts since the tally was made, of joins only: updates of the trees are not counted."""

    search: NDArray[np.int64]
    pages: NDArray[np.int64]  # (2, n): what the buffer holds, and when each was used last

    @classmethod
    def make(cls, buffer_pages: int = BUFFER_PAGES) -> Tally:
        pages = np.full((2, buffer_pages), -1, np.int64)
        return cls(np.zeros(N_TALLIED, np.int64), pages)

    def reset(self) -> None:
        """Count from zero; the buffer stays as it is."""
        self.search[:CLOCK] = 0

    @property
    def node_accesses(self) -> int:
        """Nodes that joins asked for."""
        return int(self.search[ACCESSES])

    @property
    def page_reads(self) -> int:
        """Nodes that joins asked for and that were not in the buffer."""
        return int(self.search[READS])

    @property
    def comparisons(self) -> int:
        """Pairs of moving rectangles for which it was computed when they meet."""
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
