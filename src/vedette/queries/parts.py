"""The compiled parts of a query set, and the pending changes.

New queries are pending until a match needs them. They are then compiled into a part, together with older parts that are
not much larger. So there are few parts, and a query is compiled only a few times. A removed query is filtered out of
the answers until its part is compiled again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import to_values
from vedette.data.boxes import BoxBlock, Nulls, Ranges
from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.data.moments import is_virtual, relative_to_now
from vedette.data.schema import Schema
from vedette.data.view_axes import inner_axis
from vedette.data.views import sources_of
from vedette.indexes.counted import Counted
from vedette.indexes.dual import MIN_ROWS
from vedette.language import Residual
from vedette.native.damage import check, check_type
from vedette.queries.match import Group, Part, find_removed, merge
from vedette.queries.match_pieces import match_pieces
from vedette.queries.planner import compile_part
from vedette.queries.screen import Screen

MERGE_RATIO = 8  # a part is merged with the newer one unless it has at least 8 times its boxes
SMALL_PART = 2048  # boxes; a smaller part is always merged
REMOVED_SHARE = 4  # a part is compiled again when a fourth of its queries is removed

_RANGE, _NULL, _ANY = 0, 1, 2  # how a box constrains a field


class Parts:
    """All queries of a set by position, as parts over consecutive positions."""

    def __init__(self, schema: Schema, index: str | None) -> None:
        self.schema = schema
        self.index = index
        self.compiled: list[Part] = []
        self._n_dropped: list[int] = []  # by part: removed queries whose boxes it no longer has
        self._blocks: list[BoxBlock] = []
        self._residuals: list[Residual] = []
        self._n_queries = 0
        self._has_removed: list[bool] = []  # by part: it has boxes of removed queries
        self._removed_screens: list[Screen | None] = []  # by part: where their boxes are
        self._is_current = True
        self.fields: list[str] = []  # those that queries use
        self.moments: list[str] = []  # the virtual fields of now() that queries use

    @classmethod
    def of(
        cls, compiled: list[Part], schema: Schema, index: str | None, is_removed: NDArray[np.bool_], *, is_checked: bool
    ) -> Parts:
        """Parts that were compiled before. They are validated unless `is_checked`."""
        parts = cls(schema, index)
        if not is_checked:
            validate_parts(compiled, schema, len(is_removed))
        compiled = [part.restored() for part in compiled]
        parts.compiled = compiled
        parts._n_dropped = [
            _count_removed(part, is_removed) - _count_removed_with_boxes(part, is_removed) for part in compiled
        ]
        parts._n_queries = sum(part.n_queries for part in compiled)
        parts._is_current = False
        parts.compile(is_removed)
        return parts

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.compiled)

    def append(self, blocks: Iterable[BoxBlock], residuals: Iterable[Residual], n_queries: int) -> None:
        """Add queries at the next positions. Queries of `blocks` and `residuals` are numbered from 0."""
        first = self._n_queries
        self._blocks += [BoxBlock(block.queries + first, block.ranges) for block in blocks]
        self._residuals += [dataclasses.replace(each, queries=each.queries + first) for each in residuals]
        self._n_queries += n_queries
        self._is_current = False

    @property
    def is_mostly_compiled(self) -> bool:
        """Whether the pending queries are few compared with the compiled ones."""
        n_waiting = sum(len(block) for block in self._blocks)
        return MERGE_RATIO * n_waiting < sum(part.n_boxes for part in self.compiled)

    def note_removal(self) -> None:
        self._is_current = False

    def compile(self, is_removed: NDArray[np.bool_]) -> None:
        """Compile pending queries, and parts in which too many queries, or all that use a field, are removed.

        Compiled parts are put in place at the end, so an interruption loses nothing.
        """
        if self._is_current:
            return
        compiled, n_dropped = list(self.compiled), list(self._n_dropped)
        for number, part in enumerate(compiled):
            n_removed = _count_removed(part, is_removed)
            n_held = n_removed - n_dropped[number]
            if REMOVED_SHARE * n_held > part.n_queries or (n_held and _fields_in_use(part, is_removed) != part.fields):
                blocks, residuals = decompile(part, is_removed)
                compiled[number] = self._compile_part(blocks, residuals, part.first_query, part.n_queries)
                n_dropped[number] = n_removed
        self._compile_waiting(compiled, n_dropped, is_removed)
        has_removed = [_count_removed(part, is_removed) > n for part, n in zip(compiled, n_dropped, strict=True)]
        self._removed_screens = [
            _screen_removed(part, is_removed) if has else None for part, has in zip(compiled, has_removed, strict=True)
        ]
        used = {name for part in compiled for name in part.fields}
        self.fields = [name for name in self.schema.names if name in used or relative_to_now(name) in used]
        self.moments = sorted(name for name in used if is_virtual(self.schema, name))
        self.compiled, self._n_dropped, self._has_removed = compiled, n_dropped, has_removed
        self._blocks, self._residuals = [], []
        self._is_current = True

    def extract(self, is_wanted: NDArray[np.bool_]) -> tuple[list[BoxBlock], list[Residual]]:
        """A copy of the boxes and residuals of the wanted queries, as far as the parts still have them."""
        is_other = ~is_wanted
        blocks, residuals = _take_active(join_alike(self._blocks), self._residuals, is_other)
        for part in self.compiled:
            if is_wanted[part.first_query : part.first_query + part.n_queries].any():
                more_blocks, more_residuals = decompile(part, is_other)
                blocks, residuals = blocks + more_blocks, residuals + more_residuals
        return blocks, residuals

    def without_removed(self, is_removed: NDArray[np.bool_]) -> Parts:
        """The active queries as one pending part. They move up to the positions of the removed ones."""
        blocks, residuals = _take_active(join_alike(self._blocks), self._residuals, is_removed)
        for part in reversed(self.compiled):
            older_blocks, older_residuals = decompile(part, is_removed)
            blocks, residuals = older_blocks + blocks, older_residuals + residuals
        moved = np.cumsum(~is_removed) - 1
        kept = Parts(self.schema, self.index)
        kept._blocks = [BoxBlock(moved[block.queries], block.ranges) for block in blocks]
        kept._residuals = [dataclasses.replace(each, queries=moved[each.queries]) for each in residuals]
        kept._n_queries = int(np.count_nonzero(~is_removed))
        kept._is_current = False
        return kept

    def match(self, columns: dict[str, Column], n_rows: int, is_removed: NDArray[np.bool_]) -> Matches:
        """The queries that each row matches, except removed ones, found by several threads if there are many rows."""
        if n_rows < MIN_ROWS:
            return self._match(self.compiled, columns, n_rows, is_removed)
        parts = [part.decide(columns, n_rows) for part in self.compiled]

        def find(start: int, end: int) -> Matches:
            some = columns
            if end - start < n_rows:
                some = {name: column.slice(start, end) for name, column in columns.items()}
            return self._match(parts, some, end - start, is_removed)

        def count(start: int, end: int) -> Counted:
            some = {name: column.slice(start, end) for name, column in columns.items()}
            return parts[0].count(some, end - start)

        counts_first = len(parts) == 1 and not self._has_removed[0] and parts[0].counts_first
        return match_pieces(find, n_rows, count if counts_first else None)

    def _match(
        self, parts: Sequence[Part], columns: dict[str, Column], n_rows: int, is_removed: NDArray[np.bool_]
    ) -> Matches:
        found, dropped = [], []
        for part, has_removed, screen in zip(parts, self._has_removed, self._removed_screens, strict=True):
            matches = part.match(columns, n_rows)
            found.append(matches)
            rows = None if screen is None else screen.pass_rows(columns[screen.field])
            dropped.append(find_removed(matches, is_removed, rows) if has_removed else np.empty(0, np.int64))
        return merge(found, n_rows, dropped)

    def _compile_waiting(self, compiled: list[Part], n_dropped: list[int], is_removed: NDArray[np.bool_]) -> None:
        """Replace the pending queries, and the newest parts that are not much larger, by one part."""
        first = compiled[-1].first_query + compiled[-1].n_queries if compiled else 0
        if first == self._n_queries:
            return
        blocks, residuals = _take_active(join_alike(self._blocks), self._residuals, is_removed)
        while compiled:
            n_boxes = sum(len(block) for block in blocks)
            if compiled[-1].n_boxes >= max(MERGE_RATIO * n_boxes, SMALL_PART):
                break
            older = compiled.pop()
            n_dropped.pop()
            older_blocks, older_residuals = decompile(older, is_removed)
            blocks, residuals = older_blocks + blocks, older_residuals + residuals
            first = older.first_query
        part = self._compile_part(blocks, residuals, first, self._n_queries - first)
        compiled.append(part)
        n_dropped.append(_count_removed(part, is_removed))

    def _compile_part(
        self, blocks: Sequence[BoxBlock], residuals: Sequence[Residual], first_query: int, n_queries: int
    ) -> Part:
        return compile_part(join_alike(blocks), residuals, self.schema, first_query, n_queries, self.index)


def validate_parts(compiled: list[Part], schema: Schema, n_queries: int) -> None:
    """Raise DamageError unless parts from a file are those of `n` queries."""
    check_type(compiled, list[Part], "the list of parts")
    first = 0
    for part in compiled:
        part.validate(schema, first)
        first += part.n_queries
    check(first == n_queries, "parts of the set are missing")


def decompile(part: Part, is_removed: NDArray[np.bool_]) -> tuple[list[BoxBlock], list[Residual]]:
    """The boxes and residuals that a part was compiled from, without those of removed queries."""
    blocks = [block for group in part.groups for block in _decompile_group(part, group, is_removed)]
    return blocks, _take_active([], part.residuals, is_removed)[1]


def _take_active(
    blocks: Sequence[BoxBlock], residuals: Sequence[Residual], is_removed: NDArray[np.bool_]
) -> tuple[list[BoxBlock], list[Residual]]:
    """The boxes and residuals of active queries."""

    def take(each: Any) -> Any:
        removed = is_removed[each.queries]
        return each.take(np.flatnonzero(~removed)) if removed.any() else each

    taken = [[take(each) for each in many] for many in (blocks, residuals)]
    return [each for each in taken[0] if len(each)], [each for each in taken[1] if len(each)]


def _decompile_group(part: Part, group: Group, is_removed: NDArray[np.bool_]) -> list[BoxBlock]:
    active = np.flatnonzero(~group.by_box(is_removed))
    queries = group.queries[active]
    firsts, lasts = group.firsts[:, active], group.lasts[:, active]
    alike = [np.arange(len(active))]  # boxes that constrain the fields in the same way
    kinds = []
    for number, name in enumerate(group.fields):
        null = part.axes[name].n_cells - 1
        kinds.append(np.where(lasts[number] < null, _RANGE, np.where(firsts[number] == null, _NULL, _ANY)))
        alike = [same[kinds[-1][same] == kind] for same in alike for kind in (_RANGE, _NULL, _ANY)]
        alike = [same for same in alike if len(same)]
    blocks = []
    for same in alike:
        ranges: dict[str, Ranges | Nulls] = {}
        for number, name in enumerate(group.fields):
            kind = kinds[number][same[0]]
            if kind == _NULL:
                ranges[name] = Nulls(len(same))
            elif kind == _RANGE:
                ranges[name] = to_values(inner_axis(part.axes[name]), firsts[number][same], lasts[number][same])
        blocks.append(BoxBlock(queries[same].astype(np.int64), ranges))
    return blocks


def join_alike(blocks: Sequence[BoxBlock]) -> list[BoxBlock]:
    """Blocks over the same fields as one: many small additions become few long columns."""
    alike: dict[tuple[tuple[str, type], ...], list[BoxBlock]] = {}
    for block in blocks:
        key = tuple(sorted((name, type(ranges)) for name, ranges in block.ranges.items()))
        alike.setdefault(key, []).append(block)
    return [same[0] if len(same) == 1 else BoxBlock.concat(same) for same in alike.values()]


def _screen_removed(part: Part, is_removed: NDArray[np.bool_]) -> Screen | None:
    """Where the boxes of removed queries are. Rows elsewhere have no match to drop."""
    boxes = []
    for group in part.groups:
        removed = np.flatnonzero(group.by_box(is_removed))
        if len(removed):
            boxes.append((group.fields, group.firsts[:, removed], group.lasts[:, removed]))
    return Screen.of(boxes, part.axes)


def _fields_in_use(part: Part, is_removed: NDArray[np.bool_]) -> set[str]:
    """The fields that active queries compare."""
    used = {name for each in part.residuals if not is_removed[each.queries].all() for name in each.fields}
    for group in part.groups:
        start = 0
        while start < len(group) and not used.issuperset(
            source for name in group.fields for source in sources_of(name)
        ):  # usually a few boxes are enough
            some = slice(start, start + 1024)
            active = ~group.by_box(is_removed, some)
            for name, firsts, lasts in zip(group.fields, group.firsts[:, some], group.lasts[:, some], strict=True):
                if (active & ((firsts > 0) | (lasts < part.axes[name].n_cells - 1))).any():
                    used.update(sources_of(name))
            start = some.stop
    return used


def _count_removed(part: Part, is_removed: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(is_removed[part.first_query : part.first_query + part.n_queries]))


def _count_removed_with_boxes(part: Part, is_removed: NDArray[np.bool_]) -> int:
    """How many removed queries still have boxes in the part."""
    is_held = np.zeros(part.n_queries, np.bool_)
    for group in part.groups:
        is_held[group.queries - part.first_query] = True
    return int(np.count_nonzero(is_held & is_removed[part.first_query : part.first_query + part.n_queries]))
