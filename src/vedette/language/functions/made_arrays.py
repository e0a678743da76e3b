"""Functions that make an array of others, or one value of all elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vedette.data.columns import held_type
from vedette.data.schema import array_of, element_of
from vedette.language.expressions import BOOLEAN, INT, STRING, Typed, Written
from vedette.language.functions.arrays import array_argument, check_element
from vedette.language.functions.function import Call, Evaluator, Function, Sizes
from vedette.language.vectors import Vector, dtype_of, strict, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

Items = list[Any]

# -- typing rules


def type_least(analyser: Analyser, node: Written) -> Typed:
    array = array_argument(analyser, node)
    return analyser.made(node, node.op, element_of(array.type), array)


def type_same(analyser: Analyser, node: Written) -> Typed:
    """An array of the same type; a second argument says whether it is in ascending order."""
    array = array_argument(analyser, node)
    order = [analyser.read(arg) for arg in node.args[1:]]
    for arg, typed in zip(node.args[1:], order, strict=True):
        if typed.op != "constant":
            analyser.refuse(arg, f"{node.op} takes TRUE or FALSE here, not {analyser.shown(typed)}")
    order = [analyser.cast(node, typed, BOOLEAN) for typed in order]
    return analyser.made(node, node.op, array.type, array, *order)


def type_two(analyser: Analyser, node: Written) -> Typed:
    left, right = array_argument(analyser, node), array_argument(analyser, node, 1)
    if left.type != right.type:
        analyser.refuse(node, f"{node.op} needs arrays of one type, not {left.type} and {right.type}")
    return analyser.made(node, node.op, left.type, left, right)


def type_remove(analyser: Analyser, node: Written) -> Typed:
    array, value = array_argument(analyser, node), analyser.read(node.args[1])
    element = element_of(array.type)
    check_element(analyser, node.args[1], element, value)
    return analyser.made(node, node.op, array.type, array, analyser.cast(node, value, element))


def type_slice(analyser: Analyser, node: Written) -> Typed:
    array = array_argument(analyser, node)
    return analyser.made(node, node.op, array.type, array, *(analyser.number(arg, INT) for arg in node.args[1:]))


def type_join(analyser: Analyser, node: Written) -> Typed:
    array = array_argument(analyser, node)
    if array.type != array_of(STRING):
        analyser.refuse(node.args[0], f"{node.op} takes an array of strings, not {analyser.shown(array)}")
    return analyser.made(node, node.op, STRING, array, *(analyser.text(arg) for arg in node.args[1:]))


# -- evaluators


def _lists(vector: Vector) -> list[Items]:
    """The elements of each array; none if it is null."""
    return [held or [] for held in vector.values.to_pylist()]


def _plain(values: Any) -> Items:
    items: Items = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    return items


def made_array(function: Callable[..., Iterable[Any]]) -> Evaluator:
    """A function of the elements and the other arguments that returns elements."""

    def evaluate(call: Call) -> Vector:
        others = [
            _lists(arg) if isinstance(arg.values, pa.LargeListArray) else _plain(arg.values) for arg in call.args[1:]
        ]
        rows = [list(function(*row)) for row in zip(_lists(call.first), *others, strict=True)]
        return strict(pa.array(rows, held_type(call.node.type)), *call.args)

    return evaluate


def chosen(choose: Callable[..., Any]) -> Evaluator:
    """The least or the greatest element that is not null; null if there is none."""

    def evaluate(call: Call) -> Vector:
        held = [[each for each in items if each is not None] for items in _lists(call.first)]
        valid = np.array([bool(items) for items in held], np.bool_)
        filler: Any = "" if call.node.type.is_text else 0
        found = [choose(items, key=_order) if items else filler for items in held]
        values = pa.array(found, pa.large_string()) if filler == "" else np.array(found, dtype_of(call.node.type))
        return Vector(values, ~call.first.nulls & valid, call.first.failed, call.first.lost)

    return evaluate


def _order(value: Any) -> Any:
    """NaN is the greatest number."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def _key(value: Any) -> Any:
    """A key that equals those of equal values: all NaN are equal."""
    return "NaN" if isinstance(value, float) and value != value else value


