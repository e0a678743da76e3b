"""The axes of fields and of their views, whichever they are."""

from __future__ import annotations

from collections.abc import Sequence

from vedette.data.axes import Axis, build_axis, validate_axis
from vedette.data.boxes import Nulls, Ranges
from vedette.data.key_axes import KeyAxis
from vedette.data.list_axes import ElementAxis
from vedette.data.schema import Type, element_of, is_array, is_map, value_of
from vedette.data.substring_axes import LONGEST, SubstringAxis
from vedette.data.views import ELEMENTS, SUBSTRINGS, key_of, kind_of
from vedette.data.wrapped_axis import WrappedAxis
from vedette.native.damage import check

AnyAxis = Axis | ElementAxis | SubstringAxis | KeyAxis


def build_any_axis(name: str, type_: Type, ranges: Sequence[Ranges | Nulls]) -> AnyAxis:
    """The axis of a field of that type, or of a view of it, whose cuts are the ends of `ranges`."""
    if kind_of(name) == ELEMENTS:
        return ElementAxis.build(element_of(type_), ranges)
    key = key_of(name)
    if key is not None:
        return KeyAxis.build(value_of(type_), key, ranges)
    return SubstringAxis.build(ranges) if kind_of(name) == SUBSTRINGS else build_axis(type_, ranges)


def inner_axis(axis: AnyAxis) -> Axis:
    """The axis of single values."""
    return axis.inner if isinstance(axis, WrappedAxis) else axis


def validate_any_axis(axis: AnyAxis, name: str, type_: Type) -> None:
    """Raise DamageError unless an axis from a file is one that a field of this type, or its view, may have."""
    kind = kind_of(name)
    check(isinstance(axis, ElementAxis) == (kind == ELEMENTS) == is_array(type_), "an axis has a wrong class")
    check(isinstance(axis, SubstringAxis) == (kind == SUBSTRINGS), "an axis has a wrong class")
    key = key_of(name)
    check(isinstance(axis, KeyAxis) == (key is not None) == is_map(type_), "an axis has a wrong class")
    check(not isinstance(axis, KeyAxis) or axis.key == key, "an axis has another key than its name")
    held = value_of(type_) if is_map(type_) else element_of(type_) if kind == ELEMENTS else type_
    validate_axis(inner_axis(axis), held)
    if isinstance(axis, SubstringAxis):
        check(all(len(string) <= LONGEST for string in axis.cuts), "a substring is too long")
