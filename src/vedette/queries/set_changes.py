"""The changes of a named set between two versions, as columns. A registry returns them, a compiled set applies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.language import CompiledTexts

QueryId = str | int


@dataclass(frozen=True)
class Changes:
    """The changes after one version up to another, inclusive, oldest first.

    A replaced query is removed and added under the same version; removals come first. A query that was added and
    removed in between is included, so that every version can be rebuilt. Which of `texts`, `windows`, `lows`, `highs`
    and `sides` are present depends on the kind of the set.

    >>> changes = Changes.of([(1, 11, [], [("a", "x > 1"), ("b", "x > 2")]), (2, 22, ["a"], [("a", "x > 3")])])
    >>> changes.until, changes.n_added, changes.n_removed
    (2, 3, 1)
    >>> [(each.until, each.removed_ids, each.added_ids, each.texts) for each in changes.by_version()]
    [(1, [], ['a', 'b'], ['x > 1', 'x > 2']), (2, ['a'], ['a'], ['x > 3'])]
    """

    versions: NDArray[np.int64]  # all, also those that changed no query
    marks: NDArray[np.int64]  # by version: a random number that identifies the history of a saved state
    removed_ids: list[QueryId] = field(default_factory=list)
    removed_versions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # ascending
    added_ids: list[QueryId] = field(default_factory=list)
    added_versions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # ascending
    texts: list[str] | None = None  # of the added ones, in kinds whose queries are texts
    windows: list[dict[str, Any]] | None = None  # {"within": ..., "rows": ...} for `add`, in window joins
    lows: NDArray[np.float64] | None = None  # the ends, in band joins
    highs: NDArray[np.float64] | None = None
    sides: dict[str, NDArray[np.float64]] | None = None  # of zones, in moving joins: x_low, x_high, y_low, ...
    compiled: CompiledTexts | None = None  # `texts`, if another process has compiled them
    options: list[str | None] | None = None  # of the added ones, as JSON; None if they have none
    metadata: list[str | None] | None = None

    @classmethod
    def of(cls, changes: Sequence[tuple[int, int, Sequence[QueryId], Sequence[tuple[Any, ...]]]]) -> Changes:
        """Changes from a list: version, mark, ids removed, and queries added.

        A query is (id, text), (id, text, window) with a dict as window, or (id, low, high).
        """
        removed = [(query_id, version) for version, _, ids, _ in changes for query_id in ids]
        added = [(query, version) for version, _, _, queries in changes for query in queries]
        columns: dict[str, Any] = {}
        if added:
            *_, last = added[0][0]
            if isinstance(last, dict):
                columns = {"texts": [query[1] for query, _ in added], "windows": [query[2] for query, _ in added]}
            elif isinstance(last, str):
                columns = {"texts": [query[1] for query, _ in added]}
            else:
                columns = {
                    "lows": np.array([query[1] for query, _ in added], np.float64),
                    "highs": np.array([query[2] for query, _ in added], np.float64),
                }
        return cls(
            np.array([version for version, *_ in changes], np.int64),
            np.array([mark for _, mark, *_ in changes], np.int64),
            [query_id for query_id, _ in removed],
            np.array([version for _, version in removed], np.int64),
            [query[0] for query, _ in added],
            np.array([version for _, version in added], np.int64),
            **columns,
        )

    def __len__(self) -> int:
        """The number of versions."""
        return len(self.versions)

    @property
    def until(self) -> int | None:
        """The last version, or None."""
        return int(self.versions[-1]) if len(self.versions) else None

    @property
    def n_added(self) -> int:
        return len(self.added_ids)

    @property
    def n_removed(self) -> int:
        return len(self.removed_ids)

    def by_version(self) -> Iterator[Changes]:
        """The same, one version at a time."""
        removed = _cut(self.removed_versions, self.versions)
        added = _cut(self.added_versions, self.versions)
        for place in range(len(self.versions)):
            yield self._take(
                slice(place, place + 1), slice(*removed[place : place + 2]), slice(*added[place : place + 2])
            )

    def between(self, since: int, until: int) -> Changes:
        """The changes after version `since`, up to and including `until`.

        >>> changes = Changes.of([(7, 11, [], [("a", "x > 1")]), (8, 22, ["a"], [("b", "x > 3")]), (9, 33, ["b"], [])])
        >>> some = changes.between(7, 8)
        >>> some.versions.tolist(), some.removed_ids, some.texts
        ([8], ['a'], ['x > 3'])
        """
        ends = np.array([since, until])
        every = (self.versions, self.removed_versions, self.added_versions)
        return self._take(*(slice(*np.searchsorted(each, ends, side="right").tolist()) for each in every))

    def _take(self, which: slice, removed: slice, added: slice) -> Changes:
        return Changes(
            self.versions[which],
            self.marks[which],
            self.removed_ids[removed],
            self.removed_versions[removed],
            self.added_ids[added],
            self.added_versions[added],
            None if self.texts is None else self.texts[added],
            None if self.windows is None else self.windows[added],
            None if self.lows is None else self.lows[added],
            None if self.highs is None else self.highs[added],
            None if self.sides is None else {name: values[added] for name, values in self.sides.items()},
            None,
            None if self.options is None else self.options[added],
            None if self.metadata is None else self.metadata[added],
        )

    @classmethod
    def concat(cls, many: Sequence[Changes]) -> Changes:
        """Changes that follow each other, as one."""

        def join(name: str) -> Any:
            values = [getattr(each, name) for each in many]
            if values[0] is None:
                return None
            return np.concatenate(values) if isinstance(values[0], np.ndarray) else list(chain.from_iterable(values))

        names = ("versions", "marks", "removed_ids", "removed_versions", "added_ids", "added_versions")
        columns = {name: join(name) for name in (*names, "texts", "windows", "lows", "highs")}
        for name in ("options", "metadata"):
            if any(getattr(each, name) is not None for each in many):
                texts = (getattr(each, name) or [None] * each.n_added for each in many)
                columns[name] = list(chain.from_iterable(texts))
        sides = [each.sides for each in many if each.sides is not None and each.n_added]
        joined = {name: np.concatenate([each[name] for each in sides]) for name in sides[0]} if sides else many[0].sides
        return cls(**columns, sides=joined)


def _cut(changed: NDArray[np.int64], versions: NDArray[np.int64]) -> list[int]:
    """Where the changes of each version begin, and where the last ones end."""
    starts: list[int] = np.searchsorted(changed, versions, side="left").tolist()
    return [*starts, len(changed)]
