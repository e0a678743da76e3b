"""Schemas: the typed fields of a row, written as Spark writes them: `symbol string, price double, ts timestamp`.

Names are matched as in Spark, ignoring case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from vedette.errors import SchemaError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

TYPE_NAMES = ("bigint", "double", "decimal", "boolean", "string", "date", "timestamp")
_ALIASES = {"long": "bigint", "dec": "decimal", "numeric": "decimal"}
_FIELD = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*))(?:\s*:\s*|\s+)([A-Za-z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*"
)
_MAX_PRECISION = 38


@dataclass(frozen=True)
class Type:
    """A field's type. `precision` and `scale` are for decimals only."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """The fields of a stream's rows, in order.

    >>> Schema.parse("symbol string, price decimal(10, 2)")
    Schema('symbol string, price decimal(10,2)')
    """

    fields: tuple[Field, ...]
    streams: tuple[str, ...] = ()  # of a schema of pairs: the streams, whose names prefix those of the fields

    @classmethod
    def of_streams(cls, schemas: Mapping[str, Schema]) -> Schema:
        """The fields of several streams as one schema, named as in queries: `left.price`."""
        fields = [Field(f"{stream}.{field.name}", field.type) for stream, each in schemas.items() for field in each]
        return cls(tuple(fields), tuple(schemas))

    @classmethod
    def parse(cls, text: str) -> Schema:
        if not isinstance(text, str):
            raise SchemaError(
                f"a schema must be a text such as 'symbol string, price double'; got {type(text).__name__}"
            )
        fields: list[Field] = []
        place = 0
        if text.rstrip().endswith(","):
            raise SchemaError("the schema ends in a comma; write: name type, name type, ...")
        while place < len(text):
            found = _FIELD.match(text, place)
            if not found:
                raise SchemaError(
                    f"cannot read the schema at {text[place : place + 30]!r}; write: name type, name type, ..."
                )
            quoted, plain, type_name, precision, scale = found.groups()
            name = quoted.replace("``", "`") if quoted else plain
            fields.append(Field(name, _read_type(type_name, precision, scale, name)))
            place = found.end()
            if place < len(text):
                if text[place] != ",":
                    raise SchemaError(f"expected a comma in the schema at {text[place : place + 30]!r}")
                place += 1
        return cls(tuple(fields))

    def __post_init__(self) -> None:
        if not self.fields:
            raise SchemaError("a schema needs at least one field; write: name type, name type, ...")
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                raise SchemaError(f"field {field.name!r} is in the schema twice (names must differ by more than case)")
            seen.add(field.name.lower())

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __str__(self) -> str:
        return ", ".join(f"{_quote(field.name)} {field.type}" for field in self.fields)

    def __repr__(self) -> str:
        return f"Schema({str(self)!r})"

    @cached_property
    def _by_folded_name(self) -> dict[str, Field]:
        return {field.name.lower(): field for field in self.fields}

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def find(self, name: str) -> Field | None:
        """The field with this name, ignoring case, or None."""
        return self._by_folded_name.get(name.lower())

    def unknown_field(self, name: str) -> str:
        """The error message for a name that is not a field."""
        return f"unknown field {name!r}; the schema has: {', '.join(sorted(self.names))}{nearest(name, self.names)}"

    def find_stream(self, name: str) -> str | None:
        """The stream with this name, ignoring case, or None."""
        return next((stream for stream in self.streams if stream.lower() == name.lower()), None)

    def unknown_stream(self, name: str) -> str:
        """The error message for a name before a dot that is not a stream."""
        return f"unknown stream {name!r}; the streams are: {', '.join(self.streams)}{nearest(name, self.streams)}"

    def needs_stream(self, name: str) -> str:
        """The error message for a field that is named without its stream."""
        having = [f"{stream}.{name}" for stream in self.streams if self.find(f"{stream}.{name}")]
        if not having:
            return self.unknown_field(name)
        return f"field {name!r} needs its stream; write {' or '.join(having)}"

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema for reading such rows from files."""
        import pyarrow as pa

        return pa.schema([(field.name, arrow_type(field.type)) for field in self.fields])


def arrow_type(type_: Type) -> pa.DataType:
    import pyarrow as pa

    simple = {
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    return pa.decimal128(type_.precision, type_.scale) if type_.name == "decimal" else simple[type_.name]


def _read_type(name: str, precision: str | None, scale: str | None, field: str) -> Type:
    folded = _ALIASES.get(name.lower(), name.lower())
    if folded not in TYPE_NAMES:
        hint = {"int": "bigint", "integer": "bigint", "smallint": "bigint", "tinyint": "bigint", "float": "double"}
        instead = (
            f"; use {hint[folded]}: narrower columns are read as it" if folded in hint else nearest(folded, TYPE_NAMES)
        )
        raise SchemaError(f"field {field!r} has unknown type {name!r}; types are: {', '.join(TYPE_NAMES)}{instead}")
    if folded != "decimal":
        if precision is not None:
            raise SchemaError(f"field {field!r}: only decimal takes a precision, not {folded}")
        return Type(folded)
    digits, places = _read_number(precision or "10"), _read_number(scale or "0")
    if not (1 <= digits <= _MAX_PRECISION and 0 <= places <= digits):
        raise SchemaError(f"field {field!r}: decimal({digits},{places}) is out of range; 0 <= scale <= precision <= 38")
    return Type(folded, digits, places)


def _read_number(digits: str) -> int:
    """The number; a text of many digits gives a number that is also too large, as Python reads only 4,300 digits."""
    return int(digits) if len(digits) < 10 else 10**9


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def check_time_zone(name: str) -> str:
    """The name, if it is a valid time zone; raises otherwise."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError):
        raise SchemaError(f"unknown time zone {name!r}; use a name such as UTC or Europe/Berlin") from None
    return name