def _zero(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def _distinct(items: Items) -> Items:
    return list({_key(each): _zero(each) for each in items}.values())


def _intersect(items: Items, others: Items) -> Items:
    known = set(map(_key, others))
    return [each for each in _distinct(items) if _key(each) in known]


def _union(items: Items, others: Items) -> Items:
    return _distinct([*items, *others])


def _except(items: Items, others: Items) -> Items:
    known = set(map(_key, others))
    return [each for each in _distinct(items) if _key(each) not in known]


def _remove(items: Items, value: Any) -> Items:
    return [each for each in items if each is None or _key(each) != _key(value)]


def _compact(items: Items) -> Items:
    return [each for each in items if each is not None]


def _sorted_last(items: Items) -> Items:
    """Nulls come last."""
    return sorted(_compact(items), key=_order) + [None] * items.count(None)


def _sorted_first(items: Items, ascending: bool = True) -> Items:
    """Nulls come first, and last in descending order."""
    nulls, held = [None] * items.count(None), sorted(_compact(items), key=_order, reverse=not ascending)
    return [*nulls, *held] if ascending else [*held, *nulls]


def slice_(call: Call) -> Vector:
    """A start of 0, and a negative length, fail. A negative start counts from the end."""
    starts, lengths = (arg.values for arg in call.args[1:])
    rows = zip(_lists(call.first), starts.tolist(), lengths.tolist(), strict=True)
    made = [_slice(items, start, length) for items, start, length in rows]
    return strict(pa.array(made, held_type(call.node.type)), *call.args).failing((starts == 0) | (lengths < 0))


def _slice(items: Items, start: int, length: int) -> Items:
    first = start - 1 if start > 0 else len(items) + start
    return items[first : first + length] if first >= 0 and length > 0 else []


def join(call: Call) -> Vector:
    """Nulls are left out, or replaced by a third argument."""
    others = [_plain(arg.values) for arg in call.args[1:]]
    texts = [_join(*row) for row in zip(_lists(call.first), *others, strict=True)]
    return text_vector(texts, *call.args)


def _join(items: Items, separator: str | None, null: str | None = None) -> str:
    held = (null if each is None else each for each in items)
    return (separator or "").join(each for each in held if each is not None)


def size_of_joined(sizes: Sizes) -> Any:
    """A separator, or a text for null, for each element: at most one per byte of the array, with its offset."""
    array, *others = sizes.bytes
    total = np.zeros(sizes.n, np.int64)
    for each in others:
        total += each
    return array + (1 + array // 8) * total


FUNCTIONS = (
    Function("array_min(v)", type_least, chosen(min), "the least element; null without one", in_arrow=True),
    Function("array_max(v)", type_least, chosen(max), "the greatest element; null without one", in_arrow=True),
    Function(
        "array_join(v, separator [, null])",
        type_join,
        join,
        "the strings with the separator between them; nulls are left out, or replaced",
        size=size_of_joined,
    ),
    Function("array_distinct(v)", type_same, made_array(_distinct), "each element once"),
    Function("array_intersect(v, w)", type_two, made_array(_intersect), "the elements that are in both, each once"),
    Function("array_union(v, w)", type_two, made_array(_union), "the elements of both, each once", growth=2),
    Function("array_except(v, w)", type_two, made_array(_except), "the elements of `v` that are not in `w`, each once"),
    Function("array_remove(v, x)", type_remove, made_array(_remove), "the elements that do not equal `x`"),
    Function("array_compact(v)", type_same, made_array(_compact), "the elements that are not null"),
    Function("array_sort(v)", type_same, made_array(_sorted_last), "the elements in order, nulls last"),
    Function(
        "sort_array(v [, ascending])",
        type_same,
        made_array(_sorted_first),
        "the elements in order, nulls first; with FALSE in descending order, nulls last",
    ),
    Function(
        "slice(v, start, length)",
        type_slice,
        slice_,
        "`length` elements from a place, which counts from 1 or from the end",
    ),
)
