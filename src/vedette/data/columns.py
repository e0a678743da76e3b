"""Columns: a field's values in the physical form that kernels compare.

| type                   | values                                              |
| ---------------------- | --------------------------------------------------- |
| integers               | int64                                               |
| double, float          | float64; a float is one that 32 bits can hold       |
| decimal, precision <= 18 | int64, unscaled at the field's scale              |
| decimal above          | object array of Python integers, unscaled           |
| boolean                | bool                                                |
| date                   | int64, days since 1970-01-01                        |
| timestamp              | int64, microseconds since 1970-01-01 00:00 UTC      |
| timestamp_ntz          | int64, microseconds since 1970-01-01 00:00          |
| string                 | an Arrow large_string array                         |
| array                  | an Arrow large_list array of elements as above      |
| binary                 | the same; a byte is the character with its number   |
| map                    | an Arrow large_list array of keys and values        |
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.schema import INTEGER_BITS, Field, Type, arrow_type, element_of, is_array, is_map, is_nested, value_of
from vedette.errors import RowError
from vedette.native.damage import DamageError, check

INT64_DECIMAL_PRECISION = 18  # the widest decimal whose unscaled values all fit into int64
_UINT64_DIGITS = 20
_DAY_MILLISECONDS = 86_400_000
_MAX_WALL_CLOCK = (1 << 63) - 2 * 86_400_000_000  # microseconds; with an offset, a later time may exceed 64 bits


@dataclass(eq=False)  # not frozen, because that would double the time to create one
class Column:
    """Values of one field. Where `valid` is False, the value is null and the entry of `values` is arbitrary."""

    values: Any  # NDArray, or a pa.LargeStringArray without nulls that matter
    valid: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> Column:
        values = self.values[rows] if isinstance(self.values, np.ndarray) else self.values.take(pa.array(rows))
        return Column(values, None if self.valid is None else self.valid[rows])

    def slice(self, start: int, end: int) -> Column:
        """Consecutive rows, without a copy."""
        return Column(self.values[start:end], None if self.valid is None else self.valid[start:end])


def read_column(array: pa.Array | pa.ChunkedArray, field: Field, time_zone: str = "UTC") -> Column:
    """An Arrow column in the physical form of the field's type. Narrower types are widened, others are refused.

    Timestamps without a zone are wall-clock time in `time_zone`.
    """
    try:
        array = decode(array)
    except pa.ArrowException:  # Arrow has no kernel for this type
        raise _wrong_type(array, field) from None
    if pa.types.is_null(array.type):
        return null_column(field.type, len(array))
    if is_nested(field.type):
        return _read_array(array, field, time_zone) if is_array(field.type) else _read_map(array, field, time_zone)
    readable, read = _READERS[field.type.name]
    if not readable(array.type, field.type):
        raise _wrong_type(array, field)
    valid = None if array.null_count == 0 else pc.is_valid(array).to_numpy(zero_copy_only=False)
    column = Column(read(array, field), valid)
    if field.type.name == "timestamp" and array.type.tz is None and time_zone != "UTC":
        column.values = _in_zone(column, field, time_zone)
    return column


def _read_array(array: pa.Array, field: Field, time_zone: str) -> Column:
    """Lists of any kind, with elements in their physical form and their nulls kept."""
    if not _is_list(array.type):
        raise _wrong_type(array, field)
    try:
        values = held_array(read_column(array.flatten(), Field(field.name, element_of(field.type)), time_zone))
    except RowError:
        raise _wrong_type(array, field) from None
    return _lists_of(array, values)


def _is_list(type_: pa.DataType) -> bool:
    types: Any = pa.types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(is_kind(type_) for is_kind in kinds)


def _lists_of(array: pa.Array, values: pa.Array) -> Column:
    """The lists of an array over other values."""
    valid = None if array.null_count == 0 else pc.is_valid(array).to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    return Column(pa.LargeListArray.from_arrays(starts, values), valid)


def held_array(column: Column) -> pa.Array:
    """The values of a column as an Arrow array in their physical form, with their nulls."""
    values = column.values if isinstance(column.values, pa.Array) else pa.array(column.values)
    return values if column.valid is None else pc.if_else(pa.array(column.valid), values, pa.scalar(None, values.type))


def held_type(type_: Type) -> pa.DataType:
    """The Arrow type of values in their physical form, of all but wide decimals."""
    if is_array(type_):
        return pa.large_list(held_type(element_of(type_)))
    if is_map(type_):
        return pa.large_list(pa.struct([("key", pa.large_string()), ("value", held_type(value_of(type_)))]))
    return pa.large_string() if type_.is_text else pa.from_numpy_dtype(flat_dtype(type_))


def _read_map(array: pa.Array, field: Field, time_zone: str) -> Column:
    """A map of Arrow, a list of structs of a key and a value, or a struct: each of its fields that is not null."""
    if pa.types.is_struct(array.type):
        array = _entries_of_structs(array)
    if pa.types.is_map(array.type):
        entries = pa.ListArray.from_arrays(array.offsets, pa.StructArray.from_arrays([array.keys, array.items], _ENTRY))
        array = pc.if_else(pc.is_valid(array), entries, pa.scalar(None, entries.type)) if array.null_count else entries
    inner = array.type.value_type if _is_list(array.type) else None
    if inner is None or not pa.types.is_struct(inner) or inner.num_fields != len(_ENTRY):
        raise _wrong_type(array, field)
    entries = array.flatten()
    try:
        keys = read_column(entries.field(0), Field(field.name, Type("string")))
        values = read_column(entries.field(1), Field(field.name, value_of(field.type)), time_zone)
    except RowError:
        raise _wrong_type(array, field) from None
    if keys.valid is not None:
        raise RowError(f"field {field.name!r} has a map with a key that is null", field=field.name)
    return _lists_of(array, pa.StructArray.from_arrays([keys.values, held_array(values)], _ENTRY))


_ENTRY = ("key", "value")


def _entries_of_structs(array: pa.Array) -> pa.Array:
    """Structs as lists of names and values. A field that is null is no entry."""
    names = [array.type.field(k).name for k in range(array.type.num_fields)]
    rows = [None if row is None else [(k, v) for k, v in row.items() if v is not None] for row in array.to_pylist()]
    types = {array.type.field(k).type for k in range(len(names))}
    if len(types - {pa.null()}) > 1:
        raise RowError("a map has values of one type; this one has: " + ", ".join(sorted(map(str, types))))
    value = next(iter(types - {pa.null()}), pa.null())
    return pa.array(rows, pa.map_(pa.string(), value))


def _wrong_type(array: pa.Array | pa.ChunkedArray, field: Field) -> RowError:
    hint = "cast the column, or declare the field with the type of the rows"
    if field.type.is_integer and pa.types.is_floating(array.type):
        hint += ' (in pandas, .astype("Int64") keeps integers with nulls as integers)'
    if field.type.name == "timestamp_ntz" and pa.types.is_timestamp(array.type):
        hint = "convert the column to local times without a time zone, or declare the field as timestamp"
    return RowError(f"field {field.name!r} is {field.type} in the schema but {array.type} in the rows; {hint}")


def decode(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values in one plain array: chunks are combined, dictionaries and runs are decoded."""
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_string(array.type) and array.num_chunks > 1:  # combined, they may exceed 32-bit offsets
            array = array.cast(pa.large_string())
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if isinstance(array.type, pa.RunEndEncodedType):
        if pa.types.is_string_view(array.type.value_type):  # Arrow cannot decode it
            texts = pa.RunEndEncodedArray.from_arrays(array.run_ends, array.values.cast(pa.large_string()))
            array = texts.slice(array.offset, len(array))
        array = pc.run_end_decode(array)
    if isinstance(array.type, pa.DictionaryType):
        if pa.types.is_string_view(array.type.value_type):  # of polars; Arrow cannot decode it
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        array = array.dictionary_decode()
    return array


