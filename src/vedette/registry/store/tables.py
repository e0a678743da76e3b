"""The tables of a registry.

A row of `lives` is one life of a query: from the version that added it to the one that ended it. A query that is
replaced has one life after another under the same id. Ids are texts or numbers, one kind in a set, in two columns, so
that both are in their own order. Times are microseconds since 1970 in UTC, and documents are JSON: the same in SQLite
and in PostgreSQL.
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

# Names in the order of their bytes, whatever the database's locale is: SQLite's own order.
_NAME = Text().with_variant(Text(collation="C"), "postgresql")
_SERIAL = BigInteger().with_variant(Integer(), "sqlite")


def _set_id(primary_key: bool = False) -> Column[int]:
    return Column("set_id", _SERIAL, ForeignKey("vedette_sets.id"), primary_key=primary_key, nullable=False)


migrations = Table(
    "vedette_migrations",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("vedette", Text, nullable=False),  # the version of Vedette that made the step
    Column("made_at", BigInteger, nullable=False),
)

sets = Table(
    "vedette_sets",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    Column("uid", Text, nullable=False, unique=True),  # another one when a set of the same name is made again
    Column("name", _NAME, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("schemas", Text, nullable=False),  # JSON: by stream, "" where there is one stream
    Column("schema_version", BigInteger, nullable=False),  # from which the schemas are in force
    Column("time_zone", Text, nullable=False),
    Column("windows", Text),  # of window joins: time, rows or any
    Column("id_kind", Text),  # string or integer, which never changes; none until it is known
    Column("version", BigInteger, nullable=False),
    Column("oldest", BigInteger, nullable=False),  # the oldest version that can still be read
    Column("n_standing", BigInteger, nullable=False),
    Column("n_parked", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("max_match_share", Double),  # of the sample: what a new query may match; none where all is allowed
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
    Column("version", BigInteger, primary_key=True),  # from which they were in force
    Column("schemas", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
)

versions = Table(
    "vedette_versions",
    METADATA,
    _set_id(primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("mark", BigInteger, nullable=False),  # random: a saved state knows its history by it
    Column("made_at", BigInteger, nullable=False),
)

lives = Table(
    "vedette_lives",
    METADATA,
    Column("id", _SERIAL, primary_key=True),
    _set_id(),
    Column("name", _NAME),  # the query's id where ids are strings
    Column("number", BigInteger),  # the query's id where ids are integers
    Column("added", BigInteger, nullable=False),  # the version that added it
    Column("removed", BigInteger),  # the version that ended it; none while it stands
    Column("reason", Text),  # why it ended: removed, replaced, expired or parked
    Column("is_parked", Boolean, nullable=False),  # parked, and neither replaced nor removed since
    Column("text", Text),
    Column("windows", Text),  # JSON: {"within": ..., "rows": ...}
    Column("low", Double),
    Column("high", Double),
    Column("metadata", Text),  # JSON
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
    Column("run", Text),  # of the pipeline, that asked first; null where it is not known
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

# Every index but the second is of a part of the lives, so that adding a query writes two entries: its id, its version.
_STANDS = lives.c.removed.is_(None)
_ENDED = lives.c.removed.is_not(None)


def _index(name: str, *columns: Column[object], where: ColumnElement[bool] | None = None, unique: bool = False) -> None:
    Index(f"vedette_lives_{name}", *columns, unique=unique, sqlite_where=where, postgresql_where=where)


for _column in (lives.c.name, lives.c.number):
    _has = _column.is_not(None)
    _index(f"standing_{_column.name}", lives.c.set_id, _column, where=and_(_STANDS, _has), unique=True)
    _index(f"ended_{_column.name}", lives.c.set_id, _column, lives.c.removed, where=and_(_ENDED, _has))
_index("added", lives.c.set_id, lives.c.added, lives.c.id)
_index("removed", lives.c.set_id, lives.c.removed, where=_ENDED)
_index("due", lives.c.set_id, lives.c.expires_at, where=and_(_STANDS, lives.c.expires_at.is_not(None)))
_index("parked", lives.c.set_id, where=lives.c.is_parked)


def id_column(id_kind: str | None) -> Column[str] | Column[int]:
    """The column of the ids of such a set."""
    return lives.c.number if id_kind == INTEGER else lives.c.name
