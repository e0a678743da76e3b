"""Sessions of the console: a cookie stands for a token, which the browser does not keep.

A cookie is random. The process has its digest and the id of the token, so a revoked or expired token ends its sessions,
and so does a restart.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass

LIFE_SECONDS = 12 * 3600
_MOST = 10_000  # then the oldest ends
# Another page cannot send this header without a permission that the service never gives. Its presence is what counts.
PAGE_HEADER = "x-vedette-console"


@dataclass(frozen=True)
class Session:
    """One sign-in."""

    digest: str
    token_id: str
    ends: float  # seconds, by time.time


class Sessions:
    """The sessions of one service. In the event loop only."""

    def __init__(self, port: int = 0) -> None:
        self.cookie = f"vedette_session_{port}"  # browsers share cookies between the ports of a host
        self._by_digest: dict[str, Session] = {}

    def create(self, token_id: str) -> str:
        """Begin a session. Returns the value of its cookie."""
        value = secrets.token_urlsafe(32)
        session = Session(_digest(value), token_id, time.time() + LIFE_SECONDS)
        if len(self._by_digest) >= _MOST:
            del self._by_digest[next(iter(self._by_digest))]
        self._by_digest[session.digest] = session
        return value

    def find(self, cookies: str) -> Session | None:
        """The session of a request with this Cookie header."""
        for each in cookies.split(";"):
            name, _, value = each.strip().partition("=")
            if name == self.cookie and self.is_active(digest := _digest(value)):
                return self._by_digest[digest]
        return None

    def is_active(self, digest: str) -> bool:
        """Whether a session has neither ended nor expired."""
        session = self._by_digest.get(digest)
        if session is not None and session.ends <= time.time():
            del self._by_digest[digest]
            session = None
        return session is not None

    def end(self, digest: str) -> None:
        """Sign out."""
        self._by_digest.pop(digest, None)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode(errors="replace")).hexdigest()
