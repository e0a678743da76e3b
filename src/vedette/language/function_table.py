"""The functions that a query may call. To add one, add a row to `TABLE`: CONTRIBUTING.md has an example.

A row has the call as the documentation shows it, the rule that types its arguments, its evaluator, and one line of
documentation. Names and numbers of arguments come from the call. `document` writes the tables of docs/language.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vedette.language import functions as evaluate
from vedette.language import signatures as typed
from vedette.language.expressions import BOOLEAN, DOUBLE, INT, STRING, Typed, Written
from vedette.language.functions import Evaluator
from vedette.language.geofences import read_fence

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

MAX_ARGUMENTS = 99


@dataclass(frozen=True)
class Function:
    """A function of the language.

    `call` is how a query calls it: arguments in brackets are optional, and `...` means more of them. `type_call`
    turns the written call into a typed node. An evaluator of None means that this node is not a call of the function
    but an operator, such as `%` for `mod`.

    >>> round_ = FUNCTIONS["round"]
    >>> round_.name, round_.least, round_.most
    ('round', 1, 2)
    """

    call: str
    type_call: Callable[[Analyser, Written], Typed]
    evaluate: Evaluator | None
    gives: str  # the line of documentation
    aliases: tuple[str, ...] = ()
    literals: tuple[int, ...] = ()  # places of arguments that must be literals and are part of the shape of a text
    growth: int = 1  # the bytes of a string result are at most this many times those of the arguments
    in_arrow: bool = False  # strings are handled by Arrow; else each one is copied to a Python string
    section: str = "functions"  # the table of docs/language.md that lists it

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
        return MAX_ARGUMENTS if "..." in self._arguments else len(self._arguments.split(","))

    @property
    def _arguments(self) -> str:
        return self.call.partition("(")[2].rpartition(")")[0]


TABLE = (
    Function("abs(x)", typed.same_number, evaluate.absolute_value, "the absolute value"),
    Function("negative(x)", typed.same_number, evaluate.negated, "the value with the opposite sign"),
    Function("sign(x)", typed.double(DOUBLE), evaluate.sign, "-1.0, 0.0 or 1.0, as a double", ("signum",)),
    Function("sqrt(x)", typed.double(DOUBLE), evaluate.square_root, "the square root, as a double; NaN below 0"),
    Function("floor(x)", typed.whole_number, evaluate.floor, "the greatest whole number that is not above `x`"),
    Function(
        "ceil(x)", typed.whole_number, evaluate.ceiling, "the least whole number that is not below `x`", ("ceiling",)
    ),
    Function(
        "round(x [, places])",
        typed.rounded_number,
        evaluate.rounded,
        "`x` rounded half away from zero; `places` is an integer literal, 0 by default",
        literals=(1,),
    ),
    Function("mod(x, y)", typed.arithmetic("%"), None, "the remainder, with the sign of `x`"),
    Function("pmod(x, y)", typed.arithmetic("pmod"), None, "the remainder, not negative for a positive `y`"),
    Function(
        "least(x, y, ...)", typed.comparable, evaluate.least, "the least argument that is not null", in_arrow=True
    ),
    Function(
        "greatest(x, y, ...)",
        typed.comparable,
        evaluate.greatest,
        "the greatest argument that is not null",
        in_arrow=True,
    ),
    Function(
        "coalesce(x, ...)", typed.coalesce, evaluate.coalesce, "the first argument that is not null", in_arrow=True
    ),
    Function("ifnull(x, y)", typed.coalesce, None, "`y` if `x` is null, else `x`", ("nvl",)),
    Function("nullif(x, y)", typed.nullif, evaluate.nullif, "null if `x` equals `y`, else `x`", in_arrow=True),
    Function("if(c, x, y)", typed.case, None, "`x` if `c` is true, else `y`"),
    Function("isnull(x)", typed.is_null, evaluate.is_null, "whether `x` is null", in_arrow=True),
    Function("isnotnull(x)", typed.is_not_null, None, "whether `x` is not null"),
    Function("isnan(x)", typed.double(BOOLEAN), evaluate.is_nan, "whether `x` is NaN; false for null"),
    Function(
        "length(s)",
        typed.strings(INT),
        evaluate.length,
        "the number of characters",
        ("len", "char_length", "character_length"),
        in_arrow=True,
    ),
    # A change of case may triple the bytes of a string, as for U+03B0.
    Function(
        "lower(s)", typed.strings(STRING), evaluate.text_function(str.lower), "`s` in lower case", ("lcase",), growth=3
    ),
    Function(
        "upper(s)", typed.strings(STRING), evaluate.text_function(str.upper), "`s` in upper case", ("ucase",), growth=3
    ),
    Function("trim(s)", typed.strings(STRING), evaluate.trim, "`s` without the spaces at both ends", in_arrow=True),
    Function(
        "ltrim(s)", typed.strings(STRING), evaluate.left_trim, "`s` without the spaces at its start", in_arrow=True
    ),
    Function(
        "rtrim(s)", typed.strings(STRING), evaluate.right_trim, "`s` without the spaces at its end", in_arrow=True
    ),
    Function(
        "substring(s, from [, length])",
        typed.substring,
        evaluate.substring,
        "a part of `s`; `from` counts from 1, or from the end if it is negative",
        ("substr",),
    ),
    Function("concat(s, ...)", typed.concat, evaluate.concat, "the strings joined; null if one is null"),
    Function(
        "startswith(s, t)", typed.strings(BOOLEAN), evaluate.text_test(str.startswith), "whether `s` starts with `t`"
    ),
    Function("endswith(s, t)", typed.strings(BOOLEAN), evaluate.text_test(str.endswith), "whether `s` ends with `t`"),
    Function("contains(s, t)", typed.strings(BOOLEAN), evaluate.text_test(str.__contains__), "whether `t` is in `s`"),
    Function("year(d)", typed.date_part, evaluate.date_part("year"), "the year of a date or timestamp"),
    Function("month(d)", typed.date_part, evaluate.date_part("month"), "the month, 1 to 12"),
    Function("day(d)", typed.date_part, evaluate.date_part("day"), "the day of the month, from 1", ("dayofmonth",)),
    Function("dayofweek(d)", typed.date_part, evaluate.day_of_week, "the day of the week; Sunday is 1"),
    Function("hour(t)", typed.time_part, evaluate.hour, "the hour of a timestamp, in the set's time zone"),
    Function("minute(t)", typed.time_part, evaluate.minute, "the minute"),
    Function("second(t)", typed.time_part, evaluate.second, "the second, without fractions"),
    Function("try_add(x, y)", typed.attempt("+"), None, "`x + y`, null if that fails"),
    Function("try_subtract(x, y)", typed.attempt("-"), None, "`x - y`, null if that fails"),
    Function("try_multiply(x, y)", typed.attempt("*"), None, "`x * y`, null if that fails"),
    Function("try_divide(x, y)", typed.attempt("/"), None, "`x / y`, null if that fails"),
    Function("try_mod(x, y)", typed.attempt("%"), None, "`x % y`, null if that fails"),
    Function(
        "ST_Contains(polygon, point)",
        read_fence,
        None,
        "whether the point is inside; **a point on the border is not**",
        section="geofences",
    ),
    Function(
        "ST_Within(point, polygon)", read_fence, None, "`ST_Contains` with its arguments swapped", section="geofences"
    ),
    Function(
        "ST_Intersects(polygon, point)",
        read_fence,
        None,
        "whether the point is inside or on the border; the arguments may be swapped",
        section="geofences",
    ),
    Function(
        "ST_DWithin(point, centre, radius)",
        read_fence,
        evaluate.is_in_circle,
        "whether the two are at most `radius` apart; the points may be swapped",
        section="geofences",
    ),
    Function(
        "ST_GeomFromText(wkt)",
        read_fence,
        None,
        "a polygon, with or without holes, or a `MULTIPOLYGON`, as WKT in quotes: `'POLYGON ((0 0, 4 0, 4 3, 0 0))'`",
        section="geofences",
    ),
    Function(
        "ST_Point(lon, lat)",
        read_fence,
        None,
        "a point: `x` first, `y` second. Fields, or expressions, of numbers, which are read as doubles",
        section="geofences",
    ),
)

FUNCTIONS = {name: each for each in TABLE for name in (each.name, *each.aliases)}
EVALUATORS = {each.name: each.evaluate for each in TABLE if each.evaluate is not None}
# Non-deterministic functions, refused by name.
RANDOM = ("rand", "random", "randn", "uuid", "now", "current_timestamp", "current_date", "monotonically_increasing_id")


def function_list() -> str:
    return f"(functions: {', '.join(sorted(FUNCTIONS))})"


def document(section: str) -> str:
    """The functions of a section as a table for docs/language.md."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in (each.call, *each.aliases))} | {each.gives} |"
        for each in TABLE
        if each.section == section
    ]
    return "\n".join(["| function | result |", "| --- | --- |", *rows])
