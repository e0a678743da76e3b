"""Whether Spark runs on this host only, or also on other hosts, which cannot read this host's files."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from vedette.pipeline.file import SparkPart

_LOCAL = re.compile(r"local($|\[|-cluster\[)")
_ADDRESS = re.compile(r"(?:sc|spark)://([^/;]*)")


def remote_setting(part: SparkPart) -> str | None:
    """The key and value that make Spark run on other hosts; None if there is no such key.

    A server at an address of this host counts as local, although its workers may be on other hosts.
    """
    if part.remote is not None:
        key, where = "spark.remote", part.remote
    elif "spark.master" in part.settings:  # it overrides the key `master`
        key, where = 'spark.settings."spark.master"', str(part.settings["spark.master"])
    else:
        key, where = "spark.master", part.master or "local[*]"
    return None if _is_local(where) else f"{key} is {without_token(where)!r}"


def without_token(where: str) -> str:
    """An address without its parameters, which may contain a token."""
    return where.partition("/;")[0]


def _is_local(where: str) -> bool:
    if _LOCAL.match(where):
        return True
    found = _ADDRESS.match(where)
    return found is not None and all(_is_own(host) for host in found[1].split(","))


def _is_own(address: str) -> bool:
    """Whether host:port is on this host: only its own addresses can be bound."""
    try:
        host = urlsplit(f"//{address}").hostname or ""
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return True  # connecting to it will report the error
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as one:
                one.bind((place[0], 0, *place[2:]))
                return True
        except OSError:
            continue
    return False
