"""Code blocks of a page, and how tests run them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    file: str  # the file that the block is the content of; else empty
    code: str

    @property
    def needs_spark(self) -> bool:
        return self.language == "python" and "vedette import spark" in self.code


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, by its path in the repository."""
    return [Block(*found.groups(default="")) for found in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


def run_python(page: str, *, spark: bool = False) -> dict[str, Any]:
    """Write the page's files and run its Python in the current folder; returns the names it defines.

    Without `spark`, blocks from the first one that imports vedette.spark on are left out.
    """
    scope: dict[str, Any] = {}
    for block in blocks(page):
        if block.needs_spark and not spark:
            break
        if block.file:
            write_file(block)
        elif block.language == "python":
            exec(compile(block.code, page, "exec"), scope)
    return scope


def write_file(block: Block) -> None:
    path = Path(block.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.code, encoding="utf-8")


def run_command(line: str, environment: dict[str, str]) -> str:
    """Run one line of a shell session; returns what it prints on standard output."""
    words = shlex.split(line, comments=True)
    if words[0] == "export":
        environment.update([words[1].split("=", 1)])
        return ""
    if words[0] == "vedette":
        words[:1] = [sys.executable, "-c", "from vedette.cli import main; main()"]
    found = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, f"{line}\n{found.stderr}"
    return found.stdout
