"""A set of a registry as pipelines take it: it changes while they run, and each of their batches sees one version."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, make_url, select

from vedette.data.ids import STRING
from vedette.data.schema import Schema
from vedette.errors import RegistryError
from vedette.registry.read.pins import Pin, pin_version
from vedette.registry.read.reader import check_version, plain_version
from vedette.registry.read.set_info import SetInfo
from vedette.registry.snapshots.bases import OpenSet, Snapshots, make_empty
from vedette.registry.store.address import show_address
from vedette.registry.store.failures import DroppedError, ReadOnlyError
from vedette.registry.store.tables import schemas
from vedette.registry.store.times import as_datetime, read_moment

if TYPE_CHECKING:
    from vedette.registry.registry import Registry

_registries: dict[tuple[str, str | None, int], Registry] = {}  # of this process, which a fork does not inherit


@dataclass(frozen=True, repr=False)
class Followed:
    """A small handle that can be pickled: which set, in which database, and what transforms must know of it.

    >>> import tempfile, pathlib, vedette as vd
    >>> registry = vd.Registry(f"sqlite:///{pathlib.Path(tempfile.mkdtemp(), 'alerts.db')}")
    >>> _ = registry.create("alerts", schema="symbol string, price double")
    >>> followed = registry.follow("alerts")
    >>> registry.add("alerts", "cheap", "price < 40")
    1
    >>> followed.open(followed.current_version()).match_one({"symbol": "IBM", "price": 39.5})
    ['cheap']
    """

    url: str  # with the password, if there is one; it is never shown
    snapshots: str | None
    retry_seconds: float
    info: SetInfo  # as it was when it was asked for, or at the version at which it is frozen
    version: int | None  # a version, where it is frozen
    host: str = field(default_factory=socket.gethostname)

    @classmethod
    def of(cls, registry: Registry, name: str, version: int | None = None) -> Followed:
        database = registry.database
        info = registry.set(name)
        version = plain_version(version)
        if version is not None:
            check_version(info, version, "version")
            texts, time_zone = registry.schema_at(name, version)

            def find(connection: Connection) -> int:
                told = schemas.c.set_id == info.row, schemas.c.version <= version
                return int(connection.scalar(select(func.max(schemas.c.version)).where(*told)) or 0)

            info = replace(info, schema=texts, time_zone=time_zone, schema_version=database.read(find))
        url = database.url
        if database.file is not None and not str(url.database).startswith("file:"):
            url = url.set(database=os.path.abspath(str(url.database)))  # workers run in other directories
        snapshots = registry.snapshots
        if snapshots is not None and "://" not in str(snapshots):
            snapshots = os.path.abspath(snapshots)
        return cls(url.render_as_string(hide_password=False), snapshots, database.retry_seconds, info, version)

    def __repr__(self) -> str:
        frozen = "" if self.version is None else f", version={self.version}"
        return f"Followed({self.name!r} in {show_address(make_url(self.url))}{frozen})"

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def uid(self) -> str:
        """What tells the set from another one of its name, made after it was dropped."""
        return self.info.uid

    @property
    def kind(self) -> str:
        return self.info.kind

    @property
    def time_zone(self) -> str:
        return self.info.time_zone

    @property
    def id_kind(self) -> str | None:
        """string or integer; None where it is not known yet, and will be string when a batch is pinned."""
        return self.info.id_kind

    @property
    def streams(self) -> list[str]:
        """The names of the streams, of a window join."""
        return self.info.streams

    @property
    def schema(self) -> Schema:
        """The schema of the rows, of a set for matching or border monitoring."""
        return Schema.parse(self.info.schema[""])

    def schema_of(self, stream: str) -> Schema:
        """The schema of a stream, of a window join."""
        return Schema.parse(self.info.schema[stream])

    @property
    def is_local(self) -> bool:
        """Whether the database is a file, which only this host has."""
        return self.url.startswith("sqlite")

    @property
    def registry(self) -> Registry:
        """The registry, opened once in each process."""
        from vedette.registry.registry import Registry

        key = (self.url, self.snapshots, os.getpid())
        if key not in _registries:
            _registries[key] = Registry(self.url, self.snapshots, create=False, retry_seconds=self.retry_seconds)
        return _registries[key]

    # Versions.

    def current_version(self) -> int:
        """The version that stands now, after what is due has ended; where it is frozen, always the same."""
        if self.version is not None:
            return self.version
        info = self.registry.end_due(self.name)
        self._check(info)
        self._check_schema(info.schema_version, info.version)
        return info.version

    def pin(self, pipeline: str, batch: int) -> int:
        """The version that a batch of a pipeline is evaluated against: the same for all who ask, whenever they do."""
        if self.version is not None:
            return self.version
        return self.pin_marked(pipeline, batch).version

    def pin_marked(self, pipeline: str, batch: int, run: str | None = None) -> Pin:
        """The same of a set that is not frozen, with the mark by which a compiled set knows its history."""
        try:
            pin = pin_version(self.registry.database, self.info, pipeline, batch, run)
        except DroppedError:
            self._check(self.registry.set(self.name))
            raise
        except ReadOnlyError:
            raise ReadOnlyError(
                f"the registry's database {self.registry.database} is read-only, and which version a micro-batch sees "
                f"is written down there; let the pipeline write, or follow the set with "
                f"version={self.info.version}, which stays"
            ) from None
        self._check_schema(pin.schema_version, pin.version)
        self._check_ids(pin.id_kind)
        return pin

    def mark_of(self, version: int) -> int | None:
        """The mark of a version; None where it is forgotten."""
        return self.bases.mark_of(version)

    # Compiled sets.

    def blank(self) -> Any:
        """A set of the same kind and schema without queries, to check options with."""
        return make_empty(self.info)

    def open(self, version: int) -> Any:
        """The compiled set at exactly that version."""
        return self.bases.open(version).queries

    def advance(self, queries: Any, version: int) -> None:
        """Bring a set that `open` gave forward to a later version, in place."""
        self.bases.move(OpenSet(queries, queries.version), version)

    @property
    def bases(self) -> Snapshots:
        """The compiled bases of the set."""
        return Snapshots(self.registry, self.info)

    # On the way to other processes.

    def to_facts(self) -> dict[str, Any]:
        """All of it in plain values, so that a process without this package can read them."""
        facts = asdict(self)
        facts["info"]["created_at"] = read_moment(self.info.created_at, "created_at")
        return facts

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Followed:
        info = facts["info"] | {"created_at": as_datetime(facts["info"]["created_at"])}
        return cls(**{**facts, "info": SetInfo(**info)})

    def _check(self, now: SetInfo) -> None:
        """Raise where the set is not the one that was asked for."""
        if now.uid != self.uid:
            raise RegistryError(
                f"set {self.name!r} was dropped and made again since this pipeline began to follow it; start the "
                f"pipeline again, with a new checkpoint"
            )

    def _check_schema(self, altered: int, version: int) -> None:
        """Raise where the set has another schema by that version."""
        if altered > self.info.schema_version and version >= altered:
            raise RegistryError(
                f"the schema of set {self.name!r} was altered with version {altered}, after this pipeline "
                f"began to follow it; start the pipeline again, with rows that have the new schema"
            )

    def _check_ids(self, id_kind: str) -> None:
        """Raise where ids, which were not there when this was asked for, are not as answers have them."""
        if self.id_kind is None and id_kind != STRING:
            raise RegistryError(
                f"the first ids of set {self.name!r} came after this pipeline began, and are {id_kind}s, where its "
                f"answers have strings; start the pipeline again; a set is made for {id_kind}s beforehand with "
                f"registry.create(..., ids={id_kind!r})"
            )
