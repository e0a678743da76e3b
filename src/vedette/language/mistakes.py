"""Common mistakes in texts that cannot be read, such as operators of other languages, and what to write instead.

A text is searched for them only after it was refused, so that a pattern may be rough.
"""

from __future__ import annotations

import re

from vedette.data.schema import Type, is_array
from vedette.errors import QueryError
from vedette.language.spelling import KEYWORDS, write_name
from vedette.language.tokens import MARK

_OPERAND = rf"(?:{MARK}|\w|[)\]`])"  # the end of an operand
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_UNIT = rf"(?:{'|'.join(_UNITS)})s?"
_WORDS = {  # operators in words
    **dict.fromkeys(("eq", "equals", "equal"), "="),
    **dict.fromkeys(("ne", "neq"), "<>"),
    **dict.fromkeys(("gt", "greater", "above", "over"), ">"),
    **dict.fromkeys(("lt", "less", "below", "under"), "<"),
    **dict.fromkeys(("ge", "gte"), ">="),
    **dict.fromkeys(("le", "lte"), "<="),
    **dict.fromkeys(("matches", "similar", "glob", "match"), "LIKE or RLIKE"),
    "mod": "%",
    "xor": "<>",
}
_CHARACTERS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4\u2032\u2033\uff07\uff02", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-"),
    **{"\u2265": ">=", "\u2264": "<=", "\u2260": "<>", "\u00d7": "*", "\u00f7": "/", "\u2227": "AND", "\u2228": "OR"},
    **{"\u00ac": "NOT", "\uff08": "(", "\uff09": ")", "\uff1d": "=", "\uff0c": ",", "\uff1c": "<", "\uff1e": ">"},
}
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_WRITTEN = {
    "boolean": "write TRUE or FALSE",
    "date": "a date is written DATE '2024-12-31'",
    "timestamp": "a timestamp is written TIMESTAMP '2024-12-31 12:30:00'; timestamp_seconds(n) makes one of seconds",
}
_NAMES = {
    **dict.fromkeys(("yes", "on"), "; write TRUE"),
    **dict.fromkeys(("no", "off"), "; write FALSE"),
    **dict.fromkeys(("none", "nil", "undefined"), "; write IS NULL"),
    **dict.fromkeys(("nan", "infinity", "inf"), "; write it as a string in quotes, as in x = 'NaN'"),
    **dict.fromkeys(("today", "current_day"), "; write current_date"),
    **dict.fromkeys(("sysdate", "systimestamp", "localtimestamp", "current_time"), "; write now()"),
}
_NO_PARAMETERS = "a text has no parameters; write the value itself"

