"""Refinement: what remains to check for a branch and two rows after an index has found that they may join.

Lim et al., figure 11, line 11: links, windows, and the residuals of selections from one stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.language import Residual, renumbering
from vedette.native.kernels import kernel
from vedette.native.ordering import GREATEST
from vedette.operators.window_join.branches import Branches
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.probes import LinkRanges, RowKeyArrays, is_in_range
from vedette.operators.window_join.window_rows import StreamRows

EVERY = 1 << 62  # rows of a window that is not limited by rows


class BoundArrays(NamedTuple):
    """The windows of branches for new rows of one stream: of `most` rows, or as old as `longest`.

    A row of the other stream may be later in time by at most `own`.
    """

    most: NDArray[np.int64]
    longest: NDArray[Any]
    own: NDArray[Any]


class NewRows(NamedTuple):
    """New rows: their times, and the number of rows of the other stream before each."""

    times: NDArray[Any]
    limits: NDArray[np.int64]


class KeptRows(NamedTuple):
    """The times of the rows of a window, by row minus `shift`."""

    times: NDArray[Any]
    shift: int


@dataclass(frozen=True)
class WindowBounds:
    """The windows of branches."""

    arrays: BoundArrays

    @classmethod
    def of(cls, group: JoinGroup, origin: int, branches: NDArray[np.int32]) -> WindowBounds:
        assert group.branches is not None
        other, n = 1 - origin, len(branches)
        counts = group.signature.counts
        dtype = group.windows[origin].dtype
        forever = np.full(n, np.inf if dtype == np.float64 else GREATEST, dtype)
        most = group.branches.units[other][branches] if counts[other] else np.full(n, EVERY, np.int64)
        longest = forever if counts[other] else group.windows[other][branches]
        return cls(BoundArrays(most, longest, forever if counts[origin] else group.windows[origin][branches]))

    @classmethod
    def concat(cls, many: Sequence[WindowBounds]) -> WindowBounds:
        joined = [np.concatenate(arrays) for arrays in zip(*(each.arrays for each in many), strict=True)]
        return cls(BoundArrays(*joined))

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    @cached_property
    def are_one(self) -> bool:
        """Whether all branches have the same windows."""
        return all(bool((each == each[0]).all()) for each in self.arrays)


def find_linked(
    join: WindowJoin, group: JoinGroup, branches: NDArray[np.int32], rows: Sequence[NDArray[np.int32]]
) -> NDArray[np.int64]:
    """The positions of those whose rows have the codes and keys that the edge of the group requires."""
    assert group.branches is not None
    first, second = group.ports[0]
    return find_holding(
        LinkRanges(group.kinds[0], True, group.branches.lows[0], group.branches.highs[0]),
        bool(group.signature.edges[0].equalities),
        branches,
        rows[first.stream] - np.int32(join.streams[first.stream].first),
        rows[second.stream] - np.int32(join.streams[second.stream].first),
        first.keys.arrays,
        second.keys.arrays,
    )


def keep_selected(
    join: WindowJoin,
    group: JoinGroup,
    residuals: Sequence[Sequence[Residual]],
    branches: NDArray[np.int32],
    rows: list[NDArray[np.int32]],
) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
    """Branches and rows for which the residuals of the selections are true; `residuals` are by stream."""
    assert group.branches is not None
    for stream, own in enumerate(residuals):
        if own:
            selections = group.branches.selections[stream][branches]
            with renumbering(partial(_users_of, group.branches, stream)):
                keep, failed = _evaluate(own, join.streams[stream], selections, rows[stream])
            join.n_failed += failed
            branches, rows = branches[keep], [each[keep] for each in rows]
    return branches, rows


def _users_of(branches: Branches, stream: int, selections: NDArray[Any]) -> NDArray[np.int32]:
    """The queries whose branches have these selections of a stream."""
    return np.unique(branches.queries[np.isin(branches.selections[stream], selections)])


def _evaluate(
    residuals: Sequence[Residual], stream: StreamRows, selections: NDArray[np.int32], rows: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], int]:
    """Which rows the residual of a selection keeps, each evaluated once; and the number of rows with an error."""
    keep, n_failed = np.ones(len(rows), np.bool_), 0
    for residual in residuals:
        order = np.argsort(residual.queries, kind="stable")
        known = residual.queries[order]
        places = np.minimum(np.searchsorted(known, selections), len(known) - 1)
        checked = np.flatnonzero(known[places] == selections)
        if not len(checked):
            continue
        pairs = (order[places[checked]] << 32) | (rows[checked] - stream.first)
        distinct, back = np.unique(pairs, return_inverse=True)
        columns = {name: stream.columns[name].whole() for name in residual.fields}
        kept, failed = residual.evaluate(columns, distinct & 0xFFFFFFFF, distinct >> 32)
        keep[checked] &= kept[back.reshape(-1)]
        n_failed += failed
    return keep, n_failed


@kernel
def find_holding(
    link: LinkRanges,
    has_codes: bool,
    branches: NDArray[np.int32],
    first_places: NDArray[np.int32],
    second_places: NDArray[np.int32],
    first_rows: RowKeyArrays,
    second_rows: RowKeyArrays,
) -> NDArray[np.int64]:
    """The positions of the branches whose two rows have equal codes and a link in range."""
    kind, lows, highs = link.kind, link.lows, link.highs
    first_codes, first_keys = first_rows.codes, first_rows.keys
    second_codes, second_keys = second_rows.codes, second_rows.keys
    found = np.empty(len(branches), np.int64)
    n = 0
    for i in range(len(branches)):
        first, second, branch = first_places[i], second_places[i], branches[i]
        code, other = first_codes[first], second_codes[second]
        found[n] = i
        if code >= 0 and other >= 0 and (code == other or not has_codes):
            n += is_in_range(kind, first_keys[first], second_keys[second], lows[branch], highs[branch])
    return found[:n]


@kernel
def find_in_window(
    places: NDArray[np.int32],
    arrivals: NDArray[np.int32],
    rows: NDArray[np.int32],
    new: NewRows,
    kept: KeptRows,
    bounds: BoundArrays,
) -> NDArray[np.int64]:
    """Which rows are in the window at their position in the bounds."""
    arrival_times, limits = new.times, new.limits
    times, shift = kept.times, kept.shift
    most, longest, own = bounds.most, bounds.longest, bounds.own
    found = np.empty(len(places), np.int64)
    n = 0
    for i in range(len(places)):
        place, row = places[i], rows[i]
        limit = limits[arrivals[i]]
        age = arrival_times[arrivals[i]] - times[row - shift]
        found[n] = i
        n += limit - most[place] <= row < limit and -own[place] <= age <= longest[place]
    return found[:n]
