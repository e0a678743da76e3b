"""The moving bounds of all parts of a set, as a monitor follows them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vedette.data.columns import Column
from vedette.data.moments import NEVER
from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language.now_uses import why_not_followed
from vedette.operators.border.moving_bounds import Moments, MovingBounds, Passing, join_passing
from vedette.queries.match import Part
from vedette.queries.parts import Parts
from vedette.queries.set_view import SetView


def check_now(view: SetView, time: str, time_type: str) -> None:
    """Raise QueryError if a query uses now() in a way that border monitoring cannot follow."""
    if not view.parts.moments:
        return
    if time_type not in ("", "timestamp"):
        raise QueryError(
            f"in border monitoring, now() is the time of the rows, which must be a timestamp; {time!r} is {time_type}; "
            f"use a timestamp column as time, or compare the fields with constants"
        )
    for part in view.parts.compiled:
        for residual in part.residuals:
            error = why_not_followed(residual)
            if error is not None and not view.versions.is_removed[residual.queries].all():
                active = residual.queries[~view.versions.is_removed[residual.queries]]
                raise error.in_query(view.ids.at(active[:1].astype(np.int32))[0])


class MovingQueries:
    """Keeps the moving bounds of parts as long as the parts exist."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[int, tuple[Part, MovingBounds | None]] = {}
        self._is_wide = False

    @property
    def nbytes(self) -> int:
        return sum(bounds.nbytes for _, bounds in self._known.values() if bounds is not None)

    def of(self, parts: Parts, widen: Callable[[Part], Part] | None) -> Following:
        """The moving bounds of these parts, which `widen` may replace by wider ones."""
        known, self._known = (self._known if self._is_wide == (widen is not None) else {}), {}
        self._is_wide = widen is not None
        for part in parts.compiled:
            kept = known.get(id(part))
            if kept is None or kept[0] is not part:
                kept = part, MovingBounds.of(part if widen is None else widen(part), self._schema)
            self._known[id(part)] = kept
        return Following([bounds for _, bounds in self._known.values() if bounds is not None])


class Following:
    """The moving bounds of one view of a set."""

    def __init__(self, bounds: list[MovingBounds]) -> None:
        self._bounds = bounds

    def find_next(self, columns: dict[str, Column], since: Moments) -> Moments:
        """By row: a moment after `since`, before which nothing changes."""
        nexts = np.full(len(since), NEVER, np.int64)
        for bounds in self._bounds:
            np.minimum(nexts, bounds.find_next(columns, since), out=nexts)
        return nexts

    def find(self, columns: dict[str, Column], since: Moments, until: Moments) -> Passing:
        """The moments after `since`, up to and including `until`, at which something may change."""
        return join_passing([bounds.find(columns, since, until) for bounds in self._bounds], len(since))
