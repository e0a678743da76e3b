"""Indexes with a layout, such as segments or places, that is chosen for their boxes and rebuilt as boxes are added.

A layout suits the boxes that it was chosen for. When half of the boxes were added since, the index is rebuilt. So a box
is rebuilt about twice, and an index that is filled step by step is like one that is built at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_boxes
from vedette.papers.box_store import BoxStore

FEW = 8  # a rebuild does not pay off for fewer boxes


@dataclass
class RebuiltBoxes(BoxStore):
    n_inserted: int  # boxes added since the last rebuild

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, self.count_cells())
        n_inserted = self.n_inserted + len(ids)
        if n_inserted < max(FEW, (len(self) + len(ids)) / 2):
            self.list_boxes(self.keep(firsts, lasts, ids))
            self.n_inserted = n_inserted
            return
        here = np.ones(len(self.ids), np.bool_)
        here[self.free] = False
        self.rebuild(
            np.concatenate([self.firsts[:, here], firsts], axis=1),
            np.concatenate([self.lasts[:, here], lasts], axis=1),
            np.concatenate([self.ids[here], ids]),
        )

    def remove(self, ids: NDArray[np.int32]) -> None:
        """Remove all boxes with these ids."""
        numbers = self.find(ids)
        self.unlist_boxes(numbers)
        self.release(numbers)

    @abstractmethod
    def count_cells(self) -> Sequence[int]:
        """The number of cells of each axis."""

    @abstractmethod
    def list_boxes(self, numbers: NDArray[np.int32]) -> None:
        """Add new boxes, which are in the store, to their lists."""

    @abstractmethod
    def unlist_boxes(self, numbers: NDArray[np.int32]) -> None:
        """Remove boxes from their lists."""

    @abstractmethod
    def rebuild(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Become an index of these boxes, built as this one was."""
