"""The sample of rows of a set. A new query that matches too much of it is an error."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Any
from weakref import ref

import pyarrow as pa
from sqlalchemy import Connection, delete, insert, select, update

from vedette.data.arrow_values import to_arrow
from vedette.data.frames import as_frame
from vedette.data.schema import Schema
from vedette.errors import RegistryError, RowError
from vedette.queries.selectivity import Selectivity, read_share
from vedette.registry.kinds import KINDS
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import samples, sets


def write_sample(sample: Any, max_share: float, schema: Schema, time_zone: str) -> dict[str, str]:
    """The columns of a sample that the schema has, as they are stored: an Arrow stream in base64, and its digest."""
    table = as_table(sample, schema)
    Selectivity.read(table, max_share, schema, time_zone)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data = sink.getvalue().to_pybytes()
    return {"digest": hashlib.blake2b(data, digest_size=16).hexdigest(), "sample": base64.b64encode(data).decode()}


def selectivity_of(database: Database, info: SetInfo) -> Selectivity | None:
    """The selectivity check of a set, or None. The sample is read again only if it has changed."""
    if info.max_match_share is None:
        return None
    chosen = select(samples.c.digest).where(samples.c.set_id == info.row)
    digest = database.read(lambda connection: connection.scalar(chosen))
    return None if digest is None else _read(_Place(database, info), digest, info.max_match_share)


class _Place:
    """Where the sample of a set is: a cache key that changes with the schema. It does not keep the database open."""

    def __init__(self, database: Database, info: SetInfo) -> None:
        self.database, self.info = ref(database), info
        self.key = (str(database), info.uid, str(info.schema), info.time_zone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=8)
def _read(place: _Place, digest: str, max_share: float) -> Selectivity:
    info, schema, database = place.info, place.info.read_schema(), place.database()
    assert schema is not None
    assert database is not None  # the caller keeps it alive
    chosen = select(samples.c.sample).where(samples.c.set_id == info.row, samples.c.digest == digest)
    text = database.read(lambda connection: connection.scalar(chosen))
    try:
        table = pa.ipc.open_stream(base64.b64decode(text or "")).read_all()
        return Selectivity.read(table, max_share, schema, info.time_zone)
    except (RowError, pa.ArrowInvalid, ValueError) as error:
        raise RegistryError(
            f"the sample of set {info.name!r} does not fit its schema ({error}); give the set another sample, or clear "
            f"max_match_share"
        ) from None


def alter_sample(database: Database, info: SetInfo, sample: Any, max_share: Any, *, clear: bool) -> None:
    """Change the sample or the share of a set, or clear both. None means no change."""
    check_kind(info.kind, info.name)
    if clear and sample is not None:
        raise RegistryError('max_match_share="none" clears the sample, but a sample is given; give only one of them')
    if not clear and max_share is None and info.max_match_share is None:
        raise RegistryError(f"set {info.name!r} has no max_match_share yet; give one with the sample, such as 0.5")
    share = None if clear else read_share(info.max_match_share if max_share is None else max_share)
    schema = info.read_schema()
    assert schema is not None
    kept = None if sample is None or share is None else write_sample(sample, share, schema, info.time_zone)
    if share is not None and kept is None and info.max_match_share is None:
        raise RegistryError(f"set {info.name!r} has no sample yet; max_match_share needs one")

    def work(connection: Connection) -> None:
        connection.execute(update(sets).where(sets.c.id == info.row).values(max_match_share=share))
        if kept is not None or share is None:
            connection.execute(delete(samples).where(samples.c.set_id == info.row))
        if kept is not None:
            connection.execute(insert(samples).values(set_id=info.row, **kept))

    database.write(work)


def check_kind(kind: str, name: str) -> None:
    """Raise RegistryError for joins: a sample of single rows cannot test their queries."""
    if not KINDS[kind].has_samples:
        having = " or ".join(each.name for each in KINDS.values() if each.has_samples)
        raise RegistryError(f"set {name!r} is of kind {kind}; only sets of kind {having} have a sample")


def as_table(sample: Any, schema: Schema) -> pa.Table:
    """The columns of a sample that the schema has, as a table that can be read more than once."""
    frame = as_frame(sample)
    frame.count_rows()  # raises if the columns differ in length
    columns = {field: frame.find(field.name) for field in schema}
    arrays = {
        field.name: to_arrow(values, f"field {field.name!r} ({field.type})")
        for field, values in columns.items()
        if values is not None
    }
    if not arrays:
        have = f"{', '.join(sorted(frame.names)) or 'none'}"
        raise RowError(f"the sample has no field of the schema ({', '.join(schema.names)}); it has: {have}")
    return pa.table(arrays)
