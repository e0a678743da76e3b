"""The skeleton of a text as a tree of `Written` nodes.

sqlglot parses with its Spark dialect. It accepts more than Spark and groups some operators differently, so this module
is an allow-list of nodes and arguments. Everything else is refused.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from vedette.data.schema import TYPE_NAMES, Type
from vedette.errors import QueryError, nearest
from vedette.language.call_forms import as_plain_calls
from vedette.language.expressions import Written
from vedette.language.function_table import FUNCTIONS, RANDOM
from vedette.language.functions.bits import SHIFTS
from vedette.language.mistakes import explain_mistake
from vedette.language.spelling import (
    CALL,
    SLOT_NAME,
    check_characters,
    check_tokens,
    is_unsigned,
    origin,
    with_names,
)
from vedette.language.tokens import MARK
from vedette.language.unsupported_functions import why_unsupported
from vedette.settings import Settings

_DEEPEST = Settings()  # the default, whatever is configured: trees must stay within Python's recursion limit on workers

COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "||"}
_LOOSE = {
    *COMPARISONS,
    "NullSafeNEQ",
    "And",
    "Or",
    "Not",
    "In",
    "Between",
    "Like",
    "ILike",
    "RegexpLike",
    "Escape",
    "Is",
}
# Operators on bits, and how tightly Spark binds them. sqlglot binds all of them alike.
_BITS = {"BitwiseOr": "|", "BitwiseXor": "^", "BitwiseAnd": "&", "BitwiseLeftShift": "<<", "BitwiseRightShift": ">>"}
_SHIFTS = ("BitwiseLeftShift", "BitwiseRightShift")
_TIGHTNESS = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, ">>>": 4}
_INFIX = {"and", "or", "in", "between", *COMPARISONS.values(), *_ARITHMETIC.values(), "|", "^", "&"}

# Flags that sqlglot sets by itself; they do not depend on the text.
_HARMLESS = {"safe", "typed", "_type"}
_CAST_TYPES = {
    "BIGINT": "bigint",
    "INT": "int",
    "SMALLINT": "smallint",
    "TINYINT": "tinyint",
    "BINARY": "binary",
    "DOUBLE": "double",
    "FLOAT": "float",
    "BOOLEAN": "boolean",
    "TEXT": "string",
    "VARCHAR": "string",
    "DATE": "date",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "TIMESTAMP": "timestamp",
    "DECIMAL": "decimal",
}


def parse_skeleton(skeleton: str) -> Written:
    """The tree of a skeleton. A QueryError's `start` and `end` are places in the skeleton."""
    try:
        return _parse_skeleton(skeleton)
    except QueryError as error:
        raise explain_mistake(error, skeleton) from None


def _parse_skeleton(skeleton: str) -> Written:
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    check_characters(skeleton)
    skeleton = as_plain_calls(skeleton)
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
    if type(trees[0]).__name__ == "Subquery":  # `with_names` adds the parentheses
        _check_clause(skeleton)
    _check_signs(skeleton, trees[0])
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
    _check_clause(skeleton)
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


def _check_clause(skeleton: str) -> None:
    """Raise QueryError if a text begins as a statement or a clause of SQL."""
    clause = skeleton.split(maxsplit=1)[0]
    if clause.upper() in ("SELECT", "WHERE"):
        start = skeleton.index(clause)
        reason = f"a query is a condition, such as price < 40; write it without {clause.upper()}"
        raise QueryError(reason, skeleton, start, start + len(clause))


