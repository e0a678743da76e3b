"""URLs of webhooks: which are valid, and how messages show them."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from vedette.errors import shown

_PORTS = {"http": 80, "https": 443}
_LONGEST = 2000


def find_fault(url: str) -> str | None:
    """Why a text is not the URL of a webhook; None if it is.

    >>> find_fault("https://example.com/hook")
    >>> find_fault("ftp://example.com")
    "'ftp://example.com' has the scheme 'ftp'; use https://, or http://"
    """
    parts = _split(url)
    if parts is None or len(url) > _LONGEST or any(c.isspace() or not c.isprintable() for c in url):
        return f"{shown(url)} is not a URL such as https://example.com/hook"
    if parts.scheme not in _PORTS:
        return f"{shown(url)} has the scheme {parts.scheme!r}; use https://, or http://"
    if not parts.hostname:
        return f"{shown(url)} has no host; write a URL such as https://example.com/hook"
    if parts.username is not None or parts.password is not None:
        return f"the URL of host {parts.hostname} has a user or a password; requests are signed instead, with a secret"
    if parts.fragment:
        return f"{shown(url)} has a fragment (#...), which is never sent; omit it"
    return None


def host_of(url: str) -> str:
    """The host and port of a URL. Messages and logs show only these: a path may be secret."""
    parts = _split(url)
    return "?" if parts is None or not parts.hostname else f"{parts.hostname}:{port_of(parts)}"


def port_of(parts: SplitResult) -> int:
    return parts.port or _PORTS.get(parts.scheme, 0)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.hostname  # each may raise
    except ValueError:
        return None
    return parts
