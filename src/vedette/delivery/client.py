"""One try of a request over HTTP: a POST with a limit for the whole exchange, to an address that is allowed.

Redirects are not followed, at most a few kilobytes of a response are read, and nothing is decompressed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from vedette import __version__
from vedette.delivery.addresses import Allowed, RefusedAddressError
from vedette.delivery.retries import Answer, read_retry_after
from vedette.delivery.urls import host_of
from vedette.errors import shortened, shown
from vedette.extras import needs_extra

with needs_extra("webhook", "a webhook"):
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.resolver import ThreadedResolver

_MOST_READ = 4096  # bytes of a response
_DRAIN_SECONDS = 1.0  # for the rest of a response that does not matter
_LONGEST_REASON = 300
_HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": f"vedette/{__version__}",
    "Accept-Encoding": "identity",
}


class Client:
    """Connections to receivers. Use it in one event loop: `async with Client(allowed, 16) as client`."""

    def __init__(self, allowed: Allowed, connections: int) -> None:
        connector = aiohttp.TCPConnector(
            limit=connections, resolver=_CheckedResolver(allowed), socket_factory=_checked_sockets(allowed)
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # `post` has its own
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> Answer:
        """Send a request. All of the exchange, from the look-up of the host's name on, may take this time."""
        try:
            async with asyncio.timeout(seconds):
                response = await self._session.post(
                    url, data=body, headers={**_HEADERS, **headers}, allow_redirects=False
                )
        except TimeoutError:
            return Answer(reason=f"no response from {host_of(url)} within {seconds:.3g} s")
        except aiohttp.InvalidURL:
            return Answer(reason=f"the URL of host {host_of(url)} is invalid", is_final=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = _find_refusal(error)
            if refused is not None:
                return Answer(reason=f"{host_of(url)}: {refused}", is_final=True)
            return Answer(reason=f"{host_of(url)}: {_describe(error)}")
        try:
            return await _read(response)
        finally:
            response.close()  # a connection whose response was read to its end is already back in the pool


async def _read(response: aiohttp.ClientResponse) -> Answer:
    """The answer in a response. Its status decides; whatever happens to its content does not matter."""
    content = b""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while len(content) <= _MOST_READ:
                piece = await response.content.read(_MOST_READ + 1 - len(content))
                if not piece:
                    break
                content += piece
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        pass
    if 200 <= response.status < 300:
        return Answer(response.status)
    reason = f"{response.url.host}:{response.url.port} answered {response.status}"
    if 300 <= response.status < 400:
        reason += ", a redirect, which is not followed; use the URL that it leads to"
    elif content:
        reason += f": {shown(content.decode('utf-8', 'replace'), 200)}"
    after = read_retry_after(response.headers.get("Retry-After"))
    return Answer(response.status, shortened(reason, _LONGEST_REASON), after)


class _CheckedResolver(AbstractResolver):
    """Resolves names to allowed addresses only."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._resolver: ThreadedResolver | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self._resolver = self._resolver or ThreadedResolver()
        found = await self._resolver.resolve(host, port, family)
        kept = [each for each in found if self._allowed.refuses(each["host"]) is None]
        if found and not kept:
            self._allowed.check(found[0]["host"])
        return kept

    async def close(self) -> None:
        pass


def _checked_sockets(allowed: Allowed) -> Any:
    """A factory of sockets. It sees the address that a socket will connect to, also one that no resolver has seen."""

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        allowed.check(address[0])
        return socket.socket(family=family, type=kind, proto=protocol)

    return make


def _find_refusal(error: BaseException) -> RefusedAddressError | None:
    """The refused address that led to an error, if that was the cause."""
    seen: list[BaseException | None] = [error, getattr(error, "os_error", None), error.__cause__, error.__context__]
    return next((each for each in seen if isinstance(each, RefusedAddressError)), None)


def _describe(error: BaseException) -> str:
    os_error = getattr(error, "os_error", None) or error
    return shortened(str(getattr(os_error, "strerror", None) or error) or type(error).__name__, _LONGEST_REASON)
