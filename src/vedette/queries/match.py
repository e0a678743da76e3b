"""Matching a batch of rows with compiled queries.

A `Part` is a compiled set of queries: one axis per field that they compare, and groups of boxes, each with the index
that the planner chose for it. The cells of rows are found once per axis; each group then uses only cells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Cells, validate_axis
from vedette.data.columns import Column
from vedette.data.list_axes import ListCells
from vedette.data.matches import Matches
from vedette.data.moments import find_field
from vedette.data.schema import Schema
from vedette.data.view_axes import AnyAxis, inner_axis, validate_any_axis
from vedette.data.views import has_several_values, is_computed, source_of, sources_of
from vedette.indexes.counted import Counted, CountsFirst
from vedette.indexes.dual import EVERY, MIN_ROWS, Dual
from vedette.indexes.index import Index, KeptAsBoxes, Validated
from vedette.indexes.names import INDEXES
from vedette.language import Residual
from vedette.language.computed import read_computed, validate_computed
from vedette.native.budget import BOUND, OverBudgetError, Pieces, check_bytes
from vedette.native.buffers import empty_int32, empty_int64, output_int32
from vedette.native.damage import check, check_fields, check_shape, check_within
from vedette.native.kernels import kernel
from vedette.native.threads import at_most, run_pieces
from vedette.native.vectors import copy_eight
from vedette.queries.screen import Screen

SCREENED_ROWS = 1024  # a smaller batch is not screened
FEW_PAIRS = 256  # up to this number, comparing them with each other is faster than a mark for every query
CANDIDATES_AT_ONCE = 1 << 20  # pairs whose residuals are checked together, about
RESIDUAL_ROWS = 1 << 13  # about as many rows as have that many candidates
COPIED_AT_ONCE = 1 << 18  # positions, by one thread


@dataclass(frozen=True)
class Group:
    """Boxes over the same fields, with their index."""

    fields: tuple[str, ...]  # in the order of the index's axes; none: every row is a candidate
    index: Index | EveryRow
    firsts: Cells  # (fields, boxes): closed cell ranges, kept so that the group can be compiled again
    lasts: Cells
    listed_queries: NDArray[np.int32]  # the query of each box; empty if they are consecutive
    first_query: int  # then, the query of the first box
    repeats: bool  # several boxes of one query may contain the same row
    has_residuals: bool
    reason: str  # why this index

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self.firsts.nbytes + self.lasts.nbytes + self.listed_queries.nbytes

    @property
    def queries(self) -> NDArray[np.int32]:
        """The query of each box."""
        if len(self.listed_queries):
            return self.listed_queries
        return np.arange(self.first_query, self.first_query + len(self), dtype=np.int32)

    def by_box(self, by_query: NDArray[np.bool_], boxes: slice = slice(None)) -> NDArray[np.bool_]:
        """The elements of an array by query for the queries of some boxes, without a copy if these are consecutive."""
        if len(self.listed_queries):
            return by_query[self.listed_queries[boxes]]
        return by_query[self.first_query : self.first_query + len(self)][boxes]

    def __len__(self) -> int:
        return int(self.firsts.shape[1])

    def validate(self, n_cells: Sequence[int], queries: range) -> None:
        """Raise DamageError unless boxes from a file and their index are within the axes and of these queries."""
        check_fields(self)
        check(self.firsts.ndim == 2 and self.firsts.shape == self.lasts.shape, "the cells of boxes are missing")
        check_shape(self.firsts, (len(n_cells), len(self)), "the cells of boxes")
        check(
            self.fields or len(self.listed_queries) == len(self) or len(self) == len(self._every), "boxes are missing"
        )
        for firsts, lasts, n in zip(self.firsts, self.lasts, n_cells, strict=True):
            check_within(firsts, 0, n - 1, "the cells of boxes")
            check_within(lasts, 0, n - 1, "the cells of boxes")
            check((firsts <= lasts).all(), "a box ends before it begins")
        if len(self.listed_queries):
            check_shape(self.listed_queries, (len(self),), "the queries of boxes")
            check_within(self.listed_queries, queries.start, queries.stop - 1, "the queries of boxes")
        else:
            last = self.first_query + len(self)
            is_run = queries.start <= self.first_query and last <= queries.stop
            check(is_run or not len(self), "boxes have no queries")
        self._validate_index(n_cells, queries)

    @property
    def _every(self) -> NDArray[np.int32]:
        return self.index.ids if isinstance(self.index, EveryRow) else np.empty(0, np.int32)

    def _validate_index(self, n_cells: Sequence[int], queries: range) -> None:
        index = self.index
        check(isinstance(index, EveryRow) == (not self.fields), "an index has other fields than its boxes")
        if isinstance(index, EveryRow):
            check_fields(index)
            check(np.array_equal(index.ids, self.queries), "an index does not have its boxes")
            return
        if isinstance(index, KeptAsBoxes):
            check(index.name in INDEXES, "an index is unknown")
            return
        check(hasattr(index, "validate"), "an index cannot be validated")
        cast(Validated, index).validate(n_cells, queries)
        if hasattr(index, "has_boxes"):  # for indexes where this check costs little
            check(index.has_boxes(self.firsts, self.lasts, self.queries), "an index does not have its boxes")

    def restored(self, axes: dict[str, AnyAxis]) -> Group:
        """The group with its index, which is built if the file has only the boxes."""
        if not isinstance(self.index, KeptAsBoxes):
            return self
        n_cells = [axes[name].n_cells for name in self.fields]
        index = INDEXES[self.index.name].build(self.firsts, self.lasts, self.queries, n_cells)
        return dataclasses.replace(self, index=index)


@dataclass(frozen=True)
class Part:
    """Compiled queries. `residual_of` and `member_of` map a query to its residual and its place in it."""

    axes: dict[str, AnyAxis]  # by field or view
    groups: tuple[Group, ...]
    residuals: tuple[Residual, ...]
    first_query: int  # queries of this part have positions from here on
    n_queries: int
    screen: Screen | None
    residual_of: NDArray[np.int32]  # by position minus `first_query`; -1: none. Empty if no query has one.
    member_of: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        arrays = self.residual_of.nbytes + self.member_of.nbytes
        screen = 0 if self.screen is None else self.screen.marks.nbytes
        parts = (*self.axes.values(), *self.groups, *self.residuals)
        return arrays + screen + sum(each.nbytes for each in parts)

    @property
    def n_boxes(self) -> int:
        return sum(len(group) for group in self.groups)

    @property
    def fields(self) -> set[str]:
        """The fields that rows need."""
        return {source for name in self.axes for source in sources_of(name)}.union(
            *(residual.fields for residual in self.residuals)
        )

    def validate(self, schema: Schema, first_query: int) -> None:
        """Raise DamageError unless a part from a file, over rows of the schema, is safe to match with."""
        check_fields(self)
        check(self.first_query == first_query and 0 <= self.n_queries < 1 << 31, "a part has wrong queries")
        for name, axis in self.axes.items():
            if is_computed(name):
                validate_axis(inner_axis(axis), validate_computed(name, schema))
                continue
            source = source_of(name)
            field = find_field(schema, source)
            check(field is not None and field.name == source, "an axis has an unknown field")
            assert field is not None
            validate_any_axis(axis, name, field.type)
        queries = range(first_query, first_query + self.n_queries)
        for group in self.groups:
            check(
                len(set(group.fields)) == len(group.fields) and self.axes.keys() >= {*group.fields}, "a box has no axis"
            )
            check(sum(map(has_several_values, group.fields)) < 2, "a box has two axes of several values")
            group.validate([self.axes[name].n_cells for name in group.fields], queries)
        self._validate_residuals(schema, queries)
        if self.screen is not None:
            self.screen.validate([(each.fields, each.firsts, each.lasts) for each in self.groups], self.axes)

    def _validate_residuals(self, schema: Schema, queries: range) -> None:
        n = self.n_queries if self.residuals else 0
        check_shape(self.residual_of, (n,), "the residuals of queries")
        check_shape(self.member_of, (n,), "the places in residuals")
        check_within(self.residual_of, -1, len(self.residuals) - 1, "the residuals of queries")
        check_within(self.member_of, 0, n - 1, "the places in residuals")
        for number, residual in enumerate(self.residuals):
            residual.validate(schema, queries)
            own = np.flatnonzero(self.residual_of == number)
            is_same = np.array_equal(residual.queries[self.member_of[own]], own + queries.start)
            check(is_same and len(own) == len(residual), "residuals do not belong to their queries")
        for group in self.groups:
            has = self.residual_of[group.queries - queries.start] >= 0 if n else np.zeros(len(group), np.bool_)
            check((has == group.has_residuals).all(), "boxes do not agree with the residuals of their queries")

    def restored(self) -> Part:
        """The part with all indexes. Those that the file has only as boxes are built."""
        return dataclasses.replace(self, groups=tuple(group.restored(self.axes) for group in self.groups))

    def decide(self, columns: dict[str, Column], n_rows: int) -> Part:
        """This part for one batch, whatever pieces it is cut into: the index that answers is chosen for all of them.

        Candidates for residuals are found for a few rows at a time, so the first rows of the batch decide.
        """
        if n_rows < MIN_ROWS or not any(isinstance(group.index, Dual) for group in self.groups):
            return self
        groups = []
        for group in self.groups:
            if isinstance(group.index, Dual):
                rows = np.arange(0, min(n_rows, RESIDUAL_ROWS) if group.has_residuals else n_rows, EVERY)
                sources = {source for name in group.fields for source in sources_of(name)}
                some = {name: columns[name].take(rows) for name in sources}
                cells = {name: self._locate_on(name, some, len(rows))[0] for name in group.fields}
                index = group.index.decide(stack_cells(cells, group.fields, len(rows))[0])
                group = dataclasses.replace(group, index=index)
            groups.append(group)
        return dataclasses.replace(self, groups=tuple(groups))

    def match(self, columns: dict[str, Column], n_rows: int) -> Matches:
        """The queries of this part that each row matches, each query once per row."""
        if self.screen is None or n_rows < SCREENED_ROWS:
            return self._match(columns, n_rows)
        rows = self.screen.pass_rows(columns[self.screen.field])
        if 2 * len(rows) > n_rows:
            return self._match(columns, n_rows)
        matches = self._match({name: columns[name].take(rows) for name in self.fields}, len(rows))
        counts = np.zeros(n_rows + 1, np.int64)
        counts[rows + 1] = matches.counts
        return Matches(np.cumsum(counts), matches.positions, n_failed=matches.n_failed)

    @property
    def counts_first(self) -> bool:
        """Whether matches can be counted before they are written, so that `count` works."""
        if len(self.groups) != 1 or self.screen is not None:
            return False
        (group,) = self.groups
        is_plain = not (group.repeats or group.has_residuals or any(map(has_several_values, group.fields)))
        return isinstance(group.index, CountsFirst) and is_plain

    def count(self, columns: dict[str, Column], n_rows: int) -> Counted:
        """As `match`, but the matches are not written yet. Only if `counts_first`."""
        (group,) = self.groups
        return cast(CountsFirst, group.index).count(stack_cells(self.locate(columns), group.fields, n_rows)[0])

    def _match(self, columns: dict[str, Column], n_rows: int) -> Matches:
        cells, failures = self.locate_counted(columns, n_rows)
        by_kind: dict[tuple[bool, bool], list[Group]] = {}
        for group in self.groups:
            by_kind.setdefault((group.repeats, group.has_residuals), []).append(group)
        found = []
        for (_, has_residuals), groups in by_kind.items():
            if has_residuals:
                found.append(self.filter_candidates(groups, cells, columns, n_rows))
            else:
                found.append(self.find_candidates(groups, cells, n_rows))
        matches = merge(found, n_rows)
        if failures is None:
            return matches
        return dataclasses.replace(matches, n_failed=matches.n_failed + int(failures.sum()))

    def locate(self, columns: dict[str, Column]) -> dict[str, Cells | ListCells]:
        """The cells of rows on all axes."""
        return self.locate_counted(columns, len(next(iter(columns.values()))) if columns else 0)[0]

    def locate_counted(
        self, columns: dict[str, Column], n_rows: int
    ) -> tuple[dict[str, Cells | ListCells], NDArray[np.int64] | None]:
        """The cells, and by row how many values of computed fields could not be computed; None if all could."""
        found = {name: self._locate_on(name, columns, n_rows) for name in self.axes}
        masks = [failed for _, failed in found.values() if failed is not None and failed.any()]
        counts = np.asarray(np.sum(masks, axis=0, dtype=np.int64)) if masks else None
        return {name: cells for name, (cells, _) in found.items()}, counts

    def _locate_on(
        self, name: str, columns: dict[str, Column], n_rows: int
    ) -> tuple[Cells | ListCells, NDArray[np.bool_] | None]:
        if is_computed(name):
            column, failed = read_computed(name).column(columns, n_rows)
            return self.axes[name].locate(column), failed
        return self.axes[name].locate(columns[source_of(name)]), None

    def find_candidates(self, groups: Sequence[Group], cells: dict[str, Cells | ListCells], n_rows: int) -> Matches:
        """The queries with a box that contains the row. Groups that repeat queries are given together."""
        found, n_found = [], 0
        for group in groups:
            stacked, starts = stack_cells(cells, group.fields, n_rows)
            matches = group.index.match(stacked)
            found.append(matches if starts is None else Matches(matches.starts[starts], matches.positions))
            n_found += len(found[-1].positions)
            if 4 * n_found > BOUND.n_bytes:
                raise OverBudgetError(4 * n_found)
        matches = merge(found, n_rows)
        if groups[0].repeats:
            return Matches(*_drop_repeats(matches.starts, matches.positions, self.first_query + self.n_queries))
        return matches

    def filter_candidates(
        self, groups: Sequence[Group], cells: dict[str, Cells | ListCells], columns: dict[str, Column], n_rows: int
    ) -> Matches:
        """The candidates whose residual is true. Rows are processed in slices, because all pairs may be candidates."""

        def find(start: int, end: int) -> Matches:
            part = {name: each[start:end] for name, each in cells.items()}
            return self.find_candidates(groups, part, end - start)

        found, n_found = [], 0
        n_first = CANDIDATES_AT_ONCE // sum(map(len, groups))
        pieces = Pieces(n_first, 2 * CANDIDATES_AT_ONCE, 16 * CANDIDATES_AT_ONCE)
        for start, _, candidates in pieces.of(find, n_rows):
            found.append(self._check_residuals(candidates, columns, start))
            n_found += len(found[-1].positions)
            check_bytes(4 * n_found)
        return concat(found)

    def _check_residuals(self, candidates: Matches, columns: dict[str, Column], first_row: int) -> Matches:
        local = candidates.positions - self.first_query
        residual_of = self.residual_of[local]
        keep = residual_of < 0
        rows = candidates.rows.astype(np.int64) + first_row
        n_failed = 0
        numbers = np.unique(residual_of)
        for number in numbers[numbers >= 0]:
            pairs = slice(None) if len(numbers) == 1 else np.flatnonzero(residual_of == number)
            members = self.member_of[local[pairs]].astype(np.int64)
            keep[pairs], failed = self.residuals[number].evaluate(columns, rows[pairs], members)
            n_failed += failed
        starts, positions = _keep_pairs(candidates.starts, candidates.positions, keep)
        # Copied, so that few matches do not keep all candidates in memory.
        return Matches(starts, positions.copy(), n_failed=n_failed)


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
        positions = output_int32(n_rows * len(self.ids))
        positions.reshape(n_rows, len(self.ids))[:] = self.ids
        return Matches(starts, positions)


def stack_cells(
    cells: dict[str, Cells | ListCells], fields: tuple[str, ...], n_rows: int
) -> tuple[Cells, NDArray[np.int64] | None]:
    """The cells of rows on the axes of an index, one row of the array per axis.

    If a row has several cells on one of them, it is repeated for each. Then the second result says where the
    repetitions of each row begin, and where the last ones end.
    """
    several = [each for name in fields if isinstance(each := cells[name], ListCells)]
    if several:
        (lists,) = several
        stacked = empty_int32(len(fields) * len(lists.cells)).reshape(len(fields), -1)
        for number, name in enumerate(fields):
            own = cells[name]
            if isinstance(own, ListCells):
                stacked[number] = own.cells
            else:
                lists.spread(own, stacked[number])
        return stacked, lists.starts
    if len(fields) == 1:
        return cast(Cells, cells[fields[0]]).reshape(1, -1), None
    stacked = np.empty((len(fields), n_rows), np.int32)
    for number, name in enumerate(fields):
        stacked[number] = cast(Cells, cells[name])
    return stacked, None


def merge(found: Sequence[Matches], n_rows: int, dropped: Sequence[NDArray[np.int64]] = ()) -> Matches:
    """All matches of several answers about the same rows, without the pairs `dropped` from each.

    Cheap if all answers but the first are sparse and few pairs are dropped.
    """
    if len(found) == 1 and not any(map(len, dropped)):
        return found[0]
    none = Matches.none(n_rows)
    if any(len(pairs) for pairs in dropped[1:]):
        rest = [_merge_two(more, pairs, none) for more, pairs in zip(found[1:], dropped[1:], strict=True)]
        found = [found[0], *rest]
    first, gone = (found[0] if found else none), (dropped[0] if dropped else _NO_PAIRS)
    if len(found) > 2 and len(gone) == 0:  # lists are joined in the same order, however many they have
        dense = [i for i, each in enumerate(found) if len(each.positions) > n_rows // 8]
        if len(dense) > 1:
            first = _append(found[: dense[-1] + 1], n_rows)
            found = [first, *found[dense[-1] + 1 :]]
    for more in found[1:] or [none]:
        first, gone = _merge_two(first, gone, more), _NO_PAIRS
    return first


def find_removed(matches: Matches, is_removed: NDArray[np.bool_], rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The pairs, among those of `rows` if given, whose query is removed."""
    if rows is None:
        return _find_removed(matches.positions, is_removed)
    return _find_removed_in_rows(matches.starts, matches.positions, is_removed, rows)


