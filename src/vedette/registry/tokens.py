"""Tokens of the HTTP service: who may read, write or administer which sets of a registry.

A token is shown once, when it is created. The database has its digest. Tokens are random and long, so a plain digest
cannot be reversed by guessing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from vedette.errors import RegistryError, nearest, shown
from vedette.registry.store.database import Database
from vedette.registry.store.tables import tokens
from vedette.registry.store.times import Ttl, as_datetime, read_expiry
from vedette.registry.store.values import is_text

READ, WRITE, ADMIN = ROLES = ("read", "write", "admin")  # each includes those before it
_PREFIX = "vdt"
# What is shown of a token.
COLUMNS = (
    "id", "name", "role", "sets", "owner", "max_queries", "rows_per_second", "created_at", "expires_at", "revoked_at"
)  # fmt: skip


@dataclass(frozen=True)
class Token:
    """A token as the registry knows it, without its secret."""

    id: str
    name: str
    role: str  # one of ROLES
    sets: tuple[str, ...] | None  # the sets that it is confined to; None: all
    owner: str | None  # whose queries it is confined to; None: all
    max_queries: int | None  # active queries of each set that it may have added
    rows_per_second: int | None  # that it may send; 0: no limit; None: that of the service
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    digest: str = field(repr=False)

    @classmethod
    def of(cls, row: Any) -> Token:
        """From a row of the table."""
        times = {name: as_datetime(row[name]) for name in ("created_at", "expires_at", "revoked_at")}
        sets = None if row["sets"] is None else tuple(json.loads(row["sets"]))
        names = ("id", "name", "role", "owner", "max_queries", "rows_per_second", "digest")
        return cls(**{name: row[name] for name in names}, sets=sets, **times)

    def to_record(self) -> dict[str, Any]:
        """The token with plain values, without its digest."""
        return {name: getattr(self, name) for name in COLUMNS} | {"sets": None if self.sets is None else [*self.sets]}

    def is_active(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def is_secret(self, text: str) -> bool:
        """Whether `text` is this token."""
        return hmac.compare_digest(self.digest, _digest(text))


def create_token(
    database: Database,
    name: str,
    role: str,
    *,
    sets: Sequence[str] | None = None,
    owner: str | None = None,
    max_queries: int | None = None,
    rows_per_second: int | None = None,
    expires_at: Any = None,
    ttl: Any = None,
) -> tuple[Token, str]:
    """A new token, and its text, which is not stored. `ttl` is an age such as "30 days"."""
    _check_text(name, "name")
    if role not in ROLES:
        raise RegistryError(
            f"must be one of: {', '.join(ROLES)}; got {shown(role)}{nearest(str(role), ROLES)}", option="role"
        )
    if role == ADMIN and (sets is not None or owner is not None):
        raise RegistryError("an admin sees all sets and queries; give the role read or write to confine a token")
    for each in sets or ():
        _check_text(each, "sets")
    if owner is not None:
        _check_text(owner, "owner")
    for option, value in (("max_queries", max_queries), ("rows_per_second", rows_per_second)):
        if value is not None and not 0 <= value < 2**63:
            raise RegistryError(f"must be a whole number of 0 to {2**63 - 1:,}; got {value:,}", option=option)
    ends = read_expiry(expires_at, ttl)
    token_id = secrets.token_hex(6)
    text = f"{_PREFIX}_{token_id}_{secrets.token_urlsafe(32)}"

    def write(connection: Connection) -> Token:
        now = database.now(connection)
        values = {
            "id": token_id,
            "name": name,
            "role": role,
            "digest": _digest(text),
            "sets": None if sets is None else json.dumps(list(sets)),
            "owner": owner,
            "max_queries": max_queries,
            "rows_per_second": rows_per_second,
            "created_at": now,
            "expires_at": now + ends.microseconds if isinstance(ends, Ttl) else ends,
            "revoked_at": None,
        }
        connection.execute(insert(tokens).values(values))
        return Token.of(values)

    return database.write(write), text


def list_tokens(database: Database) -> list[Token]:
    """All tokens, oldest first, including those that are revoked or expired."""
    every = select(tokens).order_by(tokens.c.created_at, tokens.c.id)
    return database.read(lambda connection: [Token.of(row) for row in connection.execute(every).mappings()])


def revoke_token(database: Database, token_id: str) -> Token:
    """Revoke a token. A token that is already revoked stays so."""

    def write(connection: Connection) -> Token | None:
        own = tokens.c.id == token_id
        still = update(tokens).where(own, tokens.c.revoked_at.is_(None))
        connection.execute(still.values(revoked_at=database.now(connection)))
        row = connection.execute(select(tokens).where(own)).mappings().first()
        return None if row is None else Token.of(row)

    revoked = database.write(write) if is_text(token_id) else None
    if revoked is None:
        raise RegistryError(f"no token {shown(token_id)}; `vedette serve token list` shows their ids")
    return revoked


def id_of(text: str) -> str | None:
    """The id in the text of a token; None if it does not look like one."""
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    return token_id if prefix == _PREFIX and token_id and secret else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _check_text(value: Any, option: str) -> None:
    if not is_text(value) or not value or len(value) > 200:
        raise RegistryError(f"must be a text of 1 to 200 characters; got {shown(value)}", option=option)