def _check_signs(skeleton: str, tree: Any) -> None:
    """Raise QueryError if a sign is repeated, as in `price > > 3`, which sqlglot reads as an operator."""
    found = re.search(r"<\s+(<)|>\s+(>)", skeleton)
    if found and any(type(node).__name__ in _SHIFTS for node in tree.walk()):
        place = found.end() - 1
        raise QueryError(f"syntax error at {skeleton[place]!r}", skeleton, place, place + 1)


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
        if kind in _BITS:
            return self._read_bits(node)
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
            hint = "; for a range write x BETWEEN 1 AND 5" if operator in ("<", "<=", ">", ">=") else ""
            self.refuse(node, f"a condition next to {operator} needs parentheses around it{hint}")
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
            if type(side).__name__ in _BITS:
                self.refuse(node, f"{op} next to an operator on bits needs parentheses around one of them")
            if mixed and type(side).__name__ in _ARITHMETIC:
                self.refuse(node, "|| next to arithmetic needs parentheses around one of them")
        return self.made(node, op, left, right)

    def _read_bits(self, node: Any) -> Written:
        """A chain of operators on bits without parentheses, grouped as Spark does."""
        operands, operators = [], []
        while type(node).__name__ in _BITS:
            self.only(node, "this", "expression")
            operands.append(node.expression)
            operators.append(_BITS[type(node).__name__])
            node = node.this
        operands.append(node)
        return self._group([*reversed(operands)], [*reversed(operators)])

    def _group(self, operands: list[Any], operators: list[str]) -> Written:
        values: list[Written] = []
        waiting: list[str] = []

        def apply() -> None:
            right, left, op = values.pop(), values.pop(), waiting.pop()
            start, end = self._span_around((left, right))
            values.append(Written(SHIFTS.get(op, op), (left, right), start=start, end=end))

        place = 0
        while place < len(operands):
            if place:
                op = operators[place - 1]
                if is_unsigned(operands[place]):  # a >>> b, which is written as a >> unsigned >> b
                    place, op = place + 1, ">>>"
                while waiting and _TIGHTNESS[waiting[-1]] >= _TIGHTNESS[op]:
                    apply()
                waiting.append(op)
                self.count(op)
            if type(operands[place]).__name__ == "DPipe":
                self.refuse(operands[place], "|| next to an operator on bits needs parentheses around one of them")
            values.append(self.tight(operands[place], waiting[-1] if waiting else operators[0]))
            place += 1
        while waiting:
            apply()
        return values[0]

    def _read_bitwisenot(self, node: Any) -> Written:
        self.only(node, "this")
        self.count("~")
        return self.made(node, "~", self.tight(node.this, "~"))

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
        self.only(node, "this", "table", "db", "catalog")
        identifier = node.this
        owners = [node.args[owner] for owner in ("catalog", "db", "table") if node.args.get(owner) is not None]
        if type(identifier).__name__ != "Identifier":
            self.refuse(node, f"{_describe(node)} is not supported")
        self.count("name")
        slot = None if identifier.args.get("quoted") else SLOT_NAME.fullmatch(identifier.this)
        if slot:
            return self.made(node, "literal", slot=int(slot.group(1)))
        path = [str(each.this) for each in (*owners, identifier)]
        self.count(*[".", "name"] * len(owners))
        return self.made(node, "field", name=path[0], path=tuple(path[1:]))

    def _read_dot(self, node: Any) -> Written:
        """A part of a struct, below four names."""
        self.only(node, "this", "expression")
        inner = self.read(node.this)
        if inner.op != "field" or type(node.expression).__name__ != "Identifier":
            self.refuse(node, "a dot is allowed after the name of a struct only")
        self.count(".", "name")
        return self.made(node, "field", name=inner.name, path=(*inner.path, str(node.expression.this)))

    def _read_identifier(self, node: Any) -> Written:
        """The variable of a lambda function, in its body."""
        self.only(node, "this", "quoted")
        self.count("name")
        return self.made(node, "field", name=node.this)

    def _read_lambda(self, node: Any) -> Written:
        self.only(node, "this", "expressions")
        if len(node.expressions) != 1:
            self.refuse(node, "a lambda function has one variable, such as x -> x > 5")
        variable = str(node.expressions[0].this)
        if SLOT_NAME.fullmatch(variable):
            self.refuse(node, "the variable of a lambda function is a name, as in x -> x > 5")
        self.count("name", "->")
        return self.made(node, "lambda", self.read(node.this), name=variable)

    def _read_bracket(self, node: Any) -> Written:
        self.only(node, "this", "expressions", "offset")
        if len(node.expressions) != 1:
            self.refuse(node, "brackets take one place or key, such as v[0]")
        self.count("[")
        return self.made(node, "[]", self.tight(node.this, "["), self.read(node.expressions[0]))

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
        if kind == "Column" and self._is_word(node.expression, "UNKNOWN"):
            self.count("name")
            return self.made(node, "isunknown", operand)
        self.refuse(node, "IS must be followed by NULL, TRUE, FALSE or UNKNOWN")

    def _is_word(self, node: Any, word: str) -> bool:
        """Whether a name is this word, as the text has it, without backquotes."""
        start, end = self.span(node)
        return str(node.name).upper() == word and end - start == len(word)

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

    def _read_like(self, node: Any, escape: str = "\\", op: str = "like") -> Written:
        self.only(node, "this", "expression", "negate")
        self.count(op.upper(), *["NOT"] * bool(node.args.get("negate")))
        text, pattern = self.tight(node.this, op.upper()), node.expression
        kind = type(pattern).__name__
        if kind in ("Any", "All"):
            return self._read_likes(node, op, text, "or" if kind == "Any" else "and")
        like = self.made(node, op, text, self.tight(pattern, op.upper()), name=escape)
        return self.made(node, "not", like) if node.args.get("negate") else like

    def _read_likes(self, node: Any, op: str, text: Written, joined: str) -> Written:
        """LIKE ANY or LIKE ALL and a list of patterns, as single LIKEs."""
        listed = node.expression.this
        patterns = listed.expressions if type(listed).__name__ == "Tuple" else [listed.this]
        if type(listed).__name__ not in ("Tuple", "Paren") or not patterns:
            self.refuse(node, f"{op.upper()} ANY and ALL take patterns in parentheses, such as LIKE ANY ('a%', '%b')")
        self.count("name", "(", *[","] * (len(patterns) - 1))
        likes = [self.made(node, op, text, self.read(pattern), name="\\") for pattern in patterns]
        if node.args.get("negate"):
            likes = [self.made(node, "not", like) for like in likes]
        return likes[0] if len(likes) == 1 else self.made(node, joined, *likes)

    def _read_ilike(self, node: Any, escape: str = "\\") -> Written:
        return self._read_like(node, escape, "ilike")

    def _read_escape(self, node: Any) -> Written:
        self.only(node, "this", "expression")
        like, literal = node.this, node.expression
        kind = type(like).__name__
        if kind not in ("Like", "ILike") or type(literal).__name__ != "Literal" or len(literal.this) != 1:
            self.refuse(node, "ESCAPE takes one character, such as '/'")
        if type(like.expression).__name__ in ("Any", "All"):
            self.refuse(node, "ESCAPE after LIKE ANY or LIKE ALL is not supported")
        self.count("ESCAPE", "name")
        return self._read_like(like, literal.this, kind.lower())

    def _read_regexplike(self, node: Any) -> Written:
        self.only(node, "this", "expression")
        self.count("RLIKE")
        return self.made(node, "regexp_like", *(self.tight(side, "RLIKE") for side in (node.this, node.expression)))

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
            self.refuse(node, f"a cast to {to.sql('spark')} is not supported; types are: {', '.join(TYPE_NAMES)}")
        if parameters:
            self.count("(", *["name"] * len(parameters), *[","] * (len(parameters) - 1))
        if name == "decimal":
            precision, scale = ((*parameters, 0) if parameters else (10, 0))[:2]
            if not 1 <= precision <= 38 or scale > precision:
                self.refuse(node, f"decimal({precision},{scale}) is out of range; 0 <= scale <= precision <= 38")
            return self.made(node, op, self.read(node.this), type=Type(name, precision, scale))
        return self.made(node, op, self.read(node.this), type=Type(name))

    def _read_interval(self, node: Any) -> Written:
        self.refuse(node, "INTERVAL takes literals, as in INTERVAL 5 MINUTES or INTERVAL '1 02:03:04' DAY TO SECOND")

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
            self.refuse(node, why_unsupported(name))
        self.only(node, "this", "expressions")
        args = node.expressions
        self.count("name", "(", *[","] * (len(args) - 1))
        function = FUNCTIONS[name]
        least, most = function.least, function.most
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            hint = "; coalesce replaces nulls" if name == "isnull" and len(args) == 2 else ""
            self.refuse(node, f"{name} takes {wanted} argument{'s' * (wanted[-1] != '1')}, got {len(args)}{hint}")
        return self.made(node, function.name, *(self.read(arg) for arg in args))


def _describe(node: Any) -> str:
    """A node that is not supported, in words."""
    kind = type(node).__name__
    words = {"Subquery": "a subquery", "Select": "a subquery", "Exists": "a subquery", "Window": "a window function"}
    words |= {"Literal": "a literal here", "Interval": "INTERVAL", "Dot": "a name with a dot", "Distinct": "DISTINCT"}
    words |= {"Alias": "a name after an expression", "Star": "*", "Tuple": "a list of expressions", "In": "IN"}
    words |= {"JSONExtract": "-> outside of exists and forall", "Cast": "CAST", "Case": "CASE"}
    return words.get(kind, "this form of SQL")
