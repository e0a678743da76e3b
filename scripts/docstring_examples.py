"""Griffe extension: examples in docstrings become code blocks. Without it, Markdown would read `[...]` as links."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class DocstringExamples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)


def fence_examples(text: str) -> str:
    """The text with each run of `>>>` lines and their output in a code block."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
