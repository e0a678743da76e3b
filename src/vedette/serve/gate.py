"""What every request passes first: its host and origin, its token, the limits on requests and bodies; log and metrics.

This is plain ASGI, since it is on the path of every row.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vedette.serve.page_headers import PageHeaders
from vedette.serve.problems import Problem, refuse_socket
from vedette.serve.service import Service
from vedette.serve.sessions import PAGE_HEADER

_OPEN = ("/healthz", "/readyz", "/")  # without a token, as is the console; what it shows comes from other paths
_OPEN_FOLDER = "/console/"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_OWN_PAGES = ("same-origin", "none")
_MOST_DIGITS = 18  # of a length
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_log = logging.getLogger("vedette.serve.requests")


class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._headers = PageHeaders(service.options.tiles)
        self._counters: dict[tuple[str, str, int], tuple[Any, Any]] = {}  # by method, route and status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, start, status = self._service, time.perf_counter(), 500
        more, body = self._headers.of_all, None

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *more]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        service.n_requests += 1
        try:
            try:
                headers = _headers(scope)
                self._check(scope, headers)
                state = scope.setdefault("state", {})
                state["headers"] = headers
                if scope["path"] not in _OPEN and not scope["path"].startswith(_OPEN_FOLDER):
                    caller = service.tokens.find(headers.get("authorization"), headers.get("cookie", ""))
                    if caller.session:
                        _check_page(scope, headers)
                        more = self._headers.of_sessions
                    state["caller"] = caller
            except Problem as problem:
                status = problem.status_code
                await _refuse(problem, scope, receive, send_noting)
                return
            body = _Body(receive, service)
            await self._app(scope, body.receive, send_noting)
        finally:
            service.n_body_bytes -= 0 if body is None else body.n_bytes
            service.n_requests -= 1
            self._note(scope, status, time.perf_counter() - start)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raise a problem if the request comes from a foreign page, or exceeds a limit."""
        options = self._service.options
        most = options.max_requests
        if most and self._service.n_requests > most and scope["path"] not in _OPEN:
            raise Problem(429, "too_many_requests", f"more than {most:,} requests at once, the limit (--max-requests)")
        host = headers.get("host", "")
        if options.is_local and not self._service.tokens.are_required and _name_of(host) not in _LOCAL_HOSTS:
            raise Problem(403, "foreign_host", "without tokens, the service answers requests to localhost only")
        origin = headers.get("origin")
        if origin is not None and _host_of(origin) != host:
            raise Problem(403, "foreign_origin", "requests from pages of another host are refused")
        length = headers.get("content-length", "0")
        is_long = len(length) > _MOST_DIGITS or (length.isdecimal() and int(length) > options.max_body_bytes)
        if is_long and options.max_body_bytes > 0:
            raise _too_large(options.max_body_bytes)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or getattr(scope.get("endpoint"), "path", None) or "other"
        method = scope.get("method", "WEBSOCKET")
        counters = self._counters.get((method, route, status))
        if counters is None:
            metrics = self._service.metrics
            counters = metrics.requests.labels(method, route, str(status)), metrics.seconds.labels(route)
            self._counters[method, route, status] = counters
        counters[0].inc()
        counters[1].observe(seconds)
        if _log.isEnabledFor(logging.INFO):
            caller = scope.get("state", {}).get("caller")
            facts = {
                "method": method,
                "path": scope["path"],
                "status": status,
                "milliseconds": round(1000 * seconds, 3),
                "token": getattr(caller, "token_id", None) or None,
            }
            _log.info("request", extra={"facts": facts})


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _check_page(scope: Scope, headers: dict[str, str]) -> None:
    """Raise a problem if a request with a cookie may come from another page than the console."""
    is_safe = scope.get("method") in _SAFE_METHODS or (scope["type"] == "websocket" and "origin" in headers)
    if headers.get("sec-fetch-site", "none") not in _OWN_PAGES or not (is_safe or PAGE_HEADER in headers):
        raise Problem(
            403, "foreign_page", f"a request that is signed in by cookie needs the header {PAGE_HEADER}; send a token"
        )


def _name_of(host: str) -> str:
    """A host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _host_of(origin: str) -> str | None:
    """The host of an origin with its port. None if it is not a URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


class _Body:
    """The body of a request, as it is received. Raises a problem once it is too large, whatever its headers say."""

    def __init__(self, receive: Receive, service: Service) -> None:
        self._receive, self._service = receive, service
        self.n_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            n_bytes = len(message.get("body", b""))
            self.n_bytes += n_bytes
            self._service.n_body_bytes += n_bytes
            most = self._service.options.max_body_bytes
            if self.n_bytes > most > 0:
                raise _too_large(most)
            self._service.check_waiting()
        return message


def _too_large(most: int) -> Problem:
    return Problem(413, "body_too_large", f"the body has more than {most:,} bytes, the limit (--max-body-bytes)")


async def _refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await refuse_socket(problem, scope, send)
    else:
        await problem.to_response()(scope, receive, send)
