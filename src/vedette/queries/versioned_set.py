"""The common part of all query sets: files, ids and versions."""

from __future__ import annotations

import copy
import os
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.container import refusing_damage
from vedette.data.ids import Ids, check_in_order, item
from vedette.errors import QueryError, SnapshotError, shortened
from vedette.native.damage import check
from vedette.queries import snapshot
from vedette.queries.attributes import Attributes
from vedette.queries.versions import Versions
from vedette.settings import settings


class SavedSet:
    """A set that can be written to a file or to bytes, and pickled."""

    kind: ClassVar[str]  # the name of the kind of set in files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled set to one file."""
        snapshot.write(self._to_content() | {"kind": self.kind}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a saved set. It is mapped into memory, so processes on a host share its pages."""
        saved = snapshot.read(path)
        made = cls._read_content(saved.content, saved.name, is_checked=saved.is_checked)
        saved.note_checked()
        return made

    def to_bytes(self) -> bytes:
        """The compiled set as `save` writes it."""
        return snapshot.to_bytes(self._to_content() | {"kind": self.kind})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        return cls._read_content(snapshot.from_bytes(data), "the saved query set", is_checked=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def _read_content(cls, saved: dict[str, Any], name: str, *, is_checked: bool) -> Self:
        kind = snapshot.kind_of(saved)
        if kind != cls.kind:
            raise SnapshotError(f"the saved content is: {shortened(str(kind), 80)}; {cls.__name__} loads: {cls.kind}")
        with refusing_damage(name, "save the set again"):
            return cls._from_content(saved, is_checked=is_checked)

    def _to_content(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> Self:
        """The set from the content of a file. It is validated before a kernel sees it, unless `is_checked`."""
        raise NotImplementedError


def begin(versions: Versions, version: int, mark: int) -> None:
    """Raise QueryError unless the set is new."""
    if versions.current or len(versions):
        raise QueryError(f"only a new set can start at another version; this one is at {versions.current}")
    versions.begin(version, mark)


class VersionedSet(SavedSet):
    """Queries by position, each with an id, active from one version to another."""

    _ids: Ids
    _versions: Versions
    _attributes: Attributes

    def __len__(self) -> int:
        """The number of active queries."""
        return self._versions.n_active

    def __contains__(self, query_id: object) -> bool:
        try:
            return self._find_active(query_id) >= 0
        except QueryError:
            return False

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._versions.current

    @property
    def ids(self) -> pa.Array:
        """The id at each position. Removed queries keep their position until the set is compacted."""
        return self._ids.to_arrow()

    def remove(self, query_id: str | int) -> None:
        """Remove a query."""
        if isinstance(query_id, (list, tuple, set)):
            raise QueryError("remove takes one id; use remove_many for several")
        self._remove(np.array([self._must_find(query_id)], np.int32))

    def remove_many(self, ids: Any) -> None:
        """Remove many queries at once. If any id is unknown, none is removed."""
        read = self._ids.read(ids)
        positions = self._ids.find(read)
        unknown = np.flatnonzero(positions < 0)
        if not len(unknown):
            unknown = np.flatnonzero(self._versions.is_removed[positions])
        if len(unknown):
            raise QueryError(f"no query {item(read, int(unknown[0]))!r} in this set")
        if len(positions):
            self._remove(positions)

    def begin(self, version: int, mark: int) -> None:
        """Start an empty set at a version of a registry with this mark. `apply` continues from there."""
        begin(self._versions, version, mark)

    def history_mark(self, version: int) -> int | None:
        """A checksum of all changes up to a version. Saved states are compared with it."""
        return self._versions.mark(version)

    def _read_ids(self, saved: dict[str, Any], *, is_checked: bool) -> None:
        """Read the ids and versions of a file."""
        self._ids = Ids.from_parts(*saved["ids"])
        if not is_checked:
            self._ids.validate()
        check(saved["versions"][1] == len(self._ids), "the numbers of versions and ids differ")
        self._versions = Versions.from_parts(*saved["versions"])
        if not is_checked:
            self._versions.validate(len(self._ids))
            self._ids.check_distinct(~self._versions.is_removed)

    # Metadata, in sets that have it by position.

    def metadata_at(self, positions: NDArray[Any]) -> list[dict[str, Any]]:
        """The metadata of some queries."""
        return self._attributes.metadata_at(positions)

    def without_metadata(self) -> Self:
        """A set of the same queries without their metadata, to be sent elsewhere. It must not be changed."""
        if not self._attributes.has_metadata:
            return self
        made = copy.copy(self)
        made._attributes = self._attributes.without_metadata()
        return made

    def _read_attributes(self, saved: dict[str, Any], *, is_checked: bool) -> None:
        """Read the attributes of a file. Files of earlier versions have none."""
        self._attributes = Attributes(len(self._ids))
        if "attributes" in saved:
            self._attributes = Attributes.from_parts(*saved["attributes"], is_checked=is_checked)
            check(len(self._attributes) == len(self._ids), "the numbers of attributes and ids differ")

    def _remove(self, positions: NDArray[np.int32]) -> None:
        raise NotImplementedError

    def _find_active(self, query_id: object) -> int:
        position = int(self._ids.find(self._ids.read([query_id]))[0])
        return -1 if position < 0 or self._versions.is_removed[position] else position

    def _must_find(self, query_id: object) -> int:
        position = self._find_active(query_id)
        if position < 0:
            raise QueryError(f"no query {query_id!r} in this set")
        return position

    def _read_new_ids(self, ids: Any) -> NDArray[np.int64] | pa.LargeStringArray:
        check_in_order(ids)
        read = self._ids.read(ids)
        if len(self._ids):
            positions = self._ids.find(read)
            known = np.flatnonzero(positions >= 0)
            active = known[~self._versions.is_removed[positions[known]]]
            if len(active):
                (twice,) = self._ids.at(positions[active[:1]])
                raise QueryError(f"id {twice!r} already exists; use replace to change it, or another id")
        settings().check("max_queries", len(self) + len(read))
        return read

    def _active_ids(self) -> Ids:
        """The active ids, at new positions."""
        ids = Ids()
        ids.kind = self._ids.kind
        ids.append(ids.read(self._ids.to_arrow().filter(pa.array(~self._versions.is_removed))))
        return ids
