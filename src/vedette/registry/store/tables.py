"""The tables of a registry.

A row of `revisions` is one revision of a query: from the version that added it to the version that ended it. A query
that is replaced gets a new revision under the same id. Ids are strings or integers, one type per set, in two columns,
so that each is sorted by its own order. Times are microseconds since 1970 in UTC, and documents are JSON: the same in
SQLite and in PostgreSQL.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
)

from vedette.data.ids import INTEGER

METADATA = MetaData()

# Names are sorted by their bytes, independently of the database's locale, as in SQLite.
_NAME = Text().with_variant(Text(collation="C"), "postgresql")
_SERIAL = BigInteger().with_variant(Integer(), "sqlite")


def _set_id(primary_key: bool = False) -> Column[int]:
    return Column("set_id", _SERIAL, ForeignKey("vedette_sets.id"), primary_key=primary_key, nullable=False)


migrations = Table(
    "vedette_migrations",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("vedette", Text, nullable=False),  # the version of Vedette that applied it
    Column("made_at", BigInteger, nullable=False),
)

sets = Table(
    "vedette_sets",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    Column("uid", Text, nullable=False, unique=True),  # changes if the set is dropped and created again
    Column("name", _NAME, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("schemas", Text, nullable=False),  # JSON: by stream; a single stream is under ""
    Column("schema_version", BigInteger, nullable=False),  # the version from which the schemas apply
    Column("time_zone", Text, nullable=False),
    Column("windows", Text),  # in window joins: time, rows or any
    Column("id_kind", Text),  # string or integer, which never changes; null until it is known
    Column("version", BigInteger, nullable=False),
    Column("oldest", BigInteger, nullable=False),  # the oldest readable version
    Column("n_active", BigInteger, nullable=False),
    Column("n_parked", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("max_match_share", Double),  # the share of the sample that a new query may match; null: no limit
    Column("dimensions", Integer),  # of the zones of a moving join: 2 or 3
)

samples = Table(
    "vedette_samples",
    METADATA,
    _set_id(primary_key=True),
    Column("digest", Text, nullable=False),
    Column("sample", Text, nullable=False),  # rows as an Arrow stream in base64
)

schemas = Table(
    "vedette_schemas",
    METADATA,
    _set_id(primary_key=True),
    Column("version", BigInteger, primary_key=True),  # the version from which they apply
    Column("schemas", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
)

versions = Table(
    "vedette_versions",
    METADATA,
    _set_id(primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("mark", BigInteger, nullable=False),  # random: identifies the history that a saved state belongs to
    Column("made_at", BigInteger, nullable=False),
    Column("author", Text),  # who made it; null if unknown
)

revisions = Table(
    "vedette_revisions",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    _set_id(),
    Column("name", _NAME),  # the query's id, if ids are strings
    Column("number", BigInteger),  # the query's id, if ids are integers
    Column("added", BigInteger, nullable=False),  # the version that added it
    Column("removed", BigInteger),  # the version that ended it; null while it is active
    Column("reason", Text),  # why it ended: removed, replaced, expired or parked
    Column("is_parked", Boolean, nullable=False),  # parked, and neither replaced nor removed since
    Column("text", Text),
    Column("windows", Text),  # JSON: {"within": ..., "rows": ...}
    Column("low", Double),
    Column("high", Double),
    *(Column(side, Double) for side in ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")),  # of zones
    Column("metadata", Text),  # JSON
    Column("options", Text),  # JSON: of border monitoring
    Column("expires_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
)

pins = Table(
    "vedette_pins",
    METADATA,
    _set_id(primary_key=True),
    Column("pipeline", _NAME, primary_key=True),
    Column("batch", BigInteger, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("run", Text),  # the run of the pipeline that wrote the pin; null if unknown
)

snapshots = Table(
    "vedette_snapshots",
    METADATA,
    _set_id(primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("file", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("n_bytes", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

leases = Table(
    "vedette_leases",
    METADATA,
    _set_id(primary_key=True),
    Column("purpose", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("ends_at", BigInteger, nullable=False),
)

reports = Table(  # of queries that are reported once for all keys; see vedette.registry.write.reports
    "vedette_reports",
    METADATA,
    _set_id(primary_key=True),
    Column("revision", BigInteger, primary_key=True),  # a row of `revisions`
    Column("stream", Text, primary_key=True),
    Column("batch", BigInteger, nullable=False),  # the first that reported it
    Column("part", Integer, nullable=False),  # the shard that reported it, or -1
    Column("made_at", BigInteger, nullable=False),
)

dead_letters = Table(  # see vedette.delivery.dead_letters
    "vedette_dead_letters",
    METADATA,
    Column("source", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("failed_at", BigInteger, nullable=False),
    Column("url", Text),
    Column("group", Text),
    Column("status", Integer),
    Column("attempts", Integer, nullable=False),
    Column("stream", Text, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("task", Text, nullable=False),  # with stream and batch: the letters that are written together
)
Index("vedette_dead_letters_part", dead_letters.c.stream, dead_letters.c.batch)

tokens = Table(  # see vedette.registry.tokens
    "vedette_tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the token, in hexadecimal
    Column("sets", Text),  # JSON: names of sets; null: all
    Column("owner", Text),
    Column("max_queries", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("rows_per_second", BigInteger),
)

pipelines = Table(  # runs of `vedette run`; see vedette.registry.pipelines
    "vedette_pipelines",
    METADATA,
    Column("run", Text, primary_key=True),  # random: one process
    Column("name", _NAME, nullable=False),
    Column("set_name", _NAME, nullable=False),
    Column("operator", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("vedette", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("queries", BigInteger),
    Column("sinks", Text, nullable=False),  # JSON: the progress of each
    Column("error", Text),
    Column("started_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),  # when the process last wrote it
    Column("ended_at", BigInteger),
)

pipeline_events = Table(  # the last answers of pipelines that keep them
    "vedette_pipeline_events",
    METADATA,
    Column("name", _NAME, primary_key=True),
    Column("set_name", _NAME, primary_key=True),
    Column("sink", _NAME, primary_key=True),
    Column("batch", BigInteger, primary_key=True),
    Column("task", BigInteger, primary_key=True),
    Column("n_events", BigInteger, nullable=False),
    Column("events", Text, nullable=False),  # a JSON object per line
    Column("made_at", BigInteger, nullable=False),
)

# All indexes but `added` are partial, so adding a query writes two entries: its id and its version.
_ACTIVE = revisions.c.removed.is_(None)
_ENDED = revisions.c.removed.is_not(None)


def _index(name: str, *columns: Column[object], where: ColumnElement[bool] | None = None, unique: bool = False) -> None:
    Index(f"vedette_revisions_{name}", *columns, unique=unique, sqlite_where=where, postgresql_where=where)


for _column in (revisions.c.name, revisions.c.number):
    _has = _column.is_not(None)
    _index(f"active_{_column.name}", revisions.c.set_id, _column, where=and_(_ACTIVE, _has), unique=True)
    _index(f"ended_{_column.name}", revisions.c.set_id, _column, revisions.c.removed, where=and_(_ENDED, _has))
_index("added", revisions.c.set_id, revisions.c.added, revisions.c.id)
_index("removed", revisions.c.set_id, revisions.c.removed, where=_ENDED)
_index("due", revisions.c.set_id, revisions.c.expires_at, where=and_(_ACTIVE, revisions.c.expires_at.is_not(None)))
_index("parked", revisions.c.set_id, where=revisions.c.is_parked)


def id_column(id_kind: str | None) -> Column[str] | Column[int]:
    """The column with the ids of a set whose ids have this type."""
    return revisions.c.number if id_kind == INTEGER else revisions.c.name
