"""A condition clause by clause, for one row: the truth of each, the row's values, and by how much it holds or misses.

Every truth value is that of the evaluator that also matches rows, so the root's is the answer of a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vedette.data.columns import Column
from vedette.language.evaluation import Evaluation
from vedette.language.expressions import QUANTIFIERS, Typed
from vedette.language.geofences import FENCES
from vedette.language.residual import Residual
from vedette.language.shown_values import show_value, to_json_value, to_python, write_literal
from vedette.language.string_use import MAX_STRING_BYTES
from vedette.language.vectors import Vector
from vedette.language.writing import is_hidden, write_expression

TRUE, FALSE, NULL, FAILED = "true", "false", "null", "failed"
_CONNECTIVES = ("and", "or", "not")
_ONE = np.zeros(1, np.int64)
_FAILS = "the evaluation fails, which counts as null"


@dataclass(frozen=True)
class Clause:
    """A part of a condition. AND, OR and NOT have clauses of their own."""

    text: str
    truth: str  # "true", "false", "null", or "failed": null because Spark would stop here in ANSI mode
    values: dict[str, Any] = field(default_factory=dict)  # of the row: its fields, and expressions of them
    distance: float | None = None  # from the border of the clause: numbers, seconds, or units of the coordinates
    detail: str = ""
    clauses: tuple[Clause, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The clause as JSON has it."""
        return {
            "clause": self.text,
            "truth": self.truth,
            "values": {name: to_json_value(value) for name, value in self.values.items()},
            "distance": self.distance,
            "detail": self.detail,
            "clauses": [each.to_dict() for each in self.clauses],
        }

    def lines(self, depth: int = 0) -> Iterator[tuple[str, str, str]]:
        """The truth, the indented text and the detail of this clause and those below it."""
        yield self.truth, "  " * depth + self.text, self.detail
        for each in self.clauses:
            yield from each.lines(depth + 1)


def read_clauses(condition: Residual, columns: dict[str, Column]) -> Clause:
    """The clauses of a condition of one query for the first row of the columns."""
    n_bytes = int(condition.string_use.bytes_of(columns, condition.constants, _ONE, _ONE)[0])
    evaluation = Evaluation(condition.constants, condition.time_zone, columns, _ONE, _ONE, condition.polygons)
    reader = ClauseReader(condition, evaluation)
    if n_bytes > MAX_STRING_BYTES:
        reason = f"its strings would take {n_bytes:,} bytes, more than {MAX_STRING_BYTES:,}; it counts as null"
        return Clause(reader.write(condition.expression), FAILED, detail=reason)
    return reader.read(condition.expression)


class ClauseReader:
    """Reads the clauses of one condition from an evaluation of one row, or of the elements of one array."""

    def __init__(self, condition: Residual, evaluation: Evaluation) -> None:
        self.condition = condition
        self.evaluation = evaluation

    def read(self, node: Typed) -> Clause:
        truth = self.truth(node)
        if node.op in _CONNECTIVES and not _is_one_test(node):
            return Clause(node.op.upper(), truth, clauses=tuple(map(self.read, node.args)))
        test = node.args[0] if node.op == "not" else node
        values = dict(self._values(test))
        shown = ", ".join(f"{name} is {show_value(value)}" for name, value in values.items())
        if truth == FAILED:
            return Clause(self.write(node), truth, values, None, "; ".join(filter(None, (shown, _FAILS))))
        distance, words = (None, "") if truth == NULL and test.op not in QUANTIFIERS else self._measure(test)
        return Clause(self.write(node), truth, values, distance, ", ".join(filter(None, (shown, words))))

    def truth(self, node: Typed) -> str:
        """The truth of a condition."""
        vector = self.vector(node)
        if vector is None:
            return FAILED
        vector = vector.settled()
        if vector.usable[0]:
            return TRUE if vector.values[0] else FALSE
        return NULL if vector.lost is None or not vector.lost[0] else FAILED

    def vector(self, node: Typed) -> Vector | None:
        """The value of a node; None if its evaluation raises, which a match counts as failed."""
        try:
            return self.evaluation.of(node)
        except MemoryError:
            raise
        except Exception:
            return None

    def value(self, node: Typed) -> Any:
        """The value as a Python object; None if it is null or failed."""
        vector = self.vector(node)
        if vector is None or not vector.usable[0]:
            return None
        return to_python(vector.values, node.type, self.condition.time_zone)

    def write(self, node: Typed) -> str:
        return write_expression(node, self._write_slot)

    def _write_slot(self, slot: Typed) -> str:
        value = to_python(self.condition.constants[slot.slot], slot.type, self.condition.time_zone)
        return write_literal(value, slot.type)

    def _values(self, test: Typed) -> Iterator[tuple[str, Any]]:
        """The fields of a test, and operands that are calculated from them."""
        for node in test.walk():
            if node.op == "field":
                yield self.write(node), self.value(node)
        for arg in test.args if test.op not in (*QUANTIFIERS, *FENCES, "case") else ():
            inner = arg
            while is_hidden(inner):
                inner = inner.args[0]
            is_calculated = inner.op not in ("field", "element", "slot", "constant")
            if is_calculated and any(node.op in ("field", "element") for node in inner.walk()):
                yield self.write(inner), self.value(inner)

    def _measure(self, test: Typed) -> tuple[float | None, str]:
        from vedette.language.distances import measure

        return measure(self, test)


def _is_one_test(node: Typed) -> bool:
    """Whether a NOT belongs to a test, as in NOT IN."""
    return node.op == "not" and node.args[0].op in ("in", "like", "isnull")
