"""The compiled parts of a query set, and the changes that wait to be compiled.

New queries wait until a match needs them; then they become a part, together with older parts that are not much
larger. So there are few parts, and a query is compiled anew only a few times in its life. A removed query is filtered
out of the answers until its part is compiled anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vedette.axes import to_values
from vedette.boxes import BoxBlock, Nulls, Ranges
from vedette.columns import Column
from vedette.language import Residual
from vedette.matches import Matches
from vedette.operators.match import Group, Part, find_gone, merge
from vedette.operators.screen import Screen
from vedette.planner import compile_part
from vedette.schema import Schema

MERGE_RATIO = 8  # a part is merged with the newer one unless it has so many times its boxes
SMALL_PART = 2048  # boxes; a smaller part is always merged
GONE_SHARE = 4  # a part is compiled anew when one in so many of its queries is gone

_RANGE, _NULL, _ANY = 0, 1, 2  # how a box constrains a field


class Parts:
    """All queries of a set by position, as parts over consecutive positions."""

    def __init__(self, schema: Schema, index: str | None) -> None:
        self.schema = schema
        self.index = index
        self.compiled: list[Part] = []
        self._n_dropped: list[int] = []  # by part: the gone queries that it does not even hold
        self._blocks: list[BoxBlock] = []
        self._residuals: list[Residual] = []
        self._n_queries = 0
        self._has_gone: list[bool] = []  # by part: it holds queries that are gone
        self._gone_screens: list[Screen | None] = []  # by part: where they are
        self._is_current = True
        self.fields: list[str] = []  # those that queries use

    @classmethod
    def of(cls, compiled: list[Part], schema: Schema, index: str | None, is_gone: NDArray[np.bool_]) -> Parts:
        """Parts that were compiled before."""
        parts = cls(schema, index)
        parts.compiled = compiled
        parts._n_dropped = [0] * len(compiled)
        parts._n_queries = sum(part.n_queries for part in compiled)
        parts._is_current = False
        parts.compile(is_gone)
        return parts

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.compiled)

    def append(self, blocks: Iterable[BoxBlock], residuals: Iterable[Residual], n_queries: int) -> None:
        """Add queries at the next positions; those of `blocks` and `residuals` count from 0."""
        first = self._n_queries
        self._blocks += [BoxBlock(block.queries + first, block.ranges) for block in blocks]
        self._residuals += [dataclasses.replace(each, queries=each.queries + first) for each in residuals]
        self._n_queries += n_queries
        self._is_current = False

    def note_removal(self) -> None:
        self._is_current = False

    def compile(self, is_gone: NDArray[np.bool_]) -> None:
        """Compile what waits, and anew the parts in which too many queries are gone."""
        if self._is_current:
            return
        for number, part in enumerate(self.compiled):
            if GONE_SHARE * (_count_gone(part, is_gone) - self._n_dropped[number]) > part.n_queries:
                self._compile_again(number, is_gone)
        self._compile_waiting(is_gone)
        self._has_gone = [
            _count_gone(part, is_gone) > dropped for part, dropped in zip(self.compiled, self._n_dropped, strict=True)
        ]
        self._gone_screens = [
            _screen_gone(part, is_gone) if has_gone else None
            for part, has_gone in zip(self.compiled, self._has_gone, strict=True)
        ]
        used = {name for part in self.compiled for name in part.fields}
        self.fields = [name for name in self.schema.names if name in used]
        self._is_current = True

    def without_gone(self, is_gone: NDArray[np.bool_]) -> Parts:
        """The queries that stand, which move up to the positions of those that are gone, as one part to be compiled."""
        self.compile(is_gone)
        moved = np.cumsum(~is_gone) - 1
        kept = Parts(self.schema, self.index)
        for part in self.compiled:
            blocks, residuals = decompile(part, is_gone)
            kept._blocks += [BoxBlock(moved[block.queries], block.ranges) for block in blocks]
            kept._residuals += [dataclasses.replace(each, queries=moved[each.queries]) for each in residuals]
        kept._n_queries = int(np.count_nonzero(~is_gone))
        kept._is_current = False
        return kept

    def match(self, columns: dict[str, Column], n_rows: int, is_gone: NDArray[np.bool_]) -> Matches:
        found, dropped = [], []
        for part, has_gone, screen in zip(self.compiled, self._has_gone, self._gone_screens, strict=True):
            matches = part.match(columns, n_rows)
            found.append(matches)
            rows = None if screen is None else screen.pass_rows(columns[screen.field])
            dropped.append(find_gone(matches, is_gone, rows) if has_gone else np.empty(0, np.int64))
        return merge(found, n_rows, dropped)

    def _compile_again(self, number: int, is_gone: NDArray[np.bool_]) -> None:
        part = self.compiled[number]
        blocks, residuals = decompile(part, is_gone)
        self.compiled[number] = compile_part(
            blocks, residuals, self.schema, part.first_query, part.n_queries, self.index
        )
        self._n_dropped[number] = _count_gone(part, is_gone)

    def _compile_waiting(self, is_gone: NDArray[np.bool_]) -> None:
        first = self.compiled[-1].first_query + self.compiled[-1].n_queries if self.compiled else 0
        if first == self._n_queries:
            return
        blocks, residuals = self._blocks, self._residuals
        while self.compiled:
            n_boxes = sum(len(block) for block in blocks)
            if self.compiled[-1].n_boxes >= max(MERGE_RATIO * n_boxes, SMALL_PART):
                break
            older = self.compiled.pop()
            self._n_dropped.pop()
            older_blocks, older_residuals = decompile(older, is_gone)
            blocks, residuals = older_blocks + blocks, older_residuals + residuals
            first = older.first_query
        n_queries = self._n_queries - first
        part = compile_part(_join_alike(blocks), residuals, self.schema, first, n_queries, self.index)
        self.compiled.append(part)
        self._n_dropped.append(0)
        self._blocks, self._residuals = [], []


def decompile(part: Part, is_gone: NDArray[np.bool_]) -> tuple[list[BoxBlock], list[Residual]]:
    """The boxes and residuals that a part was compiled from, less those of gone queries."""
    blocks = [block for group in part.groups for block in _decompile_group(part, group, is_gone)]
    residuals = []
    for residual in part.residuals:
        standing = np.flatnonzero(~is_gone[residual.queries])
        if len(standing):
            residuals.append(residual.take(standing))
    return blocks, residuals


def _decompile_group(part: Part, group: Group, is_gone: NDArray[np.bool_]) -> list[BoxBlock]:
    standing = ~is_gone[group.queries]
    codes = np.zeros(len(group), np.int64)
    kinds = []
    for number, name in enumerate(group.fields):
        null = part.axes[name].n_cells - 1
        firsts, lasts = group.firsts[number], group.lasts[number]
        kinds.append(np.where(lasts < null, _RANGE, np.where(firsts == null, _NULL, _ANY)))
        codes = 3 * codes + kinds[-1]
    blocks = []
    for code in np.unique(codes[standing]):
        chosen = np.flatnonzero(standing & (codes == code))
        ranges: dict[str, Ranges | Nulls] = {}
        for number, name in enumerate(group.fields):
            kind = kinds[number][chosen[0]]
            if kind == _NULL:
                ranges[name] = Nulls(len(chosen))
            elif kind == _RANGE:
                ranges[name] = to_values(part.axes[name], group.firsts[number][chosen], group.lasts[number][chosen])
        blocks.append(BoxBlock(group.queries[chosen].astype(np.int64), ranges))
    return blocks


def _join_alike(blocks: Sequence[BoxBlock]) -> list[BoxBlock]:
    """Blocks over the same fields as one: many small additions become few long columns."""
    alike: dict[tuple[tuple[str, type], ...], list[BoxBlock]] = {}
    for block in blocks:
        key = tuple(sorted((name, type(ranges)) for name, ranges in block.ranges.items()))
        alike.setdefault(key, []).append(block)
    return [same[0] if len(same) == 1 else BoxBlock.concat(same) for same in alike.values()]


def _screen_gone(part: Part, is_gone: NDArray[np.bool_]) -> Screen | None:
    """Where the boxes of gone queries are; rows elsewhere have no match to drop."""
    boxes = []
    for group in part.groups:
        gone = np.flatnonzero(is_gone[group.queries])
        if len(gone):
            boxes.append((group.fields, group.firsts[:, gone], group.lasts[:, gone]))
    return Screen.of(boxes, part.axes)


def _count_gone(part: Part, is_gone: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(is_gone[part.first_query : part.first_query + part.n_queries]))