# Patterns in lower case, and what to say. A name in braces is a group of the pattern.
_MISTAKES: tuple[tuple[str, str], ...] = (
    (r"::\s*(?P<type>\w+)?", ":: is not supported; write CAST(... AS {type})"),
    (r"(?P<op>!~~?\*?)", "{op} is not supported; write NOT ... RLIKE"),
    (rf"(?<={_OPERAND})\s*(?P<op>~~?\*?)", "{op} between strings is not supported; write RLIKE"),
    (r"===", "=== is not an operator; write ="),
    (r"=!", "=! is not an operator; write <> or !="),
    (r"=<", "=< is not an operator; write <="),
    (r"=>", "=> is not an operator; write >=, or -> in exists and forall"),
    (r"!\s+=", "there is a space in the operator; write != or <>"),
    (r"!>", "!> is not an operator; write <="),
    (r"!<", "!< is not an operator; write >="),
    (r"<>\s*<>|[<>]\s+[<>=]|=\s+=", "two operators in a row; remove one, or the space within one"),
    (r"\*\*", "** is not an operator; write power(x, y)"),
    (r"//", "// has no meaning in a query; write DIV to divide integers"),
    (r"#", "'#' has no meaning in a query"),
    (r"\\", "a backslash has no meaning outside of quotes"),
    (r",\s*\)", "a value is missing after the comma; remove the comma"),
    (r",\s*$", "the text ends with a comma; remove it"),
    (r"\b(?P<one>and|or)\s+(?P<two>and|or)\b", "a condition is missing between {one} and {two}"),
    (r"^\s*(?P<op>and|or)\b", "a condition is missing before {op}"),
    (r"\b(?P<op>and|or|not)\s*(?:\)|$)", "a condition is missing after {op}"),
    (r"\bin\s*\(\s*\)", "IN needs at least one value"),
    (r"(?<![\w`])\s*\(\s*\)", "a condition is missing between ( and )"),
    (r"\bis\s+between\b", "write BETWEEN without IS"),
    (r"\bis\s+(?:not\s+)?(?P<op>in|like|rlike)\b", "write {op} without IS"),
    (r"\bis\s+distinct\b(?!\s+from)", "write IS DISTINCT FROM"),
    (r"\bbetween\b(?!.*\band\b)", "BETWEEN takes two ends; write BETWEEN 3 AND 5"),
    (r"(?:^|[(=<>]|\band|\bor|\bnot)\s*\[", "a name is written without brackets; if it is unusual, in backquotes"),
    (rf"\bin\s*(?:{MARK}|\[)", "IN takes its values in parentheses; write IN (1, 2)"),
    (
        r"\bin\s+(?P<name>[a-z_]\w*)",
        "IN takes a list of values in parentheses; if {name} is an array, write array_contains({name}, ...)",
    ),
    (r"(?<!is)\s+not\s+null\b", "write IS NOT NULL"),
    (r"\bnotnull\s*(?:$|\)|and|or)", "write IS NOT NULL"),
    (r"\bisnull\s*(?:$|\)|and|or)", "write IS NULL"),
    (rf"\bnot\s+(?:equals?|{MARK})", "write <> for unequal"),
    (r"\b(?P<op>greater|less|more)\s+than\b", "'{op} than' is not an operator; write > or <"),
    (r"\bsimilar\s+to\b", "SIMILAR TO is not supported; write LIKE or RLIKE"),
    (rf"\b(?P<call>contains|startswith|endswith)\s*{MARK}", "{call} is a function; write {call}(field, 'text')"),
    (r"\b[a-z_]\w*\.(?P<call>[a-z_]\w*)\s*\(", "a function stands before its arguments; write {call}(field)"),
    (r"->>?", "-> is allowed in exists and forall only; a part of a struct is written with a dot, as in o.a"),
    (r"[?@{}$]|(?<!:):(?!:)|%\s*(?:[sd(]|$)", _NO_PARAMETERS),
    (r"\b(?P<clause>limit|order\s+by|group\s+by|having)\b", "a query is a condition on one row; remove {clause}"),
    (r"\bover\s*\(", "a window function is not supported: a query is a condition on one row"),
    (r"\bcollate\b", "strings have no collations here; to ignore case, compare lower(...)"),
    (r"\bcast\s*\([^()]*,", "CAST is written CAST(price AS int)"),
    (r"\bas\s*\)", "a type is missing after AS"),
    (r"\bas\s+(?:n?varchar2?|n?char|text)\b", "write AS string; strings have no length"),
    (r"\bas\s+datetime2?\b", "write AS timestamp"),
    (r"\bas\s+(?:numeric|number|money)\b", "write AS decimal(10,2), or AS double"),
    (r"\bas\s+(?:bool|bit)\b", "write AS boolean"),
    (r"\bas\s+(?:u?int\d+|integer\d+|long\w+|serial)\b", "write AS int or AS bigint"),
    (r"\bcase\b(?!.*\bwhen\b)", "CASE needs WHEN; write CASE WHEN price > 3 THEN ... ELSE ... END"),
    (r"\bwhen\b(?!.*\bthen\b)", "WHEN needs THEN; write CASE WHEN price > 3 THEN ... ELSE ... END"),
    (r"\bcase\b(?!.*\bend\b)", "CASE needs END; write CASE WHEN price > 3 THEN ... ELSE ... END"),
    (r"\bif\b(?!\s*\()", "if is a function; write if(condition, value, otherwise)"),
    (rf"{MARK}\s*{_UNIT}\b", "write INTERVAL before the number: INTERVAL 5 MINUTES"),
    (rf"\b(?P<type>date|timestamp)\s*{MARK}\s*-", "a {type} is written in quotes, as in DATE '2024-12-31'"),
    (rf"{MARK}\w+\s*{MARK}", "a text is between two quotes; a quote inside it is written twice, as in 'it''s'"),
    (rf"{MARK}\s*,\s*{MARK}\s*$", "a number is written with a point and without commas, as in 1000.5"),
    (
        r"(?:[=<>]\s*|(?<!like )(?<!like))\b(?:any|all|some)\b\s*\(?",
        "write IN (1, 2) for a list of values, or array_contains(...) for an array",
    ),
    (rf"(?<![\w.])\.\s*(?!{MARK})", "a name is missing before the dot"),
    (r"\.\s*(?![\w`])", "a name is missing after the dot"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE | re.DOTALL), words) for pattern, words in _MISTAKES)
