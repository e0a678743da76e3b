"""Columns of text records: types inferred from the first records, and typed columns of all records.

CSV has only text. A CSV column is a number if all its fields are. Integers with leading zeros or a plus sign, such as
01234, are identifiers and stay text. Integers beyond 64 bits are decimals.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from vedette.data.schema import Field, Schema, arrow_type
from vedette.files.text_records import Records

WHOLE = r"^(0|-?[1-9][0-9]*)$"  # an integer in its usual notation
_DIGITS = r"^[+-]?[0-9]+$"
_ZONE = r":\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"  # at the end of a time, not of a date
_MAX_DIGITS = 38
_MAX_NESTED = 1_000  # levels of JSON
_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_OPENING, _CLOSING = [ord("["), ord("{")], [ord("]"), ord("}")]
_PART_BYTES = 1 << 20
_TIME = pa.timestamp("us")
_ZONED = pa.timestamp("us", tz="UTC")


class TextColumns(Protocol):
    """Reads columns from the records of a format."""

    names: list[str]  # of the columns, in order
    types: list[pa.DataType]  # inferred from the first records

    def read(self, records: Records, types: Mapping[int, pa.DataType], *, allows_others: bool = True) -> pa.RecordBatch:
        """The columns at these places, with these types and their names. ArrowInvalid if a value does not fit.

        Without `allows_others`, also if a record has a column that the first records do not have.
        """

    def fitting(self, place: int, field: Field) -> pa.DataType:
        """The type for reading a column as a field. Times keep the zone of the file, or have none."""


class CsvColumns:
    """Columns of CSV, as Spark reads it: an empty field is null, and "" is the empty string."""

    def __init__(self, header: Records, first: Records) -> None:
        line = pa.BufferReader(header.whole.to_pybytes() + b"\n")
        self.names = pa_csv.read_csv(line, parse_options=pa_csv.ParseOptions(newlines_in_values=True)).column_names
        shown = self._parse(first, {}, range(len(self.names)))
        texts = self._parse(first, dict.fromkeys(range(len(self.names)), pa.string()), range(len(self.names)))
        self.types = [_csv_type(shown.column(i).type, texts.column(i)) for i in range(len(self.names))]

    def read(self, records: Records, types: Mapping[int, pa.DataType], *, allows_others: bool = True) -> pa.RecordBatch:
        wanted = types or {0: pa.string()}  # at least one column, so that records are checked
        table = self._parse(records, wanted, list(wanted)).combine_chunks()
        arrays = [_one_array(table.column(place)) for place in range(len(types))]
        if table.num_rows != len(records):
            raise pa.ArrowInvalid(f"{len(records)} records read as {table.num_rows} rows; is a quote not closed?")
        return pa.RecordBatch.from_arrays(arrays, names=[self.names[place] for place in types])

    def fitting(self, place: int, field: Field) -> pa.DataType:
        if not field.type.is_stamp:
            return arrow_type(field.type)
        return _ZONED if pa.types.is_timestamp(self.types[place]) and self.types[place].tz is not None else _TIME

    def _parse(self, records: Records, types: Mapping[int, pa.DataType], places: Sequence[int]) -> pa.Table:
        if not len(records):
            return pa.table({str(place): pa.nulls(0, types.get(place, pa.null())) for place in places})
        try:
            return pa_csv.read_csv(
                pa.BufferReader(records.whole),
                read_options=pa_csv.ReadOptions(
                    # Parts of a block are parsed in parallel. To infer types, the block must be one part.
                    block_size=max(_PART_BYTES, 2 * records.longest) if types else records.whole.size,
                    column_names=[str(i) for i in range(len(self.names))],
                ),
                parse_options=pa_csv.ParseOptions(newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types={str(place): type_ for place, type_ in types.items()},
                    include_columns=[str(place) for place in places],
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            found = re.search(r"In CSV column #(\d+): ", str(error))
            if found is None:
                raise
            name = self.names[int(found[1])]
            raise pa.ArrowInvalid(str(error).replace(found[0], f"column {name!r}: ")) from None


class JsonColumns:
    """Columns of JSON lines: the keys of the first block."""

    def __init__(self, first: Records) -> None:
        table = _parse_json(first, None)
        self.names = table.column_names
        self.types = [column.type for column in table.columns]
        self._first = first
        for place, type_ in enumerate(self.types):
            if pa.types.is_timestamp(type_):
                self.types[place] = self._find_zone(place)
            elif pa.types.is_floating(type_):
                self.types[place] = self._find_large(place, table.column(place))

    def read(self, records: Records, types: Mapping[int, pa.DataType], *, allows_others: bool = True) -> pa.RecordBatch:
        wanted = pa.schema([(self.names[place], type_) for place, type_ in types.items()])
        if not len(records):
            return pa.RecordBatch.from_pylist([], wanted)
        plain = [each for each in wanted if not pa.types.is_map(each.type)]
        schema = pa.schema([(each.name, pa.string() if each.type == pa.binary() else each.type) for each in plain])
        table = _parse_json(records, schema if types else None, "ignore" if allows_others else "error")
        if table.num_rows != len(records) and plain:
            raise pa.ArrowInvalid(f"{len(records)} lines have {table.num_rows} objects; write one object per line")
        arrays = []
        for each in wanted:
            if pa.types.is_map(each.type):
                arrays.append(_read_maps(records, each))
            else:
                array = _one_array(table.column(each.name))
                arrays.append(_from_base64(array) if each.type == pa.binary() else array)
        return pa.RecordBatch.from_arrays(arrays, names=[self.names[place] for place in types])

    def fitting(self, place: int, field: Field) -> pa.DataType:
        return self._find_zone(place) if field.type.is_stamp else arrow_type(field.type)

    def _find_zone(self, place: int) -> pa.DataType:
        """The type of times, with a zone or without: Arrow infers the same type for both."""
        try:
            texts = self.read(self._first, {place: pa.string()}).column(0)
        except pa.ArrowInvalid:
            return _TIME
        return _ZONED if pc.any(pc.match_substring_regex(texts, _ZONE)).as_py() else _TIME

    def _find_large(self, place: int, values: pa.ChunkedArray) -> pa.DataType:
        """Decimal if all numbers are integers and some exceed 64 bits, else double."""
        largest = pc.max(pc.abs(values)).as_py()
        if largest is not None and largest >= 2.0**63:
            try:
                self.read(self._first, {place: pa.decimal128(_MAX_DIGITS, 0)})
                return pa.decimal128(_MAX_DIGITS, 0)
            except pa.ArrowInvalid:
                pass
        return pa.float64()


def _read_maps(records: Records, field: pa.Field) -> pa.Array:
    """Objects as maps: Arrow would read them as structs of the keys that it has seen."""
    maps = []
    for line in records.lines.to_pylist():
        held = json.loads(line).get(field.name)
        if held is not None and not isinstance(held, dict):
            raise pa.ArrowInvalid(f"column {field.name!r}: a map is an object, not {type(held).__name__}")
        maps.append(None if held is None else list(held.items()))
    try:
        return pa.array(maps, field.type)
    except (pa.ArrowTypeError, TypeError) as error:
        raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from None


def _from_base64(texts: pa.Array) -> pa.Array:
    """The bytes of a JSON column, which are in base64, as Spark reads and writes them."""
    try:
        return pa.array(
            [None if each is None else base64.b64decode(each, validate=True) for each in texts.to_pylist()], pa.binary()
        )
    except ValueError as error:
        raise pa.ArrowInvalid(f"a binary column must be in base64: {error}") from None


def _csv_type(shown: pa.DataType, texts: pa.ChunkedArray) -> pa.DataType:
    """The type of a CSV column, from the type that Arrow infers and from its texts."""
    if not (pa.types.is_integer(shown) or pa.types.is_floating(shown)):
        return pa.string() if pa.types.is_time(shown) or pa.types.is_duration(shown) else shown
    texts = pc.utf8_trim_whitespace(texts)
    if not pc.all(pc.match_substring_regex(texts, _DIGITS)).as_py():
        return pa.float64()
    if not pc.all(pc.match_substring_regex(texts, WHOLE)).as_py():
        return pa.string()
    if pa.types.is_integer(shown):
        return pa.int64()
    n_digits = pc.max(pc.binary_length(pc.replace_substring(texts, "-", ""))).as_py()
    return pa.decimal128(_MAX_DIGITS, 0) if n_digits <= _MAX_DIGITS else pa.string()


def _check_depth(records: Records) -> None:
    """Raise ArrowInvalid if a line is nested so deeply that Arrow, which recurses, would crash."""
    long = np.flatnonzero(np.diff(records.offsets) > _MAX_NESTED)  # each level takes a byte
    for place in long.tolist():
        line = records.lines[place].as_py()
        if line.count(b"[") + line.count(b"{") <= _MAX_NESTED:
            continue
        marks = np.frombuffer(_JSON_STRING.sub(b"", line), np.uint8)
        steps = np.isin(marks, _OPENING).astype(np.int64) - np.isin(marks, _CLOSING)
        if np.cumsum(steps).max(initial=0) > _MAX_NESTED:
            raise pa.ArrowInvalid(f"a line is nested more than {_MAX_NESTED:,} levels deep")


def _check_objects(records: Records) -> None:
    """Raise ArrowInvalid if a line is null: if all are, Arrow crashes. It refuses other values itself."""
    firsts = np.frombuffer(records.data, np.uint8)[records.offsets[:-1]]
    for place in np.flatnonzero(firsts != ord("{")).tolist():
        if records.lines[place].as_py().strip() == b"null":
            raise pa.ArrowInvalid("a line is null instead of an object")


def _parse_json(records: Records, schema: pa.Schema | None, others: str = "infer") -> pa.Table:
    _check_depth(records)
    _check_objects(records)
    return pa_json.read_json(
        io.BytesIO(records.whole),
        read_options=pa_json.ReadOptions(block_size=max(1, records.whole.size)),
        parse_options=pa_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else others
        ),
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def types_of(columns: TextColumns, schema: Schema) -> dict[int, pa.DataType]:
    """The types for reading the fields of a schema, by place of the column."""
    types = {}
    for place, name in enumerate(columns.names):
        field = schema.find(name)
        if field is not None:
            types[place] = columns.fitting(place, field)
    return types
