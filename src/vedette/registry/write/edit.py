"""The net effect of the steps of a change: each query is added, replaced or removed at most once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vedette.errors import QueryError
from vedette.queries.selectivity import Selectivity
from vedette.registry.forms import STORED
from vedette.registry.read.set_info import SetInfo
from vedette.registry.write.steps import ADD, REMOVE, REPLACE, Step, check_texts, merge_options
from vedette.settings import settings

COLUMNS = (*STORED, "metadata", "options", "expires_at")  # columns of a revision that its owner sets


class _Kept:
    """Marks a value that a replaced query keeps."""

    def __repr__(self) -> str:
        return "kept"


KEPT = _Kept()


@dataclass(frozen=True)
class Rows:
    """Queries and their new values by column. Without a column, replaced queries keep theirs and new ones get null."""

    ids: Sequence[Any] = ()
    values: dict[str, list[Any]] = field(default_factory=dict)

    def column(self, name: str, otherwise: Any = None) -> list[Any]:
        return self.values[name] if name in self.values else [otherwise] * len(self.ids)


@dataclass(frozen=True)
class Edit:
    """What a change does to a set."""

    added: Rows = field(default_factory=Rows)
    replaced: Rows = field(default_factory=Rows)
    removed: Sequence[Any] = ()
    transient: Sequence[Any] = ()  # added and removed by the same change: they must not exist before it

    def __bool__(self) -> bool:
        return any(len(ids) for ids in (self.added.ids, self.replaced.ids, self.removed, self.transient))

    @property
    def ids(self) -> Sequence[Any]:
        """One id per action."""
        return [*self.added.ids[:1], *self.replaced.ids[:1], *self.removed[:1], *self.transient[:1]]

    def check_texts(self, info: SetInfo, selectivity: Selectivity | None) -> None:
        """Raise QueryError if a text is invalid."""
        for rows in (self.added, self.replaced):
            if "text" not in rows.values:
                continue
            texts = rows.values["text"]
            given = [place for place, text in enumerate(texts) if text is not KEPT]
            if len(given) == len(texts):
                check_texts(info, rows.ids, texts, settings(), selectivity)
            else:
                ids, new = [rows.ids[place] for place in given], [texts[place] for place in given]
                check_texts(info, ids, new, settings(), selectivity)

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Edit:
        """All steps as one edit. Raises QueryError if a step contradicts an earlier one."""
        if len(steps) == 1:
            (step,) = steps
            rows = Rows(step.ids, step.values)
            return cls(
                rows if step.action == ADD else Rows(),
                rows if step.action == REPLACE else Rows(),
                step.ids if step.action == REMOVE else (),
            )
        last: dict[Any, tuple[bool, dict[str, Any] | None]] = {}  # whether it existed before, and its values now
        for step in steps:
            for place, query_id in enumerate(step.ids):
                values = {name: column[place] for name, column in step.values.items()}
                last[query_id] = _follow(last.get(query_id), step.action, query_id, values)
        before = [(query_id, values) for query_id, (existed, values) in last.items() if existed]
        new = [(query_id, values) for query_id, (existed, values) in last.items() if not existed]
        removed = [query_id for query_id, values in before if values is None]
        transient = [query_id for query_id, values in new if values is None]
        return cls(_rows(new, None), _rows(before, KEPT), removed, transient)


def _follow(
    before: tuple[bool, dict[str, Any] | None] | None, action: str, query_id: Any, values: dict[str, Any]
) -> tuple[bool, dict[str, Any] | None]:
    """The state of a query after a step."""
    if before is None:
        return action != ADD, None if action == REMOVE else values
    existed, known = before
    if action == ADD:
        if known is not None:
            raise QueryError(f"id {query_id!r} is added twice in one change; ids must be distinct")
        return existed, {name: values.get(name) for name in COLUMNS}  # no values of the removed query are kept
    if known is None:
        raise QueryError(
            f"query {query_id!r} does not exist: an earlier step of the same change removed it; add it instead"
        )
    if action != REMOVE and "options" in known and "options" in values:
        values = values | {"options": merge_options(known["options"], values["options"])}
    return existed, None if action == REMOVE else known | values


def _rows(queries: list[tuple[Any, dict[str, Any] | None]], otherwise: Any) -> Rows:
    """The queries that have values, by column."""
    having = [(query_id, values) for query_id, values in queries if values is not None]
    names = {name: None for _, values in having for name in values}
    columns = {name: [values.get(name, otherwise) for _, values in having] for name in names}
    return Rows([query_id for query_id, _ in having], columns)
