"""Schemas: the typed fields of a row, written as Spark writes them: `symbol string, price double, ts timestamp`.

Names are matched as in Spark, ignoring case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from vedette.errors import SchemaError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATING = ("float", "double")
NUMBER_NAMES = (*INTEGER_BITS, *FLOATING, "decimal")
TYPE_NAMES = (
    *("bigint", "int", "smallint", "tinyint", "double", "float", "decimal"),
    *("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"),
)
_ALIASES = {
    **{"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "real": "float"},
    **{"dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp"},
}
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*))(?:\s*:\s*|\s+)(?=[A-Za-z_])")
_TYPE = re.compile(r"([A-Za-z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*")
_SHOWN = 20  # names in a message
_MAX_DEPTH = 32  # of structs in structs
_MAX_NESTED_PRECISION = 18  # of decimals in arrays and maps
_MAX_PRECISION = 38
_MAP = "map<string,"


@dataclass(frozen=True)
class Type:
    """A field's type. `precision` and `scale` are for decimals only."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGER_BITS

    @property
    def is_floating(self) -> bool:
        return self.name in FLOATING

    @property
    def is_number(self) -> bool:
        return self.name in NUMBER_NAMES

    @property
    def is_stamp(self) -> bool:
        """Whether values are timestamps, with a time zone or without."""
        return self.name in ("timestamp", "timestamp_ntz")

    @property
    def is_text(self) -> bool:
        """Whether values are strings in their physical form: a byte of a binary is the character with its number."""
        return self.name in ("string", "binary")

    @property
    def widest(self) -> Type:
        """The type that holds all values of this one and of narrower ones: bigint, double, or itself."""
        return Type("bigint") if self.is_integer else Type("double") if self.is_floating else self


@dataclass(frozen=True)
class Field:
    """A field of a row. A part of a struct is a field, too: its name has dots, and `path` has the single names."""

    name: str
    type: Type
    path: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """The name of the column that has the field."""
        return self.path[0] if self.path else self.name


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
        fields = [
            Field(f"{stream}.{field.name}", field.type, field.path and (f"{stream}.{field.path[0]}", *field.path[1:]))
            for stream, each in schemas.items()
            for field in each
        ]
        return cls(tuple(fields), tuple(schemas))

    @classmethod
    def parse(cls, text: str) -> Schema:
        if not isinstance(text, str):
            raise SchemaError(
                f"a schema must be a text such as 'symbol string, price double'; got {type(text).__name__}"
            )
        if text.rstrip().endswith(","):
            raise SchemaError("the schema ends in a comma; write: name type, name type, ...")
        return cls(tuple(_Parser(text).fields()) if text.strip() else ())

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
        return _write([(field.path or (field.name,), field.type) for field in self.fields], " ", ", ")

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
        names = sorted(self.names)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"unknown field {name!r}; the schema has: {', '.join(names[:_SHOWN])}{more}{nearest(name, names)}"

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

        return pa.schema(_arrow_fields([(field.path or (field.name,), field.type) for field in self.fields]))


def _arrow_fields(fields: Sequence[tuple[tuple[str, ...], Type]]) -> list[tuple[str, pa.DataType]]:
    import pyarrow as pa

    found: list[tuple[str, pa.DataType]] = []
    for name, parts in groupby(fields, key=lambda field: field[0][0]):
        same = list(parts)
        inner = [(path[1:], type_) for path, type_ in same if len(path) > 1]
        found.append((name, pa.struct(_arrow_fields(inner)) if inner else arrow_type(same[0][1])))
    return found


