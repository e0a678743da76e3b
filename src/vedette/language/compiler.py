"""Texts to boxes and residuals.

Texts are cut into shapes. A shape is parsed and typed once for all its literals, and the box ends of all its texts are
computed as arrays.
"""

from __future__ import annotations

import gc
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.boxes import BoxBlock
from vedette.data.schema import NUMBER_NAMES, Schema, Type
from vedette.errors import QueryError
from vedette.language.analysis import Analyser, NeedsSizesError
from vedette.language.expressions import BOOLEAN, DOUBLE, Typed, Written
from vedette.language.folding import fold_literals
from vedette.language.function_table import FUNCTIONS
from vedette.language.geofences import POLYGON_TESTS, is_fence
from vedette.language.leaves import Leaf, pattern_slot
from vedette.language.limits import check_cost, check_skeleton, check_vertices, find_too_long
from vedette.language.links import Link, with_links
from vedette.language.literals import BadLiteralError, Kind, SlotError, check_numbers, kinds_of, read_strings, size_of
from vedette.language.mistakes import hint_for_literal
from vedette.language.normal_form import Form, blocks_of, both_tracked, form_of, without_needless_views
from vedette.language.patterns import BAD_PATTERN, BadPatternError, classify
from vedette.language.residual import Residual
from vedette.language.syntax import depth_of, parse_skeleton
from vedette.language.tokens import Shape, cut_texts, literal_span, place_in_text
from vedette.language.trial import TrialError, try_expression, try_residual
from vedette.settings import Settings


@dataclass
class CompiledTexts:
    """The result for a list of texts. Queries in blocks and residuals are numbered like the texts, from 0.

    A query without a box matches nothing. A query with a residual matches the rows in its boxes for which the residual
    is true. Over a schema of several streams, a query has a residual for each set of streams that parts of it refer
    to, and boxes may have ranges of links, by the name of the link.
    """

    n_texts: int
    blocks: list[BoxBlock] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    links: dict[str, Link] = field(default_factory=dict)
    has_views: bool = True  # boxes may have ranges of views, such as the elements of an array


def compile_texts(
    texts: Sequence[str],
    schema: Schema,
    time_zone: str = "UTC",
    *,
    ids: Sequence[object] | None = None,
    errors: list[tuple[int, QueryError]] | None = None,
    limits: Settings | None = None,
    views: bool = True,
) -> CompiledTexts:
    """Compile predicates over one schema.

    Raises the QueryError of the first invalid text; it names `ids[i]` if ids are given. With `errors`, (index, error)
    of invalid texts are appended there instead, in order, and these texts get no boxes. `limits` apply to queries that
    a user adds. Queries that were accepted before are compiled without limits. Without `views`, ranges are of fields.

    >>> compiled = compile_texts(["price < 40", "price < 7"], Schema.parse("price double"))
    >>> compiled.blocks[0].ranges["price"].highs
    array([40.,  7.])
    """
    compiled = CompiledTexts(len(texts), has_views=views)
    found: list[tuple[int, QueryError]] = []
    with _without_collection(texts):
        for shape in _cut(texts, found, limits):
            _compile_shape(shape, texts, schema, time_zone, compiled, found, limits)
    if found:
        found.sort(key=lambda pair: pair[0])
        if ids is not None:
            found = [(index, error.in_query(ids[index])) for index, error in found]
        if errors is None:
            raise found[0][1]
        errors += found
    return compiled


@contextmanager
def _without_collection(texts: Sequence[str]) -> Iterator[None]:
    """Pause garbage collection while many or long texts are read: it takes a third of the time and frees little."""
    pause = gc.isenabled() and (
        len(texts) > 10_000 or any(isinstance(text, str) and len(text) > 10_000 for text in texts)
    )
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


def _cut(texts: Sequence[str], found: list[tuple[int, QueryError]], limits: Settings | None) -> list[Shape]:
    too_long = {} if limits is None else find_too_long(texts, limits)
    found += too_long.items()
    if not too_long:
        with suppress(QueryError, TypeError):
            return cut_texts(texts)
    return _cut_each(texts, found, too_long)


