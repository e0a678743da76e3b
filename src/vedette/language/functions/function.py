"""A function of the language: a row of the table, and what its evaluator gets.

An evaluator takes a `Call` and returns a vector. The result is null where an argument is null and failed where an
argument failed, unless the evaluator says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.schema import Type
from vedette.language.expressions import Typed, Written
from vedette.language.vectors import Vector, strict, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

MAX_ARGUMENTS = 99
MAX_PADDED = 1 << 20  # bytes that a function such as repeat or lpad may add to a string; beyond them it fails


class Call(NamedTuple):
    """A call of a function: its evaluated arguments, its node in the tree, and the time zone of the query set."""

    args: list[Vector]
    node: Typed
    zone: str

    @property
    def first(self) -> Vector:
        return self.args[0]

    @property
    def first_type(self) -> Type:
        return self.node.args[0].type


class Sizes(NamedTuple):
    """Before a call: upper bounds of its string arguments in bytes by pair, and integer arguments that are known."""

    bytes: list[NDArray[np.int64]]  # 0 for other types
    numbers: list[NDArray[np.int64] | None]  # of fields and literals

    @property
    def n(self) -> int:
        return len(self.bytes[0])

    def most(self, place: int) -> NDArray[np.int64]:
        """An upper bound of a number of repetitions or characters."""
        known = self.numbers[place]
        return np.full(self.n, MAX_PADDED) if known is None else np.clip(known, 0, MAX_PADDED)

    def capped(self, n_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
        """At most what a function may add."""
        return np.minimum(n_bytes, MAX_PADDED)


Evaluator = Callable[[Call], Vector]
# Takes the analyser and a call as written. Types and casts the arguments as Spark does, and returns the typed node.
Rule = Callable[["Analyser", Written], Typed]


@dataclass(frozen=True)
class Function:
    """A function of the language.

    `call` is how a query calls it: arguments in brackets are optional, and `...` means more of them. `type_call`
    turns the written call into a typed node. An evaluator of None means that this node is not a call of the function
    but an operator, such as `%` for `mod`.

    >>> from vedette.language.function_table import FUNCTIONS
    >>> round_ = FUNCTIONS["round"]
    >>> round_.name, round_.least, round_.most
    ('round', 1, 2)
    """

    call: str
    type_call: Rule
    evaluate: Evaluator | None
    gives: str  # the line of documentation
    aliases: tuple[str, ...] = ()
    literals: tuple[int, ...] = ()  # places of arguments that must be literals and are part of the shape of a text
    growth: int = 1  # the bytes of a string result are at most this many times those of the arguments
    size: Callable[[Sizes], NDArray[np.int64]] | None = None  # an upper bound of the bytes of a result, instead
    in_arrow: bool = False  # strings are handled by Arrow; else each one is copied to a Python string

    @property
    def name(self) -> str:
        """The name in trees: that of the call, in lower case."""
        return self.call.partition("(")[0].lower()

    @property
    def least(self) -> int:
        """The number of arguments that a call must have."""
        return len([each for each in re.sub(r"\[.*\]", "", self._arguments).split(",") if each.strip(" .")])

    @property
    def most(self) -> int:
        """The number of arguments that a call may have."""
        if "..." in self._arguments:
            return MAX_ARGUMENTS
        return len(self._arguments.split(",")) if self._arguments else 0

    @property
    def _arguments(self) -> str:
        return self.call.partition("(")[2].rpartition(")")[0]


# -- evaluators made of Python functions


def text_function(function: Callable[..., str]) -> Evaluator:
    """A Python function of the arguments that returns a string, called for each pair."""

    def evaluate(call: Call) -> Vector:
        return text_vector([function(*each) for each in each_pair(call)], *call.args)

    return evaluate


def text_test(function: Callable[..., bool]) -> Evaluator:
    """A Python function of the arguments that returns a boolean, called for each pair."""

    def evaluate(call: Call) -> Vector:
        return strict(np.fromiter((function(*each) for each in each_pair(call)), np.bool_, len(call.first)), *call.args)

    return evaluate


def number_function(function: Callable[..., int]) -> Evaluator:
    """A Python function of the arguments that returns an integer, called for each pair."""

    def evaluate(call: Call) -> Vector:
        return strict(np.fromiter((function(*each) for each in each_pair(call)), np.int64, len(call.first)), *call.args)

    return evaluate


def bytes_of(call: Call) -> list[bytes]:
    """The first argument of each pair as bytes: those of a binary, or of a string in UTF-8."""
    codec = "latin-1" if call.first_type.name == "binary" else "utf-8"
    return [text.encode(codec) for text in _plain(call.first)]


def each_pair(call: Call) -> Any:
    """The arguments of each pair as Python values; null is an empty string or 0."""
    return zip(*(_plain(arg) for arg in call.args), strict=True)


def _plain(arg: Vector) -> list[Any]:
    if isinstance(arg.values, pa.Array):
        texts: list[Any] = arg.values.fill_null("").to_pylist()
        return texts
    return list(arg.values.tolist())
