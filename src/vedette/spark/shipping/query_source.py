"""The queries of a transform: a set in this process, or one of a registry that is followed while it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from vedette import __version__
from vedette.errors import PipelineError
from vedette.queries.query_options import PER_QUERY
from vedette.registry.kinds import kinds_for
from vedette.spark.shipping.query_sets import pack

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from vedette.registry.read.followed import Followed

VERSION = "version"  # the column with the version of a followed set


@dataclass(frozen=True)
class QuerySource:
    """The queries, as the driver knows them."""

    queries: Any  # the set itself; of a followed one, an empty set with the same schema, for checking options
    followed: Followed | None

    @classmethod
    def read(cls, given: Any, call: str, operator: str, where: str = "") -> QuerySource:
        """The queries that were passed to a transform. Raises PipelineError unless the operator can use them."""
        kinds = kinds_for(operator)
        if hasattr(given, "to_plain"):
            if given.kind not in [kind.name for kind in kinds]:
                raise PipelineError(
                    f"{call} follows sets of kind {' or '.join(kind.name for kind in kinds)}; set {given.name!r} is of "
                    f"kind {given.kind}; create one with registry.create(..., kind={kinds[0].name!r})"
                )
            if given.version is not None and given.id_kind is None:
                raise PipelineError(
                    f"{call} cannot use version {given.version} of set {given.name!r}: it has never had a query, so "
                    f"the type of its ids is unknown; create the set with registry.create(..., ids='string') or "
                    f"'integer', or follow a later version"
                )
            return cls(given.blank(), given)
        set_class = kinds[0].load_class()
        if not isinstance(given, set_class):
            wanted = f"{set_class.__name__} {where}".rstrip()
            raise PipelineError(
                f"{call} needs a {wanted}; got {type(given).__name__}; to follow a set of a registry, pass the result "
                f"of registry.follow"
            )
        return cls(given, None)

    def without_metadata(self) -> QuerySource:
        """The same, if answers do not need the metadata of queries: it is not sent inside the task or its file."""
        return self if self.followed is not None else QuerySource(self.queries.without_metadata(), None)

    def has_option(self, *names: str) -> bool:
        """Whether some query has one of these options; of a followed set, whether some query has or had it."""
        if self.followed is not None:
            return self.followed.has_option(names)
        return any(self.queries.has_option(name) for name in names)

    def has_once_per_query(self, once: Any) -> bool:
        """Whether queries are reported once for all keys, by default or some by their own option."""
        if once == PER_QUERY:
            return True
        if self.followed is not None:
            return self.followed.has_once_per_query
        return bool(self.queries.has_option("once", PER_QUERY))

    def holds_back(self, by_default: bool) -> bool:
        """Whether events may be held back, by default or by an option of a query."""
        return by_default or self.has_option("cooldown", "once")

    @property
    def fields(self) -> list[str]:
        """The fields that rows must have: those that the queries use; for a followed set, all fields."""
        return self.queries.fields if self.followed is None else self.queries.schema.names  # type: ignore[no-any-return]

    def fields_of(self, stream: str) -> list[str]:
        """The same, for one stream."""
        if self.followed is None:
            return self.queries.fields_of(stream)  # type: ignore[no-any-return]
        return self.queries.schema_of(stream).names  # type: ignore[no-any-return]

    @property
    def id_type(self) -> t.DataType:
        """The type of the queries' ids in answers. If a followed set has no ids yet, it is string."""
        if self.followed is not None:
            return t.LongType() if self.followed.id_kind == "integer" else t.StringType()
        return t.LongType() if str(self.queries.ids.type) == "int64" else t.StringType()

    @property
    def added_columns(self) -> list[t.StructField]:
        """The columns that answers have in addition, at the end."""
        return [] if self.followed is None else [t.StructField(VERSION, t.LongType())]

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that identify the set in a checkpoint."""
        return {} if self.followed is None else {"set": self.followed.name, "uid": self.followed.uid}

    def pack(
        self, rows: DataFrame, snapshot_dir: str | Path | None, inline_bytes: int | None = None, *, is_stream: bool
    ) -> dict[str, Any]:
        """The queries for the workers that process the rows, as plain values. A batch sees the current version."""
        if self.followed is None:
            return vars(pack(self.queries, snapshot_dir, inline_bytes, rows.sparkSession)).copy()
        return self.pack_followed(is_live=is_stream)

    def pack_followed(self, *, is_live: bool) -> dict[str, Any]:
        """The same, of a followed set. If it is live, workers see changes, unless its version is fixed."""
        assert self.followed is not None
        now = self.followed.current_version()
        self.followed.bases.prepare(now)
        return {
            "token": self.followed.uid,
            "sender": __version__,
            "followed": self.followed.to_plain(),
            "id_type": self.id_type.simpleString(),
            "version": None if is_live and self.followed.version is None else now,
            "mark": self.followed.mark_of(now),
        }
