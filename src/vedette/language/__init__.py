"""The language of queries: Spark SQL conditions over a schema, compiled to boxes and residuals."""

from vedette.language.check import check_text
from vedette.language.compiler import CompiledTexts, compile_texts
from vedette.language.expressions import Typed
from vedette.language.links import Link
from vedette.language.raised import naming, renumbering
from vedette.language.residual import Residual, widen_fences

__all__ = [
    "CompiledTexts",
    "Link",
    "Residual",
    "Typed",
    "check_text",
    "compile_texts",
    "naming",
    "renumbering",
    "widen_fences",
]