def large_strings(values: Any) -> pa.LargeStringArray:
    """Python strings, or an Arrow array of them, as one large_string array."""
    return pa.array(values, pa.large_string())


def string_buffers(strings: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The offsets (one more than strings) and the UTF-8 bytes of a large_string array, without a copy."""
    _, offsets, data = strings.buffers()
    if offsets is None or len(strings) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    bytes_ = np.empty(0, np.uint8) if data is None else writable(np.frombuffer(data, np.uint8))
    return writable(np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)), bytes_


def strings_over(offsets: NDArray[np.int64], data: NDArray[np.uint8], n: int) -> pa.LargeStringArray:
    """The first `n` strings over such buffers, without a copy."""
    return pa.Array.from_buffers(pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def check_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8], n: int) -> None:
    """Raise DamageError unless the first `n` strings over buffers from a file lie within them and are UTF-8."""
    is_long = offsets.ndim == data.ndim == 1 and 0 <= n < len(offsets)
    check(is_long and offsets.dtype == np.int64 and data.dtype == np.uint8, "strings have arrays of a wrong shape")
    check(offsets[0] == 0 and offsets[n] <= len(data), "strings reach beyond their bytes")
    try:
        strings_over(offsets, data, n).validate(full=True)
    except pa.ArrowInvalid:
        raise DamageError("strings overlap, or are not UTF-8") from None


def null_column(type_: Type, n: int) -> Column:
    """A column of `n` nulls."""
    return Column(_filler(type_, n), np.zeros(n, np.bool_))


def join_columns(first: Column, second: Column) -> Column:
    """The rows of two columns of one field."""
    if isinstance(first.values, np.ndarray):
        values: Any = np.concatenate([first.values, second.values])
    else:
        values = pa.concat_arrays([first.values, second.values])
    if first.valid is None and second.valid is None:
        return Column(values)
    valid = [np.ones(len(each), np.bool_) if each.valid is None else each.valid for each in (first, second)]
    return Column(values, np.concatenate(valid))


def to_array(column: Column, type_: Type) -> pa.Array:
    """The column as an Arrow array of the type."""
    values, wanted, is_null = column.values, arrow_type(type_), None if column.valid is None else ~column.valid
    if is_nested(type_):
        return _to_nested(column, type_)
    if type_.name == "date":
        return pa.array(values, mask=is_null).cast(pa.int32()).cast(wanted)
    if not type_.is_text and type_.name != "decimal":
        return pa.array(values, mask=is_null).cast(wanted)
    if type_.name == "decimal" and is_null is not None:
        values = np.where(is_null, 0, values)  # values of nulls are arbitrary
    if type_.name == "binary":
        array = pa.array([text.encode("latin-1") for text in values.to_pylist()], wanted)
    else:
        array = values.cast(wanted) if type_.name == "string" else _decimals(values, wanted)
    return array if is_null is None else pc.if_else(pa.array(is_null), pa.scalar(None, wanted), array)


def _to_nested(column: Column, type_: Type) -> pa.Array:
    lists, wanted = column.values, arrow_type(type_)
    if column.valid is not None:
        lists = pc.if_else(pa.array(column.valid), lists, pa.scalar(None, lists.type))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    starts = pa.array(offsets, mask=np.append(pc.is_null(lists).to_numpy(zero_copy_only=False), False))
    held = lists.flatten()
    if is_array(type_):
        return pa.ListArray.from_arrays(starts, _to_inner(held, element_of(type_))).cast(wanted)
    keys, values = held.field(0).cast(pa.string()), _to_inner(held.field(1), value_of(type_))
    return pa.MapArray.from_arrays(starts, keys, values).cast(wanted)


def _to_inner(held: pa.Array, type_: Type) -> pa.Array:
    """Physical values in an array or a map as values of their type."""
    valid = pc.is_valid(held).to_numpy(zero_copy_only=False)
    plain = held if type_.is_text else held.fill_null(False if type_.name == "boolean" else 0)
    values = plain.fill_null("") if type_.is_text else plain.to_numpy(zero_copy_only=False)
    return to_array(Column(values, valid), type_)


def _decimals(unscaled: NDArray[Any], type_: pa.DataType) -> pa.Array:
    halves = np.empty((len(unscaled), 2), np.int64)  # the low one, the high one
    if unscaled.dtype == np.int64:
        halves[:, 0], halves[:, 1] = unscaled, unscaled >> 63
    else:
        halves[:, 0] = (unscaled & ((1 << 64) - 1)).astype(np.uint64).view(np.int64)
        halves[:, 1] = (unscaled >> 64).astype(np.int64)
    return pa.Array.from_buffers(type_, len(unscaled), [None, pa.py_buffer(halves)])


def _filler(type_: Type, n: int) -> Any:
    if is_nested(type_):
        return pa.array([[]] * n, held_type(type_))
    if type_.is_text:
        return pa.array([""] * n, pa.large_string())
    if type_.name == "decimal" and type_.precision > INT64_DECIMAL_PRECISION:
        return np.zeros(n, object)
    return np.zeros(n, flat_dtype(type_))


def flat_dtype(type_: Type) -> Any:
    """The dtype of values that are neither strings nor wide decimals."""
    return np.float64 if type_.is_floating else np.bool_ if type_.name == "boolean" else np.int64


def writable(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory under NumPy's writable flag, contiguous.

    Numba types a read-only array differently and would compile every kernel twice. Kernels do not write to their input.
    """
    array = np.ascontiguousarray(array)
    if array.flags.writeable or array.size == 0:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array  # type: ignore[attr-defined]  # keeps the memory alive
    return np.asarray(np.frombuffer(memoryview(memory), array.dtype).reshape(array.shape))


def _numbers(array: pa.Array, to: pa.DataType) -> NDArray[Any]:
    """The values buffer as a NumPy array; values at nulls are arbitrary."""
    if array.type != to:
        array = array.cast(to, safe=not pa.types.is_floating(to))
    dtype = to.to_pandas_dtype()
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return writable(np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize))


