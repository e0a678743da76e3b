"""Which index answers for which queries, and why."""

from vedette.planner.choice import check_index_name
from vedette.planner.compilation import compile_part

__all__ = ["check_index_name", "compile_part"]
