"""Checks that a Spark Connect server answers, before Spark's own client connects.

Spark's client would try for ten minutes, without output and without reacting to signals.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from vedette.errors import PipelineError

_PORT = 15002  # the default port of a server
_SECONDS = 10.0


def check_remote(remote: str) -> None:
    """Raise a retryable PipelineError if no server listens at an address sc://host:port."""
    try:
        parts = urlsplit(remote)
        host, port = parts.hostname or "", _PORT if parts.port is None else parts.port
        host.encode("idna")
    except ValueError:
        host, port = "", 0
    if not host or not port:
        raise PipelineError("the address is invalid; write sc://host or sc://host:15002")
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError as error:
        reason = error.strerror or error
        raise PipelineError(
            f"no Spark Connect server answers at {host}:{port}: {reason}; check that it is running and that this host "
            f"can connect to it",
            is_retryable=True,
        ) from None
