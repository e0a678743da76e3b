"""A typed predicate as boxes: its disjunctive normal form, for all texts of a shape at once.

Each disjunct is one band or null mark per field that it constrains. If the product of disjunctions exceeds the cap, a
bounding form replaces it and the predicate also becomes a residual, so the answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import UNBOUNDED, BoxBlock, Nulls, Ranges
from vedette.data.schema import Type
from vedette.data.views import has_several_values, is_computed
from vedette.language.expressions import Typed
from vedette.language.ranges import Band, everything, meet_all

MAX_BOXES = 64  # of a product of disjunctions, unless one of them is longer
MAX_UNION = 4096  # boxes of an OR, unless all are on one field


@dataclass(frozen=True)
class Is:
    """Field is null."""


Part = Band | Is
Disjunct = dict[str, Part]


@dataclass
class Form:
    """A union of disjuncts that contains every row of the predicate; if `exact`, no other row."""

    disjuncts: list[Disjunct]
    exact: bool = True
    longest: int = 1  # the longest union within

    @property
    def is_everything(self) -> bool:
        return self.disjuncts == [{}]


NOTHING = Form([])
ANYTHING = Form([{}])
UNKNOWN = Form([{}], exact=False)

# (node, required truth value) -> the form of a leaf.
Leaves = Callable[[Typed, bool], Form]


def form_of(node: Typed, wanted: bool, leaves: Leaves) -> Form:
    """The rows for which the predicate is TRUE (or FALSE, if `wanted` is False)."""
    if node.op == "not":
        return form_of(node.args[0], not wanted, leaves)
    if node.op in ("and", "or"):
        forms = [form_of(arg, wanted, leaves) for arg in node.args]
        return both(forms) if (node.op == "and") == wanted else either(forms)
    if node.op == "constant":
        return ANYTHING if node.value is wanted else NOTHING
    return leaves(node, wanted)


def either(forms: list[Form]) -> Form:
    """The union of forms."""
    disjuncts = [disjunct for form in forms for disjunct in form.disjuncts]
    exact = all(form.exact for form in forms)
    if {} in disjuncts:
        disjuncts = [{}]
        exact = any(form.exact and form.is_everything for form in forms)
    form = Form(disjuncts, exact, max(1, len(disjuncts)))
    if len(disjuncts) <= MAX_UNION or len({name for disjunct in disjuncts for name in disjunct}) == 1:
        return form
    return bounding(form)


def both(forms: list[Form]) -> Form:
    """The intersection of forms: each disjunct with each."""
    return both_tracked(forms)[0]


def both_tracked(forms: list[Form]) -> tuple[Form, set[int]]:
    """The intersection, and which of the forms it only bounds.

    Forms of one disjunct are intersected together. The others are multiplied, shortest first. Those that would exceed
    the cap are replaced by their bounding forms.
    """
    forms, weakened = _keep_one_view(forms)
    longest = max((form.longest for form in forms), default=1)
    cap = max(MAX_BOXES, longest)
    loose = weakened | {i for i, form in enumerate(forms) if not form.exact}
    done = {i for i, form in enumerate(forms) if len(form.disjuncts) == 1}
    met, bounded = _meet_all([forms[i].disjuncts[0] for i in sorted(done)]), []
    for i in sorted(set(range(len(forms))) - done, key=lambda i: len(forms[i].disjuncts)):
        disjuncts = forms[i].disjuncts
        if len(met) * len(disjuncts) > cap:
            if len(disjuncts) < longest or longest <= MAX_BOXES:
                bounded.append(bounding(forms[i]).disjuncts[0])
                loose.add(i)
                continue
            met, loose = bounding(Form(met)).disjuncts, loose | done  # a long list of values is more selective
        met = _multiply(met, disjuncts)
        done.add(i)
    if bounded:
        met = _multiply(met, _meet_all(bounded))
    return Form(met, not loose, longest), loose


def _keep_one_view(forms: list[Form]) -> tuple[list[Form], set[int]]:
    """At most one form about a view with several values per row keeps its ranges. Also which forms lost theirs.

    Ranges of two such conditions cannot be intersected: different values of a row may be in them. The form with single
    values is kept, if there is one.
    """
    having = [i for i, form in enumerate(forms) if any(map(_views_in, form.disjuncts))]
    if len(having) < 2:
        return forms, set()
    kept = next((i for i in having if all(map(_has_single_values, forms[i].disjuncts))), having[0])
    weakened = set(having) - {kept}
    return [_without_views(form) if i in weakened else form for i, form in enumerate(forms)], weakened


def _views_in(disjunct: Disjunct) -> list[str]:
    return [name for name in disjunct if has_several_values(name)]


def _has_single_values(disjunct: Disjunct) -> bool:
    bands = [part for name in _views_in(disjunct) if isinstance(part := disjunct[name], Band)]
    return all(bool((band.lows == band.highs).all()) for band in bands)


def _without_views(form: Form) -> Form:
    disjuncts = [{name: part for name, part in each.items() if not has_several_values(name)} for each in form.disjuncts]
    return Form([{}] if {} in disjuncts else disjuncts, exact=False, longest=form.longest)


def without_needless_views(form: Form) -> Form:
    """A computed field is of no use in a box that has a range with two ends, or null, on another field.

    It would be computed for every row, instead of for the rows in that range.
    """
    return Form([_without_needless(disjunct) for disjunct in form.disjuncts], form.exact, form.longest)


def _without_needless(disjunct: Disjunct) -> Disjunct:
    computed = [name for name in disjunct if is_computed(name)]
    if not computed or not any(_is_narrow(part) for name, part in disjunct.items() if not is_computed(name)):
        return disjunct
    return {name: part for name, part in disjunct.items() if not is_computed(name)}


def _is_narrow(part: Part) -> bool:
    if isinstance(part, Is):
        return True
    ends = (part.low_ends != UNBOUNDED) & (part.high_ends != UNBOUNDED)
    return bool(2 * np.count_nonzero(ends) > len(ends))


def _multiply(some: list[Disjunct], others: list[Disjunct]) -> list[Disjunct]:
    """Each disjunct met with each."""
    return [met for a in some for b in others if (met := _meet(a, b)) is not None]


def _meet_all(disjuncts: list[Disjunct]) -> list[Disjunct]:
    """The intersection of disjuncts: one disjunct, or none if they exclude each other."""
    by_field: dict[str, list[Part]] = {}
    for disjunct in disjuncts:
        for name, part in disjunct.items():
            by_field.setdefault(name, []).append(part)
    met: Disjunct = {}
    for name, parts in by_field.items():
        bands = [part for part in parts if isinstance(part, Band)]
        if not bands:
            met[name] = parts[0]
            continue
        both_hold = met[name] = meet_all(bands)
        if len(bands) < len(parts) or (len(bands) > 1 and not both_hold.alive.any()):
            return []
    return [met]


def bounding(form: Form) -> Form:
    """One disjunct that contains all."""
    first, *rest = form.disjuncts
    around = dict(first)
    for disjunct in rest:
        for name in list(around):
            mine, other = around[name], disjunct.get(name)
            if isinstance(mine, Band) and isinstance(other, Band):
                around[name] = mine.hull(other)
            elif not (isinstance(mine, Is) and isinstance(other, Is)):
                del around[name]
    return Form([around], exact=False, longest=form.longest)


def _meet(a: Disjunct, b: Disjunct) -> Disjunct | None:
    met = dict(a)
    for name, part in b.items():
        mine = met.get(name)
        if mine is None:
            met[name] = part
        elif isinstance(mine, Band) and isinstance(part, Band):
            both_hold = mine.meet(part)
            if not both_hold.alive.any():
                return None
            met[name] = both_hold
        elif not (isinstance(mine, Is) and isinstance(part, Is)):
            return None
    return met


def not_null(field: str, type_: Type, n: int) -> Form:
    return Form([{field: everything(type_, n)}])


def is_null(field: str) -> Form:
    return Form([{field: Is()}])


def blocks_of(form: Form, queries: NDArray[np.int64]) -> list[BoxBlock]:
    """The boxes of a form without the empty ones. `queries` are the numbers of its texts."""
    grouped: dict[tuple[tuple[str, bool], ...], list[BoxBlock]] = {}
    for disjunct in form.disjuncts:
        alive: NDArray[np.bool_] | None = None
        for part in disjunct.values():
            if isinstance(part, Band):
                alive = part.alive if alive is None else alive & part.alive
        chosen: Any = slice(None) if alive is None or alive.all() else np.flatnonzero(alive)
        taken = queries[chosen]
        if len(taken):
            ranges = {name: _ranges(part, chosen, len(taken)) for name, part in sorted(disjunct.items())}
            key = tuple((name, isinstance(part, Nulls)) for name, part in ranges.items())
            grouped.setdefault(key, []).append(BoxBlock(taken, ranges))
    return [concat_blocks(blocks) for blocks in grouped.values()]


def _ranges(part: Part, chosen: Any, n: int) -> Ranges | Nulls:
    if isinstance(part, Is):
        return Nulls(n)
    return Ranges(part.lows[chosen], part.highs[chosen], part.low_ends[chosen], part.high_ends[chosen])


def concat_blocks(blocks: list[BoxBlock]) -> BoxBlock:
    """Blocks over the same fields as one."""
    if len(blocks) == 1:
        return blocks[0]
    ranges: dict[str, Ranges | Nulls] = {}
    for name, first in blocks[0].ranges.items():
        parts = [block.ranges[name] for block in blocks]
        if isinstance(first, Nulls):
            ranges[name] = Nulls(sum(len(part) for part in parts))
        else:
            every = [part for part in parts if isinstance(part, Ranges)]
            ranges[name] = Ranges(
                np.concatenate([part.lows for part in every]),
                np.concatenate([part.highs for part in every]),
                np.concatenate([part.low_ends for part in every]),
                np.concatenate([part.high_ends for part in every]),
            )
    return BoxBlock(np.concatenate([block.queries for block in blocks]), ranges)
