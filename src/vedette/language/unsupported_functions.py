"""What to say about a function that is not supported: the reason, and functions that do something similar."""

from __future__ import annotations

from collections.abc import Iterable

from vedette.language.function_table import FUNCTIONS
from vedette.language.refused_functions import REFUSED

# Functions that do something similar: those of Spark that are refused, and names from other languages and databases.
_SIMILAR: dict[str, str] = {
    "absolute": "abs",
    "aes_encrypt": "sha2 md5",
    "all": "forall",
    "all_match": "forall",
    "any": "exists",
    "any_match": "exists",
    "approx_count_distinct": "",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "array_join": "concat_ws",
    "array_length": "size cardinality",
    "atan2d": "atan2 degrees",
    "begins_with": "startswith",
    "bitand": "bit_count getbit",
    "bitor": "shiftleft",
    "bitwise_not": "bit_count getbit",
    "bitxor": "shiftleft",
    "charindex": "instr locate position",
    "contains_substr": "contains instr",
    "convert": "try_cast bigint string",
    "current_time": "current_timestamp hour",
    "datalength": "octet_length length",
    "date_bin": "date_trunc",
    "datefromparts": "make_date",
    "datename": "date_format dayname monthname",
    "difference": "levenshtein",
    "distance": "st_dwithin hypot",
    "editdistance": "levenshtein",
    "encode_base64": "base64",
    "ends_with": "endswith",
    "eomonth": "last_day",
    "epoch": "unix_timestamp",
    "fabs": "abs",
    "format_number": "round string",
    "format_string": "concat concat_ws lpad",
    "from_epoch": "from_unixtime timestamp_seconds",
    "fullmatch": "regexp_like",
    "getdate": "now current_timestamp current_date",
    "getutcdate": "now current_timestamp",
    "hash": "crc32 md5 sha2",
    "hash64": "crc32 md5 sha2",
    "haversine": "st_dwithin",
    "hex_decode": "unhex",
    "ifelse": "if",
    "iff": "if",
    "iif": "if",
    "includes": "contains array_contains",
    "index_of": "instr locate position",
    "indexof": "instr locate position",
    "instrrev": "locate instr",
    "is_nan": "isnan",
    "isdate": "try_to_date try_to_timestamp",
    "isempty": "length size",
    "isnumeric": "try_cast isnan",
    "jaro_winkler_similarity": "levenshtein",
    "len_utf8": "octet_length length",
    "lg": "log10 log2",
    "list_contains": "array_contains",
    "log_base": "log log2 log10",
    "lowercase": "lower lcase",
    "make_interval": "date_add add_months",
    "match": "regexp_like",
    "max": "greatest",
    "median": "",
    "mid": "substring",
    "min": "least",
    "nz": "coalesce",
    "patindex": "regexp_instr instr",
    "printf": "concat concat_ws lpad",
    "rand": "",
    "regexp": "regexp_like contains",
    "regexp_contains": "regexp_like contains",
    "regexp_matches": "regexp_like contains",
    "regexp_test": "regexp_like",
    "replicate": "repeat",
    "root": "sqrt cbrt power",
    "shl": "shiftleft",
    "shr": "shiftright",
    "similar": "levenshtein like",
    "split": "split_part substring_index",
    "sqr": "power",
    "square": "power",
    "st_covers": "st_contains st_intersects",
    "st_distance": "st_dwithin",
    "st_makepoint": "st_point",
    "starts_with": "startswith",
    "str_contains": "contains",
    "str_pos": "instr locate position",
    "strftime": "date_format",
    "string_split": "split_part substring_index",
    "strlen": "length",
    "strpos": "instr locate position",
    "strptime": "to_timestamp to_date",
    "stuff": "overlay",
    "sysdate": "now current_timestamp current_date",
    "systimestamp": "now current_timestamp",
    "to_char": "date_format string",
    "to_epoch": "unix_timestamp",
    "to_int": "int bigint",
    "to_lower": "lower",
    "to_number": "try_cast double bigint",
    "to_string": "string",
    "to_upper": "upper",
    "to_varchar": "date_format string",
    "today": "current_date now",
    "tolower": "lower",
    "tonumber": "try_cast double",
    "toupper": "upper",
    "truncate": "floor round date_trunc",
    "try_convert": "try_cast",
    "try_to_number": "try_cast double bigint",
    "typeof": "",
    "uppercase": "upper ucase",
    "xxhash64": "crc32 md5 sha2",
    "yesterday": "current_date date_sub",
}
MOST_SIMILAR = 3  # names in a message


def why_unsupported(name: str) -> str:
    """The message for a function that is not supported: the reason, and functions that do something similar."""
    similar = [each for each in _SIMILAR.get(name, "").split() if each in FUNCTIONS or each in ("try_cast", "like")]
    reason = f": {REFUSED[name].partition('; see')[0]}" if name in REFUSED else ""
    hint = f"; similar functions: {', '.join(similar[:MOST_SIMILAR])}" if similar else ""
    close = [] if reason or hint else close_names(name, FUNCTIONS)
    if close:
        hint = f"; did you mean {' or '.join(map(repr, close))}?"
    listed = "" if reason or hint else "; the page on the query language lists the functions"
    return f"unsupported function {name!r}{reason}{hint}{listed}"


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Names that differ by one or two letters in their order: misspellings, not words that look alike."""
    limit = 1 if len(name) < 6 else 2
    distances = {each: _distance(name, each) for each in known if abs(len(each) - len(name)) <= limit}
    least = min(distances.values(), default=limit + 1)
    return sorted(each for each, distance in distances.items() if distance == least <= limit)[:MOST_SIMILAR]


def _distance(a: str, b: str) -> int:
    """How many letters must be added, removed, replaced or swapped with the next one."""
    before, last = list(range(len(b) + 1)), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]
