"""Validates what is read from a file, before kernels use it.

Kernels do not check their arrays: a start out of range would read foreign memory. So every class that a file may
contain has a method `validate`, which raises DamageError. `check_fields` compares all fields of a dataclass with their
annotations, so a new field is checked automatically; `validate` adds what annotations cannot express.
"""

from __future__ import annotations

import dataclasses
import typing
from functools import cache
from types import NoneType, UnionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 1 << 62  # limit of integers: the difference of two of them fits into 64 bits


class DamageError(ValueError):
    """The content of a file is damaged."""


def check(holds: Any, message: str) -> None:
    if not holds:
        raise DamageError(message)


def check_fields(made: Any) -> None:
    """Compare the fields of a dataclass with their annotations: the dtypes of arrays, and the types of all else."""
    for name, hint in _hints(made.__class__).items():
        check(_fits(getattr(made, name, None), hint), f"{type(made).__name__}.{name} has the wrong type")


def check_type(value: Any, hint: Any, name: str) -> None:
    """Compare a value with an annotation."""
    check(_fits(value, hint), f"{name} has the wrong type")


def check_shape(array: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
    check(array.shape == shape, f"{name} has the shape {array.shape}, not {shape}")


def check_within(values: NDArray[Any], least: int, most: int, name: str) -> None:
    """Raise DamageError unless all numbers are from `least` to `most`, inclusive."""
    if values.size:
        check(least <= values.min() and values.max() <= most, f"{name} has a number outside {least} to {most}")


def check_starts(starts: NDArray[Any], end: int, name: str) -> None:
    """Raise DamageError unless these are starts of consecutive lists: from 0 to `end`, never decreasing."""
    check(starts.ndim == 1 and len(starts) > 0, f"{name} is empty")
    check(starts[0] == 0 and starts[-1] == end, f"{name} does not go from 0 to {end}")
    check((starts[1:] >= starts[:-1]).all(), f"{name} decreases")


@cache
def _hints(class_: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(class_)
    return {field.name: hints[field.name] for field in dataclasses.fields(class_)}


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint is Any or getattr(hint, "_is_protocol", False):  # its owner checks which classes are allowed
        return True
    if origin is np.ndarray:
        dtype = typing.get_args(typing.get_args(hint)[1])[0]
        return isinstance(value, np.ndarray) and value.flags.c_contiguous and (dtype is Any or value.dtype == dtype)
    if origin in (UnionType, typing.Union):
        return any(_fits(value, each) for each in typing.get_args(hint))
    if origin is tuple:
        first, *rest = typing.get_args(hint)
        if rest == [Ellipsis]:
            return isinstance(value, tuple) and all(_fits(each, first) for each in value)
        return isinstance(value, tuple) and len(value) == 1 + len(rest) and all(map(_fits, value, (first, *rest)))
    if origin is list:
        return isinstance(value, list) and all(_fits(each, typing.get_args(hint)[0]) for each in value)
    if origin is dict:
        names, values = typing.get_args(hint)
        return isinstance(value, dict) and all(_fits(key, names) and _fits(value[key], values) for key in value)
    if hint is int:
        return type(value) is int and abs(value) <= MOST
    if hint in (float, bool, str, NoneType):
        return type(value) is (NoneType if hint is None else hint)
    return isinstance(value, hint)
