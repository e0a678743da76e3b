"""The skeleton of a text as a tree of `Written` nodes.

sqlglot's Spark dialect parses; what it accepts beyond Spark, or groups otherwise than Spark, is refused here: this is a
list of the nodes and arguments that are known, and nothing else passes.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from vedette.errors import QueryError, nearest
from vedette.language.expressions import Written
from vedette.language.tokens import MARK
from vedette.schema import Type

_MAX_DEPTH = 100  # so that a tree is walked well within Python's own limit, on workers too
_SLOT = "__literal_{}__"
_SLOT_NAME = re.compile(r"__literal_(\d+)__")
_CALL = "__call_"  # before the name of a function, so that sqlglot reads it as one it does not know, by its arguments
_FORBIDDEN = re.compile(r"--|/\*|;|:|\[|\{|@|\$|\?|->|(?<!<)=>")
_MEANINGS = {
    "--": "comments are not taken; remove it",
    "/*": "comments are not taken; remove it",
    ";": "a query is one expression; remove the semicolon",
}

COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "||"}
_LOOSE = {*COMPARISONS.values(), "and", "or", "not", "in", "between", "like", "rlike", "is"}

# Functions: the name in Spark -> our name and how many arguments it takes.
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
# Flags sqlglot sets by itself and that say nothing about the text.
_HARMLESS = {"safe", "typed", "_type"}
# Words that are no names. Every one of them in a text must be found again in the tree.
_KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "RLIKE", "ILIKE", "IS", "NULL", "TRUE", "FALSE"}
    | {"CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST", "AS", "ESCAPE", "DISTINCT", "FROM", "DIV"}
)
# Words left to sqlglot, because the error then says more. Fields of these names stand in backquotes.
_TELLING = frozenset(
    {"decimal", "dec", "numeric", "over", "select", "exists", "any", "all", "some", "with", "interval", "symmetric"}
)
_RENAMED = re.compile(rf"{MARK}|`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+")
_TOKEN = re.compile(r"`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+|<=>|<>|<=|>=|==|!=|\|\||\0|\S")
_COMPARING = {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"}

_CAST_TYPES = {
    "BIGINT": "bigint",
    "INT": "int",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "TEXT": "string",
    "VARCHAR": "string",
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMP": "timestamp",
    "DECIMAL": "decimal",
}


def parse_skeleton(skeleton: str) -> Written:
    """The tree of a skeleton. A QueryError's `start` and `end` are places in the skeleton."""
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    _check_characters(skeleton)
    text, origins = _with_names(skeleton)
    try:
        with _deep_recursion():
            trees = sqlglot.parse(text, dialect="spark")
    except (ParseError, TokenError) as error:
        raise _syntax_error(error, text, origins, skeleton) from None
    except RecursionError:
        raise QueryError("the expression nests too deeply; flatten its parentheses") from None
    except Exception:  # sqlglot stumbles over some texts that are no SQL, such as 0e01.5BD
        raise QueryError("syntax error: the text cannot be read as a condition", skeleton) from None
    if len(trees) != 1 or trees[0] is None:
        raise QueryError("the text is empty; write a condition, such as price < 40", skeleton)
    reader = _Reader(text, origins)
    try:
        with _deep_recursion():
            written = reader.read(trees[0])
    except RecursionError:
        raise QueryError("the expression nests too deeply; flatten its parentheses") from None
    if _depth(written) > _MAX_DEPTH:
        raise QueryError(f"the expression nests deeper than {_MAX_DEPTH} levels; flatten it")
    _check_tokens(skeleton, reader.tokens)
    return written


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for sqlglot, which takes some twenty calls for a pair of parentheses."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 8000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _depth(written: Written) -> int:
    depth, level = 0, [written]
    while level:
        depth += 1
        level = [arg for node in level for arg in node.args]
    return depth


def _check_tokens(skeleton: str, read: Counter[str]) -> None:
    """Refuse a text with a token that is not in the tree, or the other way round: sqlglot passes over some mistakes."""
    left = read.copy()
    left["("] -= 1  # the parentheses around the whole
    for token, place in _tokens_of(skeleton):
        left[token] -= 1
        if left[token] < 0:
            raise QueryError("syntax error: something is missing or too much here", skeleton, place, place + 1)
    missing = +left
    if missing == {"(": 1}:  # sqlglot puts parentheses around a comparison before IS
        raise QueryError("a condition before IS needs parentheses around it", skeleton)
    if missing:
        raise QueryError(f"syntax error: {min(missing)} is missing", skeleton)


