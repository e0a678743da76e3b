"""A handle with which a pipeline follows a set: the set changes while it runs, and each batch sees one version."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from sqlalchemy import Connection, func, make_url, or_, select

from vedette.data.ids import STRING
from vedette.data.schema import Schema
from vedette.errors import RegistryError, nearest, shown
from vedette.queries.set_changes import Changes
from vedette.registry.read.pinning import Known, pin_and_read
from vedette.registry.read.pins import Pin
from vedette.registry.read.reader import check_version, plain_version
from vedette.registry.read.set_info import SetInfo
from vedette.registry.snapshots.bases import OpenSet, Snapshots
from vedette.registry.snapshots.compiled_set import make_empty
from vedette.registry.store.address import show_address
from vedette.registry.store.failures import DroppedError, ReadOnlyError
from vedette.registry.store.tables import revisions, schemas
from vedette.registry.store.times import as_datetime, to_microseconds
from vedette.registry.write.reports import ALL_PARTS, note_reports

if TYPE_CHECKING:
    from vedette.registry.registry import Registry

STOP, LAST = OUTAGES = ("stop", "last")  # what a stream does while the database cannot be reached
_driver = uuid.uuid4().hex
_registries: dict[tuple[str, str | None, float, int], Registry] = {}
_given: WeakValueDictionary[tuple[str, str | None, float, int], Registry] = WeakValueDictionary()


@dataclass(frozen=True, repr=False)
class Followed:
    """A small handle that can be pickled: the set, its database, and what transforms need to know about it.

    >>> import tempfile, pathlib, vedette as vd
    >>> registry = vd.Registry(f"sqlite:///{pathlib.Path(tempfile.mkdtemp(), 'alerts.db')}")
    >>> _ = registry.create("alerts", schema="symbol string, price double")
    >>> followed = registry.follow("alerts")
    >>> registry.add("alerts", "cheap", "price < 40")
    1
    >>> followed.open(followed.current_version()).match_one({"symbol": "IBM", "price": 39.5})
    ['cheap']
    """

    url: str  # may contain a password; never shown
    snapshots: str | None
    retry_seconds: float
    info: SetInfo  # read when the handle was made; if `version` is fixed, the state at that version
    version: int | None  # the fixed version; None: follow changes
    on_registry_outage: str = STOP  # one of OUTAGES
    host: str = field(default_factory=socket.gethostname)
    driver: str = field(default_factory=lambda: _driver)  # the process that made the handle

    @classmethod
    def of(cls, registry: Registry, name: str, version: int | None = None, on_registry_outage: str = STOP) -> Followed:
        if on_registry_outage not in OUTAGES:
            raise RegistryError(
                f"must be one of: {', '.join(OUTAGES)}; got {shown(on_registry_outage)}"
                f"{nearest(str(on_registry_outage), OUTAGES)}",
                option="on_registry_outage",
            )
        database = registry.database
        info = registry.set(name)
        version = plain_version(version)
        if version is not None:
            check_version(info, version, "version")
            texts, time_zone = registry.schema_at(name, version)

            def find(connection: Connection) -> int:
                until = schemas.c.set_id == info.row, schemas.c.version <= version
                return int(connection.scalar(select(func.max(schemas.c.version)).where(*until)) or 0)

            info = replace(info, schema=texts, time_zone=time_zone, schema_version=database.read(find))
        where = address_of(registry)
        made = cls(where["url"], where["snapshots"], where["retry_seconds"], info, version, on_registry_outage)
        _given[made._key] = registry  # saves a connection
        return made

    def __repr__(self) -> str:
        version = "" if self.version is None else f", version={self.version}"
        return f"Followed({self.name!r} in {show_address(make_url(self.url))}{version})"

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def uid(self) -> str:
        """A unique id: a set that is dropped and created again under the same name has another one."""
        return self.info.uid

    @property
    def kind(self) -> str:
        return self.info.kind

    @property
    def time_zone(self) -> str:
        return self.info.time_zone

    @property
    def id_kind(self) -> str | None:
        """string or integer; None if it is not known yet. The first pinned batch then makes it string."""
        return self.info.id_kind

    @property
    def streams(self) -> list[str]:
        """The names of the streams of a window join."""
        return self.info.streams

    @property
    def schema(self) -> Schema:
        """The schema of the rows, for sets of kind match or border."""
        return Schema.parse(self.info.schema[""])

    def schema_of(self, stream: str) -> Schema:
        """The schema of a stream of a window join."""
        return Schema.parse(self.info.schema[stream])

    @property
    def is_local(self) -> bool:
        """Whether the database is a file, which other hosts cannot open."""
        return self.url.startswith("sqlite")

    @property
    def registry(self) -> Registry:
        """The registry: the one that made the handle, if this process still has it, or one that is opened once."""
        from vedette.registry.registry import Registry

        given = _given.get(self._key)
        if given is not None:
            return given
        if self._key not in _registries:
            _registries[self._key] = Registry._of_worker(self.url, self.snapshots, self.retry_seconds)
        return _registries[self._key]

    @property
    def _key(self) -> tuple[str, str | None, float, int]:
        return self.url, self.snapshots, self.retry_seconds, os.getpid()  # forks open their own

    # Versions.

    def current_version(self) -> int:
        """The current version, after expired queries have ended; the fixed version if there is one."""
        if self.version is not None:
            return self.version
        info = self.registry.end_due(self.name)
        self._check(info)
        self._check_schema(info.schema_version, info.version)
        return info.version

    def pin(self, pipeline: str, batch: int) -> int:
        """The version that a batch of a pipeline is evaluated against: the same on every call, in every process."""
        if self.version is not None:
            return self.version
        return self.pin_marked(pipeline, batch).version

    def pin_marked(self, pipeline: str, batch: int, run: str | None = None) -> Pin:
        """The pin of a batch, with the mark of its version, for a set without a fixed version."""
        return self.pin_and_read(pipeline, batch, run)[0]

    def pin_and_read(
        self, pipeline: str, batch: int, run: str | None = None, known: Known | None = None, **options: Any
    ) -> tuple[Pin, Changes | None]:
        """The pin of a batch, and the changes from a known version to it; see `pinning.pin_and_read`."""
        try:
            pin, changes = pin_and_read(self.registry.database, self.info, pipeline, batch, run, known, **options)
        except DroppedError:
            self._check(self.registry.set(self.name))
            raise
        except ReadOnlyError:
            raise ReadOnlyError(
                f"the registry's database {self.registry.database} is read-only, but following a set records there "
                f"which version each micro-batch sees; grant the pipeline write access, or follow the set with the "
                f"fixed version={self.info.version}"
            ) from None
        self._check_schema(pin.schema_version, pin.version)
        self._check_ids(pin.id_kind)
        return pin, changes

    def mark_of(self, version: int) -> int | None:
        """The mark of a version; None if the version is forgotten."""
        return self.bases.mark_of(version)

    def has_option(self, names: Sequence[str]) -> bool:
        """Whether some revision of a query of the set, or of its fixed version, has one of these options."""
        return self._has_options([f'"{name}":' for name in names])

    @property
    def has_once_per_query(self) -> bool:
        """Whether some revision of a query of the set, or of its fixed version, has once="query"."""
        return self._has_options(['"once":"query"'])

    def note_reports(
        self, stream: str, batch: int, version: int, ids: Sequence[Any], part: int = ALL_PARTS
    ) -> list[Any]:
        """Note the reports of queries with once="query"; returns the ids of those to emit."""
        return note_reports(self.registry.database, self.info, stream, batch, version, ids, part)

    def _has_options(self, texts: Sequence[str]) -> bool:
        own = [revisions.c.options.contains(text, autoescape=True) for text in texts]
        which = [revisions.c.set_id == self.info.row, or_(*own)]
        if self.version is not None:
            is_active = or_(revisions.c.removed.is_(None), revisions.c.removed > self.version)
            which += [revisions.c.added <= self.version, is_active]
        some = select(revisions.c.id).where(*which).limit(1)
        return self.registry.database.read(lambda connection: connection.scalar(some)) is not None

    # Compiled sets.

    def blank(self) -> Any:
        """An empty set of the same kind and schema, for checking options."""
        return make_empty(self.info)

    def open(self, version: int) -> Any:
        """The compiled set at a version."""
        return self.bases.open(version).queries

    def advance(self, queries: Any, version: int) -> None:
        """Update a set that `open` returned to a later version, in place."""
        self.bases.move(OpenSet(queries, queries.version), version)

    @property
    def bases(self) -> Snapshots:
        """The compiled bases of the set."""
        return Snapshots(self.registry, self.info)

    # Serialization for other processes.

    def to_plain(self) -> dict[str, Any]:
        """The handle as plain values, which a process without this package can unpickle."""
        values = asdict(self)
        values["info"]["created_at"] = to_microseconds(self.info.created_at, "created_at")
        return values

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> Followed:
        info = values["info"] | {"created_at": as_datetime(values["info"]["created_at"])}
        return cls(**{**values, "info": SetInfo(**info)})

    def _check(self, now: SetInfo) -> None:
        """Raise RegistryError if the set was dropped and created again."""
        if now.uid != self.uid:
            raise RegistryError(
                f"set {self.name!r} was dropped and created again since this pipeline began to follow it; start the "
                f"pipeline again with a new checkpoint, or call vs.register again"
            )

    def _check_schema(self, altered: int, version: int) -> None:
        """Raise RegistryError if the set has another schema at that version."""
        if altered > self.info.schema_version and version >= altered:
            raise RegistryError(
                f"the schema of set {self.name!r} was altered with version {altered}, after this pipeline began to "
                f"follow it; start the pipeline again with rows that have the new schema, or call vs.register again"
            )

    def _check_ids(self, id_kind: str) -> None:
        """Raise RegistryError if the first ids were added after this handle was made, and are not strings."""
        if self.id_kind is None and id_kind != STRING:
            raise RegistryError(
                f"the first ids of set {self.name!r} were added after this pipeline started and are {id_kind}s, but "
                f"its answers have strings; start the pipeline again; to avoid this, create the set with "
                f"registry.create(..., ids={id_kind!r})"
            )


def address_of(registry: Registry) -> dict[str, Any]:
    """How other processes open a registry, as plain values. The URL may contain a password."""
    database = registry.database
    snapshots = registry.snapshots
    if snapshots is not None and "://" not in str(snapshots):
        snapshots = os.path.abspath(snapshots)
    return {
        "url": database.address,
        "snapshots": snapshots,
        "retry_seconds": database.retry_seconds,
        "host": socket.gethostname(),
    }
