"""Evaluation of a typed expression over pairs of a row and a query, all pairs at once.

Branches are evaluated for all pairs, but a failure counts only where Spark would have taken the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.list_axes import element_values, flatten
from vedette.language.arithmetic import calculate
from vedette.language.casts import cast
from vedette.language.comparison import compare
from vedette.language.expressions import BOOLEAN, QUANTIFIERS, TIMESTAMP_NTZ, Typed, field_in
from vedette.language.fence_bounds import is_longitude
from vedette.language.function_table import EVALUATORS
from vedette.language.functions.arrays import subscript
from vedette.language.functions.function import Call
from vedette.language.functions.geofences import is_sign
from vedette.language.functions.search import like
from vedette.language.geofences import POLYGON_TESTS, DistanceTest, Metres, distance_test
from vedette.language.local_times import UNWRAPPED, cast_side, compare_unwrapped
from vedette.language.polygons import Polygons
from vedette.language.raised import evaluate_apart, log_raised
from vedette.language.string_use import MAX_STRING_BYTES, StringUse
from vedette.language.vectors import Mask, Vector, choose, filler, join, strict

if TYPE_CHECKING:
    from vedette.language.geodesics import Circles

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_OPERATORS = {"like": like, "[]": subscript}
_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "pmod")


def evaluate_rows(
    expression: Typed, zone: str, columns: dict[str, Column], n_rows: int, constants: tuple[Any, ...] = ()
) -> Iterator[tuple[Column, Mask]]:
    """The values of an expression for consecutive rows, in one or more parts. Its slots have one constant each.

    Each part has a mask of its rows for which the evaluation failed or raised; they are null. So is a row whose
    strings would take more than `MAX_STRING_BYTES`. The memory of a part is bounded.
    """
    rows = np.arange(n_rows)
    if expression.op == "field":
        yield _evaluate_some_rows(expression, zone, columns, rows, constants)
        return
    use = StringUse.of(expression)
    n_bytes = use.bytes_of(columns, constants, rows, np.zeros_like(rows))
    for part in np.split(rows, use.cut(n_bytes)):
        if n_bytes[part].max(initial=0) > MAX_STRING_BYTES:  # then it is a single row
            yield (
                Column(filler(expression.type, len(part)), np.zeros(len(part), np.bool_)),
                np.ones(len(part), np.bool_),
            )
        else:
            yield _evaluate_some_rows(expression, zone, columns, part, constants)


def _evaluate_some_rows(
    expression: Typed, zone: str, columns: dict[str, Column], rows: NDArray[np.int64], constants: tuple[Any, ...]
) -> tuple[Column, Mask]:
    try:
        result = Evaluation(constants, zone, columns, rows, np.zeros_like(rows), {}).of(expression)
    except MemoryError:
        raise
    except Exception:
        result = _evaluate_rows_apart(expression, zone, columns, rows, constants)
    failed = np.zeros(len(rows), np.bool_) if result.failed is None else result.failed
    usable = result.usable
    return Column(result.values, None if usable.all() else usable), failed


def _evaluate_rows_apart(
    expression: Typed, zone: str, columns: dict[str, Column], rows: NDArray[np.int64], constants: tuple[Any, ...]
) -> Vector:
    values = filler(expression.type, len(rows))
    items: list[Any] | None = values.to_pylist() if isinstance(values, pa.Array) else None
    usable, failed = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)

    def evaluate(some: NDArray[np.int64]) -> None:
        result = Evaluation(constants, zone, columns, rows[some], np.zeros_like(some), {}).of(expression)
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
    elements: Mapping[str, Vector] = field(default_factory=dict)  # of arrays, by the name of the `element` node
    circles: dict[Typed, Circles] = field(default_factory=dict)  # of comparisons, made when first needed
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
        if op == "element":
            return self.elements[node.name]
        if op in QUANTIFIERS:
            return self._quantify(node)
        if op in POLYGON_TESTS:
            return self._polygon_test(node)
        test = distance_test(node)
        if test is not None:
            return self._distance_test(node, test)
        args = [self.of(arg) for arg in node.args]
        if op in _COMPARISONS or op == "<=>":
            if node.value == UNWRAPPED:
                local = self.of(node.args[cast_side(node)].args[0])
                return compare_unwrapped(node, (args[0], args[1]), local, self.zone)
            return compare(op, args[0], args[1], node.args[0].type)
        if op == "in":
            return self._membership(node, args)
        if op == "cast":
            return cast(args[0], node.args[0].type, node.type, self.zone)
        if op == "try":
            return self._try(node.args[0], args[0])
        if op in _ARITHMETIC:
            return calculate(op, args[0], args[1], node.args[0].type, node.args[1].type, node.type)
        evaluate = _OPERATORS.get(op) or EVALUATORS[op]
        is_local = any(arg.type == TIMESTAMP_NTZ for arg in node.args)  # local times are counted as in UTC
        return evaluate(Call(args, node, "UTC" if is_local else self.zone))

    def _try(self, node: Typed, result: Vector) -> Vector:
        """Null where the operation itself failed. A failure in its operands stays a failure, as in Spark."""
        below = strict(None, *(self.of(arg) for arg in node.args)).failed
        own = result.failed if below is None or result.failed is None else result.failed & ~below
        if own is None:
            return result
        return Vector(result.values, ~result.nulls & ~own, below, result.lost)

    def _polygon_test(self, node: Typed) -> Vector:
        x, y = (self.of(arg) for arg in node.args[:2])
        polygons, turns = self.polygons[node.args[2].slot], is_longitude(field_in(node.args[0]))
        if isinstance(node.value, Metres):  # a margin around them
            return strict(polygons.are_within_metres(self.members, x.values, y.values, node.value.margin), x, y)
        if isinstance(node.value, float):
            return strict(polygons.are_near(self.members, x.values, y.values, node.value, turns=turns), x, y)
        borders = node.op == "st_intersects"
        return strict(polygons.contain(self.members, x.values, y.values, borders=borders, turns=turns), x, y)

    def _distance_test(self, node: Typed, test: DistanceTest) -> Vector:
        from vedette.language.geodesics import Circles, compare_distances

        x, y, *centre = test.distance.args
        circle = [*centre, test.limit]
        margin = node.value.margin if isinstance(node.value, Metres) else 0.0
        lon, lat = self.of(x), self.of(y)
        if test.on_sphere:
            distance, limit = self.of(test.distance), self.of(test.limit)
            return strict(is_sign(test.op, compare_distances(distance.values, limit.values + margin)), distance, limit)
        if any(arg.op != "slot" for arg in circle):
            args = [self.of(arg) for arg in circle]
            circles = Circles.of(args[0].values, args[1].values, args[2].values + margin)
            signs = circles.compare(lon.values, lat.values, np.arange(len(self.rows)))
            return strict(is_sign(test.op, signs), lon, lat, *args)
        if node not in self.circles:
            lons, lats, limits = (self.constants[arg.slot] for arg in circle)
            self.circles[node] = Circles.of(lons, lats, limits + margin)
        return strict(is_sign(test.op, self.circles[node].compare(lon.values, lat.values, self.members)), lon, lat)

    def over_elements(self, node: Typed) -> tuple[Evaluation, NDArray[np.int64]]:
        """An evaluation over the elements of the array of a quantifier, and the pair of each element."""
        array = self.of(node.args[0])
        starts, held = flatten(Column(array.values, array.usable))
        pairs = np.repeat(np.arange(len(array)), np.diff(starts))
        valid = pc.is_valid(held).to_numpy(zero_copy_only=False)
        outer = {name: _take(vector, pairs) for name, vector in self.elements.items()}
        elements = {**outer, node.name: Vector(element_values(held), valid)}
        inner = Evaluation(
            self.constants,
            self.zone,
            self.columns,
            self.rows[pairs],
            self.members[pairs],
            self.polygons,
            elements,
            self.circles,
        )
        return inner, pairs

    def _quantify(self, node: Typed) -> Vector:
        """Whether a condition is true for some element, or for all: from left to right until one decides."""
        array = self.of(node.args[0])
        inner, pairs = self.over_elements(node)
        truth = inner.of(node.args[1]).settled()
        short = node.op == "exists"
        n = len(array)
        deciding = np.flatnonzero(truth.usable & (truth.values == short))
        first = np.full(n, len(pairs))
        first[pairs[deciding[::-1]]] = deciding[::-1]  # the first element that decides
        unknown = np.bincount(pairs[truth.nulls], minlength=n) > 0
        decided = first < len(pairs)
        lost = array.lost
        if truth.lost is not None:
            before = np.flatnonzero(truth.lost & (np.arange(len(pairs)) < first[pairs]))
            lost = join(lost, np.bincount(pairs[before], minlength=n) > 0)
        values = decided if short else ~decided
        return Vector(values, ~array.nulls & (decided | ~unknown), array.failed, lost)

    def _truth(self, node: Typed) -> Vector:
        return self.of(node).settled()

    def _constant(self, node: Typed) -> Vector:
        n = len(self.rows)
        if node.value is None:
            type_ = node.type if node.type.name != "null" else BOOLEAN
            return Vector(filler(type_, n), np.zeros(n, np.bool_))
        return Vector(np.full(n, node.value))

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


def _take(vector: Vector, pairs: NDArray[np.int64]) -> Vector:
    masks = (None if mask is None else mask[pairs] for mask in (vector.valid, vector.failed, vector.lost))
    return Vector(_gather(vector.values, pairs), *masks)


def _gather(values: Any, places: NDArray[np.int64]) -> Any:
    if isinstance(values, pa.Array):
        return values.take(pa.array(places))
    return values[places]