def _cut_each(texts: Sequence[str], found: list[tuple[int, QueryError]], left_out: Container[int]) -> list[Shape]:
    """The shapes of the texts that can be cut, text by text; the errors of the others."""
    shapes = []
    for index, text in enumerate(texts):
        if index in left_out:
            continue
        if not isinstance(text, str):
            found.append((index, QueryError(f"a query must be a string, not {type(text).__name__}")))
            continue
        try:
            for shape in cut_texts([text]):
                shape.indices = [index]
                shapes.append(shape)
        except QueryError as error:
            found.append((index, error))
    return shapes


def _compile_shape(
    shape: Shape,
    texts: Sequence[str],
    schema: Schema,
    time_zone: str,
    compiled: CompiledTexts,
    found: list[tuple[int, QueryError]],
    limits: Settings | None,
) -> None:
    try:
        if limits is not None:
            check_skeleton(shape.skeleton, limits)
        slots = _slots_of(shape.skeleton)
        if limits is not None:
            limits.check("max_nesting", slots.depth)
        for group in _groups(shape, slots, sized=False):
            _compile_group(group, slots, schema, time_zone, texts, compiled, found, limits)
    except QueryError as error:
        found += [(i, _placed(error, shape, literals, texts[i])) for i, literals in _members(shape)]


@dataclass(frozen=True)
class _Slots:
    """Facts about each literal: whether it has a minus, and whether its text is part of the shape."""

    negated: tuple[bool, ...]
    escapes: tuple[str | None, ...]  # the escape character, of a LIKE pattern
    static: tuple[bool, ...]
    depth: int  # of the tree


@dataclass
class _Group:
    """Texts of one shape whose literals are of the same kinds."""

    shape: Shape
    kinds: tuple[Kind, ...]
    statics: tuple[str, ...]
    sized: bool


@lru_cache(maxsize=8192)
def _parse(skeleton: str) -> Written:
    return parse_skeleton(skeleton)


@lru_cache(maxsize=8192)
def _slots_of(skeleton: str) -> _Slots:
    written = _parse(skeleton)
    nodes = list(_walk(written))
    n = 1 + max((node.slot for node in nodes), default=-1)
    negated, static = [False] * n, [False] * n
    escapes: list[str | None] = [None] * n
    for node in nodes:
        if node.op == "literal":
            negated[node.slot] = node.negated
        if node.op == "like" and node.args[1].op == "literal":
            escapes[node.args[1].slot] = node.name
        for place in _static_places(node.op):
            if place < len(node.args) and node.args[place].op == "literal":
                static[node.args[place].slot] = True
    return _Slots(tuple(negated), tuple(escapes), tuple(static), depth_of(written))


def _static_places(op: str) -> tuple[int, ...]:
    """The arguments that are part of the shape if they are literals."""
    if op == "[]":
        return (1,)
    return FUNCTIONS[op].literals if op in FUNCTIONS else ()


def _walk(written: Written) -> Any:
    yield written
    for arg in written.args:
        yield from _walk(arg)


def _groups(shape: Shape, slots: _Slots, *, sized: bool) -> list[_Group]:
    """The shape divided by the kinds of its literals; if `sized`, also by their precision and scale."""
    n_slots = len(slots.negated)
    if n_slots == 0:
        return [_Group(shape, (), (), sized)]
    columns = list(zip(*shape.literals, strict=True))
    keys: list[list[Any]] = []
    for slot, raws in enumerate(columns):
        kinds: list[Any] = list(kinds_of(raws, slots.negated[slot]))
        escape = slots.escapes[slot]
        if slots.static[slot]:
            kinds = [(kind, raw) for kind, raw in zip(kinds, raws, strict=True)]
        elif escape is not None:
            kinds = [
                (kind, _pattern_class(raw, escape)) if kind == "string" else _sized(kind, raw) if sized else kind
                for kind, raw in zip(kinds, raws, strict=True)
            ]
        elif sized:
            kinds = [_sized(kind, raw) for kind, raw in zip(kinds, raws, strict=True)]
        keys.append(kinds)
    if all(kinds.count(kinds[0]) == len(kinds) for kinds in keys):
        return [_group(shape, tuple(kinds[0] for kinds in keys), sized)]
    divided: dict[tuple[Any, ...], Shape] = {}
    for place, key in enumerate(zip(*keys, strict=True)):
        part = divided.get(key)
        if part is None:
            part = divided[key] = Shape(shape.skeleton)
        part.indices.append(shape.indices[place])
        part.literals.append(shape.literals[place])
    return [_group(part, key, sized) for key, part in divided.items()]


