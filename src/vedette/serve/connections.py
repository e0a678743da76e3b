"""Connections to the service: one above the limit is answered at once, and closed."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vedette.serve.json_answers import dump
from vedette.serve.problems import Problem


def protocol_of(max_connections: int) -> type[HttpToolsProtocol]:
    """The protocol of connections of which so many may be open. 0 means no limit."""

    class Connection(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > max_connections > 0:
                transport.write(_refusal(max_connections))
                transport.close()

        def data_received(self, data: bytes) -> None:
            if not self.transport.is_closing():
                super().data_received(data)

    return Connection


def _refusal(most: int) -> bytes:
    message = f"{most:,} connections are open, the limit (--max-connections)"
    body = dump(Problem(429, "too_many_connections", message).content)
    head = f"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"retry-after: 1\r\nconnection: close\r\n\r\n" + body
