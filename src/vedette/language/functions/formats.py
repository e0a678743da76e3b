"""Numbers and other values written by a format: `format_number`, and the formats of Java's `String.format`."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.data.schema import INTEGER_BITS, Type
from vedette.language.casts_to_text import write_double, write_float
from vedette.language.expressions import BOOLEAN, INT, NULL, STRING, Typed, Written
from vedette.language.functions.function import Call, Function, Sizes
from vedette.language.functions.time_arguments import literal_text
from vedette.language.types import NUMERIC
from vedette.language.vectors import Vector, join, text_vector

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

MAX_PLACES = 340
_EXACT = Context(prec=2000)
_MAX_WIDTH = 1000  # of a value in a format
_SPECIFIER = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_LONGEST_NUMBER = 1000  # characters of a number, with commas


# -- format_number


def type_format_number(analyser: Analyser, node: Written) -> Typed:
    """A number, and how many places are written, as an int."""
    number, places = (analyser.read(arg) for arg in node.args)
    if number.type.name not in NUMERIC and number.type != NULL:
        analyser.refuse(node, f"{node.op} takes a number, not {analyser.shown(number)}")
    if places.type != NULL and places.type.name not in ("tinyint", "smallint", "int"):
        analyser.refuse(node.args[1], f"{node.op} takes the number of places as an int, such as format_number(x, 2)")
    analyser.need_sizes(number)
    number = analyser.cast(node, number, Type("double")) if number.type == NULL else number
    return analyser.made(node, node.op, STRING, number, analyser.cast(node, places, INT))


def format_number(call: Call) -> Vector:
    """Null for a negative number of places; more than 340 places fail."""
    type_, places = call.first_type, call.args[1].values
    pairs = zip(call.first.values.tolist(), np.clip(places, 0, MAX_PLACES).tolist(), strict=True)
    made = text_vector([_write_number(value, type_, n) for value, n in pairs], *call.args)
    shown = Vector(made.values, ~made.nulls & (places >= 0), made.failed, made.lost)
    return shown.failing(places > MAX_PLACES)


def _write_number(value: Any, type_: Type, places: int) -> str:
    """With commas between thousands. A double has its shortest digits; where some are cut, its exact value decides."""
    if type_.is_floating and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "\u221e" if value > 0 else "-\u221e"
    shortest = Decimal(repr(value)) if type_.is_floating else Decimal(value).scaleb(-type_.scale, _EXACT)
    exponent = shortest.as_tuple().exponent
    exact = Decimal(value) if type_.is_floating and isinstance(exponent, int) and -exponent > places else shortest
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, _EXACT):,f}"


# -- format_string


class Specifier(NamedTuple):
    """A part of a format: a value, or a text if `conversion` is empty."""

    text: str = ""
    conversion: str = ""
    place: int = 0  # of the value among the arguments
    flags: str = ""
    width: int = 0
    precision: int | None = None


class FormatError(Exception):
    """The format is invalid, or not supported."""


@lru_cache(maxsize=1000)
def specifiers_of(format_: str) -> tuple[Specifier, ...]:
    """The parts of a format. Raises FormatError."""
    found: list[Specifier] = []
    end, next_place = 0, 0
    for match in _SPECIFIER.finditer(format_):
        text = format_[end : match.start()]
        _check_text(text)
        found.append(Specifier(text))
        index, flags, width, precision, conversion = match.groups()
        end = match.end()
        if conversion == "%" or conversion == "n":
            if index or flags or width or precision:
                raise FormatError(f"{match.group()!r} is not supported; write %% or %n")
            found.append(Specifier("%" if conversion == "%" else "\n"))
            continue
        place = int(index) - 1 if index else next_place
        next_place += not index
        found.append(Specifier("", conversion, place, flags, int(width or 0), int(precision) if precision else None))
        _check_specifier(found[-1], match.group())
    _check_text(format_[end:])
    return (*found, Specifier(format_[end:]))


def _check_text(text: str) -> None:
    if "%" in text:
        raise FormatError(f"{text!r} has a % that begins no value; write %%")


_FLAGS = {**dict.fromkeys("sSb", "-"), **dict.fromkeys("xXo", "-0"), **dict.fromkeys("df", "-0+,( "), "e": "-0+( "}


def _check_specifier(each: Specifier, written: str) -> None:
    if each.conversion not in _FLAGS:
        known = ", ".join(f"%{conversion}" for conversion in _FLAGS)
        raise FormatError(f"{written!r} is not supported; conversions are: {known}, %%, %n")
    if any(flag not in _FLAGS[each.conversion] or each.flags.count(flag) > 1 for flag in each.flags):
        raise FormatError(f"{written!r} has flags that %{each.conversion} does not take")
    if ("-" in each.flags and "0" in each.flags) or ("+" in each.flags and " " in each.flags):
        raise FormatError(f"{written!r} has flags that exclude each other")
    if ("-" in each.flags or "0" in each.flags) and not each.width:
        raise FormatError(f"{written!r} needs a width")
    if each.precision is not None and each.conversion in "dxXo":
        raise FormatError(f"{written!r}: an integer has no precision")
    if each.width > _MAX_WIDTH or (each.precision or 0) > MAX_PLACES or each.place < 0:
        raise FormatError(f"{written!r} is out of range: widths are up to {_MAX_WIDTH}, places up to {MAX_PLACES}")


_CONVERTED = {  # the types of values that a conversion takes
    **dict.fromkeys("sS", ("string", "boolean", *INTEGER_BITS, "float", "double", "decimal")),
    **dict.fromkeys("dxXo", tuple(INTEGER_BITS)),
    **dict.fromkeys("fe", ("double", "float")),
    "b": ("boolean",),
}


def type_format_string(analyser: Analyser, node: Written) -> Typed:
    """A format, which is a literal, and its values; the value of the node is the format."""
    args = [analyser.read(arg) for arg in node.args[1:]]
    if node.args[0].op == "constant" and node.args[0].name == "null":
        return analyser.made(node, "constant", STRING)
    format_ = literal_text(analyser, node.args[0])
    if format_ is None:
        analyser.refuse(node.args[0], f"{node.op} takes its format as a literal, such as '%s-%d'")
    analyser.need_sizes(*args)
    args = [analyser.cast(node, arg, BOOLEAN) if arg.type == NULL else arg for arg in args]
    try:
        for each in specifiers_of(format_):
            _check_type(each, args)
    except FormatError as error:
        analyser.refuse(node.args[0], str(error))
    args = args or [analyser.made(node, "constant", BOOLEAN)]  # an evaluator has at least one argument
    return analyser.made(node, node.op, STRING, *args, value=format_)


def _check_type(each: Specifier, args: list[Typed]) -> None:
    if not each.conversion:
        return
    if each.place >= len(args):
        raise FormatError(f"the format has more values than there are arguments, {len(args)}")
    arg = args[each.place]
    is_null = arg.op == "constant" and arg.value is None
    if not is_null and arg.type.name not in _CONVERTED[each.conversion]:
        raise FormatError(f"%{each.conversion} does not take a value of type {arg.type}")


def is_format(format_: object, n_arguments: int) -> bool:
    """Whether a node of a saved set has a valid format."""
    try:
        return isinstance(format_, str) and all(each.place < max(1, n_arguments) for each in specifiers_of(format_))
    except FormatError:
        return False


def format_string(call: Call) -> Vector:
    """Never null: a null is written as `null`."""
    parts = specifiers_of(str(call.node.value))
    n = len(call.first)
    columns: list[list[str]] = []
    failed = lost = None
    for arg in call.args:
        failed, lost = join(failed, arg.failed), join(lost, arg.lost)
    for each in parts:
        if each.conversion:
            arg, type_ = call.args[each.place], call.node.args[each.place].type
            values = arg.values.tolist() if isinstance(arg.values, np.ndarray) else arg.values.to_pylist()
            pairs = zip(values, arg.usable, strict=True)
            columns.append([_write(each, value, type_) if usable else _null(each) for value, usable in pairs])
        elif each.text:
            columns.append([each.text] * n)
    texts = ["".join(row) for row in zip(*columns, strict=True)] if columns else [""] * n
    made = text_vector(texts)
    return Vector(made.values, None, failed, lost)


def _null(each: Specifier) -> str:
    return _pad("false" if each.conversion == "b" else "NULL" if each.conversion == "S" else "null", each)


def _pad(text: str, each: Specifier) -> str:
    if each.conversion in "sSb" and each.precision is not None:
        text = text[: each.precision]
    return text.ljust(each.width) if "-" in each.flags else text.rjust(each.width)


def _write(each: Specifier, value: Any, type_: Type) -> str:
    if each.conversion in "sSb":
        text = _plain_text(value, type_)
        return _pad(text.upper() if each.conversion == "S" else text, each)
    if each.conversion in "xXo":
        text = format(value % (1 << INTEGER_BITS[type_.name]), each.conversion)
        return text.zfill(each.width) if "0" in each.flags else _pad(text, each)
    if each.conversion == "d":
        return _signed(each, format(abs(value), "," if "," in each.flags else "d"), value < 0)
    if value != value or value in (float("inf"), float("-inf")):
        text = "NaN" if value != value else "Infinity"
        return _signed(each._replace(flags=each.flags.replace("0", "")), text, value < 0, is_number=value == value)
    return _signed(each, _fixed(each, value, type_), bool(np.signbit(value)))


def _plain_text(value: Any, type_: Type) -> str:
    if type_.is_floating and value == 0:
        return "-0.0" if np.signbit(value) else "0.0"
    writers: dict[str, Callable[[Any], str]] = {"double": write_double, "float": write_float}
    if type_.name == "decimal":
        return str(Decimal(value).scaleb(-type_.scale, _EXACT))
    if isinstance(value, bool):
        return "true" if value else "false"
    return writers.get(type_.name, str)(value)


def _fixed(each: Specifier, value: float, type_: Type) -> str:
    """The shortest digits of the value, rounded half up: as Java does, not the exact value."""
    places = 6 if each.precision is None else each.precision
    shortest = Decimal(str(np.float32(value)) if type_.name == "float" else repr(value)).copy_abs()
    if each.conversion == "f":
        rounded = shortest.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
        return format(rounded, ",f" if "," in each.flags else "f")
    if not shortest:
        return f"{0:.{places}e}"
    exponent = shortest.adjusted()
    digits = shortest.scaleb(-exponent, _EXACT).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
    if digits >= 10:
        exponent, digits = exponent + 1, (digits / 10).quantize(Decimal(1).scaleb(-places))
    return f"{digits:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _signed(each: Specifier, digits: str, negative: bool, *, is_number: bool = True) -> str:
    before = "" if not is_number else "(" if negative and "(" in each.flags else "-" if negative else ""
    if is_number and not negative:
        before = "+" if "+" in each.flags else " " if " " in each.flags else ""
    after = ")" if before == "(" else ""
    if "0" in each.flags:
        digits = digits.zfill(each.width - len(before) - len(after))
    return _pad(f"{before}{digits}{after}", each._replace(precision=None))


def size_of_formatted(sizes: Sizes) -> NDArray[np.int64]:
    """The strings, and for each of them, and each number, what a format may add."""
    total = np.zeros(sizes.n, np.int64)
    for each in sizes.bytes:
        total += each
    return 3 * total + (1 + len(sizes.bytes)) * (_LONGEST_NUMBER + _MAX_WIDTH)


# -- the rows of the table

FUNCTIONS = (
    Function(
        "format_number(x, places)",
        type_format_number,
        format_number,
        "a number with commas between thousands and so many places, rounded half to even; null if `places` is negative",
        size=lambda sizes: np.full(sizes.n, _LONGEST_NUMBER),
    ),
    Function(
        "format_string(format [, x, ...])",
        type_format_string,
        format_string,
        "values written as Java's `String.format` does, by a literal such as `'%s-%05d'`; conversions are "
        "`s`, `S`, `d`, `x`, `X`, `o`, `f`, `e` and `b`",
        ("printf",),
        literals=(0,),
        size=size_of_formatted,
    ),
)