def _sized(kind: str, raw: str) -> tuple[str, int, int]:
    return kind, *size_of(raw, kind.rstrip("<>"))


def _group(shape: Shape, key: tuple[Any, ...], sized: bool) -> _Group:
    kinds, statics = [], []
    for part in key:
        name, *more = (part,) if isinstance(part, str) else part
        text = more[0] if len(more) == 1 else ""
        precision, scale = more if len(more) == 2 else (0, 0)
        kinds.append(Kind(name.rstrip("<>"), precision, scale, {">": 1, "<": -1}.get(name[-1], 0)))
        statics.append(text)
    return _Group(shape, tuple(kinds), tuple(statics), sized)


def _pattern_class(raw: str, escape: str) -> str:
    try:
        return classify(read_strings([raw])[0], escape)[0]
    except BadPatternError as error:
        return f"{BAD_PATTERN}{error}"


@dataclass(frozen=True)
class _Plan:
    """A typed shape: its conjuncts, each with its required truth value, and the geofences and patterns in them.

    `linked` are the conjuncts in which links replace the comparisons of two streams.
    """

    conjuncts: tuple[tuple[Typed, bool], ...]
    linked: tuple[tuple[Typed, bool], ...]
    links: dict[str, Link]
    fences: tuple[Typed, ...]
    patterns: tuple[Typed, ...]


@lru_cache(maxsize=8192)
def _plan(skeleton: str, schema: Schema, kinds: tuple[Kind, ...], statics: tuple[str, ...]) -> _Plan:
    typed = Analyser(schema, kinds, statics).condition(_parse(skeleton))
    conjuncts = tuple(_conjuncts(typed, True))
    links: dict[str, Link] = {}
    linked = conjuncts
    if schema.streams:
        linked = tuple((with_links(node, wanted, links), wanted) for node, wanted in conjuncts)
    fences = tuple(node for node in typed.walk() if is_fence(node))
    return _Plan(conjuncts, linked, links, fences, tuple(node for node in typed.walk() if pattern_slot(node) >= 0))


def _conjuncts(node: Typed, wanted: bool) -> Any:
    if node.op == "not":
        yield from _conjuncts(node.args[0], not wanted)
    elif node.op == ("and" if wanted else "or"):
        for arg in node.args:
            yield from _conjuncts(arg, wanted)
    else:
        yield node, wanted


def _compile_group(
    group: _Group,
    slots: _Slots,
    schema: Schema,
    time_zone: str,
    texts: Sequence[str],
    compiled: CompiledTexts,
    found: list[tuple[int, QueryError]],
    limits: Settings | None,
) -> None:
    """Add the group's boxes and residuals. A group with an invalid literal is halved until the text is found."""
    shape = group.shape
    try:
        if not group.sized:
            _check_numbers(group, slots)
        plan = _plan(shape.skeleton, schema, group.kinds, group.statics)
        columns = list(zip(*shape.literals, strict=True))
        leaf = Leaf(
            columns,
            group.kinds,
            slots.negated,
            len(shape.indices),
            time_zone,
            views=compiled.has_views,
            computes=compiled.has_views and not schema.streams,
        )
        if limits is not None:
            slots_of_polygons = [fence.args[2].slot for fence in plan.fences if fence.op in POLYGON_TESTS]
            check_vertices([columns[slot] for slot in slots_of_polygons], slots_of_polygons, limits)
        for fence in plan.fences:
            leaf.bounds(fence)  # raises if it is invalid
        for node in plan.patterns:
            leaf.check_patterns(node)
        form, loose = both_tracked([form_of(node, wanted, leaf.form) for node, wanted in plan.linked])
        form = without_needless_views(form)
        if limits is not None:
            limits.check("max_boxes", len(form.disjuncts))
        if not group.sized and any(_depends_on_sizes(plan.conjuncts[i][0]) for i in loose):
            raise NeedsSizesError
        queries = np.array(shape.indices, np.int64)
        apart = _group_by_streams([plan.conjuncts[i] for i in sorted(loose)], schema)
        rests = [_residual(conjuncts, leaf, queries, time_zone) for conjuncts in apart]
        if limits is not None:
            check_cost([rest.expression for rest in rests], limits)
        _try_out(rests, plan.links, time_zone)
    except NeedsSizesError:
        for part in _groups(shape, slots, sized=True):
            _compile_group(part, slots, schema, time_zone, texts, compiled, found, limits)
        return
    except SlotError as error:
        if len(shape.indices) > 1:
            for half in _halves(shape):
                part = _Group(half, group.kinds, group.statics, group.sized)
                _compile_group(part, slots, schema, time_zone, texts, compiled, found, limits)
            return
        (index, literals), *_ = _members(shape)
        start, end = literal_span(shape.skeleton, literals, error.slot)
        hint = hint_for_literal(texts[index], start, end, schema.names)
        found.append((index, QueryError(error.reason + hint, texts[index], start, end)))
        return
    except TrialError as error:
        if len(shape.indices) > 1 and not error.always:
            for half in _halves(shape):
                part = _Group(half, group.kinds, group.statics, group.sized)
                _compile_group(part, slots, schema, time_zone, texts, compiled, found, limits)
            return
        found += [(i, error.as_query_error()) for i in shape.indices]
        return
    except QueryError as error:
        found += [(i, _placed(error, shape, literals, texts[i])) for i, literals in _members(shape)]
        return
    compiled.links |= plan.links
    _add(form, rests, queries, compiled)


