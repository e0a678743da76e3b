"""Runs the application with uvicorn until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from vedette.errors import PipelineError
from vedette.registry.registry import Registry
from vedette.serve.access import Tokens
from vedette.serve.app import make_app
from vedette.serve.connections import protocol_of
from vedette.serve.options import ServeOptions

_STOP_SECONDS = 30
_GARBAGE = (20_000, 20, 50)  # allocations before garbage is looked for: requests leave almost none
_SWITCH_SECONDS = 0.001  # that the event loop waits for a thread that computes; Python's own 0.005 delays answers


class Server(uvicorn.Server):
    """A server that ends the streams of events when it is told to stop; otherwise they would keep it waiting."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._on_start = on_start
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the current requests; at a second interrupt, at once. The exit code of a stop is 0."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._app.state.service.begin_stop)
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def check_address(registry: Registry, options: ServeOptions) -> None:
    """Raise PipelineError if other hosts could connect without a token."""
    if options.is_local:
        return
    tokens = Tokens(registry.database, required=True)
    tokens.refresh()
    if not tokens.has_active:
        raise PipelineError(
            f"is {options.host}, so other hosts can connect, and the registry has no active token; create one with "
            f"`vedette serve token create NAME --role admin`, or use 127.0.0.1",
            option="host",
        )


def serve(registry: Registry, options: ServeOptions, on_start: Callable[[str], None] = lambda address: None) -> None:
    """Answer requests until SIGTERM or SIGINT. Requests are finished, and states are written, before it returns.

    `on_start` gets the address of the console as soon as it answers. It must return at once.
    """
    check_address(registry, options)
    app = make_app(registry, options)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,
        http=protocol_of(options.max_connections),
        loop="uvloop",
        ws="websockets-sansio",
        ws_max_size=options.max_body_bytes or 1 << 30,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_keep_alive=75,
    )
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_GARBAGE)
    bound = _bind(options)
    with bound:
        server = Server(config, app, lambda: on_start(_address_of(bound)))
        server.run(sockets=[bound])
    if not server.started:
        raise PipelineError("the service did not start; its log says why")


def _address_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((options.host, options.port))
    except OSError as error:
        made.close()
        raise PipelineError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}; use another port with --port"
        ) from None
    return made
