"""The skeleton of a text as a tree of `Written` nodes.

sqlglot parses with its Spark dialect. It accepts more than Spark and groups some operators differently, so this module
is an allow-list of nodes and arguments. Everything else is refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from vedette.data.schema import Type
from vedette.errors import QueryError, nearest
from vedette.language.expressions import Written
from vedette.language.function_table import FUNCTIONS, RANDOM, function_list
from vedette.language.spelling import CALL, SLOT_NAME, check_characters, check_tokens, origin, with_names
from vedette.language.tokens import MARK
from vedette.settings import Settings

_DEEPEST = Settings()  # the default, whatever is configured: trees must stay within Python's recursion limit on workers

COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "||"}
_LOOSE = {*COMPARISONS, "NullSafeNEQ", "And", "Or", "Not", "In", "Between", "Like", "Escape", "Is"}
_INFIX = {"and", "or", "in", "between", *COMPARISONS.values(), *_ARITHMETIC.values()}

# Flags that sqlglot sets by itself; they do not depend on the text.
_HARMLESS = {"safe", "typed", "_type"}
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

    check_characters(skeleton)
    text, origins = with_names(skeleton)
    try:
        with _deep_recursion():
            trees = sqlglot.parse(text, dialect="spark")
    except (ParseError, TokenError) as error:
        raise _syntax_error(error, text, origins, skeleton) from None
    except RecursionError:
        raise QueryError("the condition nests too deeply; flatten it (setting max_nesting)") from None
    except Exception:  # sqlglot fails on some texts that are not SQL, such as 0e01.5BD
        raise QueryError("syntax error: the text cannot be read as a condition", skeleton) from None
    if len(trees) != 1 or trees[0] is None:
        raise QueryError("the text is empty; write a condition, such as price < 40", skeleton)
    reader = _Reader(text, origins)
    try:
        with _deep_recursion():
            written = reader.read(trees[0])
    except QueryError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # a node that no valid text produces
        raise QueryError("syntax error: the text cannot be read as a condition", skeleton) from None
    except RecursionError:
        raise QueryError("the condition nests too deeply; flatten it (setting max_nesting)") from None
    _DEEPEST.check("max_nesting", depth_of(written))
    check_tokens(skeleton, reader.tokens)
    return written


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """A higher recursion limit: sqlglot makes about twenty calls per pair of parentheses."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 8000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def depth_of(written: Written) -> int:
    """The levels of a tree."""
    depth, level = 0, [written]
    while level:
        depth += 1
        level = [arg for node in level for arg in node.args]
    return depth


def _syntax_error(error: Any, text: str, origins: list[tuple[int, int]], skeleton: str) -> QueryError:
    clause = skeleton.split(maxsplit=1)[0]
    if clause.upper() in ("SELECT", "WHERE"):
        start = skeleton.index(clause)
        reason = f"a query is a condition, such as price < 40; write it without {clause.upper()}"
        return QueryError(reason, skeleton, start, start + len(clause))
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
        return QueryError("syntax error: the text is incomplete", skeleton, len(skeleton.rstrip()))
    start, end = origin(origins, start), origin(origins, end)
    shown = "the literal" if MARK in skeleton[start:end] else repr(skeleton[start:end])
    hint = _SPELLINGS.get(skeleton[start:end], "")
    word = skeleton[:start].split()[-1:]
    if not hint and word and word[0].upper() not in _KEYWORDS:
        hint = nearest(word[0], _KEYWORDS)
    return QueryError(f"syntax error at {shown}{hint}", skeleton, start, max(end, start + 1))


