"""Why a row matches a query, or does not: what `QuerySet.why` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vedette.data.columns import Column
from vedette.language import Clause, Residual, read_clauses

_MOST_LINES = 200
_MOST_WIDTH = 60  # of the column of clauses; longer ones push their details to the right


@dataclass(frozen=True)
class Why:
    """The condition of a query for one row, clause by clause. `str()` shows it as a tree.

    >>> from vedette import QuerySet
    >>> alerts = QuerySet("symbol string, price double")
    >>> alerts.add("cheap-ibm", "symbol = 'IBM' AND price < 40")
    >>> print(alerts.why("cheap-ibm", {"symbol": "IBM", "price": 41.5}))
    query 'cheap-ibm' does not match
    false   AND
    true      symbol = 'IBM'  symbol is 'IBM'
    false     price < 40      price is 41.5, 1.5 above 40
    """

    query: str | int
    clause: Clause
    text: str | None = None  # the query as written, where it is known

    @property
    def holds(self) -> bool:
        """Whether the row matches the query."""
        return self.clause.truth == "true"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {"query": self.query, "holds": self.holds, "text": self.text, "condition": self.clause.to_dict()}

    def __str__(self) -> str:
        return f"query {self.query!r} {'matches' if self.holds else 'does not match'}\n{show_clauses(self.clause)}"


def show_clauses(clause: Clause) -> str:
    """A table of clauses: the truth of each, the indented clause, and its detail."""
    lines = list(clause.lines())
    left_out = len(lines) - _MOST_LINES
    lines = lines[:_MOST_LINES]
    width = min(max(len(text) for _, text, _ in lines), _MOST_WIDTH)
    shown = [f"{truth:<8}{text:<{width}}  {detail}".rstrip() for truth, text, detail in lines]
    return "\n".join([*shown, *([f"... and {left_out} more clauses"] if left_out > 0 else [])])


def explain_row(query_id: str | int, condition: Residual, columns: dict[str, Column], text: str | None) -> Why:
    """The clauses of a query's condition for the only row of the columns."""
    return Why(query_id, read_clauses(condition, columns), text)
