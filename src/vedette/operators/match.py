"""Matching a batch of rows with compiled queries.

A `Part` is a compiled set of queries: one axis per field they compare, and groups of boxes, each with the index that
the planner chose for it. Rows find their cells once per axis; each group then answers from cells alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vedette.axes import Axis, Cells
from vedette.buffers import empty_int32
from vedette.columns import Column
from vedette.kernels import kernel
from vedette.language import Residual
from vedette.matches import Matches


class Index(Protocol):
    """What answers for a group: which boxes hold a row, in cell space."""

    @property
    def nbytes(self) -> int: ...

    def match(self, cells: Cells) -> Matches: ...


@dataclass(frozen=True)
class Group:
    """Boxes over the same fields, with the index that answers for them."""

    fields: tuple[str, ...]  # in the order of the index's axes; none: every row is a candidate
    index: Index
    firsts: Cells  # (fields, boxes): closed cell ranges, kept so that the group can be compiled anew
    lasts: Cells
    queries: NDArray[np.int32]  # the query of each box
    repeats: bool  # several boxes of one query may hold the same row
    has_residuals: bool
    reason: str  # why this index

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self.firsts.nbytes + self.lasts.nbytes + self.queries.nbytes

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True)
class Part:
    """Compiled queries. `residual_of` and `member_of` lead from a query to its residual and the place in it."""

    axes: dict[str, Axis]
    groups: tuple[Group, ...]
    residuals: tuple[Residual, ...]
    first_query: int  # queries of this part have positions from here on
    n_queries: int
    residual_of: NDArray[np.int32]  # by position less `first_query`; -1: none. Empty where no query has one.
    member_of: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        arrays = self.residual_of.nbytes + self.member_of.nbytes
        return arrays + sum(axis.nbytes for axis in self.axes.values()) + sum(group.nbytes for group in self.groups)

    @property
    def n_boxes(self) -> int:
        return sum(len(group) for group in self.groups)

    @property
    def fields(self) -> set[str]:
        """The fields that a row needs here."""
        return set(self.axes).union(*(residual.fields for residual in self.residuals))

    def match(self, columns: dict[str, Column], n_rows: int) -> Matches:
        """The queries of this part that each row matches; every query once a row."""
        cells = {name: axis.locate(columns[name]) for name, axis in self.axes.items()}
        found = [self._match_group(group, cells, columns, n_rows) for group in self.groups]
        return merge(found, n_rows)

    def _match_group(self, group: Group, cells: dict[str, Cells], columns: dict[str, Column], n_rows: int) -> Matches:
        if len(group.fields) == 1:
            stacked = cells[group.fields[0]].reshape(1, -1)
        elif group.fields:
            stacked = np.stack([cells[name] for name in group.fields])
        else:
            stacked = np.empty((0, n_rows), np.int32)
        matches = group.index.match(stacked)
        if group.repeats:
            matches = Matches(*_drop_repeats(matches.starts, matches.positions))
        return self._check_residuals(matches, columns) if group.has_residuals else matches

    def _check_residuals(self, candidates: Matches, columns: dict[str, Column]) -> Matches:
        local = candidates.positions - self.first_query
        residual_of = self.residual_of[local]
        keep = residual_of < 0
        rows = candidates.rows
        n_failed = 0
        for number in np.unique(residual_of[~keep]):
            pairs = np.flatnonzero(residual_of == number)
            residual = self.residuals[number]
            keep[pairs], failed = residual.evaluate(columns, rows[pairs], self.member_of[local[pairs]].astype(np.int64))
            n_failed += failed
        return Matches(*_keep_pairs(candidates.starts, candidates.positions, keep), n_failed=n_failed)


@dataclass(frozen=True)
class EveryRow:
    """The index of boxes that constrain nothing."""

    ids: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes

    def match(self, cells: Cells) -> Matches:
        n_rows = cells.shape[1]
        starts = np.arange(n_rows + 1, dtype=np.int64) * len(self.ids)
        return Matches(starts, np.tile(self.ids, n_rows))


def merge(found: Sequence[Matches], n_rows: int) -> Matches:
    """All matches of several answers about the same rows."""
    if len(found) == 1:
        return found[0]
    if not found:
        return Matches.none(n_rows)
    starts = np.sum([matches.starts for matches in found], axis=0)
    positions = empty_int32(int(starts[-1]))
    cursors = starts[:-1].copy()
    for matches in found:
        _append_lists(matches.starts, matches.positions, cursors, positions)
    return Matches(starts, positions, n_failed=sum(matches.n_failed for matches in found))


def keep_standing(matches: Matches, is_gone: NDArray[np.bool_]) -> Matches:
    """The matches whose query is not gone."""
    kept = _keep_standing(matches.starts, matches.positions, is_gone)
    return Matches(*kept, n_failed=matches.n_failed)


@kernel
def _append_lists(starts, positions, cursors, out):  # type: ignore[no-untyped-def]
    for row in range(len(starts) - 1):
        cursor = cursors[row]
        for i in range(starts[row], starts[row + 1]):
            out[cursor] = positions[i]
            cursor += 1
        cursors[row] = cursor


@kernel
def _drop_repeats(starts, positions):  # type: ignore[no-untyped-def]
    """Each position once a row.

    Lists are short where queries have several boxes, so a look back is cheap; long ones mark.
    """
    kept_starts = np.zeros_like(starts)
    kept = np.empty_like(positions)
    highest = 0
    for i in range(len(positions)):
        highest = max(highest, positions[i])
    last_row = np.full(highest + 1, -1, np.int32)
    n = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            if last_row[positions[i]] != row:
                last_row[positions[i]] = row
                kept[n] = positions[i]
                n += 1
        kept_starts[row + 1] = n
    return kept_starts, kept[:n]


@kernel
def _keep_pairs(starts, positions, keep):  # type: ignore[no-untyped-def]
    kept_starts = np.zeros_like(starts)
    kept = np.empty_like(positions)
    n = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            kept[n] = positions[i]
            n += keep[i]
        kept_starts[row + 1] = n
    return kept_starts, kept[:n]


@kernel
def _keep_standing(starts, positions, is_gone):  # type: ignore[no-untyped-def]
    kept_starts = np.zeros_like(starts)
    kept = np.empty_like(positions)
    n = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            kept[n] = positions[i]
            n += not is_gone[positions[i]]
        kept_starts[row + 1] = n
    return kept_starts, kept[:n]