def _tokens_of(skeleton: str) -> list[tuple[str, int]]:
    """The tokens as the reader counts them, with their places. Closing parentheses go without saying."""
    found = [(match.group(), match.start()) for match in _TOKEN.finditer(skeleton)]
    tokens: list[tuple[str, int]] = []
    for k, (token, place) in enumerate(found):
        word = token.upper()
        after = [next_.upper() for next_, _ in found[k : k + 4]]
        if word == "IS" and "DISTINCT" in (after[1:2] + after[2:3]):
            kind = "compare"
        elif word in ("DISTINCT", "FROM") or (word == "NOT" and after[1:3] == ["DISTINCT", "FROM"]) or token == ")":
            continue
        elif word in _KEYWORDS:
            kind = word
        elif token in _COMPARING:
            kind = "compare"
        elif token == "!":
            if after[1:2] and after[1] in ("BETWEEN", "IN", "LIKE", "NULL"):
                raise QueryError("syntax error: write NOT here", skeleton, place, place + 1)
            kind = "NOT"
        elif token == "+" and not _ends_operand(found[k - 1][0] if k else ""):
            raise QueryError("a + before a value is not taken; leave it out", skeleton, place, place + 1)
        else:
            kind = "name" if re.match(r"[`\w'\"\0]", token) else token
        tokens.append((kind, place))
    return tokens


def _ends_operand(token: str) -> bool:
    return token == ")" or (
        bool(re.match(r"[`\w'\"\0]", token)) and (token.upper() not in _KEYWORDS or token.upper() == "END")
    )


def _check_characters(skeleton: str) -> None:
    plain = re.sub(r"`(?:[^`]|``)*`", lambda found: "_" * len(found.group()), skeleton)
    plain = re.sub(
        r"(\bescape\s*)('.{1,3}'|\".{1,3}\")", lambda found: "_" * len(found.group()), plain, flags=re.IGNORECASE
    )
    if not plain.strip():
        raise QueryError("the text is empty; write a condition, such as price < 40", skeleton)
    found = _FORBIDDEN.search(plain)
    if found:
        reason = _MEANINGS.get(found.group(), f"{found.group()!r} has no meaning in a query")
        raise QueryError(reason, skeleton, found.start(), found.end())
    quote = re.search(r"['\"`]", plain)
    if quote:
        raise QueryError(f"a {quote.group()} that is never closed", skeleton, quote.start(), quote.start() + 1)
    twice = re.search(rf"{MARK}\s*{MARK}", plain)
    if twice:
        raise QueryError(
            "two literals in a row; an operator or a comma is missing", skeleton, twice.start(), twice.end()
        )
    number = re.search(r"(?<![\w.])[0-9]\w*[A-Za-z_]\w*", plain)
    if number:
        reason = (
            f"{number.group()} is no number: the suffixes are L, D and BD; a name that begins with a digit stands in ``"
        )
        raise QueryError(reason, skeleton, number.start(), number.end())
    _check_parentheses(plain, skeleton)
    reserved = re.search(r"__literal_|__call_", plain)
    if reserved:
        raise QueryError("names with __literal_ or __call_ are reserved", skeleton, reserved.start(), reserved.end())


def _check_parentheses(plain: str, skeleton: str) -> None:
    opened: list[int] = []
    for place, character in enumerate(plain):
        if character == "(":
            opened.append(place)
        elif character == ")":
            if not opened:
                raise QueryError("syntax error: a ) without its (", skeleton, place, place + 1)
            opened.pop()
    if opened:
        raise QueryError("syntax error: a ( without its )", skeleton, opened[-1], opened[-1] + 1)


def _with_names(skeleton: str) -> tuple[str, list[tuple[int, int]]]:
    """The skeleton in parentheses, so that no first word makes it a statement, with a name for each mark.

    And (place in it, place in the skeleton) where the two drift apart.
    """
    text, place, slot = "(", 0, 0
    origins = [(0, 0), (1, 0)]
    for found in _RENAMED.finditer(skeleton):
        text += skeleton[place : found.start()]
        token = found.group()
        named = f" {_SLOT.format(slot)} " if token == MARK else _named(found, skeleton)
        slot += token == MARK
        origins.append((len(text) + (token == MARK), found.start()))
        text += named
        place = found.end()
        origins += [(len(text) - 1, place), (len(text), place)] if token == MARK else [(len(text), place)]
    return text + skeleton[place:] + ")", origins


