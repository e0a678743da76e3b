"""The option `columns` of joins: columns of the rows of each side, which answers have under the name of the side.

A list names columns of every side: `columns=["price"]` gives `left_price` and `right_price`. A dict has a list per
side: `columns={"left": ["price"], "right": ["city"]}`. A side that it does not name has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.errors import QueryError, RowError, nearest, shown
from vedette.operators.carried_rows import CarriedRows, check_columns, concat_carried, read_columns
from vedette.operators.table_pieces import TablePieces

OPTION = "columns"
DENSE = 4  # with fewer pairs than a fourth of the slots, only the slots that occur are looked at


@dataclass(frozen=True)
class SideColumns:
    """The columns of each side, by its name, in the order of the sides."""

    of: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, columns: Any, sides: Sequence[str], taken: Sequence[str]) -> SideColumns:
        """The columns of a caller. Raises QueryError unless the names that answers get are distinct and not `taken`."""
        if isinstance(columns, Mapping):
            for side in columns:
                if side not in sides:
                    words = f"names an unknown side {shown(side)}; the sides are: {', '.join(sides)}"
                    raise QueryError(f"{words}{nearest(str(side), sides)}", option=OPTION)
            of = {side: check_columns(columns.get(side), (), OPTION) for side in sides}
        elif columns is None or isinstance(columns, (list, tuple)):
            of = dict.fromkeys(sides, check_columns(columns, (), OPTION))
        else:
            example = f"{{{sides[0]!r}: ['price'], ...}}"
            raise QueryError(
                f"must be a list of names, such as ['price'], or a dict with a list per side, such as {example}; got "
                f"{shown(columns)}",
                option=OPTION,
            )
        made = cls(of)
        check_columns(made.names, taken, OPTION)
        return made

    def __bool__(self) -> bool:
        """Whether any column is asked for."""
        return any(self.of.values())

    @property
    def names(self) -> list[str]:
        """The names that the columns have in answers, side by side."""
        return [name for side in self.of for name in self.names_of(side)]

    def names_of(self, side: str) -> list[str]:
        return [f"{side}_{name}" for name in self.of[side]]

    def read_rows(self, rows: Any, side: str, n: int, known: CarriedRows | TablePieces) -> pa.Table | None:
        """The columns of `n` new rows of a side, in the types so far; None if the side has no columns."""
        if not self.of[side]:
            return None
        try:
            table = known.fit(read_columns(rows, self.of[side]))
        except RowError as error:
            raise error.within(f"{side} rows") from None
        if table.num_rows != n:
            raise RowError(f"{side} rows: there are {n} ids but {table.num_rows} values of {self.of[side][0]!r}")
        return table

    def add_to(self, answer: pa.Table, rows: Mapping[str, PairRows]) -> pa.Table:
        """An answer with the columns of the rows of its pairs, by side."""
        for side, each in rows.items():
            for name, column in zip(self.names_of(side), each.take().columns, strict=True):
                answer = answer.append_column(name, column)
        return answer


@dataclass(frozen=True)
class PairRows:
    """The rows of pairs on one side: distinct rows and, by pair, the place of its row among them."""

    table: pa.Table
    codes: NDArray[np.int64]

    @classmethod
    def at(cls, slots: NDArray[Any], n_slots: int, read: Callable[[NDArray[Any]], pa.Table]) -> PairRows:
        """The rows of slots below `n_slots`, each of which is read once."""
        distinct, codes = find_distinct(slots, n_slots)
        return cls(read(distinct), codes)

    @classmethod
    def concat(cls, many: Sequence[PairRows]) -> PairRows:
        if len(many) == 1:
            return many[0]
        starts = np.cumsum([0, *(each.table.num_rows for each in many)])
        codes = [each.codes + start for each, start in zip(many, starts, strict=False)]
        tables = [each.table for each in many]
        return cls(concat_carried(tables, [each.num_rows for each in tables]), np.concatenate(codes))

    def take(self) -> pa.Table:
        """The row of each pair."""
        return self.table.take(pa.array(self.codes))

    def sizes(self) -> NDArray[np.int64]:
        """By pair, about how many bytes its row has."""
        return row_bytes(self.table)[self.codes]

    def slice(self, start: int, stop: int) -> PairRows:
        return PairRows(self.table, self.codes[start:stop])


def find_distinct(slots: NDArray[Any], n_slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct slots in order, all below `n_slots`, and the place of each slot among them."""
    if DENSE * len(slots) < n_slots:
        distinct, codes = np.unique(slots, return_inverse=True)
        return distinct.astype(np.int64), codes.reshape(-1)
    is_used = np.zeros(n_slots, np.bool_)
    is_used[slots] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[slots]


Rows = Mapping[str, PairRows]  # by side


def concat_rows(many: Sequence[Rows]) -> dict[str, PairRows]:
    """The rows of several tables of pairs, all with the same sides."""
    return {side: PairRows.concat([each[side] for each in many]) for side in many[0]} if many else {}


def count_bytes(rows: Rows) -> int:
    """About how many bytes the columns of all pairs have."""
    return sum(int(each.sizes().sum()) for each in rows.values())


def cut_pairs(n: int, pair_bytes: int, rows: Rows, most: int) -> list[tuple[int, int]]:
    """Where to cut `n` pairs, so that each part has about `most` bytes with its columns, and at least one pair."""
    sizes = np.full(n, pair_bytes, np.int64)
    for each in rows.values():
        sizes += each.sizes()
    ends = np.cumsum(sizes)
    cuts, start = [], 0
    while start < n:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        cuts.append((start, stop))
        start = stop
    return cuts


def row_bytes(table: pa.Table) -> NDArray[np.int64]:
    """By row, about how many bytes its values take; of nested values the mean."""
    sizes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 8
        elif table.num_rows:
            sizes += -(-column.nbytes // table.num_rows)
    return sizes
