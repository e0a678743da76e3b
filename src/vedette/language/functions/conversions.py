"""Casts that are written like functions: `bigint(x)` is `CAST(x AS bigint)`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vedette.data.schema import Type
from vedette.language.expressions import Typed, Written
from vedette.language.functions.function import Function, Rule

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser


def as_cast(to: str) -> Rule:
    def type_call(analyser: Analyser, node: Written) -> Typed:
        return analyser.explicit_cast(replace(node, op="cast", type=Type(to)))

    return type_call


_TYPES = ("bigint", "int", "smallint", "tinyint", "double", "float", "boolean", "string", "binary", "date", "timestamp")
FUNCTIONS = tuple(Function(f"{name}(x)", as_cast(name), None, f"`CAST(x AS {name})`") for name in _TYPES)