def _merge_two(first: Matches, dropped: NDArray[np.int64], more: Matches) -> Matches:
    n_failed = first.n_failed + more.n_failed
    if len(more.positions) == 0 and len(dropped) == 0:
        return first if n_failed == first.n_failed else Matches(first.starts, first.positions, n_failed=n_failed)
    positions = output_int32(len(first.positions) + len(more.positions) - len(dropped))
    starts = _merge(first.starts, first.positions, dropped, more.starts, more.positions, positions)
    return Matches(starts, positions, n_failed=n_failed)


def _append(found: Sequence[Matches], n_rows: int) -> Matches:
    """Each row's lists joined, for any number of lists."""
    starts = found[0].starts.copy()
    for matches in found[1:]:
        starts += matches.starts
    positions = output_int32(int(starts[-1]))
    cursors = starts[:-1].copy()
    for matches in found:
        _append_lists(matches.starts, matches.positions, cursors, positions)
    return Matches(starts, positions, n_failed=sum(matches.n_failed for matches in found))


def concat(found: Sequence[Matches]) -> Matches:
    """Answers about consecutive rows as one."""
    if len(found) == 1:
        return found[0]
    rows = np.cumsum([0, *map(len, found)]).tolist()
    pairs = np.cumsum([0, *(len(matches.positions) for matches in found)]).tolist()
    starts, positions = empty_int64(rows[-1] + 1), output_int32(pairs[-1])
    starts[0] = 0

    def copy(piece: int) -> None:
        np.add(found[piece].starts[1:], pairs[piece], out=starts[rows[piece] + 1 : rows[piece + 1] + 1])
        positions[pairs[piece] : pairs[piece + 1]] = found[piece].positions

    with at_most(1 + pairs[-1] // COPIED_AT_ONCE):
        run_pieces(copy, len(found))
    return Matches(starts, positions, n_failed=sum(matches.n_failed for matches in found))


_NO_PAIRS = np.empty(0, np.int64)


@kernel
def _append_lists(
    starts: NDArray[np.int64], positions: NDArray[np.int32], cursors: NDArray[np.int64], out: NDArray[np.int32]
) -> None:
    for row in range(len(starts) - 1):
        cursors[row] = _copy_run(out, cursors[row], positions, starts[row], starts[row + 1])


@kernel
def _copy_run(out: NDArray[np.int32], at: int, positions: NDArray[np.int32], start: int, end: int) -> int:
    """Copy `positions[start:end]` to `out[at:]`; returns where the copy ends."""
    for i in range(start, end - 7, 8):
        copy_eight(out, at + i - start, positions, i)
    for i in range(end - (end - start) % 8, end):
        out[at + i - start] = positions[i]
    return at + end - start


@kernel
def _merge(
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    dropped: NDArray[np.int64],
    more_starts: NDArray[np.int64],
    more_positions: NDArray[np.int32],
    out: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Each row's lists joined, without the pairs of the first that are `dropped`, which are in order.

    The first lists are copied in runs, up to a pair that is dropped or a row that has more.
    """
    n_rows = len(starts) - 1
    out_starts = np.empty_like(starts)
    out_starts[0] = 0
    n = copied = n_dropped = 0
    for row in range(n_rows):
        end = starts[row + 1]
        while n_dropped < len(dropped) and dropped[n_dropped] < end:
            n = _copy_run(out, n, positions, copied, dropped[n_dropped])
            copied = dropped[n_dropped] + 1
            n_dropped += 1
        first, last = more_starts[row], more_starts[row + 1]
        if first < last or row == n_rows - 1:
            n = _copy_run(out, n, positions, copied, end)
            copied = end
            n = _copy_run(out, n, more_positions, first, last)
        out_starts[row + 1] = end - n_dropped + last
    return out_starts


@kernel
def _find_removed(positions: NDArray[np.int32], is_removed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The pairs whose query is removed. Chunks are searched without branches."""
    found = np.empty(1024, np.int64)
    n_found = 0
    chunk = np.empty(4096, np.int64)
    for start in range(0, len(positions), len(chunk)):
        n = 0
        for pair in range(start, min(start + len(chunk), len(positions))):
            chunk[n] = pair
            n += is_removed[positions[pair]]
        if n_found + n > len(found):
            larger = np.empty(2 * (n_found + n), np.int64)
            larger[:n_found] = found[:n_found]
            found = larger
        found[n_found : n_found + n] = chunk[:n]
        n_found += n
    return found[:n_found]


@kernel
def _find_removed_in_rows(
    starts: NDArray[np.int64], positions: NDArray[np.int32], is_removed: NDArray[np.bool_], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    n = 0
    for i in range(len(rows)):
        n += starts[rows[i] + 1] - starts[rows[i]]
    found = np.empty(n + 1, np.int64)
    n = 0
    for i in range(len(rows)):
        for pair in range(starts[rows[i]], starts[rows[i] + 1]):
            found[n] = pair
            n += is_removed[positions[pair]]
    return found[:n]


@kernel
def _drop_repeats(
    starts: NDArray[np.int64], positions: NDArray[np.int32], n_queries: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Each position once per row. A position stores the last row that had it; few pairs are compared directly."""
    kept_starts = np.zeros_like(starts)
    kept = np.empty_like(positions)
    looks_back = len(positions) < FEW_PAIRS
    last_rows = np.full(0 if looks_back else n_queries, -1, np.int32)
    n = 0
    for row in range(len(starts) - 1):
        first = n
        for i in range(starts[row], starts[row + 1]):
            position = positions[i]
            if looks_back:
                is_new = True
                for j in range(first, n):
                    is_new &= kept[j] != position
            else:
                is_new = last_rows[position] != row
                last_rows[position] = row
            kept[n] = position
            n += is_new
        kept_starts[row + 1] = n
    return kept_starts, kept[:n]


@kernel
def _keep_pairs(
    starts: NDArray[np.int64], positions: NDArray[np.int32], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    kept_starts = np.zeros_like(starts)
    kept = np.empty_like(positions)
    n = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            kept[n] = positions[i]
            n += keep[i]
        kept_starts[row + 1] = n
    return kept_starts, kept[:n]
