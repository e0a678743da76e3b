"""The language of queries: Spark SQL conditions over a schema, compiled to boxes and residuals."""

from vedette.language.check import check_text
from vedette.language.clauses import Clause, read_clauses
from vedette.language.compiler import CompiledTexts, compile_texts, condition_of_text
from vedette.language.conditions import condition_of_boxes
from vedette.language.expressions import Typed
from vedette.language.links import Link
from vedette.language.raised import naming, renumbering
from vedette.language.residual import Residual, fences_on_earth, widen_fences, widen_fences_on_earth
from vedette.language.shown_values import show_value, to_json_value, to_python

__all__ = [
    "Clause",
    "CompiledTexts",
    "Link",
    "Residual",
    "Typed",
    "check_text",
    "compile_texts",
    "condition_of_boxes",
    "condition_of_text",
    "fences_on_earth",
    "naming",
    "read_clauses",
    "renumbering",
    "show_value",
    "to_json_value",
    "to_python",
    "widen_fences",
    "widen_fences_on_earth",
]
