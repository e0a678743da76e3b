"""A service in this process, through ASGI, and a service in a process of its own, on a loopback port."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import vedette as vd
from tests.ports import free_port
from vedette.serve.app import make_app
from vedette.serve.options import ServeOptions

SCHEMA = "symbol string, price double, ts timestamp"
LINES = {"content-type": "application/x-ndjson"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


class Client:
    """Requests to an application, without a socket. Its lifespan runs in an event loop of its own."""

    def __init__(self, registry: vd.Registry, options: ServeOptions) -> None:
        self.app = make_app(registry, options)
        self.service = self.app.state.service
        self.headers: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._lifespan = self.app.router.lifespan_context(self.app)
        try:
            self._loop.run_until_complete(self._lifespan.__aenter__())
        except BaseException:
            self._end_loop()
            raise
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        options["headers"] = {**self.headers, **(options.get("headers") or {})}
        return self.run(self._client.request(method, path, **options))

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    async def together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """The answers to requests that are sent at the same time."""
        return list(await asyncio.gather(*(self._client.request(verb, path, **more) for verb, path, more in requests)))

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.run(self._client.aclose())
        self.run(self._lifespan.__aexit__(None, None, None))
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Socket:
    """A WebSocket of an application, without a connection: messages to it, and those that it has sent."""

    def __init__(self, client: Client, path: str, headers: dict[str, str] | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self._to_send: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        path, _, query = path.partition("?")
        given = {"host": "localhost", **(headers or {})}
        scope = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "subprotocols": [],
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        self.put("connect")
        self._handler = client._loop.create_task(client.app(scope, self._to_send.get, self.send))

    def put(self, kind: str, **message: Any) -> None:
        self._to_send.put_nowait({"type": f"websocket.{kind}", **message})

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def wait_for(self, n_sent: int) -> None:
        async with asyncio.timeout(10):
            while len(self.sent) < n_sent:
                await asyncio.sleep(0.005)

    async def end(self) -> None:
        """Wait until the application has ended it."""
        await asyncio.wait_for(self._handler, 10)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[vd.Registry]:
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    yield made
    made.close()


@pytest.fixture
def open_client(registry: vd.Registry, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Opens clients with options; a second one continues the state of the first, which must be closed."""
    opened: list[Client] = []

    def open_one(**options: Any) -> Client:
        opened.append(Client(registry, ServeOptions(state=tmp_path / "state", **options)))
        return opened[-1]

    yield open_one
    for client in opened:
        client.close()


@pytest.fixture
def client(open_client: Callable[..., Client]) -> Client:
    return open_client()


@pytest.fixture
def alerts(client: Client) -> Client:
    """A client of a service with a set of kind border, and a monitor of it."""
    return with_alerts(client)


def with_alerts(client: Client) -> Client:
    assert client.post("/v1/sets", json={"name": "alerts", "kind": "border", "schema": SCHEMA}).status_code == 201
    for query in (
        {"id": "cheap", "where": "price < 40", "metadata": {"owner": "ann"}},
        {"id": "ibm", "where": "symbol = 'IBM' AND price > 30", "metadata": {"owner": "bob"}},
    ):
        assert client.post("/v1/sets/alerts/queries", json=query).status_code == 201
    made = client.put("/v1/sets/alerts/monitor", json={"key": "symbol", "time": "ts", "columns": ["price"]})
    assert made.status_code == 201
    return client


class Server:
    """`vedette serve` in a process."""

    def __init__(self, registry: str, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-c", "from vedette.cli import main; main()", "serve", "--registry", registry]
        self.log = Path(registry.removeprefix("sqlite:///")).with_suffix(".log")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, "--port", str(self.port), *options], stderr=log)
        deadline = time.monotonic() + 60
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.log.read_text()[-3000:])
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        """End it as an operator does; returns the exit code."""
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*options: str) -> Server:
        started.append(Server(f"sqlite:///{tmp_path / 'alerts.db'}", *options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.kill()
