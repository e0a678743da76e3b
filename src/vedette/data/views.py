"""Views of fields. An axis is built over a field itself, or over a view: values that are derived from the field.

The view of an array's elements has several values per row, and so has the view of a text's substrings. A box on it
contains a row if one of these values is in its range. So a condition "some element is between ..." is a box, and a row
is looked up by each of its elements.

A computed field is a view, too, of one field or several: the value of an expression.

A view is known by a name, like a field. Names of fields have no NUL character, those of views do.
"""

from __future__ import annotations

from collections.abc import Sequence

ELEMENTS = "elements"  # of an array
SUBSTRINGS = "substrings"  # of a string: those that queries look for
_AT = "at "  # of a map: the value at a key
COMPUTED = "computed"  # from an expression
_SEPARATOR = "\0"
_COMPUTED = f"{_SEPARATOR}{COMPUTED}{_SEPARATOR}"


def view_of(field: str, kind: str) -> str:
    """The name of a view."""
    return f"{field}{_SEPARATOR}{kind}"


def computed_view(text: str, content: str, fields: Sequence[str]) -> str:
    """The name of a computed field: how it is shown, what it contains, and the fields that it is computed from."""
    return _COMPUTED + _SEPARATOR.join((text.replace(_SEPARATOR, " "), content, *fields))


def is_computed(name: str) -> bool:
    return name.startswith(_COMPUTED)


def content_of(name: str) -> str:
    """What the name of a computed field contains."""
    return name.removeprefix(_COMPUTED).split(_SEPARATOR)[1]


def sources_of(name: str) -> list[str]:
    """The fields that a view is derived from; a field itself."""
    return name.removeprefix(_COMPUTED).split(_SEPARATOR)[2:] if is_computed(name) else [source_of(name)]


def source_of(name: str) -> str:
    """The field that a view, other than a computed field, is derived from; a field itself."""
    return name.partition(_SEPARATOR)[0]


def kind_of(name: str) -> str:
    """The kind of a view; empty for a field."""
    return name.partition(_SEPARATOR)[2]


def view_at(field: str, key: str) -> str:
    """The name of the view of a map's values at a key."""
    return view_of(field, f"{_AT}{key}")


def key_of(name: str) -> str | None:
    """The key of a view of a map; None for anything else."""
    kind = kind_of(name)
    return kind.removeprefix(_AT) if kind.startswith(_AT) else None


def has_several_values(name: str) -> bool:
    """Whether a row may have several values, or none, of which one must be in the range of a box."""
    return kind_of(name) in (ELEMENTS, SUBSTRINGS)


def shown_name(name: str) -> str:
    """A field or a view in words."""
    if is_computed(name):
        return name.removeprefix(_COMPUTED).split(_SEPARATOR)[0]
    key = key_of(name)
    if key is not None:
        return f"{source_of(name)}['{key}']"
    return f"{kind_of(name)} of {source_of(name)}" if kind_of(name) else name
