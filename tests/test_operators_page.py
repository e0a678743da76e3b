"""Every example of docs/operators.md is run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"


def test_the_page_says_what_happens():
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)

    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples)

    assert result.failed == 0
    assert result.attempted > 30