_AGGREGATES = {"avg", "count", "first", "last", "max", "mean", "median", "min", "stddev", "sum", "variance"}
# Operators of other languages with their equivalents, and words that may be misspelt.
_SPELLINGS = {"&&": "; write AND", "&": "; write AND", "||": "; write OR", "|": "; write OR"}
_KEYWORDS = ("AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "LIKE", "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", "END")


class _Reader:
    """Reads sqlglot's nodes one by one and refuses unknown ones."""

    def __init__(self, text: str, origins: list[tuple[int, int]]) -> None:
        self.text = text
        self.origins = origins
        self.tokens: Counter[str] = Counter()  # of the nodes read so far

    def read(self, node: Any) -> Written:
        kind = type(node).__name__
        if not hasattr(node, "comments"):
            raise QueryError("syntax error: something is missing")
        if node.comments:
            self.refuse(node, "comments are not supported; remove it")
        if kind in COMPARISONS:
            return self._binary(node, COMPARISONS[kind])
        if kind in _ARITHMETIC:
            return self._arithmetic(node, kind)
        reader = getattr(self, f"_read_{kind.lower()}", None)
        if reader is None:
            self.refuse(node, f"{_describe(node)} is not supported")
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
        return origin(self.origins, min(own, min(p[0] for p in places))), origin(
            self.origins, max(p[1] for p in places)
        )

    def made(self, node: Any, op: str, *args: Written, **more: Any) -> Written:
        start, end = self._span_around(args) if op in _INFIX else self.span(node)
        return Written(op, args, start=start, end=end, **more)

    def _span_around(self, args: tuple[Written, ...]) -> tuple[int, int]:
        """The span of an operator: that of its operands, without another walk through all of them."""
        placed = [arg for arg in args if arg.start >= 0]
        return min((arg.start for arg in placed), default=-1), max((arg.end for arg in placed), default=-1)

    def only(self, node: Any, *known: str) -> None:
        """Refuse all arguments of the node except these."""
        for name, value in node.args.items():
            if name not in known and name not in _HARMLESS and value not in (None, False, []):
                self.refuse(node, f"{_describe(node)} with {name.replace('_', ' ').upper()} is not supported")

    def tight(self, node: Any, operator: str) -> Written:
        """An operand that needs parentheses if it is a condition, because Spark would group it differently."""
        written = self.read(node)
        if type(node).__name__ in _LOOSE:
            self.refuse(node, f"a condition next to {operator} needs parentheses around it")
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
                self.refuse(node, "|| next to arithmetic needs parentheses around one of them")
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
        """a AND b AND c as one node of any length, without recursion."""
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
        self.only(node, "this", "table")
        identifier, stream = node.this, node.args.get("table")
        if type(identifier).__name__ != "Identifier":
            self.refuse(node, f"{_describe(node)} is not supported")
        self.count("name")
        slot = None if identifier.args.get("quoted") else SLOT_NAME.fullmatch(identifier.this)
        if slot:
            return self.made(node, "literal", slot=int(slot.group(1)))
        field = self.made(node, "field", name=identifier.this)
        if stream is None:
            return field
        self.count(".", "name")
        return self.made(node, "member", field, name=stream.this)

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
        operand = self.tight(node.this, "IS")
        self.count("IS")
        if kind in ("Null", "Boolean"):
            constant = self.read(node.expression)
            return self.made(node, "isnull", operand) if kind == "Null" else self.made(node, "<=>", operand, constant)
        self.refuse(node, "IS must be followed by NULL, TRUE or FALSE")

    def _read_nullsafeneq(self, node: Any) -> Written:
        return self.made(node, "not", self._binary(node, "<=>"))

    def _read_between(self, node: Any) -> Written:
        if node.args.get("symmetric"):
            self.refuse(node, "BETWEEN SYMMETRIC is not supported; write the smaller end first")
        self.only(node, "this", "low", "high")
        self.count("BETWEEN", "AND")
        parts = [self.tight(node.args[name], "BETWEEN") for name in ("this", "low", "high")]
        return self.made(node, "between", *parts)

    def _read_in(self, node: Any) -> Written:
        if node.args.get("query") is not None:
            self.refuse(node, "a subquery is not supported; list the values")
        self.only(node, "this", "expressions")
        items = node.args.get("expressions") or []
        if not items:
            self.refuse(node, "IN needs at least one value")
        self.count("IN", "(", *[","] * (len(items) - 1))
        return self.made(node, "in", self.tight(node.this, "IN"), *(self.read(item) for item in items))

    def _read_like(self, node: Any, escape: str = "\\") -> Written:
        self.only(node, "this", "expression", "negate")
        if type(node.expression).__name__ in ("Any", "All", "Tuple"):
            self.refuse(node, "LIKE ANY and LIKE ALL are not supported; join single LIKEs with OR and AND")
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
        self.refuse(node, "RLIKE is not supported; use LIKE, startswith, endswith or contains")

    def _read_ilike(self, node: Any) -> Written:
        self.refuse(node, "ILIKE is not supported; use lower(field) LIKE 'pattern'")

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
        written = [str(part.this.this) for part in to.expressions] if name == "decimal" else []
        if not all(map(str.isdigit, written)):
            self.refuse(node, "a decimal's precision and scale are integers, as in decimal(10,2)")
        parameters = [int(digits) for digits in written]
        if name is None or (to.expressions and name != "decimal"):
            known = "bigint, int, double, decimal, boolean, string, date, timestamp"
            self.refuse(node, f"a cast to {to.sql('spark')} is not supported; types are: {known}")
        if parameters:
            self.count("(", *["name"] * len(parameters), *[","] * (len(parameters) - 1))
        if name == "decimal":
            precision, scale = ((*parameters, 0) if parameters else (10, 0))[:2]
            if not 1 <= precision <= 38 or scale > precision:
                self.refuse(node, f"decimal({precision},{scale}) is out of range; 0 <= scale <= precision <= 38")
            return self.made(node, op, self.read(node.this), type=Type(name, precision, scale))
        return self.made(node, op, self.read(node.this), type=Type(name))

    def _read_case(self, node: Any) -> Written:
        """CASE as a sequence of branches: condition, value, condition, value, ..., default."""
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
        name = str(node.this).lower().removeprefix(CALL)
        if SLOT_NAME.fullmatch(name):
            self.refuse(node, "a literal cannot be called; an operator or a comma is missing before the parenthesis")
        if name not in FUNCTIONS:
            if name in RANDOM:
                self.refuse(node, f"the non-deterministic function {name!r} is not supported")
            if name in _AGGREGATES:
                self.refuse(node, f"{name} aggregates rows, and a query is a condition on one row")
            self.refuse(node, f"unsupported function {name!r}{nearest(name, FUNCTIONS)} {function_list()}")
        self.only(node, "this", "expressions")
        args = node.expressions
        self.count("name", "(", *[","] * (len(args) - 1))
        function = FUNCTIONS[name]
        least, most = function.least, function.most
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.refuse(node, f"{name} takes {wanted} arguments, got {len(args)}")
        return self.made(node, function.name, *(self.read(arg) for arg in args))


def _describe(node: Any) -> str:
    kind = type(node).__name__
    words = {"Subquery": "a subquery", "Select": "a subquery", "Exists": "a subquery", "Window": "a window function"}
    words |= {"Literal": "a literal here", "Interval": "INTERVAL", "Dot": "a name with a dot", "Distinct": "DISTINCT"}
    words |= {"Alias": "a name after an expression", "Star": "*", "Tuple": "a list of expressions"}
    words |= {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~"}
    words |= {"BitwiseLeftShift": "<<", "BitwiseRightShift": ">>"}
    return words.get(kind, kind)