def _try_out(rests: Sequence[Residual], links: dict[str, Link], time_zone: str) -> None:
    """Evaluate new shapes once. Raises TrialError."""
    for rest in rests:
        try_residual(rest)
    for link in links.values():
        for side in link.sides:
            try_expression(side, (), time_zone)


def _check_numbers(group: _Group, slots: _Slots) -> None:
    """Raise SlotError for a number that Spark refuses."""
    for slot, kind in enumerate(group.kinds):
        if kind.name in NUMBER_NAMES:
            try:
                raws = [literals[slot] for literals in group.shape.literals]
                check_numbers(raws, kind.name, slots.negated[slot])
            except BadLiteralError as bad:
                raise SlotError(bad.reason, slot, bad.position) from None


def _group_by_streams(conjuncts: Sequence[tuple[Typed, bool]], schema: Schema) -> list[list[tuple[Typed, bool]]]:
    """Conjuncts grouped by their streams: those of one stream can be evaluated before a row of another arrives."""
    parts: dict[frozenset[str], list[tuple[Typed, bool]]] = {}
    for node, wanted in conjuncts:
        streams = {each.name.partition(".")[0] for each in node.walk() if schema.streams and each.op == "field"}
        parts.setdefault(frozenset(streams), []).append((node, wanted))
    return list(parts.values())


def _depends_on_sizes(node: Typed) -> bool:
    """Whether a type in the tree may depend on the digits of a literal. A cast to double hides the digits."""
    if node.op == "cast" and node.type == DOUBLE and node.args[0].op == "slot":
        return False
    if node.op == "slot":
        return node.type.is_integer or node.type.name == "decimal"
    return any(map(_depends_on_sizes, node.args))


def emptied_fields(text: str, schema: Schema, time_zone: str) -> list[str]:
    """The fields whose ranges, taken one by one, leave no value: why a conjunction never matches."""
    shape, *_ = cut_texts([text])
    slots = _slots_of(shape.skeleton)
    group, *_ = _groups(shape, slots, sized=True)
    plan = _plan(shape.skeleton, schema, group.kinds, group.statics)
    leaf = Leaf(list(zip(*shape.literals, strict=True)), group.kinds, slots.negated, 1, time_zone)
    forms = [form_of(node, wanted, leaf.form) for node, wanted in plan.linked]
    fields = sorted({name for form in forms for disjunct in form.disjuncts for name in disjunct})
    return [name for name in fields if not blocks_of(_only(name, forms), np.zeros(1, np.int64))]


