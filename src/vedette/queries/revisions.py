"""Revisions of queries: which additions and removals of a registry's changes belong together.

An id may be added and removed several times between two versions. Each time is a revision, with its own position in
the compiled set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import INTEGER, STRING, Ids, item
from vedette.errors import QueryError
from vedette.queries.set_changes import Changes, QueryId
from vedette.queries.versions import NOT_REMOVED, Versions

_REMOVED, _ADDED = 0, 1  # under one version removals come first


@dataclass(frozen=True)
class Revisions:
    """The effect of changes on a set: the queries that they add, in order, and those that they remove."""

    ids: NDArray[np.int64] | pa.LargeStringArray  # of the added ones, in the form for `Ids`
    ends: NDArray[np.int64]  # by added query: the version that removed it, or NOT_REMOVED
    ended: NDArray[np.int32]  # positions of queries that were in the set before, and are removed
    ended_versions: NDArray[np.int64]

    @classmethod
    def read(cls, changes: Changes, ids: Ids, versions: Versions) -> Revisions:
        """Raise QueryError unless the changes follow the versions of a set with these ids."""
        _check_versions(changes, versions)
        removed, added = _to_array(changes.removed_ids, ids), _to_array(changes.added_ids, ids)
        codes = _codes(removed, added)
        n = len(removed)
        kinds = np.repeat(np.array([_REMOVED, _ADDED], np.int8), [n, len(added)])
        when = np.concatenate([changes.removed_versions, changes.added_versions])
        order = np.lexsort((kinds, when, codes))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = codes[order[1:]] != codes[order[:-1]]
        follows_same = np.zeros(len(order), np.bool_)
        follows_same[1:] = ~is_first[1:] & (kinds[order[1:]] == kinds[order[:-1]])
        if follows_same.any():
            place = int(order[np.flatnonzero(follows_same)[0]])
            raise _misfit(removed if place < n else added, place if place < n else place - n, is_added=place >= n)
        firsts = order[is_first]
        _check_firsts(firsts[kinds[firsts] == _ADDED] - n, added, ids, versions, active=False)
        ends_old = np.sort(firsts[kinds[firsts] == _REMOVED])
        ended = _check_firsts(ends_old, removed, ids, versions, active=True)
        ends = np.full(len(added), NOT_REMOVED, np.int64)
        later = np.flatnonzero(~is_first & (kinds[order] == _REMOVED))
        ends[order[later - 1] - n] = when[order[later]]
        return cls(added, ends, ended, changes.removed_versions[ends_old])


def _check_versions(changes: Changes, versions: Versions) -> None:
    """Raise unless the versions follow those of the set. Queries from before its first version may have any."""
    expected = versions.current + 1 + np.arange(len(changes))
    if not np.array_equal(changes.versions, expected):
        raise QueryError(
            f"the set is at version {versions.current}, so changes must start at version {versions.current + 1} "
            f"without gaps; got {_shown(changes.versions)}"
        )
    oldest = versions.oldest_next
    last = expected[-1] if len(expected) else versions.current
    for when in (changes.removed_versions, changes.added_versions):
        if len(when) and (when[0] < oldest or when[-1] > last or (np.diff(when) < 0).any()):
            raise QueryError(
                f"the queries of changes must have versions {oldest} to {last}, in order; got {_shown(when)}"
            )


def _shown(versions: NDArray[np.int64]) -> str:
    if not len(versions):
        return "no version"
    return f"versions {versions[0]} to {versions[-1]}" if len(versions) > 1 else f"version {versions[0]}"


def _to_array(ids: Sequence[QueryId], known: Ids) -> NDArray[np.int64] | pa.LargeStringArray:
    kind = known.kind if not len(ids) else STRING if isinstance(ids[0], str) else INTEGER
    if known.kind not in (None, kind):
        raise QueryError(f"the ids of this set are {known.kind}s; got the {kind} {ids[0]!r}")
    return np.array(ids, np.int64) if kind == INTEGER else pa.array(ids, pa.large_string())


def _codes(removed: Any, added: Any) -> NDArray[np.int64]:
    """A number for each distinct id."""
    if not len(removed) and isinstance(added, np.ndarray):
        removed = added[:0]
    if isinstance(removed, np.ndarray) and (isinstance(added, np.ndarray) or not len(added)):
        both = np.concatenate([removed, np.asarray(added, np.int64)])
        return np.unique(both, return_inverse=True)[1].astype(np.int64)
    return pa.concat_arrays([removed, added]).dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _check_firsts(
    places: NDArray[np.int64], ids: Any, known: Ids, versions: Versions, *, active: bool
) -> NDArray[np.int32]:
    """The positions of some ids. All of them must be active in the set, or none of them."""
    taken = ids[places] if isinstance(ids, np.ndarray) else ids.take(pa.array(places))
    positions = known.find(taken)
    is_active = positions >= 0
    is_active[is_active] = ~versions.is_removed[positions[is_active]]
    wrong = np.flatnonzero(is_active != active)
    if len(wrong):
        raise _misfit(ids, int(places[wrong[0]]), is_added=not active)
    return positions


def _misfit(ids: Any, place: int, *, is_added: bool) -> QueryError:
    what = "added, but it already exists" if is_added else "removed, but it does not exist"
    return QueryError(f"the changes do not continue this set: query {item(ids, place)!r} is {what}")
