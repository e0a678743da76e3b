"""What answers of a moving join carry: columns of the rows of objects, and the metadata of zones.

Both are kept with the objects of their set, so a retracted pair has those of the motion that it is retracted for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.errors import QueryError, RowError
from vedette.operators.carried_rows import CarriedRows, check_columns, concat_carried, read_columns
from vedette.operators.moving_join.join import IntersectionJoin
from vedette.operators.moving_join.meetings import Meetings
from vedette.operators.side_columns import PairRows, SideColumns

SETS = ("a", "b")
TAKEN = ("sign", *SETS, "start", "end", "time", "event", "version")  # names that answers have themselves


@dataclass(frozen=True)
class MovingColumns:
    """By set, the columns that are kept with its objects, and their names in answers."""

    of: dict[str, tuple[str, ...]]
    names: dict[str, list[str]]

    @classmethod
    def read(cls, columns: Any, metadata: Any, zones: str | None) -> MovingColumns:
        """The options of a caller. `zones` is the set whose objects are zones, which have metadata and no columns."""
        sides = SideColumns.read(columns, [name for name in SETS if name != zones], TAKEN)
        texts = check_columns(metadata, (*TAKEN, *sides.names), "metadata")
        if zones is None:
            if metadata is not None:
                raise QueryError(
                    "is for queries, and two sets of moving objects have none; use columns=, or zones as one set",
                    option="metadata",
                )
            return cls(dict(sides.of), {name: sides.names_of(name) for name in SETS})
        (other,) = sides.of
        return cls({other: sides.of[other], zones: texts}, {other: sides.names_of(other), zones: list(texts)})

    def __bool__(self) -> bool:
        return any(self.of.values())

    def read_rows(self, rows: Any, name: str, n: int, n_removals: int, known: CarriedRows | None) -> pa.Table:
        """The columns of `n` rows of a set, which removals without columns follow."""
        try:
            table = read_columns(rows, self.of[name])
            table = table if known is None else known.fit(table)
        except RowError as error:
            raise error.within(f"set {name}") from None
        if table.num_rows != n:
            raise RowError(f"set {name}: there are {n} ids but {table.num_rows} values of {self.of[name][0]!r}")
        return concat_carried([table, nulls(table.column_names, n_removals)], [n, n_removals])

    def add_to(self, answer: pa.Table, rows: dict[str, PairRows]) -> pa.Table:
        """An answer with the columns of the objects of its pairs. Columns of rows come before metadata."""
        for name in self.of:
            if name in rows:
                for column, values in zip(self.names[name], rows[name].take().columns, strict=True):
                    answer = answer.append_column(column, values)
        return answer

    def at_slots(self, join: IntersectionJoin, slots: Sequence[NDArray[Any]]) -> dict[str, PairRows]:
        """The rows of pairs now, by set; `slots` are those of a and of b."""
        return {
            name: PairRows.at(chosen, len(of.ids), of.carried.at)
            for name, of, chosen in zip(SETS, join.sets, slots, strict=True)
            if of.carried
        }


def nulls(names: Sequence[str], n: int) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(n) for _ in names], names=list(names))


class ChangedRows:
    """The rows of pairs that steps change, collected step by step: by set, where the row of each pair is."""

    def __init__(self, columns: MovingColumns) -> None:
        self._places: dict[str, list[NDArray[np.int64]]] = {name: [] for name in SETS if columns.of[name]}

    def note(self, changes: Sequence[tuple[int, Meetings]], join: IntersectionJoin, time: float) -> None:
        """Note the rows of the changes of a step at this time.

        What is retracted, and what is emitted about the time before the step, is of the motions before it.
        """
        for name, of, slots, (changed, before) in zip(SETS, join.sets, ("a", "b"), join.replaced, strict=True):
            if name not in self._places:
                continue
            order = np.argsort(changed)
            for sign, pairs in changes:
                chosen = getattr(pairs, slots)
                places = of.carried.places(chosen)
                if len(changed) and len(chosen):
                    at = order[np.minimum(np.searchsorted(changed, chosen, sorter=order), len(order) - 1)]
                    is_old = (changed[at] == chosen) & ((sign < 0) | (pairs.starts < time))
                    places = np.where(is_old, before[at], places)
                self._places[name].append(places)

    def find(self, join: IntersectionJoin) -> dict[str, PairRows]:
        """The rows of all pairs that were noted."""
        found = {}
        for name, of in zip(SETS, join.sets, strict=True):
            if name in self._places:
                places = np.concatenate([np.empty(0, np.int64), *self._places[name]]) + 1
                found[name] = PairRows.at(places, of.carried.n_rows + 1, _reader(of.carried))
        return found


def _reader(carried: CarriedRows) -> Any:
    return lambda places: carried.at_places(places - 1)