_IN_WORDS = re.compile(rf"(?<=[\w`])(?<!not)\s+(?P<word>{'|'.join(_WORDS)})\b(?=\s*(?:{MARK}|[a-z_]))", re.IGNORECASE)
_KEYWORD_FIRST = re.compile(
    r"(?:^|\band\b|\bor\b|\()\s*(?P<name>end|in|from|is|between|case|like|when|then|else|not)\s*(?:=|<|>|!=)",
    re.IGNORECASE,
)
_ADJACENT = re.compile(rf"(?P<before>{MARK}|\b[a-z_]\w*|[)\]`])\s+(?=(?P<name>[a-z_]\w*))", re.IGNORECASE)


# Reasons that do not say what to write instead.
_VAGUE = re.compile(
    r"syntax error(?!.*(?: without its |; write ))|.*has no meaning|two literals|.*next to (?:=|\|\|) needs|"
    r"(?:a name after an expression|a list of expressions|a literal here|IN|CASE|-> outside|a cast to).* not supported|"
    r"IS must be|this form|a dot is allowed"
)


def explain_mistake(error: QueryError, skeleton: str) -> QueryError:
    """The error about a text that cannot be read, or a better one if the text has a common mistake."""
    if not _VAGUE.match(error.reason):
        return error
    plain = re.sub(r"`(?:[^`]|``)*`", lambda found: "`" + "_" * (len(found.group()) - 2) + "`", skeleton)
    for place, character in enumerate(plain):
        if character in _CHARACTERS:
            return _error(f"{character} has no meaning in a query; write {_CHARACTERS[character]}", skeleton, place)
        if character in _INVISIBLE:
            return _error(f"an invisible character (U+{ord(character):04X}); remove it", skeleton, place)
    found = _KEYWORD_FIRST.search(plain)
    if found:
        name = found["name"]
        return _error(
            f"{name.upper()} is a keyword; write a field of that name in backquotes: `{name}`", skeleton, found
        )
    found = _IN_WORDS.search(plain)
    if found:
        return _error(f"{found['word']!r} is not an operator; write {_WORDS[found['word'].lower()]}", skeleton, found)
    for pattern, words in _COMPILED:
        found = pattern.search(plain)
        if found:
            groups = {name: each or "int" for name, each in found.groupdict().items()}
            return _error(words.format(**groups) if groups else words, skeleton, found)
    for found in _ADJACENT.finditer(plain) if "did you mean" not in error.reason else ():
        if not {found["before"].upper(), found["name"].upper()} & KEYWORDS:
            return _error(f"an operator is missing before {found['name']!r}", skeleton, found)
    return error


def hint_to_compare(left: Type, right: Type) -> str:
    """What to write instead of a comparison of two types that cannot be compared; may be empty."""
    names = (left.name, right.name)
    if any(is_array(type_) for type_ in (left, right)):
        return "; write array_contains(v, x) to look for an element of an array"
    if any(name.startswith("interval") for name in names):
        is_time = any(name in ("date", "timestamp") for name in names)
        return (
            "; add an interval to a time, as in ts > now() - INTERVAL 5 MINUTES"
            if is_time
            else "; write INTERVAL 3 DAYS"
        )
    if any(type_.is_number for type_ in (left, right)):
        for name, hint in _WRITTEN.items():
            if name in names:
                return f"; {hint}"
    return ""


def hint_for_name(name: str, names: list[str]) -> str:
    """What an unknown name may mean."""
    parts = [each for each in names if each.lower().startswith(f"{name.lower()}.")]
    if parts:
        return f"; {name} is a struct, with the parts {', '.join(parts)}"
    return _NAMES.get(name.lower(), "")


def hint_for_literal(text: str, start: int, end: int, names: list[str]) -> str:
    """What a literal of the text that cannot be read may mean."""
    raw, inner = text[start:end], text[start + 1 : end - 1]
    if raw.startswith('"') and inner.lower() in map(str.lower, names):
        return f"; a name in double quotes is a string; write the field as {write_name(inner)}"
    is_condition = re.search(r"\b(?:and|or|not)\s*$", text[:start], re.IGNORECASE)
    return "; a condition is needed here; for several values write IN ('a', 'b')" if is_condition else ""


def _error(reason: str, skeleton: str, place: int | re.Match[str]) -> QueryError:
    if isinstance(place, int):
        return QueryError(reason, skeleton, place, place + 1)
    start = place.start() + len(place.group()) - len(place.group().lstrip())
    return QueryError(reason, skeleton, start, max(place.end(), start + 1))
