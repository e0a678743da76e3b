"""Evaluation of a typed expression over pairs of a row and a query, all pairs at once.

Branches are evaluated for all pairs, but a failure counts only where Spark would have taken the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.language.arithmetic import calculate
from vedette.language.casts import cast
from vedette.language.comparison import compare
from vedette.language.expressions import BOOLEAN, Typed
from vedette.language.function_table import EVALUATORS
from vedette.language.functions import Call, like
from vedette.language.geofences import POLYGON_TESTS
from vedette.language.polygons import Polygons
from vedette.language.raised import evaluate_apart, log_raised
from vedette.language.string_use import MAX_STRING_BYTES, StringUse
from vedette.language.vectors import Mask, Vector, choose, filler, join, strict

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "pmod")


def evaluate_rows(
    expression: Typed, zone: str, columns: dict[str, Column], n_rows: int
) -> Iterator[tuple[Column, int]]:
    """The values of an expression without literals for consecutive rows, in one or more parts.

    Each part has the number of its rows for which the evaluation failed or raised; they are null. So is a row whose
    strings would take more than `MAX_STRING_BYTES`. The memory of a part is bounded.
    """
    rows = np.arange(n_rows)
    if expression.op == "field":
        yield _evaluate_some_rows(expression, zone, columns, rows)
        return
    use = StringUse.of(expression)
    n_bytes = use.bytes_of(columns, (), rows, rows)
    for part in np.split(rows, use.cut(n_bytes)):
        if n_bytes[part].max(initial=0) > MAX_STRING_BYTES:  # then it is a single row
            yield Column(filler(expression.type, len(part)), np.zeros(len(part), np.bool_)), len(part)
        else:
            yield _evaluate_some_rows(expression, zone, columns, part)


def _evaluate_some_rows(
    expression: Typed, zone: str, columns: dict[str, Column], rows: NDArray[np.int64]
) -> tuple[Column, int]:
    try:
        result = Evaluation((), zone, columns, rows, rows, {}).of(expression)
    except MemoryError:
        raise
    except Exception:
        result = _evaluate_rows_apart(expression, zone, columns, rows)
    failed = 0 if result.failed is None else int(np.count_nonzero(result.failed))
    usable = result.usable
    return Column(result.values, None if usable.all() else usable), failed


def _evaluate_rows_apart(expression: Typed, zone: str, columns: dict[str, Column], rows: NDArray[np.int64]) -> Vector:
    values = filler(expression.type, len(rows))
    items: list[Any] | None = values.to_pylist() if isinstance(values, pa.Array) else None
    usable, failed = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)

    def evaluate(some: NDArray[np.int64]) -> None:
        result = Evaluation((), zone, columns, rows[some], rows[some], {}).of(expression)
        usable[some] = result.usable
        failed[some] = False if result.failed is None else result.failed
        if items is None:
            values[some] = result.values
        else:
            for row, text in zip(some.tolist(), result.values.to_pylist(), strict=True):
                items[row] = text

    raised = evaluate_apart(evaluate, np.arange(len(rows)))
    log_raised(expression, [-1] * min(1, len(raised)), [error for _, error in raised[:1]])
    return Vector(values if items is None else pa.array(items, pa.large_string()), usable | failed, failed)


@dataclass
class Evaluation:
    """Evaluates expressions for pairs: pair `j` is row `rows[j]` and the query `members[j]` of the constants.

    `polygons` are the constants of slots that are polygons, by slot.
    """

    constants: tuple[Any, ...]
    zone: str
    columns: dict[str, Column]
    rows: NDArray[np.int64]
    members: NDArray[np.int64]
    polygons: Mapping[int, Polygons]
    _known: dict[Typed, Vector] = field(default_factory=dict)

    def find_true(self, condition: Typed) -> tuple[NDArray[np.bool_], int]:
        """For which pairs the condition is TRUE, and for how many a comparison failed."""
        result = self.of(condition).settled()
        kept = result.values.astype(np.bool_) & result.usable
        return kept, 0 if result.lost is None else int(np.count_nonzero(result.lost))

    def of(self, node: Typed) -> Vector:
        """The values of an expression of any type."""
        known = self._known.get(node)
        if known is None:
            known = self._evaluate(node)
            if node.type == BOOLEAN and node.op != "cast":
                known = known.settled()
            self._known[node] = known
        return known

    def _evaluate(self, node: Typed) -> Vector:
        op = node.op
        if op == "field":
            column = self.columns[node.name]
            valid = None if column.valid is None else column.valid[self.rows]
            return Vector(_gather(column.values, self.rows), valid)
        if op == "slot":
            return Vector(_gather(self.constants[node.slot], self.members))
        if op == "constant":
            return self._constant(node)
        if op == "and" or op == "or":
            return self._logic([self._truth(arg) for arg in node.args], short=op == "or")
        if op == "not":
            inner = self._truth(node.args[0])
            return inner.with_values(~inner.values)
        if op == "case":
            return self._case(node)
        if op in POLYGON_TESTS:
            return self._polygon_test(node)
        args = [self.of(arg) for arg in node.args]
        if op in _COMPARISONS or op == "<=>":
            return compare(op, args[0], args[1], node.args[0].type)
        if op == "in":
            return self._membership(node, args)
        if op == "cast":
            return cast(args[0], node.args[0].type, node.type, self.zone)
        if op == "try":
            return self._try(node.args[0], args[0])
        if op in _ARITHMETIC:
            return calculate(op, args[0], args[1], node.args[0].type, node.args[1].type, node.type)
        evaluate = like if op == "like" else EVALUATORS[op]
        return evaluate(Call(args, node, self.zone))

    def _try(self, node: Typed, result: Vector) -> Vector:
        """Null where the operation itself failed. A failure in its operands stays a failure, as in Spark."""
        below = strict(None, *(self.of(arg) for arg in node.args)).failed
        own = result.failed if below is None or result.failed is None else result.failed & ~below
        if own is None:
            return result
        return Vector(result.values, ~result.nulls & ~own, below, result.lost)

    def _polygon_test(self, node: Typed) -> Vector:
        x, y = (self.of(arg) for arg in node.args[:2])
        polygons = self.polygons[node.args[2].slot]
        if isinstance(node.value, float):  # a margin around them
            return strict(polygons.are_near(self.members, x.values, y.values, node.value), x, y)
        return strict(polygons.contain(self.members, x.values, y.values, borders=node.op == "st_intersects"), x, y)

    def _truth(self, node: Typed) -> Vector:
        return self.of(node).settled()

    def _constant(self, node: Typed) -> Vector:
        n = len(self.rows)
        if node.value is None:
            type_ = node.type if node.type.name != "null" else BOOLEAN
            return Vector(filler(type_, n), np.zeros(n, np.bool_))
        return Vector(np.full(n, bool(node.value), np.bool_))

    def _logic(self, args: list[Vector], *, short: bool) -> Vector:
        """AND, or OR if `short` is True: from left to right until one argument has the value `short`."""
        n = len(self.rows)
        decided, unknown = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        lost: Mask | None = None
        for arg in args:
            if arg.lost is not None:
                lost = join(lost, arg.lost & ~decided)
            decided = decided | (arg.usable & (arg.values == short))
            unknown |= arg.nulls
        return Vector(decided if short else ~decided, decided | ~unknown, None, lost)

    def _case(self, node: Typed) -> Vector:
        n = len(self.rows)
        open_ = np.ones(n, np.bool_)
        values: Any = filler(node.type if node.type.name != "null" else BOOLEAN, n)
        valid, failed, lost = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        branches = [(self._truth(c), self.of(v)) for c, v in zip(node.args[:-1:2], node.args[1::2], strict=True)]
        branches.append((Vector(np.ones(n, np.bool_)), self.of(node.args[-1])))
        for condition, value in branches:
            if condition.lost is not None:
                lost |= condition.lost & open_
            taken = open_ & condition.usable & condition.values
            values = choose(node.type, taken, value.values, values)
            valid |= taken & ~value.nulls
            if value.failed is not None:
                failed |= taken & value.failed
            if value.lost is not None:
                lost |= taken & value.lost
            open_ &= ~taken
        return Vector(values, valid, failed if failed.any() else None, lost if lost.any() else None)

    def _membership(self, node: Typed, args: list[Vector]) -> Vector:
        """IN as a series of comparisons, from left to right until one is TRUE."""
        tests = [compare("=", args[0], arg, node.args[0].type).settled() for arg in args[1:]]
        return self._logic(tests, short=True)


def _gather(values: Any, places: NDArray[np.int64]) -> Any:
    if isinstance(values, pa.Array):
        return values.take(pa.array(places))
    return values[places]
