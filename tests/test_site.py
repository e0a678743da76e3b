"""The documentation site: every page is in the navigation, every link is valid, nothing is loaded from other hosts."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docs_pages import ROOT

import vedette as vd


class Links(HTMLParser):
    """What a page loads, and what it links."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video"):
            self.loads.add(found.get("src") or "")
        elif tag == "link" and found.get("rel") != "canonical":
            self.loads.add(found.get("href") or "")
        elif tag == "a" and found.get("href"):
            self.links.add(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in strict mode: a dead link, a missing anchor or a page outside the navigation is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    with warnings.catch_warnings(action="ignore"):
        build(config)
    return folder


@pytest.mark.full
def test_every_page_is_built(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages = {page.with_name("index.html") if page.name == "README.html" else page for page in pages}

    assert {str(page) for page in pages if not (site / page).exists()} == set()
    for page in ("index.html", "architecture.html", "changelog.html", "examples/geofence.html"):
        assert (site / page).exists(), page


@pytest.mark.full
def test_no_page_loads_anything_from_another_host(site):
    loads = {load for page in site.rglob("*.html") for load in Links(page).loads}

    assert len(loads) > 5
    assert {load for load in loads if re.match(r"(?:https?:)?//", load)} == set()
    assert not any('class="mermaid"' in page.read_text() for page in site.rglob("*.html"))  # its script is on a CDN


@pytest.mark.full
def test_every_page_can_be_reached_by_links_from_the_first_one(site):
    known, queue = {site / "index.html"}, [site / "index.html"]
    while queue:
        page = queue.pop()
        for link in Links(page).links:
            path = (page.parent / link.partition("#")[0]).resolve()
            if path.suffix == ".html" and path not in known and path.exists():
                known.add(path)
                queue.append(path)

    assert {page for page in site.rglob("*.html") if page.name != "404.html"} - known == set()


@pytest.mark.full
def test_every_command_is_on_the_page_of_commands(site):
    page = (site / "cli.html").read_text()

    for command in ("match", "border", "join", "moving", "run", "query-add", "registry-verify"):
        assert f'id="vedette-{command}"' in page
    assert "<code>--expire-after" in page


@pytest.mark.full
def test_the_api_page_names_every_public_class_and_only_members_that_exist(site):
    page = (ROOT / "docs" / "python.md").read_text()
    named = re.findall(r"^::: ([\w.]+)\n(?:    options:\n      members: \[(.*)\])?", page, re.MULTILINE)

    assert set(vd.__all__) - {"Schema"} <= {name.rpartition(".")[2] for name, _ in named} | set(
        re.findall(r"\w+Error", page)
    )
    for name, members in named:
        module, _, last = name.rpartition(".")
        owner = getattr(importlib.import_module(module), last)
        known = set(dir(owner)) | set(inspect.get_annotations(owner)) if inspect.isclass(owner) else set()
        assert set(filter(None, members.split(", "))) <= known, name
    assert "Could not" not in (site / "python.html").read_text()


@pytest.mark.parametrize(
    ("source", "place", "link", "expected"),
    [
        ("README.md", "index.md", "[x](docs/spark.md#time)", "[x](spark.md#time)"),
        ("README.md", "index.md", "![x](docs/geofence.png)", "![x](geofence.png)"),
        ("README.md", "index.md", "[x](docs/decisions/)", "[x](decisions/README.md)"),
        ("docs/spark.md", "spark.md", "[`p`](../examples/price_alerts.py)", "`p`"),
        ("docs/how-to/joins.md", "how-to/joins.md", "[x](../spark.md)", "[x](../spark.md)"),
        (
            "examples/geofence/README.md",
            "examples/geofence.md",
            "[x](../../ARCHITECTURE.md)",
            "[x](../architecture.md)",
        ),
        ("README.md", "index.md", "[x](docs/gone.txt)", "[x](gone.txt)"),
        ("README.md", "index.md", "[x](gone.txt)", "[x](gone.txt)"),
        ("README.md", "index.md", "[x](https://example.com/a.md)", "[x](https://example.com/a.md)"),
        ("README.md", "index.md", "[x](#try-it)", "[x](#try-it)"),
    ],
)
def test_links_are_rewritten_to_the_places_of_pages(source, place, link, expected):
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts" / "site_pages.py")
    site_pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site_pages)

    assert site_pages.rewrite_links(link, source, place, site_pages.find_pages()) == expected
