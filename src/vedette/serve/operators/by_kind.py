"""The table of operators by kind of set. To serve another operator, write its file and add a row."""

from __future__ import annotations

from vedette.registry.kinds import BAND_JOIN, BORDER, MOVING_JOIN, WINDOW_JOIN
from vedette.serve.operators.band_join import BandJoinOperator
from vedette.serve.operators.border import BorderOperator
from vedette.serve.operators.moving_join import MovingJoinOperator
from vedette.serve.operators.operator import Operator
from vedette.serve.operators.window_join import WindowJoinOperator
from vedette.serve.problems import Problem

OPERATORS: dict[str, type[Operator]] = {
    BORDER: BorderOperator,
    WINDOW_JOIN: WindowJoinOperator,
    BAND_JOIN: BandJoinOperator,
    MOVING_JOIN: MovingJoinOperator,
}


def operator_of(kind: str, name: str) -> type[Operator]:
    """The operator of a set. Raises a problem if sets of its kind have none."""
    if kind not in OPERATORS:
        raise Problem(
            409, "other_kind", f"set {name!r} is of kind {kind}; a monitor needs one of: {', '.join(OPERATORS)}"
        )
    return OPERATORS[kind]