def arrow_type(type_: Type) -> pa.DataType:
    import pyarrow as pa

    if is_array(type_):
        return pa.list_(arrow_type(element_of(type_)))
    if is_map(type_):
        return pa.map_(pa.string(), arrow_type(value_of(type_)))
    simple = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "smallint": pa.int16(),
        "tinyint": pa.int8(),
        "double": pa.float64(),
        "float": pa.float32(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    return pa.decimal128(type_.precision, type_.scale) if type_.name == "decimal" else simple[type_.name]


def is_array(type_: Type) -> bool:
    return type_.name.startswith("array<")


def element_of(type_: Type) -> Type:
    """The type of an array's elements."""
    return _inner_type(type_.name[len("array<") : -1])


def array_of(element: Type) -> Type:
    return Type(f"array<{element}>")


def is_map(type_: Type) -> bool:
    return type_.name.startswith(_MAP)


def value_of(type_: Type) -> Type:
    """The type of a map's values. Its keys are strings."""
    return _inner_type(type_.name[len(_MAP) : -1])


def map_of(value: Type) -> Type:
    return Type(f"{_MAP}{value}>")


def is_nested(type_: Type) -> bool:
    """Whether a value has several parts: an array or a map."""
    return is_array(type_) or is_map(type_)


def _inner_type(written: str) -> Type:
    """A type as `str` writes it."""
    name, _, digits = written.partition("(")
    return Type(name, *map(int, digits[:-1].split(","))) if digits else Type(name)


class _Parser:
    """Reads `name type, name type, ...`, with arrays and structs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def fields(self, path: tuple[str, ...] = (), end: str = "") -> list[Field]:
        """The fields up to the end of the text, or of a struct. `path` are the names of the structs around them."""
        fields: list[Field] = []
        while True:
            fields += self._field(path)
            found = self.text[self.place : self.place + 1]
            if found == end:
                self.place += len(end)
                self._skip_spaces()
                return fields
            if found != ",":
                wanted = f"a comma or {end}" if end else "a comma"
                raise SchemaError(f"expected {wanted} in the schema at {self._rest!r}")
            self.place += 1

    @property
    def _rest(self) -> str:
        return self.text[self.place : self.place + 30]

    def _skip_spaces(self) -> None:
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1

    def _field(self, path: tuple[str, ...]) -> list[Field]:
        found = _NAME.match(self.text, self.place)
        if not found:
            raise SchemaError(f"cannot read the schema at {self._rest!r}; write: name type, name type, ...")
        quoted, plain = found.groups()
        path = (*path, quoted.replace("``", "`") if quoted else plain)
        name = ".".join(path)
        if "\0" in name:
            raise SchemaError(f"field {name!r} has a NUL character in its name")
        if len(path) > _MAX_DEPTH:
            raise SchemaError(f"field {path[0]!r} has structs in structs, more than {_MAX_DEPTH} deep")
        self.place = found.end()
        word, precision, scale = self._type(name)
        if word.lower() == "struct":
            self._open(word, name)
            return self.fields(path, ">")
        if word.lower() == "array":
            self._open(word, name)
            type_ = array_of(self._inner(name, ">"))
        elif word.lower() == "map":
            self._open(word, name)
            key = self._inner(name, ",")
            if key.name != "string":
                raise SchemaError(f"field {name!r}: keys of a map must be strings, not {key}; write map<string, {key}>")
            type_ = map_of(self._inner(name, ">"))
        else:
            type_ = _read_type(word, precision, scale, name)
        return [Field(name, type_, path if len(path) > 1 else ())]

    def _type(self, field: str) -> tuple[str, str | None, str | None]:
        found = _TYPE.match(self.text, self.place)
        if not found:
            raise SchemaError(f"field {field!r}: expected a type in the schema at {self._rest!r}")
        self.place = found.end()
        word, precision, scale = found.groups()
        return word, precision, scale

    def _inner(self, field: str, end: str) -> Type:
        """The type of what an array or a map has, up to a sign."""
        self._skip_spaces()
        word, precision, scale = self._type(field)
        if self.text[self.place : self.place + 1] == "<":
            raise SchemaError(f"field {field!r}: an array or a map of {word.lower()}s is not supported")
        type_ = _read_type(word, precision, scale, field)
        if type_.precision > _MAX_NESTED_PRECISION:
            most = _MAX_NESTED_PRECISION
            raise SchemaError(f"field {field!r}: decimals in arrays and maps have up to {most} digits; got {type_}")
        if self.text[self.place : self.place + 1] != end:
            raise SchemaError(f"expected {end} in the schema at {self._rest!r}")
        self.place += 1
        self._skip_spaces()
        return type_

    def _open(self, word: str, field: str) -> None:
        if self.text[self.place : self.place + 1] != "<":
            example = {"array": "array<string>", "map": "map<string, bigint>"}.get(
                word.lower(), "struct<a: bigint, b: string>"
            )
            raise SchemaError(f"field {field!r}: {word} needs what it has, such as {example}")
        self.place += 1


def _write(fields: Sequence[tuple[tuple[str, ...], Type]], colon: str, comma: str) -> str:
    """Fields as a schema is written. Neighbours with the same first name are parts of one struct."""
    written = []
    for name, parts in groupby(fields, key=lambda field: field[0][0]):
        same = list(parts)
        inner = [(path[1:], type_) for path, type_ in same if len(path) > 1]
        type_ = f"struct<{_write(inner, ': ', ', ')}>" if inner else str(same[0][1])
        written.append(f"{_quote(name)}{colon}{type_}")
    return comma.join(written)


def _read_type(name: str, precision: str | None, scale: str | None, field: str) -> Type:
    folded = _ALIASES.get(name.lower(), name.lower())
    if folded not in TYPE_NAMES:
        known = ", ".join(TYPE_NAMES)
        raise SchemaError(f"field {field!r} has unknown type {name!r}; types are: {known}{nearest(folded, TYPE_NAMES)}")
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
