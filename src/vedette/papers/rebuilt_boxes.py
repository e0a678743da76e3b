"""Boxes over which something is laid when an index is built, as segments or places are, and laid again as they change.

What is laid suits the boxes that it was laid over. When half as many have come since as there are, it is laid over all
of them. So a box that comes is laid over about twice, and an index that is filled by and by is like one that is built
at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import as_boxes
from vedette.papers.box_store import BoxStore

FEW = 8  # for fewer boxes it is not worth while


@dataclass
class RebuiltBoxes(BoxStore):
    n_came: int  # boxes, since something was laid

    def insert(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Add boxes on the same axes."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, self.count_cells())
        n_came = self.n_came + len(ids)
        if n_came < max(FEW, (len(self) + len(ids)) / 2):
            self.list_boxes(self.keep(firsts, lasts, ids))
            self.n_came = n_came
            return
        here = np.ones(len(self.ids), np.bool_)
        here[self.free] = False
        self.lay(
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
        """Of each axis: boxes lie within them."""

    @abstractmethod
    def list_boxes(self, numbers: NDArray[np.int32]) -> None:
        """List boxes that are kept since just now."""

    @abstractmethod
    def unlist_boxes(self, numbers: NDArray[np.int32]) -> None:
        """Take boxes out of their lists."""

    @abstractmethod
    def lay(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Become an index of these boxes, built as this one was."""
