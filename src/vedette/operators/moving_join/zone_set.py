"""Static zones as standing queries: a moving join reports which moving objects intersect which zones, and when."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.durations import Interval
from vedette.data.ids import Ids, take_ids
from vedette.errors import QueryError, count, shown
from vedette.native.buffers import grown
from vedette.native.damage import check, check_shape, check_type
from vedette.operators.moving_join.late_rows import Late
from vedette.operators.moving_join.motion_rows import FARTHEST
from vedette.operators.moving_join.zone_removals import ZoneRemovals
from vedette.operators.moving_join.zones import read_zones, sides_of
from vedette.queries import content
from vedette.queries.attributes import Attributes
from vedette.queries.revisions import Revisions
from vedette.queries.set_changes import Changes
from vedette.queries.versioned_set import VersionedSet
from vedette.queries.versions import NOT_REMOVED, Versions

if TYPE_CHECKING:
    from vedette.operators.moving_join.zone_monitor import ZoneMonitor

FEW_REMOVED = 1024  # this many removed zones are always kept


@dataclass(frozen=True)
class ZoneChanges:
    """Zones that were added or replaced, one row of sides each, and the ids of removed zones. No id is in both."""

    ids: NDArray[np.int64] | pa.LargeStringArray
    sides: NDArray[np.float64]
    removed: NDArray[np.int64] | pa.LargeStringArray
    positions: NDArray[np.int64]  # of the zones of `ids`


class ZoneSet(VersionedSet):
    """Rectangles, or boxes in three dimensions, that do not move. Sides are inclusive.

    >>> zones = ZoneSet()
    >>> zones.add("harbour", x_low=10, x_high=14, y_low=-1, y_high=1)
    >>> watch = zones.monitor(max_update_interval=60)
    >>> watch.update({"id": ["Ada"], "x": [0.0], "y": [0.0], "vx": [1.0], "vy": [0.0]}, time=0).to_pylist()
    [{'sign': 1, 'a': 'Ada', 'b': 'harbour', 'start': 10.0, 'end': 14.0}]
    >>> zones.remove("harbour")
    >>> watch.update(time=5).to_pylist()
    [{'sign': -1, 'a': 'Ada', 'b': 'harbour', 'start': 10.0, 'end': 14.0}]
    """

    kind = "zones"

    def __init__(self, dimensions: int = 2) -> None:
        if isinstance(dimensions, bool) or dimensions not in (2, 3):
            raise QueryError(f"dimensions must be 2 or 3; got {shown(dimensions)}")
        self.dimensions = int(dimensions)
        self._ids = Ids()
        self._versions = Versions()
        self._removals = ZoneRemovals()
        self._attributes = Attributes()  # by position: metadata
        self._flat = np.empty(0)  # the sides of one zone after the other, with room for more
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"ZoneSet({count(len(self), 'zone')}, {self.dimensions} dimensions, version {self.version})"

    @property
    def _sides(self) -> NDArray[np.float64]:
        """By position, the sides in the order of `sides_of`."""
        return self._flat[: len(self._ids) * 2 * self.dimensions].reshape(len(self._ids), 2 * self.dimensions)

    @property
    def nbytes(self) -> int:
        """The memory of the set: sides, ids and versions."""
        own = self._flat.nbytes + self._ids.nbytes + self._versions.nbytes + self._removals.nbytes
        return own + self._attributes.nbytes

    # Changes. A change happens as a whole under one new version, or raises and changes nothing.

    def add(self, zone_id: str | int, *, metadata: Mapping[str, Any] | None = None, **sides: float) -> None:
        """Add a zone: `zones.add("harbour", x_low=10, x_high=20, y_low=0, y_high=5)`.

        `metadata` is a dict of JSON values that answers can carry.
        """
        self.add_many([zone_id], metadata=metadata, **sides)

    def add_many(self, ids: Any, *, metadata: Any = None, **sides: Any) -> None:
        """Add many zones. Each side is an array with one number per id, or one number for all.

        `metadata` is one dict for all, or a list with one per zone.
        """
        read = self._read_new_ids(ids)
        zones = read_zones(sides, self.dimensions, len(read), read)
        attributes = Attributes.of_metadata(len(read), metadata, read.tolist())
        if len(read):
            self._versions.advance([*content.of_ids(read), zones.data, *attributes.content()])
            self._append(read, zones, attributes)

    def replace(self, zone_id: str | int, *, metadata: Mapping[str, Any] | None = None, **sides: float) -> None:
        """Give a zone other sides. It keeps its metadata, unless other is given."""
        positions = np.array([self._must_find(zone_id)], np.int32)
        read = self._ids.take(positions)
        zones = read_zones(sides, self.dimensions, 1, read)
        if metadata is None:
            (metadata,) = self._attributes.metadata_at(positions)
        attributes = Attributes.of_metadata(1, metadata, [zone_id])
        self._versions.advance([*content.of_ids(read), zones.data, *attributes.content()])
        with self._lock:
            self._note_removed(positions)
            self._append(read, zones, attributes)

    def begin(self, version: int, mark: int) -> None:
        super().begin(version, mark)
        self._removals = ZoneRemovals(version)

    def apply(self, changes: Changes) -> None:
        """Apply the changes that a registry reports; versions and marks are those of the registry."""
        revisions = Revisions.read(changes, self._ids, self._versions)
        stays = np.flatnonzero(revisions.ends == NOT_REMOVED)
        sides = {name: values[stays] for name, values in (changes.sides or {}).items()}
        read = take_ids(revisions.ids, stays)
        zones = read_zones(sides, self.dimensions, len(stays), read) if len(stays) else self._sides[:0]
        with self._lock:
            self._versions.follow(changes.versions, changes.marks)
            if len(revisions.ended):
                self._note_removed(revisions.ended, revisions.ended_versions)
            if len(stays):
                metadata = None if changes.metadata is None else [changes.metadata[each] for each in stays]
                attributes = Attributes.of_columns(len(stays), {}, metadata)
                self._append(read, zones, attributes, changes.added_versions[stays])
            self._forget_removed()

    # Answers.

    def monitor(
        self,
        max_update_interval: Interval,
        *,
        expire_overdue: bool = False,
        late: Late = "apply",
        columns: Any = None,
        metadata: Any = None,
    ) -> ZoneMonitor:
        """A moving join of objects with these zones; docs/operators.md explains its options and answers.

        `columns` brings columns of the objects' rows, as `a_...`, and `metadata` fields of the zones' metadata.
        """
        from vedette.operators.moving_join.zone_monitor import ZoneMonitor

        carried = {"columns": columns, "metadata": metadata}
        return ZoneMonitor(self, max_update_interval, expire_overdue=expire_overdue, late=late, **carried)

    def explain(self) -> str:
        """What the set holds, in words."""
        held = f"{count(len(self), 'zone')} in {self.dimensions} dimensions; {self.nbytes / 1e6:.1f} MB"
        return f"{held}\n  each shard indexes its zones in a grid; an object reads the cells that it sweeps"

    # For monitors.

    def read_active(self) -> ZoneChanges:
        """All zones, as if they were new."""
        with self._lock:
            positions = np.flatnonzero(~self._versions.is_removed)
            ids = self._ids.take(positions)
            return ZoneChanges(ids, self._sides[positions], ids[:0], positions)

    def changes_since(self, version: int) -> ZoneChanges | None:
        """What changed after a version; None if that is not known, because removed zones were dropped since then."""
        with self._lock:
            if version < self._removals.first:
                return None
            n_before = int(self._versions.count_at(np.array([version]))[0])
            put = n_before + np.flatnonzero(~self._versions.is_removed[n_before:])
            removed = self._removals.since(version)
            removed_ids = self._ids.take(removed[removed < n_before])
            is_removed = self._versions.is_removed[self._ids.find(removed_ids)]  # those added again are not
            removed_ids = take_ids(removed_ids, np.flatnonzero(is_removed))
            return ZoneChanges(self._ids.take(put), self._sides[put], removed_ids, put)

    def query_ids(self) -> Ids:
        return self._ids

    # Files.

    def _to_content(self) -> dict[str, Any]:
        with self._lock:
            return {
                "dimensions": self.dimensions,
                "ids": self._ids.to_parts(),
                "versions": self._versions.to_parts(),
                "sides": self._sides,
                "attributes": self._attributes.to_parts(),
                "removals_since": self._removals.first,
            }

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> ZoneSet:
        check(type(saved["dimensions"]) is int and saved["dimensions"] in (2, 3), "zones have no such dimensions")
        made = cls(saved["dimensions"])
        made._read_ids(saved, is_checked=is_checked)
        made._read_attributes(saved, is_checked=is_checked)
        if not is_checked:
            check_type(saved["sides"], NDArray[np.float64], "the sides of zones")
            check_shape(saved["sides"], (len(made._ids), len(sides_of(made.dimensions))), "the sides of zones")
        made._flat = saved["sides"].reshape(-1)
        first = saved["removals_since"]
        check(type(first) is int and 0 <= first <= made.version, "the first version of removals is out of range")
        made._removals = ZoneRemovals.from_versions(made._versions, first)
        if not is_checked:
            made._validate()
        return made

    def _validate(self) -> None:
        """Raise DamageError unless the zones of a file can be joined."""
        check((np.abs(self._sides) <= FARTHEST).all(), "a side of a zone is not finite")
        check((self._sides[:, 0::2] <= self._sides[:, 1::2]).all(), "a low side is above its high side")

    # Inside.

    def _append(
        self,
        read: Any,
        zones: NDArray[np.float64],
        attributes: Attributes,
        versions: NDArray[np.int64] | None = None,
    ) -> None:
        """Add zones under the current version, or under one version each."""
        with self._lock:
            used = self._sides.size
            self._flat = grown(self._flat, used, used + zones.size)
            self._flat[used : used + zones.size] = zones.reshape(-1)
            self._ids.append(read)
            self._attributes.append(attributes)
            if versions is None:
                self._versions.add(len(read))
            else:
                self._versions.add_at(versions)
            self._forget_removed()

    def _remove(self, positions: NDArray[np.int32]) -> None:
        self._versions.advance(content.of_ids(self._ids.take(positions)))
        with self._lock:
            self._note_removed(positions)
            self._forget_removed()

    def _note_removed(self, positions: NDArray[np.int32], versions: NDArray[np.int64] | None = None) -> None:
        """Remove zones at the current version, or at one version each."""
        self._versions.remove(positions, versions)
        self._removals.add(positions, self.version if versions is None else versions)

    def _forget_removed(self) -> None:
        """Drop removed zones once they are the majority."""
        if self._versions.n_removed > max(self._versions.n_active, FEW_REMOVED):
            self._flat = self._sides[~self._versions.is_removed].reshape(-1)
            self._attributes = self._attributes.take(np.flatnonzero(~self._versions.is_removed))
            self._ids, self._versions = self._active_ids(), self._versions.without_removed()
            self._removals = ZoneRemovals(self.version)
