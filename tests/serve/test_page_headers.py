"""What browsers are told about the console: it loads from its own host only, and no other page may show it."""

from __future__ import annotations

import re

import pytest

from vedette.errors import PipelineError
from vedette.serve.page_headers import PageHeaders
from vedette.serve.routes.console import FOLDER

SCRIPTS = sorted(FOLDER.rglob("*.js"))


@pytest.mark.parametrize(
    "path", ["/", "/console/js/app.js", "/console/css/theme.css", "/v1/sets", "/nosuch", "/healthz"]
)
def test_every_answer_has_the_policy(client, path):
    headers = client.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))

    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_console_needs_no_token_and_answers_nothing_but_its_files(alerts, registry):
    from vedette.registry.tokens import create_token

    create_token(registry.database, "ann", "read")
    alerts.run(alerts.service.poll())

    page = alerts.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert alerts.get("/console/js/app.js").headers["content-type"].startswith("text/javascript")
    for path in ("/console/../gate.py", "/console/%2e%2e/gate.py", "/console/..%2fgate.py", "/console/", "/console"):
        assert alerts.get(path).status_code in (401, 404), path
    assert alerts.get("/v1/status").status_code == 401


def test_refusals_have_the_policy_too(client):
    assert "content-security-policy" in client.get("/", headers={"host": "evil.example"}).headers


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/sets"), ("POST", "/v1/sets/alerts/rows")])
def test_a_request_that_fails_has_the_policy_too(alerts, monkeypatch, method, path):
    def fail(*given):
        raise RuntimeError("a fault")

    monkeypatch.setattr(alerts.service.registry, "sets", fail)
    monkeypatch.setattr(alerts.service.live["alerts"], "accept", fail)
    answer = alerts.request(method, path, json={})

    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_never_read_data_as_html_or_code(script):
    text = script.read_text()

    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.cookie\b", text
    )
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    for name in re.findall(r"""(?:from|import\()\s*["'](\.[^"']+)""", text):
        assert (script.parent / name).is_file(), name


def test_the_page_has_no_inline_script_or_style():
    page = (FOLDER / "index.html").read_text()

    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    for name in re.findall(r'(?:src|href)="/console/([^"]+)"', page):
        assert (FOLDER / name).is_file(), name


def test_a_tile_server_adds_its_host_to_the_images_and_nothing_else(open_client):
    client = open_client(tiles="https://tile.example.com:8443/a/{z}/{x}/{y}.png?key=1")
    policy = client.get("/").headers["content-security-policy"].split("; ")

    assert policy[:2] == ["default-src 'self'", "img-src 'self' https://tile.example.com:8443"]
    assert client.get("/v1/status").json()["tiles"].startswith("https://tile.example.com")


@pytest.mark.parametrize(
    "tiles",
    [
        "tile.example.com/{z}/{x}/{y}.png",
        "https://tile.example.com/1/2/3.png",
        "https://a b.example.com/{z}/{x}/{y}",
        "https://x;script-src */{z}/{x}/{y}",
        "https://*/{z}/{x}/{y}",
        "javascript://x/{z}/{x}/{y}",
        "https://[/{z}/{x}/{y}",
        "https://{s}.example.com/{z}/{x}/{y}.png",
    ],
)
def test_an_address_that_is_not_one_of_tiles_is_refused(tiles):
    with pytest.raises(PipelineError, match="tile server"):
        PageHeaders(tiles)
