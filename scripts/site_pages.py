"""MkDocs hook: pages of the site that are not files in docs/.

README, ARCHITECTURE, CHANGELOG, CONTRIBUTING and the READMEs of the examples become pages. The command reference is
generated from the commands themselves, and the navigation lists one page per benchmark and decision. Links are
rewritten to the places that pages have in the site; a link to a file that has no page becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
COMMANDS = "<!-- commands -->"
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def find_pages() -> dict[str, str]:
    """Path in the site by path in the repository, for every page outside docs/."""
    pages = {"README.md": "index.md"}
    for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"):
        pages[f"{name}.md"] = f"{name.lower()}.md"
    for readme in sorted(ROOT.glob("examples/*/README.md")):
        pages[readme.relative_to(ROOT).as_posix()] = f"examples/{readme.parent.name}.md"
    return {path: place for path, place in pages.items() if (ROOT / path).exists()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put one entry per benchmark and decision into the navigation."""
    sys.path.insert(0, str(ROOT))
    for section in config.nav or []:
        for title, entries in section.items():
            if title == "Benchmarks":
                entries.extend(_list_benchmarks())
            elif title == "Explanation":
                decisions = sorted(path.name for path in ROOT.glob("docs/decisions/*.md"))
                entries.append({"Decisions": [f"decisions/{name}" for name in sorted(decisions, key=_index_first)]})
    return config


def _index_first(name: str) -> tuple[bool, str]:
    return name != "README.md", name


def _list_benchmarks() -> list[dict[str, list[dict[str, str]]]]:
    from benchmarks.targets import EXTRAS, PAPERS, TARGETS

    groups: dict[str, list[str]] = {"Targets": [target.key for target in TARGETS]}
    for target in PAPERS:
        groups.setdefault(target.work.partition(":")[0].partition(",")[0], []).append(target.key)
    groups["Beyond the targets"] = [target.key for target in EXTRAS]
    return [{title: [{key: f"benchmarks/{key}.md"} for key in keys]} for title, keys in groups.items()]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for path, place in find_pages().items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the commands, and rewrite links to the places of their pages."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, describe_commands())
    pages = find_pages()
    place = page.file.src_uri
    source = next((path for path, own in pages.items() if own == place), f"docs/{place}")
    return rewrite_links(markdown, source, place, pages)


def rewrite_links(markdown: str, source: str, place: str, pages: dict[str, str]) -> str:
    """The text of `source` with links as they are from `place` in the site."""

    def rewrite(found: re.Match[str]) -> str:
        image, label, target, anchor = found[1], found[2], found[3], found[4] or ""
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path.startswith("docs/") and (ROOT / path).is_dir():
            path += "/README.md"
        site_path = pages.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if site_path is None:
            return label if (ROOT / path).exists() else found[0]  # what does not exist stays, and fails the build
        return f"{image}[{label}]({posixpath.relpath(site_path, posixpath.dirname(place))}{anchor})"

    return _LINK.sub(rewrite, markdown)


def describe_commands() -> str:
    """Every command with its usage, help and options, as `--help` has them."""
    import typer

    from vedette.cli.app import app

    return "\n\n".join(_describe(typer.main.get_command(app), "vedette", None))


def _describe(command: Any, name: str, parent: Any) -> list[str]:
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=1000, max_content_width=1000)
    parts = []
    if parent is not None:
        usage = command.get_usage(context).removeprefix("Usage: ")
        parts = [f"## {context.command_path}", f"```text\n{usage}\n```", _as_markdown(command.help or "")]
    if hasattr(command, "list_commands"):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                parts += _describe(found, child, context)
        return parts
    by_panel: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            panel = getattr(param, "rich_help_panel", None) or ""
            by_panel.setdefault(panel, []).append(record)
    for panel, records in sorted(by_panel.items(), key=lambda item: item[0] != ""):
        lines = [f"| {panel or 'argument or option'} | |", "| --- | --- |"]
        lines += [f"| `{names.strip()}` | {_in_cell(text)} |" for names, text in records]
        parts.append("\n".join(lines))
    return parts


def _as_markdown(text: str) -> str:
    return text.replace("\b\n", "\n").replace("\f", "").strip()


def _in_cell(text: str) -> str:
    """The text with what Markdown would read as a table, a link or a tag escaped."""
    text = re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"\[([^\]]*)\]", r"\\[\1\\]", text)
