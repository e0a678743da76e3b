"""The headers that tell a browser what a page of the service may do."""

from __future__ import annotations

from urllib.parse import urlsplit

from vedette.errors import PipelineError

_POLICY = ("object-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'")
_OF_SESSIONS = ((b"cache-control", b"no-store"),)  # of answers to a person who is signed in

Headers = tuple[tuple[bytes, bytes], ...]


class PageHeaders:
    """The headers of all answers, and of those to a person who is signed in.

    Scripts, styles, images and requests are of this host only, none inline, and no other page may frame one of these. A
    tile server adds its host to the images, and nothing else.
    """

    def __init__(self, tiles: str = "") -> None:
        images = [f"img-src 'self' {host_of_tiles(tiles)}"] if tiles else []
        policy = "; ".join(("default-src 'self'", *images, *_POLICY))
        self.of_all: Headers = (
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
        )
        self.of_sessions: Headers = (*self.of_all, *_OF_SESSIONS)


def host_of_tiles(tiles: str) -> str:
    """The scheme and host of the address of a tile server."""
    try:
        parts = urlsplit(tiles)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        is_address = False
    if not is_address or not all(each in parts.path for each in ("{z}", "{x}", "{y}")) or _has_more(parts.netloc):
        raise PipelineError(
            f"is {tiles!r}; it must be the address of a tile server, such as "
            f"https://tile.example.com/{{z}}/{{x}}/{{y}}.png, with one host",
            option="tiles",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _has_more(host: str) -> bool:
    """Whether a host has characters that would mean something in the policy."""
    return any(each in host for each in " ;,'\"{}*\t\n")
