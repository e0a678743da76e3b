"""The interface of indexes: boxes in cell space, and which of them contain each row of a batch.

An index is a dataclass whose fields are NumPy arrays, numbers, or another index, so it can be pickled and mapped from a
file directly. Indexes that the planner chooses are frozen: a query set creates a new part for new queries, so a batch
sees one version. Indexes of papers also have `insert` and `remove`, which change them in place; do not match rows at
the same time. Null is an ordinary cell, the last of its axis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches

if TYPE_CHECKING:
    from vedette.indexes.estimates import BoxFacts, Estimate


class TooLargeError(ValueError):
    """An index would need too much memory for these boxes; use another one."""


SMALL_BATCH = 256  # up to this size one kernel call does everything
MAX_IN_ONE_CALL = 1 << 20  # matches that such a call may write; more are counted first, then written


ONE_FIELD, TWO_FIELDS = range(1, 2), range(2, 3)
ANY_FIELDS, SEVERAL_FIELDS = range(1, 1 << 15), range(2, 1 << 15)


class Index(Protocol):
    n_fields: ClassVar[range]  # the supported numbers of fields

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index the boxes of closed cell ranges `firsts[axis, box]` to `lasts[axis, box]`.

        A box whose first cell is above its last is empty. Other boxes must lie within the `n_cells[axis]` cells of
        their axes. Ids may repeat.
        """

    def match(self, cells: NDArray[np.int32]) -> Matches:
        """The ids of the boxes that contain each row. Row `i` lies at `cells[axis, i]`."""

    @property
    def nbytes(self) -> int:
        """The memory of the index."""


class PlannedIndex(Index, Protocol):
    """An index that the planner may choose."""

    wins_for: ClassVar[str]  # boxes for which it is the best choice, in words
    needs: ClassVar[str]  # requirements besides the number of fields, in words; empty if there are none
    needs_points: ClassVar[bool]  # every box must have one cell on the first axis

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        """The ways in which it can answer for the boxes, with their costs; none if it cannot or should not.

        Called only for boxes on `n_fields` fields.
        """


class Validated(Index, Protocol):
    """An index that is saved directly. Others are saved as their boxes, and built again when the file is loaded."""

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        """Raise DamageError unless an index from a file, over axes with these numbers of cells, is safe to match with.

        Then every lookup stays within the arrays, ends, and finds only these ids.
        """


@dataclasses.dataclass(frozen=True)
class KeptAsBoxes:
    """Replaces, in a file, an index that cannot be validated; its group has the boxes."""

    name: str  # of the index


def as_cells(cells: NDArray[np.int32]) -> NDArray[np.int32]:
    """The cells in the array type of the kernels: contiguous, writable int32."""
    flags = cells.flags
    if cells.dtype == np.int32 and flags.c_contiguous and flags.writeable:
        return cells
    return np.require(cells, np.int32, ("C", "W"))


def as_boxes(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    n_cells: Sequence[int] | NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The boxes that are not empty, in the array type of the kernels.

    Kernels assume that boxes lie within the cells of their axes. An index without arrays by cell may omit `n_cells`:
    then only cells below 0 are refused.
    """
    alive = (firsts <= lasts).all(axis=0)
    if not alive.all():
        firsts, lasts, ids = firsts[:, alive], lasts[:, alive], ids[alive]
    is_inside = firsts.min(initial=0) >= 0 and (
        n_cells is None or bool((lasts.max(axis=1, initial=-1) < np.asarray(n_cells)).all())
    )
    if not is_inside:
        _refuse_outside(firsts, lasts, n_cells)
    return as_cells(firsts), as_cells(lasts), as_cells(ids)


def _refuse_outside(
    firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int] | NDArray[np.int64] | None
) -> None:
    """Raise an error about the first box that lies outside its axes."""
    ends = np.full(len(firsts), np.iinfo(np.int64).max) if n_cells is None else np.array(n_cells, np.int64)
    axis, box = np.argwhere((firsts < 0) | (lasts >= ends[:, None]))[0].tolist()
    cells = "cells from 0 on" if n_cells is None else f"the cells 0 to {ends[axis] - 1}"
    first, last = firsts[axis, box], lasts[axis, box]
    raise ValueError(f"boxes must lie within their axes, and axis {axis} has {cells}; got one from {first} to {last}")


def check_given(**given: int | None) -> None:
    """Refuse a parameter of an index that is below 1; None is allowed."""
    for name, value in given.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, or None to be chosen; got {value}")


def count_bytes(index: Any) -> int:
    """The memory of the arrays of an index, of the tuples in it and of the indexes inside it."""
    total = 0
    values = index if isinstance(index, tuple) else (getattr(index, each.name) for each in dataclasses.fields(index))
    for value in values:
        if dataclasses.is_dataclass(value) or isinstance(value, tuple):
            total += count_bytes(value)
        elif isinstance(value, np.ndarray):
            total += value.nbytes
    return total


def sample_boxes(n: int, n_sampled: int) -> NDArray[np.int64]:
    """A random sample of `n` boxes: queries often alternate between a few shapes, and equal steps may miss some."""
    if n <= n_sampled:
        return np.arange(n)
    return np.sort(np.random.default_rng(n).integers(0, n, n_sampled))
