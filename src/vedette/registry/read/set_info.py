"""A set as the registry returns it: its kind, schema and version, and the number of active queries."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vedette.data.ids import INTEGER, STRING
from vedette.data.schema import Schema
from vedette.registry.store.times import as_datetime

WINDOWS = ("time", "rows", "any")
ID_KINDS = (STRING, INTEGER)


@dataclass(frozen=True)
class SetInfo:
    """The state of a named set when it was read."""

    name: str
    uid: str  # unique: changes if the set is dropped and created again
    kind: str  # one of vedette.registry.kinds.KINDS
    schema: dict[str, str]  # by stream; a single stream is under ""; empty for kinds without a schema
    schema_version: int  # the version from which the schema applies
    time_zone: str
    windows: str | None  # in window joins: "time", "rows" or "any"
    id_kind: str | None  # string or integer; None until the owner, the first ids or the first micro-batch decide
    version: int
    oldest: int  # the oldest readable version
    n_active: int
    n_parked: int
    created_at: datetime.datetime
    row: int = field(repr=False, compare=False)  # in the table of sets
    max_match_share: float | None = None  # the share of the sample that a new query may match
    dimensions: int | None = None  # of the zones of a moving join: 2 or 3

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> SetInfo:
        values: dict[str, Any] = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        values |= {"schema": json.loads(row["schemas"]), "created_at": as_datetime(row["created_at"]), "row": row["id"]}
        return cls(**values)

    @property
    def streams(self) -> list[str]:
        """The names of the streams of a window join."""
        return [name for name in self.schema if name]

    def read_schema(self) -> Schema | None:
        """The schema that texts are compiled over; None for kinds without texts."""
        return read_schemas(self.schema)


def read_schemas(schemas: Mapping[str, str]) -> Schema | None:
    """The schema that texts are compiled over, of one stream or of several together."""
    if not schemas:
        return None
    if "" in schemas:
        return Schema.parse(schemas[""])
    return Schema.of_streams({stream: Schema.parse(each) for stream, each in schemas.items()})
