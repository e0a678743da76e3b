"""Debian's Chromium, driven by Playwright, at the console of a service in a process of its own.

One browser serves a module; each test has a profile of its own. A test fails if the page logs an error, breaks
its Content-Security-Policy, or sends a request to another host.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from serve.conftest import Server

CHROMIUM = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 375, "height": 740}
TICKS = "symbol string, price double, ts timestamp"


def shoot(page: Any, name: str, *, full_page: bool = True) -> None:
    """Write a picture for docs/console.md, if VEDETTE_SCREENSHOTS names a folder."""
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full_page)


def check_axe(page: Any) -> None:
    """Fail if axe reports something serious."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


def find_chromium() -> str | None:
    return os.environ.get("VEDETTE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


@pytest.fixture(scope="module")  # its event loop is of the thread, so it must end before tests with another loop
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: pip install 'vedette[dev]'")
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is missing: apt-get install chromium, or set VEDETTE_CHROMIUM to its path")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=[*ARGUMENTS])
        yield opened
        opened.close()


class Watched:
    """A page, and what it did that it must not do."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.faults: list[str] = []
        self.allowed: list[str] = []  # parts of messages that a test expects
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", self._note_request)

    def _note_message(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def _note_request(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.faults.append(f"request to another host: {request.url}")

    def open(self, address: str = "") -> Any:
        """Go to a page of the console, such as sets/alerts, and wait until it is shown."""
        self.page.goto(f"{self.url}/#/{address}")
        self.page.wait_for_selector("main:not([aria-busy]) h1")
        return self.page

    def check(self) -> None:
        assert [each for each in self.faults if not any(part in each for part in self.allowed)] == []


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Opens pages of a server, each with its own cookies. Their faults are checked at the end of the test."""
    opened: list[tuple[Any, Watched]] = []

    def open_one(server: Server, *, viewport: dict[str, int] = DESKTOP, theme: str = "light") -> Watched:
        context = browser.new_context(viewport=viewport, color_scheme=theme, locale="en-GB", timezone_id="UTC")
        context.set_default_timeout(15_000)
        watched = Watched(context.new_page(), server.url)
        opened.append((context, watched))
        return watched

    yield open_one
    for context, _ in opened:
        context.close()
    for _, watched in opened:
        watched.check()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without tokens, which the tests of a session share. Each makes sets of its own."""
    folder: Path = tmp_path_factory.mktemp("console")
    started = Server(f"sqlite:///{folder / 'console.db'}", "--no-open", "--allow-address", "127.0.0.0/8")
    yield started
    started.stop()


@pytest.fixture
def api(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client


def make_alerts(api: httpx.Client, name: str) -> None:
    """A monitored set with two alerts."""
    for method, path, body in (
        ("POST", "/v1/sets", {"name": name, "kind": "border", "schema": TICKS}),
        ("POST", f"/v1/sets/{name}/queries", {"id": "cheap", "where": "price < 20", "metadata": {"owner": "ann"}}),
        ("POST", f"/v1/sets/{name}/queries", {"id": "ibm", "where": "symbol = 'IBM' AND price > 30"}),
        ("PUT", f"/v1/sets/{name}/monitor", {"key": "symbol", "time": "ts", "columns": ["price"]}),
    ):
        answer = api.request(method, path, json=body)
        assert answer.status_code == 201, answer.text