def _named(found: re.Match[str], skeleton: str) -> str:
    """A word as sqlglot should see it: a name in backquotes, so that it is no keyword; a function as an unknown one."""
    word = found.group()
    if word[0] in "`'\"" or word.isdigit() or word.upper() in _KEYWORDS or word.lower() in _TELLING:
        return word
    if re.match(r"\s*\(", skeleton[found.end() :]):
        return _CALL + word
    is_type = re.search(r"\bas\s+$", skeleton[: found.start()], re.IGNORECASE)
    return word if is_type else f"`{word}`"


def _origin(origins: list[tuple[int, int]], place: int) -> int:
    at, from_ = origins[bisect_right(origins, place, key=lambda pair: pair[0]) - 1]
    return from_ + (place - at)


def _syntax_error(error: Any, text: str, origins: list[tuple[int, int]], skeleton: str) -> QueryError:
    details = getattr(error, "errors", None) or [{}]
    detail = details[0]
    highlight = detail.get("highlight") or ""
    line, column = detail.get("line"), detail.get("col")
    if line is None:
        return QueryError("syntax error: the text cannot be read as a condition", skeleton)
    lines = text.split("\n")
    end = sum(len(before) + 1 for before in lines[: line - 1]) + column  # sqlglot's column is where the token ends
    start = max(0, end - len(highlight))
    if end >= len(text.rstrip()):
        return QueryError("syntax error: the text ends too early", skeleton, len(skeleton.rstrip()))
    start, end = _origin(origins, start), _origin(origins, end)
    shown = "the literal" if MARK in skeleton[start:end] else repr(skeleton[start:end])
    return QueryError(f"syntax error at {shown}", skeleton, start, max(end, start + 1))