def _read_bigint(array: pa.Array, field: Field) -> NDArray[np.int64]:
    return _numbers(array, pa.int64())


def _read_narrow(array: pa.Array, field: Field) -> NDArray[np.int64]:
    """Integers of fewer than 64 bits, which are checked: in Python, NumPy and pandas, integers have 64."""
    values = _numbers(array, pa.int64())
    end = 1 << (INTEGER_BITS[field.type.name] - 1)
    if pa.types.is_integer(array.type) and array.type.bit_width < INTEGER_BITS[field.type.name]:
        return values
    beyond = (values < -end) | (values >= end)
    if array.null_count:
        beyond &= pc.is_valid(array).to_numpy(zero_copy_only=False)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise RowError(
            f"field {field.name!r} is {field.type}, but row {row} has {values[row]}; its values are from {-end} to "
            f"{end - 1}; declare the field as bigint",
            field=field.name,
        )
    return values


def _read_double(array: pa.Array, field: Field) -> NDArray[np.float64]:
    return _numbers(array, pa.float64())


def _read_float(array: pa.Array, field: Field) -> NDArray[np.float64]:
    """Numbers rounded to 32 bits, as Spark casts them."""
    if array.type == pa.float32():
        return _numbers(array, pa.float64())
    numbers = _numbers(array, pa.int64() if pa.types.is_integer(array.type) else pa.float64())
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32).astype(np.float64)


