"""A set that a transaction has locked, to end expired queries, create versions and write its row."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    cast,
    func,
    insert,
    select,
    update,
)

from vedette.data.ids import INTEGER
from vedette.registry.read.query_info import EXPIRED
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.tables import id_column, revisions, sets, versions


class LockedSet:
    """The row of a set, locked until the transaction ends. Other writers of the set wait."""

    def __init__(self, database: Database, connection: Connection, info: SetInfo, *, alone: bool = False) -> None:
        """Lock the set of `info`. Pins and leases do not wait for this lock, unless `alone` is set."""
        chosen = select(sets).where(sets.c.uid == info.uid).with_for_update(key_share=not alone)
        row = connection.execute(chosen).mappings().first()
        if row is None:
            raise DroppedError(f"set {info.name!r} was dropped by another process; nothing was changed")
        self.info = SetInfo.of(row)
        self.database = database
        self.connection = connection
        self.now = database.now(connection)
        self.version = self.info.version
        self.id_kind = self.info.id_kind
        self.n_active = self.info.n_active
        self.n_parked = self.info.n_parked

    @property
    def row(self) -> int:
        return self.info.row

    @property
    def id_column(self) -> Any:
        return id_column(self.id_kind)

    def find_made(self, mark: int) -> int | None:
        """The version with that mark, if an earlier attempt created it and only its answer was lost."""
        version = select(versions.c.version).where(versions.c.set_id == self.row, versions.c.mark == mark)
        return self.connection.scalar(version)

    def advance(self, mark: int | None = None, author: str | None = None) -> int:
        """Create a new version. `author` is who changes the set, if that is known."""
        self.version += 1
        values = {"set_id": self.row, "version": self.version, "made_at": self.now, "mark": mark or new_mark()}
        self.connection.execute(insert(versions).values(**values, author=author))
        return self.version

    def end(self, *which: ColumnElement[bool], reason: str) -> int:
        """End the active revisions that match `which` under the current version; returns how many."""
        ended = {"removed": self.version, "reason": reason, "ended_at": self.now}
        active = revisions.c.set_id == self.row, revisions.c.removed.is_(None), *which
        n = self.connection.execute(update(revisions).where(*active).values(ended)).rowcount
        self.n_active -= n
        return n

    def end_due(self) -> None:
        """End expired queries, under one separate version."""
        if self.connection.scalar(select(is_due(self.row, self.now))):
            self.advance()
            self.end(revisions.c.expires_at.is_not(None), revisions.c.expires_at <= self.now, reason=EXPIRED)

    def among(self, ids: Sequence[Any]) -> ColumnElement[bool]:
        """Whether the id of a revision is one of `ids`."""
        return among(self.database, self.id_column, self.id_kind, ids)

    def save(self) -> None:
        """Write the row of the set."""
        values = {
            "version": self.version,
            "id_kind": self.id_kind,
            "n_active": self.n_active,
            "n_parked": self.n_parked,
        }
        if (self.version, self.n_parked) != (self.info.version, self.info.n_parked):
            self.connection.execute(update(sets).where(sets.c.id == self.row).values(values))


def new_mark() -> int:
    """A random number of 62 bits, never 0."""
    return 1 + secrets.randbelow((1 << 62) - 1)


def is_due(set_row: int, now: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Whether the set has active queries whose expiry has passed."""
    due = (
        revisions.c.set_id == set_row,
        revisions.c.removed.is_(None),
        revisions.c.expires_at.is_not(None),
        revisions.c.expires_at <= now,
    )
    return select(revisions.c.id).where(*due).exists()


def among(database: Database, column: Any, id_kind: str | None, ids: Sequence[Any]) -> ColumnElement[bool]:
    """Whether a column is one of the ids. They are sent as one parameter, so there may be very many."""
    given: Select[Any]
    if database.is_postgres:
        kind = BigInteger if id_kind == INTEGER else Text
        given = select(func.unnest(cast(list(ids), ARRAY(kind))))
    else:
        given = select(func.json_each(json.dumps(list(ids))).table_valued("value").c.value)
    return and_(column.is_not(None), column.in_(given))
