"""Other ways to join two windows than by ordered lists, taken where they are asked for: those of Lim et al."""

from __future__ import annotations

from vedette.operators.window_joins.shared_joins import IBSJS
from vedette.operators.window_joins.spatial_join_windows import SJJoin

# By the name under which they are asked for.
ALGORITHMS: dict[str, type[SJJoin] | type[IBSJS]] = {"SJ-Join": SJJoin, "IBS-JS": IBSJS}

__all__ = ["ALGORITHMS", "IBSJS", "SJJoin"]