def _read_boolean(array: pa.Array, field: Field) -> NDArray[np.bool_]:
    return array.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _read_date(array: pa.Array, field: Field) -> NDArray[np.int64]:
    if pa.types.is_date32(array.type):
        return _numbers(array.view(pa.int32()), pa.int64())
    days, rest = np.divmod(_numbers(array.view(pa.int64()).fill_null(0), pa.int64()), _DAY_MILLISECONDS)
    if rest.any():
        raise RowError(
            f"field {field.name!r} is date but row {int(np.argmax(rest != 0))}, of type {array.type}, is not at "
            f"midnight; cast the column to date32, or declare the field as timestamp"
        )
    return np.asarray(days)


def _read_timestamp(array: pa.Array, field: Field) -> NDArray[np.int64]:
    if array.type.unit == "ns":  # Spark has microseconds and rounds down
        nanoseconds = _numbers(array.view(pa.int64()), pa.int64())
        return np.asarray(np.floor_divide(nanoseconds, 1000))
    try:
        return _numbers(array.cast(pa.timestamp("us", tz=array.type.tz)).view(pa.int64()), pa.int64())
    except pa.ArrowInvalid as error:
        raise RowError(f"field {field.name!r} has a timestamp beyond microseconds in 64 bits: {error}") from None


def _in_zone(wall_clock: Column, field: Field, time_zone: str) -> NDArray[np.int64]:
    """Wall-clock times as instants, as in Spark: in an overlap the earlier one, in a gap with the offset before it."""
    values = wall_clock.values if wall_clock.valid is None else np.where(wall_clock.valid, wall_clock.values, 0)
    if len(values) and (values.min() < -_MAX_WALL_CLOCK or values.max() > _MAX_WALL_CLOCK):
        raise RowError(f"field {field.name!r} has a timestamp that is out of range in time zone {time_zone}")
    times = pa.array(values).view(pa.timestamp("us"))
    try:
        instants = pc.assume_timezone(times, time_zone, ambiguous="earliest")
    except pa.ArrowInvalid:
        instants = pc.assume_timezone(times, time_zone, ambiguous="earliest", nonexistent="earliest")
        skipped = pc.subtract(times, pc.local_timestamp(instants))  # how far into a gap, from just before it
        instants = pc.add(instants, skipped)
    return _numbers(instants.view(pa.int64()), pa.int64())