def condition_of_text(text: str, schema: Schema, time_zone: str) -> Residual:
    """The whole condition of one valid text as a residual."""
    shape, *_ = cut_texts([text])
    slots = _slots_of(shape.skeleton)
    group, *_ = _groups(shape, slots, sized=True)
    typed = Analyser(schema, group.kinds, group.statics).condition(_parse(shape.skeleton))
    leaf = Leaf(list(zip(*shape.literals, strict=True)), group.kinds, slots.negated, 1, time_zone)
    return _residual([(typed, True)], leaf, np.zeros(1, np.int64), time_zone)


def _only(name: str, forms: list[Form]) -> Form:
    """The intersection of the conjuncts that use only this field."""
    about = [form for form in forms if form.disjuncts and all(set(disjunct) == {name} for disjunct in form.disjuncts)]
    return both_tracked(about)[0]


def _add(form: Form, rests: list[Residual], queries: NDArray[np.int64], compiled: CompiledTexts) -> None:
    blocks = blocks_of(form, queries)
    compiled.blocks += blocks
    if rests and blocks:
        kept = np.isin(queries, np.concatenate([block.queries for block in blocks]))
        compiled.residuals += rests if kept.all() else [rest.take(np.flatnonzero(kept)) for rest in rests]


def _residual(
    conjuncts: Sequence[tuple[Typed, bool]], leaf: Leaf, queries: NDArray[np.int64], time_zone: str
) -> Residual:
    nodes = [node if wanted else Typed("not", BOOLEAN, (node,)) for node, wanted in conjuncts]
    whole = nodes[0] if len(nodes) == 1 else Typed("and", BOOLEAN, tuple(nodes))
    numbers: dict[tuple[int, Type], int] = {}
    expression = _renumber(whole, numbers, leaf)
    constants = tuple(
        _column(leaf.values(slot, type_)) if type_.is_text else leaf.values(slot, type_) for slot, type_ in numbers
    )
    expression, constants = fold_literals(expression, constants, time_zone, len(queries))
    return Residual(queries, expression, constants, time_zone)


def _column(texts: NDArray[Any]) -> pa.Array:
    return pa.array(texts, pa.large_string())


_FOLDED = {
    "tinyint": ("smallint", "int", "bigint", "decimal", "double"),
    "smallint": ("int", "bigint", "decimal", "double"),
    "int": ("bigint", "decimal", "double"),
    "bigint": ("decimal", "double"),
    "float": ("double",),
    "decimal": ("double", "decimal"),
    "string": (*NUMBER_NAMES, "boolean", "binary", "date", "timestamp", "timestamp_ntz"),
    "date": ("timestamp", "timestamp_ntz"),
    "timestamp_ntz": ("timestamp",),
}


def _renumber(node: Typed, numbers: dict[tuple[int, Type], int], leaf: Leaf, *, folds: bool = True) -> Typed:
    """The tree with slots numbered by appearance, and with casts of literals evaluated, except try_cast."""
    inner = node.args[0] if node.op == "cast" else node
    if folds and node.op == "cast" and inner.op == "slot" and node.type.name in _FOLDED.get(inner.type.name, ()):
        node = Typed("slot", node.type, slot=inner.slot)
    if node.op == "slot":
        key = (node.slot, node.type)
        number = numbers.setdefault(key, len(numbers))
        return Typed("slot", node.type, slot=number)
    args = tuple(_renumber(arg, numbers, leaf, folds=node.op != "try") for arg in node.args)
    value = None if node.op == "cast" else node.value
    return Typed(node.op, node.type, args, node.name, -1, value)


def _halves(shape: Shape) -> list[Shape]:
    middle = len(shape.indices) // 2
    cuts = (slice(None, middle), slice(middle, None))
    return [Shape(shape.skeleton, shape.indices[cut], shape.literals[cut]) for cut in cuts]


def _members(shape: Shape) -> list[tuple[int, tuple[str, ...]]]:
    return list(zip(shape.indices, shape.literals, strict=True))


def _placed(error: QueryError, shape: Shape, literals: tuple[str, ...], text: str) -> QueryError:
    """An error about a shape as an error about one of its texts."""
    if error.position is None or error.position < 0:
        return error.in_text(text)
    start = place_in_text(shape.skeleton, literals, error.position)
    end = start + 1 if error.end is None else place_in_text(shape.skeleton, literals, error.end)
    return error.in_text(text, start, max(end, start + 1))
