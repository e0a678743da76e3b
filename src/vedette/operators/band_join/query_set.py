"""The band query set: band joins over two changing sets of numbers, in one process."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import Ids, check_in_order, item, take_ids
from vedette.errors import QueryError, count, shown
from vedette.native.buffers import grown
from vedette.native.damage import check, check_shape, check_type, check_within
from vedette.operators.band_join.ends import read_ends
from vedette.operators.band_join.history import BandHistory, Bands
from vedette.operators.band_join.index.groups import Groups
from vedette.queries import content
from vedette.queries.attributes import Attributes
from vedette.queries.query_set import RETAINED_VERSIONS
from vedette.queries.set_changes import Changes
from vedette.queries.versioned_set import SavedSet, begin
from vedette.queries.versions import Versions
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor, KnownId, Report, UnknownId

FEW_REMOVED = 1024  # up to this many names of removed queries are always kept


class BandQuerySet(SavedSet):
    """Queries J(low, high): the pairs of a left value r and a right value s with low <= r - s <= high.

    The difference is rounded to a double before it is compared. Ends are inclusive and may be infinite.

    >>> bands = BandQuerySet()
    >>> bands.add("close", -0.5, 0.5)
    >>> join = bands.monitor()
    >>> join.insert(left={"id": ["a"], "value": [10.0]}).num_rows
    0
    >>> join.insert(right={"id": ["b", "c"], "value": [10.2, 11.0]}).to_pylist()
    [{'sign': 1, 'query': 'close', 'left': 'a', 'right': 'b'}]
    """

    kind = "bands"

    def __init__(self) -> None:
        self._ids = Ids()  # an id keeps its position, its name here, after its query is removed
        self._lows = np.empty(0)
        self._highs = np.empty(0)
        self._exists = np.zeros(0, np.bool_)
        self._n_existing = 0
        self._attributes = Attributes()  # metadata, by place; see `_places`
        self._places = np.empty(0, np.int32)  # by name
        self._versions = Versions()
        self._history = BandHistory()
        self._retained_versions = 0  # changes stay known for this many versions
        self._groups: Groups | None = None
        self._waiting: list[NDArray[np.int32]] = []  # names that changed since the groups were last up to date
        self._monitors: weakref.WeakSet[BandMonitor] = weakref.WeakSet()
        self._lock = threading.RLock()  # readers bring the groups up to date, one at a time

    def __len__(self) -> int:
        """The number of queries."""
        return self._n_existing

    def __contains__(self, query_id: object) -> bool:
        try:
            return self._find_existing(query_id) >= 0
        except QueryError:
            return False

    def __repr__(self) -> str:
        return f"BandQuerySet({count(len(self), 'query', 'queries')}, version {self.version})"

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._versions.current

    @property
    def ids(self) -> pa.Array:
        """The ids of the queries."""
        ids = self._ids.to_arrow()
        return ids if len(ids) == len(self) else ids.take(pa.array(self._names()))

    @property
    def nbytes(self) -> int:
        """The memory of the set: its queries, their ids, groups and history."""
        own = self._lows.nbytes + self._highs.nbytes + self._exists.nbytes + self._places.nbytes
        own += self._attributes.nbytes
        return own + self._ids.nbytes + self._versions.nbytes + self._history.nbytes + self.groups().nbytes

    # Changes. Each is made as a whole, under one new version, or raises and changes nothing.

    def add(
        self,
        query_id: str | int,
        low: float | None,
        high: float | None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a query; None means unbounded. Raises QueryError if its ends are invalid or its id already exists.

        `metadata` is a dict of JSON values that answers can carry.
        """
        self.add_many([query_id], [low], [high], metadata=metadata)

    def add_many(self, ids: Any, lows: Any, highs: Any, *, metadata: Any = None) -> None:
        """Add many queries; `lows` and `highs` are arrays, or one number for all, and None means unbounded.

        `metadata` is one dict for all, or a list with one per query.
        """
        read, names = self._read_new(ids)
        settings().check("max_queries", len(self) + len(read))
        new_lows, new_highs = read_ends(lows, highs, len(read), read)
        attributes = Attributes.of_metadata(len(read), metadata, read.tolist())
        if not len(read):
            return
        self._versions.advance([*content.of_ids(read), new_lows.data, new_highs.data, *attributes.content()])
        self._put(read, names, new_lows, new_highs, attributes)

    def replace(
        self,
        query_id: str | int,
        low: float | None,
        high: float | None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace the band of a query. It keeps its metadata, unless other is given."""
        names = np.array([self._must_find(query_id)], np.int32)
        lows, highs = read_ends([low], [high], 1, self._ids.take(names))
        attributes = Attributes.of_metadata(1, metadata, [query_id])
        pieces = [*content.of_ids(self._ids.take(names)), lows.data, highs.data]
        self._versions.advance([*pieces, *attributes.content()])
        if metadata is not None:
            self._set_attributes(names, attributes)
        self._change(names, self._lows[names], self._highs[names], lows, highs)

    def remove(self, query_id: str | int) -> None:
        """Remove a query."""
        if isinstance(query_id, (list, tuple, set)):
            raise QueryError("remove takes one id; use remove_many for several")
        self._remove(np.array([self._must_find(query_id)], np.int32))

    def remove_many(self, ids: Any) -> None:
        """Remove queries. If any id is unknown, none is removed."""
        names = self._find_all(ids)
        if len(names):
            self._remove(names)

    def begin(self, version: int, mark: int) -> None:
        """Let an empty set start at a version of a registry, with its mark; `apply` continues from there."""
        begin(self._versions, version, mark)
        self._history.first = version

    def apply(self, changes: Changes) -> None:
        """Apply the changes of a registry, version by version; versions and marks are those of the registry."""
        lows, highs = read_ends(
            () if changes.lows is None else changes.lows,
            () if changes.highs is None else changes.highs,
            changes.n_added,
        )
        start = int(np.searchsorted(changes.added_versions, self.version, side="right"))
        if start:  # the queries that the set starts with
            if self.version > self._versions.first:
                raise QueryError(f"the set is at version {self.version}; got queries of earlier versions")
            self._put(
                *self._read_new(changes.added_ids[:start]), lows[:start], highs[:start], _attributes(changes, 0, start)
            )
            self._history = BandHistory()
            self._history.first = self.version
        for each in changes.by_version():
            if each.until != self.version + 1:
                raise QueryError(f"the set is at version {self.version}; got changes of version {each.until}")
            removed = self._find_all(each.removed_ids)
            read, _ = self._read_new(each.added_ids, removed)
            self._versions.follow(each.versions, each.marks)
            if len(removed):
                self._remove_names(removed)
            if len(read):
                end = start + len(read)
                own = _attributes(changes, start, end)
                self._put(read, self._ids.find(read), lows[start:end], highs[start:end], own)
                start = end

    def retain(self, versions: int = RETAINED_VERSIONS) -> None:
        """Keep changes known for at least this many versions, for states that are loaded later."""
        self._retained_versions = max(self._retained_versions, versions)

    # Answers.

    def monitor(
        self,
        *,
        report: Report = "pairs",
        known_id: KnownId = "error",
        unknown_id: UnknownId = "log",
        max_state_rows: int | None = None,
        columns: Any = None,
        metadata: Any = None,
        threads: int | None = None,
    ) -> BandMonitor:
        """A monitor of two changing sets of values; docs/operators.md defines its answers.

        It reports "pairs", or only the "queries" that are affected. `known_id` says what happens if an inserted id
        already has a value, `unknown_id` what happens if a deleted id has none. `max_state_rows` bounds the values of
        both sides. `columns` brings columns of both rows of a pair, as `left_...` and `right_...`: a list of names for
        both sides, or a dict with a list per side. `metadata` brings fields of the query's metadata. `threads` limits
        the threads that many values are cut for, by default the setting threads, else all
        cores; the answer is the same for any number.
        """
        from vedette.operators.band_join.monitor import BandMonitor

        monitor = BandMonitor(self, report, max_state_rows, known_id, unknown_id, threads, columns, metadata)
        self._monitors.add(monitor)
        return monitor

    # What a file holds.

    def _to_content(self) -> dict[str, Any]:
        n, groups = len(self._ids), self.groups()
        return {
            "ids": self._ids.to_parts(),
            "bands": [self._lows[:n], self._highs[:n], self._exists[:n]],
            "versions": self._versions.to_parts(),
            "history": self._history.to_parts(),
            "groups": groups.to_parts(),
            "attributes": [self._places[:n], self._attributes.to_parts()],
        }

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> BandQuerySet:
        made = cls()
        made._ids = Ids.from_parts(*saved["ids"])
        made._lows, made._highs, made._exists = saved["bands"]
        made._n_existing = int(np.count_nonzero(made._exists))
        check(saved["versions"][1] == 0, "a band has a version")
        made._versions = Versions.from_parts(*saved["versions"])
        made._history = BandHistory.from_parts(*saved["history"])
        made._groups = Groups.from_parts(saved["groups"])
        n = len(made._ids)
        made._places, made._attributes = np.arange(n, dtype=np.int32), Attributes(n)
        if "attributes" in saved:  # files of earlier versions have none
            made._places, attributes = saved["attributes"]
            made._attributes = Attributes.from_parts(*attributes, is_checked=is_checked)
        if not is_checked:
            made._validate()
        return made

    def _validate(self) -> None:
        """Raise DamageError unless content from a file is safe to join with."""
        self._ids.validate()
        n = len(self._ids)
        self._ids.check_distinct(np.ones(n, np.bool_))
        self._versions.validate(0)
        for array, hint in ((self._lows, np.float64), (self._highs, np.float64), (self._exists, np.bool_)):
            check_type(array, NDArray[hint], "the ends of bands")  # type: ignore[valid-type]
            check_shape(array, (n,), "the ends of bands")
        check((self._lows[self._exists] <= self._highs[self._exists]).all(), "a band ends before it begins")
        check_type(self._places, NDArray[np.int32], "the metadata of bands")
        check_shape(self._places, (n,), "the metadata of bands")
        check_within(self._places, 0, len(self._attributes) - 1, "the metadata of bands")
        self._history.validate(n, self.version)
        assert self._groups is not None
        self._groups.validate(self._lows, self._highs, self._exists)

    # For monitors.

    def groups(self) -> Groups:
        """The bands, by name, in stabbing groups."""
        with self._lock:
            if self._groups is None:
                self._groups = Groups()
                self._waiting = [self._names()]
            if self._waiting:
                names = np.unique(np.concatenate(self._waiting)) if len(self._waiting) > 1 else self._waiting[0]
                existing = names[self._exists[names]]
                self._groups.change(self._groups.among(names), existing, self._lows[existing], self._highs[existing])
                self._waiting = []
            return self._groups

    def query_ids(self) -> Ids:
        """The ids by name, including those of queries that were removed lately."""
        return self._ids

    def metadata_at(self, names: NDArray[np.int32]) -> list[dict[str, Any]]:
        """The metadata of queries, given by name; of a removed query, the last that it had."""
        return self._attributes.metadata_at(self._places[names])

    def without_metadata(self) -> BandQuerySet:
        """A set of the same queries without their metadata, to be sent elsewhere. It must not be changed."""
        if not self._attributes.has_metadata:
            return self
        made = copy.copy(self)
        made._attributes = self._attributes.without_metadata()
        return made

    def changes_since(self, version: int) -> tuple[Bands, Bands]:
        """The bands that changed after a version: their names and ends at that version, and their ends now."""
        names, lows, highs = self._history.since(version)
        exists = self._exists[names]
        now = np.where(exists, self._lows[names], np.nan), np.where(exists, self._highs[names], np.nan)
        return (names, lows, highs), (names, *now)

    @property
    def oldest_version(self) -> int:
        """Changes after this version are known."""
        return self._history.first

    def history_mark(self, version: int) -> int | None:
        """A checksum of all changes up to a version, by which a saved state recognises its set."""
        return self._versions.mark(version)

    def band(self, query_id: str | int) -> tuple[float, float]:
        """The ends of a query."""
        name = self._must_find(query_id)
        return float(self._lows[name]), float(self._highs[name])

    # Inside.

    def _remove(self, names: NDArray[np.int32]) -> None:
        self._versions.advance(content.of_ids(self._ids.take(names)))
        self._remove_names(names)

    def _put(
        self,
        read: Any,
        names: NDArray[np.int32],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
        attributes: Attributes,
    ) -> None:
        """Add queries under the current version; `names` are negative where an id is new."""
        unknown = np.flatnonzero(names < 0)
        if len(unknown):
            n_before = len(self._ids)
            self._ids.append(read if len(unknown) == len(names) else take_ids(read, unknown))
            names[unknown] = np.arange(n_before, len(self._ids), dtype=np.int32)
            self._lows = grown(self._lows, n_before, len(self._ids))
            self._highs = grown(self._highs, n_before, len(self._ids))
            self._exists = grown(self._exists, n_before, len(self._ids))
            self._places = grown(self._places, n_before, len(self._ids))
        self._set_attributes(names, attributes)
        none = np.full(len(names), np.nan)
        self._change(names, none, none, lows, highs)

    def _set_attributes(self, names: NDArray[np.int32], attributes: Attributes) -> None:
        n = len(self._attributes)
        self._attributes.append(attributes)
        self._places[names] = np.arange(n, n + len(names), dtype=np.int32)
        if n > 2 * len(self._ids) + FEW_REMOVED:  # most are of earlier forms of queries
            self._attributes = self._attributes.take(self._places[: len(self._ids)])
            self._places = np.arange(len(self._ids), dtype=np.int32)

    def _remove_names(self, names: NDArray[np.int32]) -> None:
        none = np.full(len(names), np.nan)
        self._change(names, self._lows[names], self._highs[names], none, none)

    def _change(
        self,
        names: NDArray[np.int32],
        old_lows: NDArray[np.float64],
        old_highs: NDArray[np.float64],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
    ) -> None:
        """Change bands from old to new under the current version; NaN where a band does not exist."""
        self._history.note(self.version, names, old_lows, old_highs)
        self._n_existing += int(np.count_nonzero(lows == lows)) - int(np.count_nonzero(old_lows == old_lows))
        self._lows[names], self._highs[names] = lows, highs
        self._exists[names] = lows == lows
        if self._groups is not None:
            self._waiting.append(names)
            if sum(map(len, self._waiting)) > FEW_REMOVED + len(self):  # nobody uses the groups
                self._groups, self._waiting = None, []
        needed = (each.version for each in self._monitors if each.report == "pairs")
        oldest = self.version - self._retained_versions
        self._history.forget(len(self), min(oldest, min(needed, default=self.version)))
        if len(self._ids) > 2 * (len(self) + len(self._history)) + FEW_REMOVED:
            self._compact()

    def _compact(self) -> None:
        """Drop the ids of removed queries that no known change refers to."""
        is_kept = self._exists[: len(self._ids)].copy()
        is_kept[self._history.names] = True
        kept = np.flatnonzero(is_kept).astype(np.int32)
        ids = Ids()
        ids.kind = self._ids.kind
        ids.append(self._ids.take(kept))
        new_names = np.full(len(self._ids), -1, np.int32)
        new_names[kept] = np.arange(len(kept), dtype=np.int32)
        self._history.rename(new_names)
        self._ids, self._groups, self._waiting = ids, None, []
        self._lows, self._highs, self._exists = self._lows[kept], self._highs[kept], self._exists[kept]
        self._attributes = self._attributes.take(self._places[kept])
        self._places = np.arange(len(kept), dtype=np.int32)

    def _names(self) -> NDArray[np.int32]:
        """The names of the queries."""
        return np.flatnonzero(self._exists[: len(self._ids)]).astype(np.int32)

    def _read_new(self, ids: Any, removed: Any = ()) -> tuple[Any, NDArray[np.int32]]:
        """Ids of new queries, which may only exist if they are in `removed`, and their names, negative where new."""
        check_in_order(ids)
        read = self._ids.read(ids)
        names = self._ids.find(read)
        known = names[names >= 0]
        standing = known[self._exists[known]]
        if len(removed):
            standing = standing[~np.isin(standing, removed)]
        if len(standing):
            (twice,) = self._ids.at(standing[:1])
            raise QueryError(f"id {shown(twice)} already exists; use replace to change it, or another id")
        return read, names

    def _find_all(self, ids: Any) -> NDArray[np.int32]:
        """The names of ids, all of which must exist."""
        read = self._ids.read(ids)
        names = self._ids.find(read)
        unknown = np.flatnonzero(names < 0)
        if not len(unknown):
            unknown = np.flatnonzero(~self._exists[names])
        if len(unknown):
            raise QueryError(f"no query {shown(item(read, int(unknown[0])))} in this set")
        return names

    def _find_existing(self, query_id: object) -> int:
        name = int(self._ids.find(self._ids.read([query_id]))[0])
        return name if name >= 0 and self._exists[name] else -1

    def _must_find(self, query_id: object) -> int:
        name = self._find_existing(query_id)
        if name < 0:
            raise QueryError(f"no query {shown(query_id)} in this set")
        return name


def _attributes(changes: Changes, start: int, end: int) -> Attributes:
    """The metadata of added queries."""
    return Attributes.of_columns(end - start, {}, None if changes.metadata is None else changes.metadata[start:end])
