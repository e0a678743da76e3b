"""The tutorial is run from its first file to its last event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from docs_pages import Block, blocks, run_command, run_python, write_file

PAGE = "docs/tutorial.md"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_shell(block: Block, environment: dict[str, str]) -> None:
    for line in block.code.splitlines():
        run_command(line, environment)


def check_console(block: Block) -> None:
    """Each line after a dollar sign prints the lines below it."""
    for session in block.code.removeprefix("$ ").split("\n$ "):
        command, _, printed = session.partition("\n")
        assert run_command(command, {}).splitlines() == printed.splitlines()


def test_the_python_of_the_tutorial_gives_what_the_commands_give():
    names = run_python(PAGE)

    assert names["hits"].num_rows == 5
    assert names["events"].num_rows == 4


def test_the_commands_of_the_tutorial_print_what_it_shows():
    for block in blocks(PAGE):
        if block.file:
            write_file(block)
        elif block.language == "console":
            check_console(block)


@pytest.mark.full
def test_the_pipeline_of_the_tutorial_follows_its_set():
    environment: dict[str, str] = {}
    shown = []
    for block in blocks(PAGE):
        if block.file and not block.file.startswith("incoming"):
            write_file(block)
        elif block.file:
            second = block
        elif block.language == "sh" and "git clone" not in block.code:
            if "query add" in block.code:
                write_file(second)
            run_shell(block, environment)
        elif block.language == "json":
            shown += [json.loads(line) for line in block.code.splitlines()]

    events = [json.loads(line) for file in Path("events").glob("*.json") for line in file.read_text().splitlines()]
    assert len(events) == 7
    assert len(shown) == 4
    assert [event for event in shown if event not in events] == []
    assert sorted(event["version"] for event in events) == [1, 1, 1, 1, 2, 2, 2]