def _read_string(array: pa.Array, field: Field) -> pa.LargeStringArray:
    return array if pa.types.is_large_string(array.type) else array.cast(pa.large_string())


def _read_binary(array: pa.Array, field: Field) -> pa.LargeStringArray:
    return text_of_bytes(array.cast(pa.large_binary()))


def text_of_bytes(array: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Bytes as the characters with their numbers. UTF-8 keeps the order of characters, so it keeps that of bytes."""
    _, offset_buffer, buffer = array.buffers()
    if len(array) == 0 or offset_buffer is None:
        return large_strings([""] * len(array))
    offsets = np.frombuffer(offset_buffer, np.int64, len(array) + 1, 8 * array.offset)
    held = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)[offsets[0] : offsets[-1]]
    high = held >= 0x80
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(1 + high, dtype=np.int64)])
    data = np.empty(starts[-1], np.uint8)
    data[starts[:-1]] = np.where(high, 0xC0 | held >> 6, held)
    data[starts[:-1][high] + 1] = 0x80 | held[high] & 0x3F
    return strings_over(np.ascontiguousarray(starts[offsets - offsets[0]]), data, len(array))


def _is_readable_binary(got: pa.DataType, wanted: Type) -> bool:
    kinds = pa.types
    is_plain = kinds.is_binary(got) or kinds.is_large_binary(got) or kinds.is_fixed_size_binary(got)
    return bool(is_plain or kinds.is_binary_view(got))


def _read_decimal(array: pa.Array, field: Field) -> NDArray[Any]:
    try:
        whole = array if pa.types.is_decimal(array.type) else array.cast(pa.decimal128(_UINT64_DIGITS, 0))
        exact = whole.cast(pa.decimal128(field.type.precision, field.type.scale))
    except pa.ArrowInvalid as error:
        raise RowError(f"field {field.name!r} has a value that does not fit into {field.type}: {error}") from None
    halves = np.frombuffer(exact.buffers()[1], np.int64, 2 * len(exact), 16 * exact.offset)
    if field.type.precision <= INT64_DECIMAL_PRECISION:
        return np.ascontiguousarray(halves[0::2])
    return np.asarray(halves[1::2].astype(object) * (1 << 64) + halves[0::2].view(np.uint64).astype(object))


def _is_readable_decimal(got: pa.DataType, wanted: Type) -> bool:
    if pa.types.is_integer(got):
        return True
    return bool(pa.types.is_decimal(got) and got.scale <= wanted.scale)


def _is_readable_integer(got: pa.DataType, wanted: Type) -> bool:
    return bool(pa.types.is_integer(got) and got != pa.uint64())


def _is_readable_float(got: pa.DataType, wanted: Type) -> bool:
    return bool(pa.types.is_floating(got) or pa.types.is_integer(got))


_READERS: dict[str, Any] = {
    "bigint": (_is_readable_integer, _read_bigint),
    **dict.fromkeys(("int", "smallint", "tinyint"), (_is_readable_integer, _read_narrow)),
    "double": (_is_readable_float, _read_double),
    "float": (_is_readable_float, _read_float),
    "decimal": (_is_readable_decimal, _read_decimal),
    "boolean": (lambda got, wanted: pa.types.is_boolean(got), _read_boolean),
    "string": (
        lambda got, wanted: pa.types.is_string(got) or pa.types.is_large_string(got) or pa.types.is_string_view(got),
        _read_string,
    ),
    "binary": (_is_readable_binary, _read_binary),
    "date": (lambda got, wanted: pa.types.is_date(got), _read_date),
    "timestamp": (lambda got, wanted: pa.types.is_timestamp(got), _read_timestamp),
    "timestamp_ntz": (lambda got, wanted: pa.types.is_timestamp(got) and got.tz is None, _read_timestamp),
}
