"""One row as a JSON object, such as `{"symbol": "IBM", "price": 39.5}`: texts become dates, times and bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from vedette.data.schema import Schema, Type, element_of, is_array, is_map, value_of
from vedette.errors import RowError, shown
from vedette.files.json_text import read_json

_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "date": (dt.date.fromisoformat, "2026-03-02"),
    "timestamp": (dt.datetime.fromisoformat, "2026-03-02T14:00:00Z"),
    "timestamp_ntz": (dt.datetime.fromisoformat, "2026-03-02T14:00:00"),
    "decimal": (Decimal, "39.50"),
    "double": (float, "39.5"),
    "float": (float, "39.5"),
    "binary": (bytes.fromhex, "1AFF, in hexadecimal"),
}


def read_json_row(text: str, schema: Schema) -> dict[str, Any]:
    """The row of a JSON object, with the types of the schema. A field that is missing is null."""
    try:
        read = read_json(text, parse_float=str)
    except ValueError as error:
        raise RowError(f"the row is not valid JSON: {error}") from None
    return convert_row(read, schema)


def convert_row(read: Any, schema: Schema) -> dict[str, Any]:
    """A row whose values are those of JSON, with floats as texts."""
    return RowReader(schema).convert(read)


class RowReader:
    """Converts the rows of one schema, many of them."""

    def __init__(self, schema: Schema) -> None:
        types = {(field.path or (field.name,)): field.type for field in schema}
        self._types = {tuple(name.lower() for name in path): type_ for path, type_ in types.items()}
        self.needs_exact_numbers = any("decimal" in str(type_) for type_ in types.values())

    def convert(self, read: Any) -> dict[str, Any]:
        """A row whose values are those of JSON. Where numbers must be exact, its floats must be texts."""
        if not isinstance(read, dict):
            raise RowError(f'a row is a JSON object such as {{"symbol": "IBM", "price": 39.5}}; got {shown(read)}')
        return _convert(read, (), self._types)


def _convert(held: Mapping[str, Any], path: tuple[str, ...], types: Mapping[tuple[str, ...], Type]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in held.items():
        place = (*path, name.lower())
        if isinstance(value, dict) and place not in types:  # a struct
            row[name] = _convert(value, place, types)
        else:
            row[name] = _read_value(".".join((*path, name)), value, types.get(place, Type("string")))
    return row


def _read_value(name: str, value: Any, type_: Type) -> Any:
    if isinstance(value, list) and is_array(type_):
        return [_read_value(name, item, element_of(type_)) for item in value]
    if isinstance(value, dict) and is_map(type_):
        return {key: _read_value(name, item, value_of(type_)) for key, item in value.items()}
    if type_.name not in _READERS or isinstance(value, bool) or not isinstance(value, (str, int)):
        return value
    return _read_text(name, str(value), type_, *_READERS[type_.name])


def _read_text(name: str, text: str, type_: Type, read: Callable[[Any], Any], example: str) -> Any:
    try:
        return read(text)
    except (ValueError, ArithmeticError):
        raise RowError(f"field {name!r} is {type_}; cannot read {shown(text)} as one; write {example}") from None
