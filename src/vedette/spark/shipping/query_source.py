"""The queries that a transform was given: a set as it stands, or one that is followed while it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from vedette import __version__
from vedette.errors import PipelineError
from vedette.registry.kinds import kinds_for
from vedette.spark.shipping.query_sets import pack

if TYPE_CHECKING:
    from pathlib import Path

    from vedette.registry.read.followed import Followed

VERSION = "version"  # the column that tells which version of a followed set was in force


@dataclass(frozen=True)
class QuerySource:
    """What the driver knows of the queries."""

    queries: Any  # the set itself, or one without queries and of the same schema, to check options with
    followed: Followed | None

    @classmethod
    def read(cls, given: Any, call: str, operator: str, where: str = "") -> QuerySource:
        """The queries that a transform was passed. Raises PipelineError unless the operator can use them."""
        kinds = kinds_for(operator)
        if hasattr(given, "to_plain"):
            if given.kind not in [kind.name for kind in kinds]:
                raise PipelineError(
                    f"{call} follows sets of kind {' or '.join(kind.name for kind in kinds)}; set {given.name!r} is of "
                    f"kind {given.kind}; create one with registry.create(..., kind={kinds[0].name!r})"
                )
            if given.version is not None and given.id_kind is None:
                raise PipelineError(
                    f"{call} is to stay at version {given.version} of set {given.name!r}, which has had no query, so "
                    f"that nobody knows whether its ids are strings or integers; make the set with "
                    f"registry.create(..., ids='string') or 'integer', or follow a later version"
                )
            return cls(given.blank(), given)
        set_class = kinds[0].load_class()
        if not isinstance(given, set_class):
            wanted = f"{set_class.__name__} {where}".rstrip()
            raise PipelineError(
                f"{call} takes a {wanted}; got {type(given).__name__}; to follow a set of a registry, pass what "
                f"registry.follow returns"
            )
        return cls(given, None)

    @property
    def fields(self) -> list[str]:
        """The fields that rows must have: those that the queries use, or all of which queries to come may use some."""
        return self.queries.fields if self.followed is None else self.queries.schema.names  # type: ignore[no-any-return]

    def fields_of(self, stream: str) -> list[str]:
        """The same, of a stream."""
        if self.followed is None:
            return self.queries.fields_of(stream)  # type: ignore[no-any-return]
        return self.queries.schema_of(stream).names  # type: ignore[no-any-return]

    @property
    def id_type(self) -> t.DataType:
        """The type of the queries' ids in answers; a followed set that has none yet keeps to it, or says so."""
        if self.followed is not None:
            return t.LongType() if self.followed.id_kind == "integer" else t.StringType()
        return t.LongType() if str(self.queries.ids.type) == "int64" else t.StringType()

    @property
    def added_columns(self) -> list[t.StructField]:
        """What answers have besides, at their end."""
        return [] if self.followed is None else [t.StructField(VERSION, t.LongType())]

    @property
    def facts(self) -> dict[str, Any]:
        """By what a checkpoint knows which set it is of."""
        return {} if self.followed is None else {"set": self.followed.name, "uid": self.followed.uid}

    def pack(
        self, is_streaming: bool, snapshot_dir: str | Path | None, inline_bytes: int | None = None
    ) -> dict[str, Any]:
        """How they travel to workers, in plain values. A batch sees the version of now."""
        if self.followed is None:
            return vars(pack(self.queries, snapshot_dir, inline_bytes)).copy()
        now = self.followed.current_version()
        self.followed.bases.prepare(now)
        return {
            "token": self.followed.uid,
            "sender": __version__,
            "followed": self.followed.to_plain(),
            "id_type": self.id_type.simpleString(),
            "version": None if is_streaming and self.followed.version is None else now,
            "mark": self.followed.mark_of(now),
        }
