"""Residuals: the parts of a predicate that are not boxes, checked on candidate pairs of a row and a query.

One residual serves all queries of a shape. Its expression is one typed tree; in place of each literal, the tree has a
slot, and `constants` has that slot's values, one per query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.moments import NOW
from vedette.data.schema import Schema, check_time_zone
from vedette.language.expressions import Typed, field_in, from_json, to_json
from vedette.language.fence_bounds import is_latitude, is_longitude
from vedette.language.geofences import FENCES, POLYGON_TESTS, Metres, distance_test
from vedette.language.polygons import Polygons
from vedette.language.raised import evaluate_apart, log_raised
from vedette.language.string_use import MAX_STRING_BYTES, VALUES_AT_ONCE, StringUse
from vedette.native.damage import check, check_type, check_within

if TYPE_CHECKING:
    from vedette.language.geodesics import Circles
    from vedette.language.now_uses import NowUses


@dataclass(frozen=True, eq=False)
class Residual:
    """A predicate over pairs: `evaluate` returns for which pairs it is TRUE."""

    queries: NDArray[np.int64]
    expression: Typed
    constants: tuple[Any, ...]  # per slot: values in the physical form of the slot's type, aligned with `queries`
    time_zone: str = "UTC"

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def nbytes(self) -> int:
        return int(self.queries.nbytes + sum(values.nbytes for values in self.constants))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are read."""
        return tuple(sorted({node.name for node in self.expression.walk() if node.op == "field"}))

    @cached_property
    def now_uses(self) -> NowUses | None:
        """How the residual depends on now(), None if it does not. Raises CannotFollowError."""
        from vedette.language.now_uses import NowUses

        return NowUses.of(self) if NOW in self.fields else None

    @cached_property
    def string_use(self) -> StringUse:
        return StringUse.of(self.expression)

    @cached_property
    def polygons(self) -> dict[int, Polygons]:
        """The polygons of slots, by slot. Their parsed forms are neither pickled nor saved."""
        slots = {node.args[2].slot for node in self.expression.walk() if node.op in POLYGON_TESTS}
        return {slot: Polygons(self.constants[slot]) for slot in slots}

    @cached_property
    def circles(self) -> dict[Typed, Circles]:
        """Circles on the earth that comparisons of distances have made, by comparison; neither pickled nor saved."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Residual, (self.queries, self.expression, self.constants, self.time_zone)

    def evaluate(
        self, columns: dict[str, Column], rows: NDArray[np.int64], members: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int]:
        """For pair j (row `rows[j]`, query `queries[members[j]]`): is it kept? And how many pairs failed to evaluate.

        A failure (division by zero, overflow, a cast) makes the comparison around it null for that pair. A pair for
        which the evaluation raises, which is a bug of Vedette, is not kept and counts as failed. So does a pair whose
        strings would take more than `MAX_STRING_BYTES`. Pairs are evaluated in parts of bounded memory.
        """
        use = self.string_use
        if use.is_empty and len(rows) * use.n_nodes <= VALUES_AT_ONCE:
            return self._evaluate_part(columns, rows, members)
        n_bytes = use.bytes_of(columns, self.constants, rows, members)
        cuts = use.cut(n_bytes)
        if not cuts and n_bytes.max(initial=0) <= MAX_STRING_BYTES:
            return self._evaluate_part(columns, rows, members)
        fitting = np.flatnonzero(n_bytes <= MAX_STRING_BYTES)
        kept, n_failed = np.zeros(len(rows), np.bool_), len(rows) - len(fitting)
        for pairs in np.split(fitting, use.cut(n_bytes[fitting])):
            kept[pairs], failed = self._evaluate_part(columns, rows[pairs], members[pairs])
            n_failed += failed
        return kept, n_failed

    def _evaluate_part(
        self, columns: dict[str, Column], rows: NDArray[np.int64], members: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int]:
        try:
            return self.try_evaluate(columns, rows, members)
        except MemoryError:
            raise
        except Exception:
            if not columns.keys() >= set(self.fields):
                raise
            return self._evaluate_apart(columns, rows, members)

    def _evaluate_apart(
        self, columns: dict[str, Column], rows: NDArray[np.int64], members: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int]:
        kept, n_failed = np.zeros(len(rows), np.bool_), 0

        def evaluate(pairs: NDArray[np.int64]) -> None:
            nonlocal n_failed
            kept[pairs], failed = self.try_evaluate(columns, rows[pairs], members[pairs])
            n_failed += failed

        raised = evaluate_apart(evaluate, np.argsort(members, kind="stable"))
        by_member = {int(members[pair]): error for pair, error in reversed(raised)}
        log_raised(self.expression, [int(self.queries[member]) for member in by_member], list(by_member.values()))
        return kept, n_failed + len(raised)

    def try_evaluate(
        self, columns: dict[str, Column], rows: NDArray[np.int64], members: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int]:
        """The same, but errors of the evaluation are raised."""
        from vedette.language.evaluation import Evaluation

        evaluation = Evaluation(
            self.constants, self.time_zone, columns, rows, members, self.polygons, circles=self.circles
        )
        return evaluation.find_true(self.expression)

    def validate(self, schema: Schema, queries: range) -> None:
        """Raise DamageError unless a residual from a file can be evaluated over rows of the schema."""
        from vedette.language.validation import check_evaluation, validate_expression

        check_type(self.queries, NDArray[np.int64], "the queries of a residual")
        check(self.queries.ndim == 1 and len(self), "a residual has no queries")
        check_within(self.queries, queries.start, queries.stop - 1, "the queries of a residual")
        check(all(len(values) == len(self) for values in self.constants), "constants of a residual are missing")
        check_time_zone(self.time_zone)
        validate_expression(self.expression, schema, self.constants)
        check_evaluation(self.expression, self.constants, self.time_zone, len(self))

    def take(self, indices: NDArray[Any]) -> Residual:
        constants = tuple(_take(values, indices) for values in self.constants)
        return Residual(self.queries[indices], self.expression, constants, self.time_zone)

    @staticmethod
    def concat(residuals: Sequence[Residual]) -> Residual:
        """Residuals with the same expression as one."""
        first = residuals[0]
        if any(one.expression != first.expression or one.time_zone != first.time_zone for one in residuals):
            raise ValueError("residuals of different expressions cannot be joined")
        constants = tuple(_concat([one.constants[slot] for one in residuals]) for slot in range(len(first.constants)))
        queries = np.concatenate([one.queries for one in residuals])
        return Residual(queries, first.expression, constants, first.time_zone)

    def to_parts(self) -> tuple[dict[str, Any], list[Any]]:
        """A description as JSON, and the arrays it refers to; wide decimals are object arrays of integers."""
        description = {"expression": to_json(self.expression), "time_zone": self.time_zone}
        return description, [self.queries, *self.constants]

    @staticmethod
    def from_parts(description: dict[str, Any], arrays: Sequence[Any]) -> Residual:
        constants = tuple(arrays[1:])
        expression = from_json(description["expression"])
        return Residual(np.asarray(arrays[0], np.int64), expression, constants, description["time_zone"])


def _take(values: Any, indices: NDArray[Any]) -> Any:
    if isinstance(values, pa.Array):
        return values.filter(pa.array(indices)) if indices.dtype == np.bool_ else values.take(pa.array(indices))
    return values[indices]


def _concat(parts: list[Any]) -> Any:
    return pa.concat_arrays(parts) if isinstance(parts[0], pa.Array) else np.concatenate(parts)


def widen_fences(residual: Residual, margins: Mapping[str, float]) -> Residual:
    """The residual with geofences widened by a margin, if both of their fields have the same one.

    A point is then inside up to the margin outside the fence. A negated fence is not widened.
    """
    return replace(residual, expression=_widen(residual.expression, margins))


def fences_on_earth(residual: Residual) -> list[tuple[str, str]]:
    """The fields of longitude and latitude of the geofences that `widen_fences_on_earth` widens."""
    places = [_fields_on_earth(node) for node in _positive(residual.expression)]
    return [each for each in places if each is not None]


def widen_fences_on_earth(residual: Residual, metres: float) -> Residual:
    """The residual with geofences widened by a margin in metres, if they are on the earth and not negated."""
    chosen = {node for node in _positive(residual.expression) if _fields_on_earth(node) is not None}

    def widen(node: Typed) -> Typed:
        if node in chosen:
            return replace(node, value=Metres(metres))
        is_logic = node.op in ("and", "or")
        return replace(node, args=tuple(map(widen, node.args))) if is_logic else node

    return replace(residual, expression=widen(residual.expression))


def _positive(node: Typed) -> Iterator[Typed]:
    """The conditions under AND and OR."""
    if node.op in ("and", "or"):
        for arg in node.args:
            yield from _positive(arg)
    else:
        yield node


def _fields_on_earth(node: Typed) -> tuple[str, str] | None:
    """The fields of a circle in metres, or of a polygon whose fields are a longitude and a latitude by their names."""
    test = distance_test(node)
    if (test is None and node.op not in POLYGON_TESTS) or (test is not None and test.op not in ("<", "<=")):
        return None
    x, y = (field_in(arg) for arg in (node.args if test is None else test.distance.args)[:2])
    if x is None or y is None or (test is None and not (is_longitude(x) and is_latitude(y))):
        return None
    return x.name, y.name


def _widen(node: Typed, margins: Mapping[str, float]) -> Typed:
    if node.op in ("and", "or"):
        return replace(node, args=tuple(_widen(arg, margins) for arg in node.args))
    if node.op not in FENCES:
        return node
    fields = [field_in(arg) for arg in node.args[:2]]
    x, y = (None if field is None else margins.get(field.name) for field in fields)
    return replace(node, value=x) if x is not None and x == y else node
