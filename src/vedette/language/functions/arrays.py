"""Functions of arrays.

A condition on elements is a tree with a node `element` in it, which stands for each element in turn. Its name is the
depth of the array function that it belongs to, so that one may be inside another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.list_axes import element_values, flatten
from vedette.data.schema import Type, element_of, is_array, is_map
from vedette.language.comparison import compare
from vedette.language.expressions import BIGINT, BOOLEAN, INT, NULL, Typed, Written
from vedette.language.functions.function import Call, Function
from vedette.language.functions.maps import value_at
from vedette.language.types import is_integral, wider
from vedette.language.vectors import Vector, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


# -- typing rules


def type_contains(analyser: Analyser, node: Written) -> Typed:
    """Whether some element equals a value: a condition on elements, but null for a value that is null."""
    array, value = array_argument(analyser, node), analyser.read(node.args[1])
    with analyser.element(element_of(array.type)) as element:
        condition = _equal(analyser, node, element, value)
    found = analyser.made(node, "exists", BOOLEAN, array, condition, name=element.name)
    if value.op == "slot":
        return found
    null = analyser.made(node, "constant", BOOLEAN)
    return analyser.made(node, "case", BOOLEAN, analyser.made(node, "isnull", BOOLEAN, value), null, found)


def type_overlap(analyser: Analyser, node: Written) -> Typed:
    """Whether two arrays have an element in common. One may be written out: `array('a', 'b')`."""
    listed = [arg for arg in node.args if arg.op == "array"]
    if len(listed) == 2:
        analyser.refuse(node, f"{node.op} needs a field of arrays; both are written out")
    if not listed:
        left, right = array_argument(analyser, node), array_argument(analyser, node, 1)
        if left.type != right.type:
            analyser.refuse(node, f"{node.op} needs arrays of one type, not {left.type} and {right.type}")
        return analyser.made(node, node.op, BOOLEAN, left, right)
    array = array_argument(analyser, node, 1 if node.args[0] is listed[0] else 0)
    with analyser.element(element_of(array.type)) as element:
        values = [analyser.read(arg) for arg in listed[0].args]
        for arg, value in zip(listed[0].args, values, strict=True):
            check_element(analyser, arg, element.type, value)
        tests = [analyser.compare(node, "=", element, value) for value in values]
        condition = tests[0] if len(tests) == 1 else analyser.made(node, "or", BOOLEAN, *tests)
    return analyser.made(node, "exists", BOOLEAN, array, condition, name=element.name)


def type_condition(analyser: Analyser, node: Written) -> Typed:
    """A condition on elements, as a lambda function: `x -> x > 5`."""
    array, function = array_argument(analyser, node), node.args[1]
    if function.op != "lambda":
        analyser.refuse(function, f"{node.op} takes a condition on an element, such as x -> x > 5")
    with analyser.element(element_of(array.type), function.name) as element:
        condition = analyser.condition_of(function.args[0], null_is_condition=True)
    return analyser.made(node, node.op, BOOLEAN, array, condition, name=element.name)


def type_size(analyser: Analyser, node: Written) -> Typed:
    held = analyser.read(node.args[0])
    return analyser.made(node, node.op, INT, held if is_map(held.type) else array_argument(analyser, node))


def type_array_size(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, "size", INT, array_argument(analyser, node))


def type_item(analyser: Analyser, node: Written) -> Typed:
    """The element at a place, or the value at a key of a map."""
    held = analyser.read(node.args[0])
    if is_map(held.type) and node.op != "get":
        return value_at(analyser, node, held, node.args[1])
    array = array_argument(analyser, node)
    place = analyser.read(node.args[1])
    if not is_integral(place.type) or (place.type == BIGINT and node.op.endswith("element_at")):
        analyser.refuse(node.args[1], f"a place in an array is an int, not {analyser.shown(place)}")
    return analyser.made(node, node.op, element_of(array.type), array, analyser.cast(node, place, BIGINT))


def type_try_item(analyser: Analyser, node: Written) -> Typed:
    found = type_item(analyser, node)
    return found if found.op == "map value" else analyser.made_try(node, _renamed(found, "element_at"))


def type_position(analyser: Analyser, node: Written) -> Typed:
    array, value = array_argument(analyser, node), analyser.read(node.args[1])
    element = element_of(array.type)
    check_element(analyser, node.args[1], element, value)
    if value.type == NULL:
        analyser.refuse(node.args[1], f"{node.op} needs a value that is not NULL")
    return analyser.made(node, node.op, BIGINT, array, analyser.cast(node, value, element))


def type_array(analyser: Analyser, node: Written) -> Typed:
    analyser.refuse(node, "array(...) is allowed as an argument of arrays_overlap only")


def _renamed(typed: Typed, op: str) -> Typed:
    return Typed(op, typed.type, typed.args, typed.name, typed.slot, typed.value, typed.start, typed.end)


def array_argument(analyser: Analyser, node: Written, place: int = 0) -> Typed:
    array = analyser.read(node.args[place])
    if not is_array(array.type):
        analyser.refuse(node.args[place], f"{node.op} needs an array here, but this is {analyser.shown(array)}")
    return array


def _equal(analyser: Analyser, node: Written, element: Typed, value: Typed) -> Typed:
    """Whether an element equals a value, in their common type. Strings do not become numbers."""
    if value.type == NULL or wider(element.type, value.type) is None:
        analyser.refuse(node, f"elements of type {element.type} cannot be compared with {analyser.shown(value)}")
    return analyser.compare(node, "=", element, value)


def check_element(analyser: Analyser, node: Written, element: Type, value: Typed) -> None:
    """A value must be of the type of elements, or one that Spark widens to it: no decimal."""
    if value.type != NULL and (value.type.name == "decimal" or wider(element, value.type) != element):
        analyser.refuse(node, f"elements of type {element} cannot be compared with {analyser.shown(value)}")


# -- evaluators


def size(call: Call) -> Vector:
    lengths = pc.list_value_length(call.first.values).fill_null(0)
    return call.first.with_values(lengths.to_numpy(zero_copy_only=False).astype(np.int64))


def subscript(call: Call) -> Vector:
    """`v[0]`: places count from 0, and one outside fails."""
    return _items(call, call.args[1].values)


def get(call: Call) -> Vector:
    """The same, but null outside."""
    found = _items(call, call.args[1].values)
    return Vector(found.values, found.usable, strict(None, *call.args).failed, found.lost)


def element_at(call: Call) -> Vector:
    """Places count from 1, or from the end if they are negative; one outside, or 0, fails."""
    places = call.args[1].values
    lengths = size(call).values
    return _items(call, np.where(places > 0, places - 1, np.where(places < 0, lengths + places, -1)))


def _items(call: Call, places: NDArray[np.int64]) -> Vector:
    starts, elements = flatten(Column(call.first.values, call.first.valid))
    whole = strict(None, *call.args)
    is_there = (places >= 0) & (places < np.diff(starts))
    at = np.where(is_there, starts[:-1] + places, 0)
    if not len(elements):
        elements = pa.nulls(1, elements.type)
    taken = elements.take(pa.array(at))
    valid = pc.is_valid(taken).to_numpy(zero_copy_only=False) | ~is_there
    if whole.valid is not None:
        valid &= whole.valid
    return Vector(element_values(taken), valid, whole.failed, whole.lost).failing(~is_there)


def position(call: Call) -> Vector:
    """The place of the first element that equals the value, from 1; 0 if there is none."""
    starts, elements = flatten(Column(call.first.values, call.first.valid))
    counts = np.diff(starts)
    pairs = np.repeat(np.arange(len(counts)), counts)
    valid = pc.is_valid(elements).to_numpy(zero_copy_only=False)
    values = call.args[1].values
    repeated = values.take(pa.array(pairs)) if isinstance(values, pa.Array) else values[pairs]
    same = compare("=", Vector(element_values(elements)), Vector(repeated), element_of(call.first_type)).values & valid
    hits = np.flatnonzero(same)
    places = np.zeros(len(counts), np.int64)
    places[pairs[hits[::-1]]] = hits[::-1] - starts[:-1][pairs[hits[::-1]]] + 1
    return strict(places, *call.args)


def overlap(call: Call) -> Vector:
    """True if an element that is not null is in both; else null if both have elements and one of them a null."""
    held = [call.first.values.to_pylist(), call.args[1].values.to_pylist()]
    kept, unknown = np.zeros(len(call.first), np.bool_), np.zeros(len(call.first), np.bool_)
    for pair, (left, right) in enumerate(zip(*held, strict=True)):
        mine, others = set(map(_comparable, left or ())), set(map(_comparable, right or ()))
        kept[pair] = bool((mine & others) - {None})
        unknown[pair] = bool(mine and others) and None in mine | others
    whole = strict(kept, *call.args)
    return Vector(kept, ~whole.nulls & (kept | ~unknown), whole.failed, whole.lost)


def _comparable(value: object) -> object:
    """A value that equals those that Spark finds equal: all NaN are."""
    return "NaN" if isinstance(value, float) and value != value else value


# -- the rows of the table

FUNCTIONS = (
    Function("array_contains(v, x)", type_contains, None, "whether an element equals `x`"),
    Function("arrays_overlap(v, w)", type_overlap, overlap, "whether an element is in both; one may be `array(x, y)`"),
    Function("array(x, ...)", type_array, None, "an array of values, for `arrays_overlap`"),
    Function("exists(v, x -> c)", type_condition, None, "whether the condition is true for an element"),
    Function("forall(v, x -> c)", type_condition, None, "whether the condition is true for all elements"),
    Function("size(v)", type_size, size, "the number of elements, or of the keys of a map", ("cardinality",)),
    Function("array_size(v)", type_array_size, None, "the number of elements"),
    Function(
        "element_at(v, place)",
        type_item,
        element_at,
        "an element; `place` counts from 1, or from the end if negative; of a map, the value at a key",
        literals=(1,),
    ),
    Function("try_element_at(v, place)", type_try_item, None, "the same, null where there is none", literals=(1,)),
    Function("get(v, place)", type_item, get, "an element; `place` counts from 0; null where there is none"),
    Function("array_position(v, x)", type_position, position, "the place of the first element that equals `x`, or 0"),
)
