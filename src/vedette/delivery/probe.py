"""Whether a receiver can be reached, before a stream starts."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from vedette.delivery.addresses import Allowed
from vedette.delivery.urls import host_of, port_of
from vedette.errors import PipelineError

_SECONDS = 3.0


def find_obstacle(url: str, allowed: Allowed) -> str | None:
    """Why a connection to the host of a valid URL fails now; None if it succeeds. Nothing is sent.

    Raises PipelineError if the host has no address that is allowed.
    """
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, port_of(parts), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return f"the host of {host_of(url)} cannot be found: {getattr(error, 'strerror', None) or error}"
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    reasons = [allowed.refuses(address) for address in addresses]
    if all(reasons):
        raise PipelineError(f"leads to host {parts.hostname}, which is refused: {reasons[0]}", option="url")
    address = next(address for address, reason in zip(addresses, reasons, strict=True) if reason is None)
    try:
        socket.create_connection((address, port_of(parts)), _SECONDS).close()
    except OSError as error:
        return f"{host_of(url)} cannot be reached: {error.strerror or error}"
    return None
