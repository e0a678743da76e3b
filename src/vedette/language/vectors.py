"""Vectors: the values of an expression for many pairs, with masks for nulls and failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import flat_dtype, held_type
from vedette.data.schema import Type, is_nested

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Vector:
    """Values in the physical form of their type. A mask that is None is False everywhere, `valid` True everywhere.

    `failed` marks pairs whose evaluation failed below any comparison; `lost` marks pairs for which a comparison became
    null because of a failure. Values of pairs that are null or failed are arbitrary.
    """

    values: Any
    valid: Mask | None = None
    failed: Mask | None = None
    lost: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def usable(self) -> Mask:
        """Pairs that have a value."""
        mask = np.ones(len(self), np.bool_) if self.valid is None else self.valid
        return mask if self.failed is None else mask & ~self.failed

    @property
    def nulls(self) -> Mask:
        return np.zeros(len(self), np.bool_) if self.valid is None else ~self.valid

    def settled(self) -> Vector:
        """The vector of a condition: failed pairs become null and are counted."""
        if self.failed is None:
            return self
        return Vector(self.values, self.usable, None, join(self.lost, self.failed))

    def with_values(self, values: Any) -> Vector:
        return replace(self, values=values)

    def failing(self, where: Mask) -> Vector:
        """The same vector, failed also at `where`, if it has a value there."""
        more = where if self.valid is None else where & self.valid
        return replace(self, failed=join(self.failed, more)) if more.any() else self


def join(a: Mask | None, b: Mask | None) -> Mask | None:
    """The union of two masks."""
    if a is None or b is None:
        return b if a is None else a
    return a | b


def meet(a: Mask | None, b: Mask | None) -> Mask | None:
    """The intersection of two `valid` masks."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def strict(values: Any, *args: Vector) -> Vector:
    """The result of a function that is null where an argument is null, and failed where an argument failed."""
    valid = failed = lost = None
    for arg in args:
        valid, failed, lost = meet(valid, arg.valid), join(failed, arg.failed), join(lost, arg.lost)
    return Vector(values, valid, failed, lost)


def is_wide(type_: Type) -> bool:
    return type_.name == "decimal" and type_.precision > 18


def dtype_of(type_: Type) -> Any:
    """The dtype of a type's values; strings are Arrow arrays."""
    if is_wide(type_):
        return object
    return flat_dtype(type_)


def filler(type_: Type, n: int) -> Any:
    if is_nested(type_):
        return pa.array([[]] * n, held_type(type_))
    if type_.is_text:
        return pa.array([""] * n, pa.large_string())
    return np.zeros(n, dtype_of(type_))


def choose(type_: Type, mask: Mask, a: Any, b: Any) -> Any:
    """Values of a where the mask is True, else of b."""
    if not isinstance(a, pa.Array):
        return np.where(mask, a, b)
    import pyarrow.compute as pc

    return pc.if_else(pa.array(mask), a, b)


def map_distinct(values: Any, usable: Mask, read: Callable[[Any], Any], dtype: Any) -> tuple[NDArray[Any], Mask]:
    """A Python function over values, called once per distinct value. Where it returns None, the mask says failed."""
    known: dict[Any, Any] = {}
    n = len(values)
    out = np.zeros(n, dtype)
    failed = np.zeros(n, np.bool_)
    items = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    for i in np.flatnonzero(usable):
        item = items[i]
        result = known.get(item, known)
        if result is known:
            result = known[item] = read(item)
        if result is None:
            failed[i] = True
        else:
            out[i] = result
    return out, failed


def text_vector(texts: list[str], *args: Vector) -> Vector:
    return strict(pa.array(texts, pa.large_string()), *args)
