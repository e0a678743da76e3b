"""Who a request is from, and what it may do."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vedette.operators.query_metadata import as_text
from vedette.registry.store.database import Database
from vedette.registry.tokens import ADMIN, ROLES, Token, id_of, list_tokens
from vedette.serve.problems import Problem
from vedette.serve.sessions import Sessions

# The field of a query's metadata that says whose it is. As in events, a value that is not a text has its JSON as text:
# 7 and "7" are the same owner.
OWNER = "owner"


@dataclass(frozen=True)
class Caller:
    """The sender of a request."""

    author: str | None  # as the history of a set names them
    role: str
    sets: frozenset[str] | None = None  # None: all
    owner: str | None = None  # None: all
    token_id: str = ""
    max_queries: int | None = None
    rows_per_second: int | None = None  # None: that of the service
    session: str = ""  # the digest of their session, if they are signed in to the console

    @classmethod
    def of(cls, token: Token, session: str = "") -> Caller:
        sets = None if token.sets is None else frozenset(token.sets)
        return cls(
            f"{token.name} ({token.id})", token.role, sets, token.owner, token.id, token.max_queries,
            token.rows_per_second, session,
        )  # fmt: skip

    def need(self, role: str, set_name: str | None = None) -> None:
        """Raise a problem unless the caller has a role, and the set is one of theirs."""
        if set_name is not None and self.sets is not None and set_name not in self.sets:
            raise Problem(404, "unknown_set", f"no set {set_name!r}, or the token is not for it")
        if ROLES.index(self.role) < ROLES.index(role):
            raise Problem(
                403, "forbidden", f"this needs a token with the role {role}; the role of this one is {self.role}"
            )

    def need_all_owners(self, role: str, set_name: str) -> None:
        """As `need`, and the caller must not be confined to an owner: rows are for the queries of all of them."""
        self.need(role, set_name)
        if self.owner is not None:
            raise Problem(403, "forbidden", "rows are for the queries of all owners; the token is confined to one")

    def sees(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a query with this metadata is one of theirs."""
        return self.owner is None or as_text(metadata.get(OWNER)) == self.owner

    def owners(self) -> list[Any]:
        """The values of the metadata that name the owner: a text, and the number or boolean that has this text."""
        try:
            value = json.loads(self.owner or "")
        except ValueError:
            return [self.owner]
        is_plain = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return [self.owner, value] if is_plain and as_text(value) == self.owner else [self.owner]


LOCAL = Caller(None, ADMIN)  # without tokens, on the loopback interface


class Tokens:
    """The tokens of the registry, as last read. Once a registry has had a token, every request needs one."""

    def __init__(self, database: Database, *, required: bool, port: int = 0) -> None:
        self.sessions = Sessions(port)
        self._database = database
        self._required = required
        self._lock = threading.Lock()
        self._by_id: dict[str, Token] = {}

    def refresh(self) -> None:
        """Read the tokens again. Not in the event loop."""
        with self._lock:  # also while reading, so that an older read never replaces a newer one
            self._by_id = {token.id: token for token in list_tokens(self._database)}

    @property
    def are_required(self) -> bool:
        return self._required or bool(self._by_id)

    @property
    def has_active(self) -> bool:
        now = datetime.now(UTC)
        return any(token.is_active(now) for token in self._by_id.values())

    def find(self, authorization: str | None, cookies: str = "") -> Caller:
        """The caller with these headers; a token precedes a cookie. Raises a problem with status 401."""
        if authorization is None:
            session = self.sessions.find(cookies) if cookies else None
            if session is not None and self._is_active(session.token_id):
                return Caller.of(self._by_id[session.token_id], session.digest)
            if not self.are_required:
                return LOCAL
            raise _unauthorized("this needs a token; send the header Authorization: Bearer vdt_...")
        scheme, _, text = authorization.partition(" ")
        token = self._by_id.get(id_of(text.strip()) or "") if scheme.lower() == "bearer" else None
        if token is None or not token.is_secret(text.strip()):
            raise _unauthorized("the token is unknown")
        if not token.is_active(datetime.now(UTC)):
            raise _unauthorized("the token is revoked" if token.revoked_at is not None else "the token has expired")
        return Caller.of(token)

    def still_allows(self, caller: Caller) -> bool:
        """Whether the token of a caller is still active, for requests that last long."""
        if not caller.token_id:
            return not self.are_required
        if caller.session and not self.sessions.is_active(caller.session):
            return False
        return self._is_active(caller.token_id)

    def _is_active(self, token_id: str) -> bool:
        token = self._by_id.get(token_id)
        return token is not None and token.is_active(datetime.now(UTC))


def _unauthorized(message: str) -> Problem:
    return Problem(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
