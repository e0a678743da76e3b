"""Moving bounds: when a row that stays the same enters or leaves a box because time passes.

A bound that moves with now() is an end of a range on a virtual field (see `vedette.data.moments`), and passes a row at
one moment: the row's own time plus an offset that the box knows. So the boxes that contain a row on all other fields
are found by an index, and their offsets are the moments. Moments at which nothing changes may be among them. Residuals
say for themselves when they may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import OPEN, UNBOUNDED, BoxBlock, Ranges
from vedette.data.columns import Column
from vedette.data.moments import NEVER, NOW, base_of, is_virtual, minus
from vedette.data.schema import Schema
from vedette.native.budget import check_bytes
from vedette.native.kernels import kernel
from vedette.operators.border.now_residuals import NowResiduals
from vedette.queries.match import Part
from vedette.queries.parts import decompile
from vedette.queries.planner import compile_part

_PAST = int(np.iinfo(np.int64).min)

Moments = NDArray[np.int64]


class Passing(NamedTuple):
    """Moments of rows, by row and in order; and the next moment of each row after those."""

    rows: NDArray[np.int64]
    moments: Moments
    nexts: Moments


@dataclass(frozen=True)
class MovingBounds:
    """The offsets of a part's moving boxes: a row's time plus an offset is a moment."""

    names: tuple[str, ...]  # virtual fields
    every: tuple[Moments, ...]  # by virtual field: the distinct offsets of all boxes, in order
    free: tuple[Moments, ...]  # those of boxes that constrain no other field
    others: Part | None  # the other boxes without their virtual fields; each is a query
    offsets: NDArray[np.int64]  # (virtual fields, 2, those boxes): when a row enters and leaves, or NEVER
    residuals: NowResiduals | None  # of those boxes

    @classmethod
    def of(cls, part: Part, schema: Schema) -> MovingBounds | None:
        """The moving boxes of a part, or None if there are none."""
        blocks, _ = decompile(part, np.zeros(part.first_query + part.n_queries, np.bool_))
        names = tuple(sorted({name for block in blocks for name in block.ranges if is_virtual(schema, name)}))
        residuals = NowResiduals.of(part)
        free: list[BoxBlock] = []
        bound: list[BoxBlock] = []
        for block in blocks:
            has_now = residuals.use_now(block.queries)
            bound.append(block.take(np.flatnonzero(has_now)))
            rest = block.take(np.flatnonzero(~has_now))
            if not set(names).isdisjoint(rest.ranges):
                (free if set(names) >= rest.ranges.keys() else bound).append(rest)
        bound = [block for block in bound if len(block)]
        if not any(map(len, free)) and not bound:
            return None
        own = _offsets(bound, names)
        free_offsets = _offsets(free, names)
        queries = np.concatenate([np.empty(0, np.int64), *(block.queries for block in bound)])
        return cls(
            names,
            tuple(_distinct(each) for each in np.concatenate([own, free_offsets], axis=2)),
            tuple(_distinct(each) for each in free_offsets),
            _compile_others(bound, names, schema) if bound else None,
            own,
            residuals.at_boxes(queries) if len(queries) else None,
        )

    @property
    def nbytes(self) -> int:
        arrays = sum(each.nbytes for each in (*self.every, *self.free, self.offsets))
        return arrays + (0 if self.others is None else self.others.nbytes)

    def find_next(self, columns: dict[str, Column], since: Moments) -> Moments:
        """By row: a moment after `since`, before which no box is entered or left."""
        nexts = np.full(len(since), NEVER, np.int64)
        for name, offsets in zip(self.names, self.every, strict=True):
            bases, known = _bases(name, columns, len(since))
            np.minimum(nexts, np.where(known, _next_of(offsets, bases, since), NEVER), out=nexts)
        if self.residuals is not None:
            np.minimum(nexts, since + 1, out=nexts)  # not known before the row's boxes are
        return nexts

    def find(self, columns: dict[str, Column], since: Moments, until: Moments) -> Passing:
        """The moments of each row after `since`, up to and including `until`."""
        nexts = np.full(len(since), NEVER, np.int64)
        rows, moments = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for name, offsets in zip(self.names, self.free, strict=True):
            if not len(offsets):
                continue
            bases, known = _bases(name, columns, len(since))
            np.minimum(nexts, np.where(known, _next_of(offsets, bases, until), NEVER), out=nexts)
            firsts = np.searchsorted(offsets, minus(since, bases), side="right")
            counts = np.where(known, np.searchsorted(offsets, minus(until, bases), side="right") - firsts, 0).clip(0)
            check_bytes(16 * int(counts.sum()))
            at = np.repeat(np.arange(len(since)), counts)
            places = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts - firsts, counts)
            rows.append(at)
            moments.append(bases[at] + offsets[places])
        if self.others is not None:
            bases = np.empty((len(self.names), len(since)), np.int64)
            for number, name in enumerate(self.names):
                bases[number], _ = _bases(name, columns, len(since), missing=NEVER)
            own = {name: columns[name] for name in self.others.fields}
            matches = self.others.match(own, len(since))
            passing = _list_moments(matches.starts, matches.positions, bases, self.offsets, since, until, nexts)
            rows.append(passing[0])
            moments.append(passing[1])
            if self.residuals is not None:
                more = self.residuals.find(matches, columns, since, until, nexts)
                rows.append(more[0])
                moments.append(more[1])
        return Passing(np.concatenate(rows), np.concatenate(moments), nexts)


def join_passing(many: Sequence[Passing], n_rows: int) -> Passing:
    """The moments of several parts, each once, in order."""
    nexts = np.full(n_rows, NEVER, np.int64)
    for each in many:
        np.minimum(nexts, each.nexts, out=nexts)
    rows = np.concatenate([np.empty(0, np.int64), *(each.rows for each in many)])
    moments = np.concatenate([np.empty(0, np.int64), *(each.moments for each in many)])
    order = np.lexsort((moments, rows))
    rows, moments = rows[order], moments[order]
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (np.diff(rows) != 0) | (np.diff(moments) != 0)
    return Passing(rows[is_new], moments[is_new], nexts)


def _compile_others(blocks: Sequence[BoxBlock], names: Sequence[str], schema: Schema) -> Part:
    fixed, first = [], 0
    for block in blocks:
        ranges = {name: each for name, each in block.ranges.items() if name not in names}
        fixed.append(BoxBlock(np.arange(first, first + len(block)), ranges))
        first += len(block)
    return compile_part(fixed, [], schema, 0, first)


def _offsets(blocks: Sequence[BoxBlock], names: Sequence[str]) -> NDArray[np.int64]:
    """By virtual field and box: the offsets at which a row enters and leaves the range."""
    offsets = np.full((len(names), 2, sum(map(len, blocks))), NEVER, np.int64)
    first = 0
    for block in blocks:
        for number, name in enumerate(names):
            ranges = block.ranges.get(name)
            if isinstance(ranges, Ranges):
                own = offsets[number, :, first : first + len(block)]
                own[:] = _of_now(ranges) if name == NOW else _of_difference(ranges)
        first += len(block)
    return offsets


def _of_now(ranges: Ranges) -> tuple[Any, Any]:
    """now() rises: it enters at the low end, and leaves after the high one."""
    lows = np.where(ranges.low_ends == UNBOUNDED, NEVER, _step(ranges.lows, ranges.low_ends == OPEN))
    highs = np.where(ranges.high_ends == UNBOUNDED, NEVER, _step(ranges.highs, ranges.high_ends != OPEN))
    return lows, highs


def _of_difference(ranges: Ranges) -> tuple[Any, Any]:
    """A time minus now() falls: it enters at the high end, and leaves below the low one."""
    highs, lows = minus(np.int64(0), ranges.highs), minus(np.int64(0), ranges.lows)
    enters = np.where(ranges.high_ends == UNBOUNDED, NEVER, _step(highs, ranges.high_ends == OPEN))
    leaves = np.where(ranges.low_ends == UNBOUNDED, NEVER, _step(lows, ranges.low_ends != OPEN))
    return enters, leaves


def _step(values: Moments, is_later: NDArray[np.bool_]) -> Moments:
    """The values, or those one microsecond later."""
    return values + (is_later & (values < NEVER))


def _distinct(offsets: NDArray[np.int64]) -> Moments:
    distinct = np.unique(offsets)
    return distinct[distinct < NEVER]


def _bases(name: str, columns: dict[str, Column], n_rows: int, *, missing: int = 0) -> tuple[Moments, Any]:
    """By row: the time to which offsets are added, and whether there is one."""
    if name == NOW:
        return np.zeros(n_rows, np.int64), True
    column = columns[base_of(name)]
    if column.valid is None:
        return column.values, True
    return np.where(column.valid, column.values, missing), column.valid


@kernel
def _next_of(offsets: Moments, bases: Moments, since: Moments) -> Moments:
    """By row: the first moment after `since`, or NEVER. Rows one after another that wait equally long search once."""
    nexts = np.empty(len(since), np.int64)
    waited, place = np.int64(0), -1
    for row in range(len(since)):
        difference = since[row] - bases[row]
        if ((since[row] ^ bases[row]) & (since[row] ^ difference)) < 0:  # it exceeds 64 bits
            difference = _PAST if since[row] < 0 else NEVER
        if place < 0 or difference != waited:
            waited, place = difference, np.searchsorted(offsets, difference, side="right")
        nexts[row] = NEVER
        if place < len(offsets):
            moment = bases[row] + offsets[place]
            is_beyond = ((bases[row] ^ moment) & (offsets[place] ^ moment)) < 0
            if moment > since[row] and not is_beyond:
                nexts[row] = moment
    return nexts


@kernel
def _list_moments(
    starts: NDArray[np.int64],
    boxes: NDArray[np.int32],
    bases: NDArray[np.int64],
    offsets: NDArray[np.int64],
    since: NDArray[np.int64],
    until: NDArray[np.int64],
    nexts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The moments of each row in its boxes. Lowers `nexts` to the first one after `until`."""
    rows, moments = np.empty(1024, np.int64), np.empty(1024, np.int64)
    n = 0
    for row in range(len(starts) - 1):
        for place in range(starts[row], starts[row + 1]):
            for axis in range(len(bases)):
                base = bases[axis, row]
                if base == NEVER:
                    continue
                for end in range(2):
                    offset = offsets[axis, end, boxes[place]]
                    if offset == NEVER or (base > 0 and offset >= NEVER - base):
                        continue
                    moment = base + offset if base >= 0 or offset >= _PAST - base else _PAST
                    if moment > until[row]:
                        nexts[row] = min(nexts[row], moment)
                    elif moment > since[row]:
                        if n == len(rows):
                            rows = np.concatenate((rows, np.empty(n, np.int64)))
                            moments = np.concatenate((moments, np.empty(n, np.int64)))
                        rows[n], moments[n] = row, moment
                        n += 1
    return rows[:n], moments[:n]
