"""What is odd about a text, though it can be taken: it never matches, or always."""

from __future__ import annotations

import numpy as np

from vedette.language.compiler import CompiledTexts, compile_texts
from vedette.schema import Schema


def check_text(text: str, schema: Schema, time_zone: str = "UTC") -> list[str]:
    """Warnings about a text that can be taken; raises QueryError for one that cannot.

    >>> check_text("price > 5 AND price < 3", Schema.parse("price double"))
    ['never matches: no value of price lies in all its ranges']
    """
    compiled = compile_texts([text], schema, time_zone)
    if not compiled.blocks:
        return [f"never matches: {_why_never(text, schema, time_zone)}"]
    if compiled.residuals and not any(residual.fields for residual in compiled.residuals):
        return _check_constant(compiled)
    if any(not block.ranges for block in compiled.blocks) and not compiled.residuals:
        return ["always true: it matches every row, whatever its values"]
    return []


def _why_never(text: str, schema: Schema, time_zone: str) -> str:
    """The field without a value left, where one can be named."""
    from vedette.language.compiler import emptied_fields

    fields = emptied_fields(text, schema, time_zone)
    if fields:
        return f"no value of {' or '.join(fields)} lies in all its ranges"
    return "it is false or null for every row"


def _check_constant(compiled: CompiledTexts) -> list[str]:
    """A residual without fields has one answer for all rows."""
    nothing = np.zeros(1, np.int64)
    if all(residual.evaluate({}, nothing, nothing)[0].all() for residual in compiled.residuals):
        return [] if any(block.ranges for block in compiled.blocks) else ["always true: it matches every row"]
    return ["never matches: it is false or null for every row"]
