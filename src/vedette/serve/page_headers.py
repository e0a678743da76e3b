"""The headers that tell a browser what a page of the service may do."""

from __future__ import annotations

# Scripts, styles, images and requests: of this host only, none inline. No other page may frame one of these.
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
OF_ALL: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
OF_SESSIONS = (*OF_ALL, (b"cache-control", b"no-store"))  # of answers to a person who is signed in
