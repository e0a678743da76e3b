"""Every example of docs/papers.md is run, and every argument that it names is one."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

from vedette.indexes.names import INDEXES

CLASSES = {index.__name__: index for index in INDEXES.values()}
PAGE = Path(__file__).parent.parent / "docs" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_says_what_happens():
    blocks = re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)

    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples)

    assert result.failed == 0
    assert result.attempted > 10


def test_every_argument_on_the_page_is_one_of_its_call():
    rows = re.findall(r"^\| ((?:`\w+\.\w+`(?:, )?)+) \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert {argument for _, argument in rows} == {"longest", "decomposition", "n_places", "segment_cells", "n_dc"}
    for calls, argument in rows:
        for owner, method in re.findall(r"`(\w+)\.(\w+)`", calls):
            assert argument in inspect.signature(getattr(CLASSES[owner], method)).parameters
