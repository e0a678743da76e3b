"""The trial of a shape: it is evaluated on a few rows when its first query is added, before the commit.

The rows are: all nulls, all zeros and empty strings, and one for each of the first literals of the query, in which
every field has the value of that literal, if it can be cast. A shape that raises here would also raise in matches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import Column, null_column
from vedette.data.schema import Type, element_of, is_array, is_map
from vedette.errors import QueryError
from vedette.language.casts import CASTS, cast
from vedette.language.evaluation import Evaluation
from vedette.language.expressions import Typed
from vedette.language.residual import Residual
from vedette.language.vectors import Vector, dtype_of

MAX_LITERALS = 8  # rows in addition to nulls and zeros
MAX_CHARACTERS = 100  # of a literal that is tried as the value of a field, which may occur many times
MAX_KNOWN = 8192  # shapes that are remembered as valid

_known: set[tuple[Typed, str]] = set()


class TrialError(Exception):
    """A shape raises. `always` means that it raises for all literals."""

    def __init__(self, error: Exception, *, always: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.always = always

    def as_query_error(self) -> QueryError:
        what = f"{type(self.error).__name__}: {self.error}"[:300]
        return QueryError(f"the query cannot be evaluated ({what}); this is a bug in Vedette, please report it")


def try_residual(residual: Residual) -> None:
    """Evaluate a residual for its first query, unless its shape is known to be valid. Raises TrialError."""
    constants = tuple(values[:1] for values in residual.constants)
    try_expression(residual.expression, constants, residual.time_zone, residual)


def try_expression(expression: Typed, constants: tuple[Any, ...], zone: str, residual: Residual | None = None) -> None:
    key = (expression, zone)
    if key in _known:
        return
    types = {node.slot: node.type for node in expression.walk() if node.op == "slot"}
    literals = [(type_, constants[slot]) for slot, type_ in sorted(types.items())[:MAX_LITERALS]]
    fields = {node.name: node.type for node in expression.walk() if node.op == "field"}
    polygons = {} if residual is None else residual.polygons
    for always, some in ((True, []), (False, literals)):
        columns = {name: _column(type_, some, zone) for name, type_ in fields.items()}
        rows = np.arange(2 + len(some))
        try:
            Evaluation(constants, zone, columns, rows, np.zeros_like(rows), polygons).of(expression)
        except MemoryError:
            raise
        except Exception as error:
            raise TrialError(error, always=always) from error
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known.add(key)


def _column(type_: Type, literals: list[tuple[Type, Any]], zone: str) -> Column:
    """A null, a zero, and the literals cast to the type of a field; those that cannot be cast are zero."""
    if is_array(type_):
        inner = _column(element_of(type_), literals, zone)
        held = inner.values if isinstance(inner.values, pa.Array) else pa.array(inner.values)
        held = pc.if_else(pa.array(inner.valid), held, pa.scalar(None, held.type))
        lists = pa.LargeListArray.from_arrays(pa.array([0, 0, 0, *[len(held)] * len(literals)]), held)
        return Column(lists, inner.valid)
    if is_map(type_):
        return null_column(type_, 2 + len(literals))
    zero: Any = "" if type_.is_text else 0
    items = [zero, zero, *(_as_type(values, from_, type_, zone, zero) for from_, values in literals)]
    valid = np.ones(len(items), np.bool_)
    valid[0] = False
    return Column(pa.array(items, pa.large_string()) if zero == "" else np.array(items, dtype_of(type_)), valid)


def _as_type(values: Any, from_: Type, to: Type, zone: str, zero: Any) -> Any:
    if to.name not in CASTS.get(from_.name, ()):
        return zero
    try:
        vector = cast(Vector(values), from_, to, zone)
    except MemoryError:
        raise
    except Exception:  # it is tried again in the evaluation
        return zero
    if not vector.usable[0] or isinstance(vector.values, pa.Array) != (to.is_text):
        return zero
    return vector.values[0].as_py()[:MAX_CHARACTERS] if to.is_text else vector.values[0]
