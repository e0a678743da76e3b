"""The Spark Connect server that a pipeline's file names: whether one answers, asked before Spark's own client does.

That one tries for ten minutes, without a word and deaf to signals.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from vedette.errors import PipelineError

_PORT = 15002  # where a server listens that was told no other
_SECONDS = 10.0


def check_remote(remote: str) -> None:
    """Raise a PipelineError, which later may not be so, where an address sc://host:port has nobody who listens."""
    try:
        parts = urlsplit(remote)
        host, port = parts.hostname or "", _PORT if parts.port is None else parts.port
        host.encode("idna")
    except ValueError:
        host, port = "", 0
    if not host or not port:
        raise PipelineError("the address cannot be read; write it as in: sc://host, or sc://host:15002")
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError as error:
        reason = error.strerror or error
        raise PipelineError(
            f"no Spark Connect server answers at {host}:{port}: {reason}; is it running, and may this host reach it?",
            is_retryable=True,
        ) from None
