"""The functions a query may call: Spark's name, our name, and how many arguments it takes."""

from __future__ import annotations

FUNCTIONS: dict[str, tuple[str, int, int]] = {
    "abs": ("abs", 1, 1),
    "ceil": ("ceil", 1, 1),
    "ceiling": ("ceil", 1, 1),
    "char_length": ("length", 1, 1),
    "character_length": ("length", 1, 1),
    "coalesce": ("coalesce", 1, 99),
    "concat": ("concat", 1, 99),
    "contains": ("contains", 2, 2),
    "day": ("day", 1, 1),
    "dayofmonth": ("day", 1, 1),
    "dayofweek": ("dayofweek", 1, 1),
    "endswith": ("endswith", 2, 2),
    "floor": ("floor", 1, 1),
    "greatest": ("greatest", 2, 99),
    "hour": ("hour", 1, 1),
    "if": ("if", 3, 3),
    "ifnull": ("coalesce", 2, 2),
    "isnan": ("isnan", 1, 1),
    "isnotnull": ("isnotnull", 1, 1),
    "isnull": ("isnull", 1, 1),
    "least": ("least", 2, 99),
    "len": ("length", 1, 1),
    "length": ("length", 1, 1),
    "lower": ("lower", 1, 1),
    "lcase": ("lower", 1, 1),
    "ltrim": ("ltrim", 1, 1),
    "minute": ("minute", 1, 1),
    "mod": ("%", 2, 2),
    "month": ("month", 1, 1),
    "negative": ("negative", 1, 1),
    "nullif": ("nullif", 2, 2),
    "nvl": ("coalesce", 2, 2),
    "pmod": ("pmod", 2, 2),
    "round": ("round", 1, 2),
    "rtrim": ("rtrim", 1, 1),
    "second": ("second", 1, 1),
    "sign": ("sign", 1, 1),
    "signum": ("sign", 1, 1),
    "sqrt": ("sqrt", 1, 1),
    "startswith": ("startswith", 2, 2),
    "substr": ("substring", 2, 3),
    "substring": ("substring", 2, 3),
    "trim": ("trim", 1, 1),
    "try_add": ("try_+", 2, 2),
    "try_divide": ("try_/", 2, 2),
    "try_mod": ("try_%", 2, 2),
    "try_multiply": ("try_*", 2, 2),
    "try_subtract": ("try_-", 2, 2),
    "ucase": ("upper", 1, 1),
    "upper": ("upper", 1, 1),
    "year": ("year", 1, 1),
}
# Functions whose answer changes from call to call, refused by name.
RANDOM = ("rand", "random", "randn", "uuid", "now", "current_timestamp", "current_date", "monotonically_increasing_id")


def function_list() -> str:
    return f"(functions: {', '.join(sorted(FUNCTIONS))})"
