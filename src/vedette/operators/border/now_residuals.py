"""Residuals that use now(): the moments at which they may change for a row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.data.moments import NOW
from vedette.language import Residual
from vedette.language.now_uses import CannotFollowError
from vedette.queries.match import Part

Moments = NDArray[np.int64]


@dataclass(frozen=True)
class NowResiduals:
    """The residuals of a part that use now(), by number; and for each query or box its residual and place, or -1."""

    residuals: dict[int, Residual]
    first_query: int
    numbers: NDArray[np.int32]
    members: NDArray[np.int32]

    @classmethod
    def of(cls, part: Part) -> NowResiduals:
        """By query of the part."""
        residuals = {number: each for number, each in enumerate(part.residuals) if _is_followed(each)}
        numbers = np.full(part.n_queries, -1, np.int32)
        if residuals:
            uses = np.isin(part.residual_of, list(residuals))
            numbers[uses] = part.residual_of[uses]
        return cls(residuals, part.first_query, numbers, part.member_of if residuals else numbers)

    def use_now(self, queries: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the residual of each query uses now()."""
        return self.numbers[queries - self.first_query] >= 0

    def at_boxes(self, queries: NDArray[np.int64]) -> NowResiduals | None:
        """By box, given the query of each; None if none uses now()."""
        local = queries - self.first_query
        made = replace(self, first_query=0, numbers=self.numbers[local], members=self.members[local])
        return made if (made.numbers >= 0).any() else None

    def find(
        self, matches: Matches, columns: dict[str, Column], since: Moments, until: Moments, nexts: Moments
    ) -> tuple[NDArray[np.int64], Moments]:
        """The moments of each row in its boxes, after `since` and up to `until`; lowers `nexts` to those after."""
        numbers, rows = self.numbers[matches.positions], matches.rows.astype(np.int64)
        found_rows, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number, residual in self.residuals.items():
            uses, pairs = residual.now_uses, np.flatnonzero(numbers == number)
            assert uses is not None
            at, members = rows[pairs], self.members[matches.positions[pairs]].astype(np.int64)
            moments = since[at]
            own = {name: columns[name].take(at) for name in residual.fields if name != NOW}
            while len(at):
                moments = uses.find_next(residual, own, members, moments)
                goes_on = moments <= until[at]
                np.minimum.at(nexts, at[~goes_on], moments[~goes_on])
                at, members, moments = at[goes_on], members[goes_on], moments[goes_on]
                own = {name: column.take(np.flatnonzero(goes_on)) for name, column in own.items()}
                found_rows.append(at)
                found.append(moments)
        return np.concatenate(found_rows), np.concatenate(found)


def _is_followed(residual: Residual) -> bool:
    """Whether a residual uses now(); one that cannot be followed is of removed queries only."""
    try:
        return residual.now_uses is not None
    except CannotFollowError:
        return False
