"""Functions of maps, whose keys are strings.

A value at a key is a node `map value`. If the key is a literal, it is the value of the node, and conditions on it are
ranges of a view of the map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import Column
from vedette.data.key_axes import values_at
from vedette.data.list_axes import flatten
from vedette.data.schema import array_of, is_map, value_of
from vedette.language.expressions import BOOLEAN, NULL, STRING, Typed, Written
from vedette.language.functions.function import Call, Function
from vedette.language.functions.time_arguments import literal_text
from vedette.language.vectors import Vector, meet, strict

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

# -- typing rules


def value_at(analyser: Analyser, node: Written, map_: Typed, key: Written) -> Typed:
    """The value at a key: `m['a']`, or element_at(m, 'a')."""
    typed = analyser.text(key) if node.op == "[]" else _key(analyser, node, key)
    name = literal_text(analyser, key)
    if name is not None:
        return analyser.made(node, "map value", value_of(map_.type), map_, value=name)
    return analyser.made(node, "map value", value_of(map_.type), map_, typed)


def _key(analyser: Analyser, node: Written, key: Written) -> Typed:
    typed = analyser.read(key)
    if typed.type != STRING:
        analyser.refuse(key, f"{node.op} takes a string as the key of a map, not {analyser.shown(typed)}")
    return typed


def type_contains_key(analyser: Analyser, node: Written) -> Typed:
    map_ = _map(analyser, node)
    return analyser.made(node, node.op, BOOLEAN, map_, _key(analyser, node, node.args[1]))


def type_keys(analyser: Analyser, node: Written) -> Typed:
    return analyser.made(node, node.op, array_of(STRING), _map(analyser, node))


def type_values(analyser: Analyser, node: Written) -> Typed:
    map_ = _map(analyser, node)
    return analyser.made(node, node.op, array_of(value_of(map_.type)), map_)


def _map(analyser: Analyser, node: Written) -> Typed:
    map_ = analyser.read(node.args[0])
    if not is_map(map_.type):
        shown = "NULL" if map_.type == NULL else analyser.shown(map_)
        analyser.refuse(node.args[0], f"{node.op} needs a map here, but this is {shown}")
    return map_


# -- evaluators


def at_key(call: Call) -> Vector:
    """Null if the map has no such key, which is an argument or the value of the node."""
    key = call.args[1].values if len(call.args) > 1 else str(call.node.value)
    found = values_at(Column(call.first.values, call.first.valid), key)
    whole = strict(None, *call.args)
    return Vector(found.values, meet(whole.valid, found.valid), whole.failed, whole.lost)


def contains_key(call: Call) -> Vector:
    starts, entries = flatten(Column(call.first.values, call.first.valid))
    rows = np.repeat(np.arange(len(call.first)), np.diff(starts))
    wanted = call.args[1].values.take(pa.array(rows))
    equal = pc.equal(entries.field(0), wanted).fill_null(False).to_numpy(zero_copy_only=False)
    return strict(np.bincount(rows[equal], minlength=len(call.first)) > 0, *call.args)


def keys(call: Call) -> Vector:
    return _entries(call, 0)


def values(call: Call) -> Vector:
    return _entries(call, 1)


def _entries(call: Call, place: int) -> Vector:
    starts, entries = flatten(Column(call.first.values, call.first.valid))
    return call.first.with_values(pa.LargeListArray.from_arrays(pa.array(starts), entries.field(place)))


# -- the rows of the table

OPERATORS = {"map value": at_key}

FUNCTIONS = (
    Function("map_contains_key(m, key)", type_contains_key, contains_key, "whether a map has a key"),
    Function("map_keys(m)", type_keys, keys, "the keys as an array", in_arrow=True),
    Function("map_values(m)", type_values, values, "the values as an array", in_arrow=True),
)
