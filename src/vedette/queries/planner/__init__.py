"""Chooses which index serves which queries."""

from vedette.queries.planner.compilation import compile_part
from vedette.queries.planner.forced import check_index_name

__all__ = ["check_index_name", "compile_part"]