class _Reader:
    """Reads sqlglot's nodes one by one; whatever it does not know, it refuses."""

    def __init__(self, text: str, origins: list[tuple[int, int]]) -> None:
        self.text = text
        self.origins = origins
        self.tokens: Counter[str] = Counter()  # what the nodes read so far are written with

    def read(self, node: Any) -> Written:
        kind = type(node).__name__
        if not hasattr(node, "comments"):
            raise QueryError("syntax error: something is missing")
        if node.comments:
            self.refuse(node, "comments are not taken; remove it")
        if kind in COMPARISONS:
            return self._binary(node, COMPARISONS[kind])
        if kind in _ARITHMETIC:
            return self._arithmetic(node, kind)
        reader = getattr(self, f"_read_{kind.lower()}", None)
        if reader is None:
            self.refuse(node, f"{_describe(node)} is not taken")
        written: Written = reader(node)
        return written

    def count(self, *tokens: str) -> None:
        self.tokens.update(tokens)

    def refuse(self, node: Any, reason: str) -> NoReturn:
        start, end = self.span(node)
        raise QueryError(reason, self.text, start, end)

    def span(self, node: Any) -> tuple[int, int]:
        places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
        if not places:
            return -1, -1
        own = node.meta.get("start", min(start for start, _ in places))
        return _origin(self.origins, min(own, min(p[0] for p in places))), _origin(
            self.origins, max(p[1] for p in places)
        )

    def made(self, node: Any, op: str, *args: Written, **more: Any) -> Written:
        start, end = self.span(node)
        return Written(op, args, start=start, end=end, **more)

    def only(self, node: Any, *known: str) -> None:
        """Refuse arguments of the node other than those known here."""
        for name, value in node.args.items():
            if name not in known and name not in _HARMLESS and value not in (None, False, []):
                self.refuse(node, f"{_describe(node)} with {name.replace('_', ' ').upper()} is not taken")

    def tight(self, node: Any, operator: str) -> Written:
        """An operand that must be parenthesised where it is itself a condition, as Spark would group it otherwise."""
        written = self.read(node)
        if written.op in _LOOSE and type(node).__name__ != "Paren":
            self.refuse(node, f"a condition beside {operator} needs parentheses around it")
        return written

    def _binary(self, node: Any, op: str) -> Written:
        self.only(node, "this", "expression")
        self.count("compare")
        return self.made(node, op, self.tight(node.this, op), self.tight(node.expression, op))

    def _arithmetic(self, node: Any, kind: str) -> Written:
        op = _ARITHMETIC[kind]
        self.only(node, "this", "expression")
        self.count(op.upper())
        left, right = self.tight(node.this, op), self.tight(node.expression, op)
        for side, inner in ((node.this, left), (node.expression, right)):
            mixed = (op == "||") != (inner.op == "||") and inner.op in _ARITHMETIC.values()
            if mixed and type(side).__name__ in _ARITHMETIC:
                self.refuse(node, "|| beside arithmetic needs parentheses around one of them")
        return self.made(node, op, left, right)

    def _read_paren(self, node: Any) -> Written:
        self.only(node, "this")
        self.count("(")
        return self.read(node.this)

    def _read_and(self, node: Any) -> Written:
        return self._chain(node, "and")

    def _read_or(self, node: Any) -> Written:
        return self._chain(node, "or")

    def _chain(self, node: Any, op: str) -> Written:
        """a AND b AND c as one node, however long, without recursion on the left."""
        kind = type(node)
        operands = []
        at = node
        while type(at) is kind:
            self.only(at, "this", "expression")
            self.count(op.upper())
            operands.append(at.expression)
            at = at.this
        operands.append(at)
        return self.made(node, op, *(self.read(operand) for operand in reversed(operands)))

    def _read_not(self, node: Any) -> Written:
        self.only(node, "this")
        self.count("NOT")
        return self.made(node, "not", self.read(node.this))

    def _read_column(self, node: Any) -> Written:
        if node.args.get("table") is not None:
            self.refuse(
                node, "a name with a dot is not taken; use the field's name alone, in backquotes if it has a dot"
            )
        self.only(node, "this")
        identifier = node.this
        if type(identifier).__name__ != "Identifier":
            self.refuse(node, f"{_describe(node)} is not taken")
        self.count("name")
        slot = None if identifier.args.get("quoted") else _SLOT_NAME.fullmatch(identifier.this)
        if slot:
            return self.made(node, "literal", slot=int(slot.group(1)))
        return self.made(node, "field", name=identifier.this)

    def _read_boolean(self, node: Any) -> Written:
        name = "true" if node.this else "false"
        self.count(name.upper())
        return self.made(node, "constant", name=name)

    def _read_null(self, node: Any) -> Written:
        self.count("NULL")
        return self.made(node, "constant", name="null")

    def _read_neg(self, node: Any) -> Written:
        self.only(node, "this")
        self.count("-")
        inner = self.tight(node.this, "-")
        if inner.op == "literal" and not inner.negated and type(node.this).__name__ == "Column":
            return self.made(node, "literal", slot=inner.slot, negated=True)
        return self.made(node, "negative", inner)

    def _read_is(self, node: Any) -> Written:
        self.only(node, "this", "expression")
        kind = type(node.expression).__name__
        operand = self.read(node.this)
        self.count("IS")
        if kind in ("Null", "Boolean"):
            constant = self.read(node.expression)
            return self.made(node, "isnull", operand) if kind == "Null" else self.made(node, "<=>", operand, constant)
        self.refuse(node, "IS takes NULL, TRUE or FALSE")

    def _read_nullsafeneq(self, node: Any) -> Written:
        return self.made(node, "not", self._binary(node, "<=>"))

    def _read_between(self, node: Any) -> Written:
        if node.args.get("symmetric"):
            self.refuse(node, "BETWEEN SYMMETRIC is not taken; write the smaller end first")
        self.only(node, "this", "low", "high")
        self.count("BETWEEN", "AND")
        parts = [self.tight(node.args[name], "BETWEEN") for name in ("this", "low", "high")]
        return self.made(node, "between", *parts)

    def _read_in(self, node: Any) -> Written:
        if node.args.get("query") is not None:
            self.refuse(node, "a subquery is not taken; list the values")
        self.only(node, "this", "expressions")
        items = node.args.get("expressions") or []
        if not items:
            self.refuse(node, "IN needs at least one value")
        self.count("IN", "(", *[","] * (len(items) - 1))
        return self.made(node, "in", self.tight(node.this, "IN"), *(self.read(item) for item in items))

    def _read_like(self, node: Any, escape: str = "\\") -> Written:
        self.only(node, "this", "expression", "negate")
        if type(node.expression).__name__ in ("Any", "All", "Tuple"):
            self.refuse(node, "LIKE ANY and LIKE ALL are not taken; join single LIKEs with OR and AND")
        self.count("LIKE", *["NOT"] * bool(node.args.get("negate")))
        like = self.made(node, "like", self.tight(node.this, "LIKE"), self.tight(node.expression, "LIKE"), name=escape)
        return self.made(node, "not", like) if node.args.get("negate") else like

    def _read_escape(self, node: Any) -> Written:
        self.only(node, "this", "expression")
        literal = node.expression
        if type(node.this).__name__ != "Like" or type(literal).__name__ != "Literal" or len(literal.this) != 1:
            self.refuse(node, "ESCAPE takes one character, such as '/'")
        self.count("ESCAPE", "name")
        return self._read_like(node.this, literal.this)

    def _read_regexplike(self, node: Any) -> Written:
        self.refuse(node, "RLIKE is not taken; use LIKE, startswith, endswith or contains")

    def _read_ilike(self, node: Any) -> Written:
        self.refuse(node, "ILIKE is not taken; use lower(field) LIKE 'pattern'")

    def _read_cast(self, node: Any) -> Written:
        self.only(node, "this", "to")
        return self._cast(node, "cast")

    def _read_trycast(self, node: Any) -> Written:
        self.only(node, "this", "to")
        return self._cast(node, "try_cast" if node.args.get("safe") else "cast")

    def _cast(self, node: Any, op: str) -> Written:
        to = node.args["to"]
        self.count("TRY_CAST" if op == "try_cast" else "CAST", "(", "AS", "name")
        name = _CAST_TYPES.get(getattr(to.this, "name", str(to.this)))
        parameters = [int(part.this.this) for part in to.expressions] if name == "decimal" else []
        if name is None or (to.expressions and name != "decimal"):
            known = "bigint, int, double, decimal, boolean, string, date, timestamp"
            self.refuse(node, f"a cast to {to.sql('spark')} is not taken; types are: {known}")
        if parameters:
            self.count("(", *["name"] * len(parameters), *[","] * (len(parameters) - 1))
        if name == "decimal":
            precision, scale = ((*parameters, 0) if parameters else (10, 0))[:2]
            if not 1 <= precision <= 38 or scale > precision:
                self.refuse(node, f"decimal({precision},{scale}) is out of range; 0 <= scale <= precision <= 38")
            return self.made(node, op, self.read(node.this), type=Type(name, precision, scale))
        return self.made(node, op, self.read(node.this), type=Type(name))

    def _read_case(self, node: Any) -> Written:
        """CASE as its branches in a row: condition, value, condition, value, ..., default."""
        self.only(node, "this", "ifs", "default")
        self.count("CASE", "END")
        subject = None if node.this is None else self.read(node.this)
        branches: list[Written] = []
        for branch in node.args["ifs"]:
            self.only(branch, "this", "true")
            self.count("WHEN", "THEN")
            condition = self.read(branch.this)
            branches.append(condition if subject is None else self.made(branch, "=", subject, condition))
            branches.append(self.read(branch.args.get("true")))
        default = node.args.get("default")
        if default is None:
            return self.made(node, "case", *branches, self.made(node, "constant", name="null"))
        self.count("ELSE")
        return self.made(node, "case", *branches, self.read(default))

    def _read_anonymous(self, node: Any) -> Written:
        """A call of a function by its name."""
        name = str(node.this).lower().removeprefix(_CALL)
        if name not in FUNCTIONS:
            why = "non-deterministic" if name in _RANDOM else "unsupported"
            self.refuse(node, f"{why} function {name!r}{nearest(name, FUNCTIONS)} {function_list()}")
        self.only(node, "this", "expressions")
        args = node.expressions
        self.count("name", "(", *[","] * (len(args) - 1))
        op, least, most = FUNCTIONS[name]
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} or more" if most == 99 else f"{least} to {most}"
            self.refuse(node, f"{name} takes {wanted} arguments, got {len(args)}")
        return self.made(node, op, *(self.read(arg) for arg in args))


_RANDOM = ("rand", "random", "randn", "uuid", "now", "current_timestamp", "current_date", "monotonically_increasing_id")


def function_list() -> str:
    return f"(functions: {', '.join(sorted(FUNCTIONS))})"


def _describe(node: Any) -> str:
    kind = type(node).__name__
    words = {"Subquery": "a subquery", "Select": "a subquery", "Exists": "a subquery", "Window": "a window function"}
    words |= {"Literal": "a literal here", "Interval": "INTERVAL", "Dot": "a name with a dot", "Distinct": "DISTINCT"}
    words |= {"Alias": "a name after an expression", "Star": "*", "Tuple": "a list of expressions"}
    words |= {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~"}
    return words.get(kind, kind)
