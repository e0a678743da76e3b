"""The monitor of a band join: two changing sets of values, and how the answers of all queries change.

docs/operators.md defines its answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes, too_large
from vedette.data.ids import take_ids
from vedette.errors import QueryError, RowError, SnapshotError, count
from vedette.operators.band_join.explanation import explain
from vedette.operators.band_join.join import (
    PAIR_BYTES,
    Deletion,
    Insertion,
    NewValues,
    PairChanges,
    change_bands,
    delete_affected,
    find_all_pairs,
    insert_affected,
)
from vedette.operators.band_join.rows import SIDES, read_deleted, read_new_values
from vedette.operators.band_join.side import Side
from vedette.operators.band_join.state import BandState
from vedette.operators.band_join.table import to_pair_table, to_query_table
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.band_join.query_set import BandQuerySet

REPORTS = ("pairs", "queries")
Change = Insertion | Deletion

_STATE = BandState()


class BandMonitor:
    """Values of two sides that are inserted and deleted, and the pairs, or queries, that this changes.

    >>> from vedette import BandQuerySet
    >>> bands = BandQuerySet()
    >>> bands.add_many(["near", "above"], [-1, 0], [1, 100])
    >>> join = bands.monitor(report="queries")
    >>> join.insert(left={"id": [1, 2], "value": [5.0, 7.5]}).num_rows
    0
    >>> join.insert(right={"id": [9], "value": [3.5]}).to_pylist()
    [{'query': 'above'}]
    """

    def __init__(self, queries: BandQuerySet, report: str, max_state_rows: int | None) -> None:
        if report not in REPORTS:
            raise QueryError(f"must be one of: {', '.join(map(repr, REPORTS))}; got {report!r}", option="report")
        is_count = isinstance(max_state_rows, int) and not isinstance(max_state_rows, bool) and max_state_rows > 0
        if max_state_rows is not None and not is_count:
            raise QueryError(
                f"must be a whole number above 0, or None; got {max_state_rows!r}", option="max_state_rows"
            )
        self.queries = queries
        self.report = report
        self.max_state_rows = max_state_rows
        self.n_unknown = 0  # unknown ids in deletions, in total
        self.unknown: list[str] | list[int] = []  # those of the last call
        self.clear()

    def clear(self) -> None:
        """Remove all values."""
        self.left, self.right = Side(1), Side(-1)
        self.version = self.queries.version  # of the queries, as of the last answer

    def __repr__(self) -> str:
        values = f"{count(self.n_left, 'left value')}, {count(self.n_right, 'right value')}"
        return f"BandMonitor({count(len(self.queries), 'query', 'queries')}, {values}, report={self.report!r})"

    @property
    def n_left(self) -> int:
        return len(self.left)

    @property
    def n_right(self) -> int:
        return len(self.right)

    @property
    def nbytes(self) -> int:
        """The memory of the values, without that of the queries."""
        return self.left.nbytes + self.right.nbytes

    def insert(self, left: Any = None, right: Any = None) -> pa.Table:
        """Insert values, rows with an `id` and a `value`; the new pairs, or the queries that are affected.

        Raises RowError, and changes nothing, if a value is not finite or its id already has one. Raises
        AnswerError, and changes nothing, if the pairs exceed the setting max_answer_bytes; `insert_batches` has no
        such limit.
        """
        change = self._read_insertion(left, right)
        if self.report == "pairs":
            return self._change(change, "pass fewer values at once, or take the pairs with insert_batches")
        groups = self.queries.groups()
        return self._to_queries(change, [insert_affected(groups, each) for each in change.new])

    def insert_batches(
        self, left: Any = None, right: Any = None, *, max_bytes: int | None = None
    ) -> Iterator[pa.Table]:
        """The answer of `insert` in batches of at most `max_bytes`, by default the setting answer_batch_bytes.

        The values are inserted with the last batch. If the iteration stops earlier, the monitor does not change. A
        batch may be larger if a single pair of values belongs to very many queries.
        """
        if self.report == "queries":
            yield self.insert(left, right)
        else:
            yield from self._change_batches(self._read_insertion(left, right), max_bytes)

    def delete(self, left: Any = None, right: Any = None) -> pa.Table:
        """Delete values by their ids; the retracted pairs, or the queries that are affected.

        Ids are a list, an array, or rows with a column `id`. Unknown ids are listed in `unknown`, counted in
        `n_unknown`, and otherwise ignored.
        Raises AnswerError as `insert` does; `delete_batches` has no such limit.
        """
        change = self._read_deletion(left, right)
        if self.report == "pairs":
            return self._change(change, "pass fewer ids at once, or take the pairs with delete_batches")
        groups = self.queries.groups()
        table = self._to_queries(change, [delete_affected(groups, *each) for each in change.gone])
        change.tidy()
        return table

    def delete_batches(
        self, left: Any = None, right: Any = None, *, max_bytes: int | None = None
    ) -> Iterator[pa.Table]:
        """The answer of `delete` in batches, as from `insert_batches`."""
        if self.report == "queries":
            yield self.delete(left, right)
        else:
            yield from self._change_batches(self._read_deletion(left, right), max_bytes)

    def refresh(self) -> pa.Table:
        """The pairs that change because queries were added, removed or replaced since the last call.

        Every other call reports them, too. With report="queries" the answer is empty. Raises AnswerError as `insert`
        does; `refresh_batches` has no such limit.
        """
        if self.report == "pairs":
            return self._change(Insertion([]), "take the pairs with refresh_batches")
        return self._to_queries(Insertion([]), [])

    def refresh_batches(self, *, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The answer of `refresh` in batches, as from `insert_batches`."""
        if self.report == "queries":
            yield self.refresh()
        else:
            yield from self._change_batches(Insertion([]), max_bytes)

    def pairs(self, query_id: str | int) -> pa.Table:
        """The current pairs of one query: columns left and right. Raises AnswerError as `insert` does."""
        low, high = self.queries.band(query_id)
        most = max_answer_bytes()
        pieces = find_all_pairs(self.left, self.right, np.array([low]), np.array([high]), 1, most)
        found = _collect(pieces, most, "narrow the band, or raise the setting")
        return to_pair_table(found, self.queries.query_ids(), self.left, self.right).select(["left", "right"])

    def explain(self) -> str:
        """Which structure answers, why, and what it costs, in words."""
        return explain(self)

    # Saving.

    def save(self) -> bytes:
        """The whole state: the values of both sides, and the version of the queries."""
        return _STATE.save(self)

    def load(self, blob: bytes) -> None:
        """Replace this state by a saved one; raises SnapshotError, and changes nothing, if it does not fit."""
        _STATE.load(self, blob)

    def take_delta(self) -> bytes:
        """What changed in the state since the last `save`, `load` or `take_delta`."""
        return _STATE.take_delta(self)

    def apply_delta(self, blob: bytes) -> None:
        """Update a loaded state; apply deltas in the order in which they were taken."""
        _STATE.apply_delta(self, blob)

    # Inside.

    def _given(self, left: Any, right: Any) -> list[tuple[Side, Side, Any]]:
        both = [(self.left, self.right, left), (self.right, self.left, right)]
        given = [each for each in both if each[2] is not None]
        if not given:
            raise RowError(f"nothing is given; give {' or '.join(f'{name}=' for name in SIDES.values())}, or both")
        return given

    def _check_room(self, n_new: int) -> None:
        n_now = self.n_left + self.n_right
        if self.max_state_rows is not None and n_now + n_new > self.max_state_rows:
            raise RowError(
                f"is {self.max_state_rows:,}, but the join keeps {count(n_now, 'value')} and would keep "
                f"{n_now + n_new:,}; delete values first, or allow more",
                option="max_state_rows",
            )

    def _read_insertion(self, left: Any, right: Any) -> Insertion:
        read = [(side, other, *read_new_values(rows, side)) for side, other, rows in self._given(left, right)]
        self._check_room(sum(len(ids) for _, _, ids, _ in read))
        return Insertion([NewValues(*each, each[0].slots_for(each[2])) for each in read if len(each[2])])

    def _read_deletion(self, left: Any, right: Any) -> Deletion:
        gone, unknown = [], []
        for side, other, ids in self._given(left, right):
            read = read_deleted(ids, side)
            slots = side.find(read) if len(read) else np.empty(0, np.int32)
            missing = np.flatnonzero(slots < 0)
            unknown += take_ids(read, missing).tolist()
            if len(missing) < len(slots):
                gone.append((side, other, slots[slots >= 0]))
        return Deletion(gone, unknown)

    def _change(self, change: Change, advice: str) -> pa.Table:
        """Make a change; all its pairs at once."""
        most = max_answer_bytes()
        return self._finish(change, _collect(self._find(change, most), most, advice))

    def _change_batches(self, change: Change, max_bytes: int | None) -> Iterator[pa.Table]:
        """Make a change; its pairs in batches."""
        most = settings().answer_batch_bytes if max_bytes is None else max_bytes
        now, ids = self._moment(), self.queries.query_ids()
        held: list[PairChanges] = []
        for found in self._find(change, most):
            if held and sum(each.nbytes for each in held) + found.nbytes > most:
                new = change.new_ids(self.left), change.new_ids(self.right)
                yield to_pair_table(held, ids, self.left, self.right, new)
                if self._moment() != now:
                    raise QueryError(
                        "the join or its queries have changed while pieces were read; read all of them first"
                    )
                held = []
            if len(found):
                held.append(found)
        yield self._finish(change, held)

    def _moment(self) -> tuple[Any, ...]:
        """A value that differs after values or queries have changed."""
        return self.queries.version, self.left, self.left.n_calls, self.right, self.right.n_calls

    def _find(self, change: Change, most: int) -> Iterator[PairChanges]:
        """The pairs of the change, and of the queries that changed since the last call. Nothing changes yet."""
        groups = self.queries.groups()
        yield from self._follow(most)
        yield from change.find_pairs(groups, most)

    def _finish(self, change: Change, found: list[PairChanges]) -> pa.Table:
        change.apply()
        self._note(change)
        table = to_pair_table(found, self.queries.query_ids(), self.left, self.right)
        change.tidy()
        return table

    def _to_queries(self, change: Change, found: list[NDArray[np.int32]]) -> pa.Table:
        self._note(change)
        names: NDArray[np.int32] = found[0] if len(found) == 1 else np.unique(np.concatenate([_NONE, *found]))
        return to_query_table(names, self.queries.query_ids())

    def _note(self, change: Change) -> None:
        self.version = self.queries.version
        self.unknown = change.unknown
        self.n_unknown += len(change.unknown)

    def _follow(self, most: int) -> Iterator[PairChanges]:
        if self.version == self.queries.version or not self.n_left or not self.n_right:
            return
        if self.version < self.queries.oldest_version:  # a state was loaded, and no later delta applied
            raise SnapshotError(
                f"the state was saved at version {self.version} of the queries; their changes are known only since "
                f"version {self.queries.oldest_version}: save states more often, or start with a new state"
            )
        (names, *old), (_, *new) = self.queries.changes_since(self.version)
        for each in change_bands(self.left, self.right, (old[0], old[1]), (new[0], new[1]), most):
            yield PairChanges(each.sign, names[each.queries], each.lefts, each.rights)


def _collect(pieces: Iterator[PairChanges], most: int, advice: str) -> list[PairChanges]:
    """All batches; raises AnswerError if they exceed `most` bytes together."""
    found, n = [], 0
    for each in pieces:
        n += len(each)
        if PAIR_BYTES * n > most:
            raise too_large(f"has at least {count(n, 'pair')}", advice)
        found.append(each)
    return found


_NONE = np.empty(0, np.int32)
