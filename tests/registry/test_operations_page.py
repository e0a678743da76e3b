"""The commands on the operations page do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vedette as vd

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_the_commands_on_the_operations_page_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8").partition("## SQLite and PostgreSQL")[0]
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    codes = ["\n".join(line.removeprefix(indent) for line in code.splitlines()) for indent, code in blocks]
    names: dict[str, object] = {}
    for code in codes:
        exec(code, names)

    registry = names["registry"]
    assert isinstance(registry, vd.Registry)
    assert [(each.id, each.text) for each in registry.list("alerts")] == [("b", "price > 250"), ("c", "price > 300")]
    assert [each.text for each in registry.history("alerts", "cheap-ibm")] == [
        "symbol = 'IBM' AND price < 40",
        "symbol = 'IBM' AND price < 38",
    ]
    assert registry.set("alerts").version == 5
    registry.close()
