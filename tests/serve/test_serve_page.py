"""The examples of docs/serve.md are run against a service, and print what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
from docs_pages import blocks
from serve.conftest import Server

PAGE = "docs/serve.md"


def steps():
    """The commands of the page, each with the output that follows it."""
    found = []
    for block in blocks(PAGE):
        for line in block.code.splitlines() if block.language == "console" else ():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def as_pattern(lines):
    """The expected output. `...` stands for anything."""
    return ".*".join(re.escape(part) for part in "\n".join(lines).split("..."))


@pytest.mark.skipif(subprocess.run(["which", "curl"], capture_output=True).returncode != 0, reason="curl is missing")
def test_the_commands_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    install, start, *rest = steps()
    assert (install[0], start[0]) == ("pip install 'vedette[serve]'", "vedette serve")
    assert len(rest) > 12
    server = Server("sqlite:///vedette.db")
    command = " ".join(map(shlex.quote, [sys.executable, "-c", "from vedette.cli import main; main()"]))
    try:
        for line, expected in rest:
            line = line.replace("localhost:8080", f"localhost:{server.port}")
            shell = f'vedette() {{ {command} "$@"; }}\n{line}'
            done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=os.environ, timeout=60)
            assert done.returncode == 0, (line, done.stderr)
            assert re.fullmatch(as_pattern(expected), done.stdout.rstrip("\n"), re.DOTALL), (line, done.stdout)
    finally:
        server.kill()
