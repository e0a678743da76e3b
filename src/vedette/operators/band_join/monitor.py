"""The monitor of a band join: two changing sets of values, and how the answers of all queries change.

docs/operators.md defines its answers.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes, too_large
from vedette.data.ids import take_ids
from vedette.errors import QueryError, RowError, SnapshotError, count, shown
from vedette.native.threads import check_threads, limit_each
from vedette.operators.band_join.explanation import explain
from vedette.operators.band_join.join import PAIR_BYTES, Change, NewValues, PairChanges, change_bands, find_all_pairs
from vedette.operators.band_join.net_change import find_net_change
from vedette.operators.band_join.pair_rows import find_rows
from vedette.operators.band_join.rows import (
    SIDES,
    ValueRows,
    read_deleted,
    read_new_values,
    read_rows,
    unknown_ids_message,
)
from vedette.operators.band_join.side import Side
from vedette.operators.band_join.state import BandState
from vedette.operators.band_join.table import to_pair_table, to_query_table, to_unknown_table
from vedette.operators.carried_rows import check_columns
from vedette.operators.query_metadata import find_metadata
from vedette.operators.side_columns import PairRows, Rows, SideColumns, concat_rows, count_bytes, cut_pairs
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.band_join.query_set import BandQuerySet

Report = Literal["pairs", "queries"]
KnownId = Literal["error", "replace"]
UnknownId = Literal["log", "report", "error"]

PAIR_COLUMNS = ("sign", "query", "left", "right", "version")  # names that answers have themselves
_CHOICES = {"report": get_args(Report), "known_id": get_args(KnownId), "unknown_id": get_args(UnknownId)}
_log = logging.getLogger(__name__)
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

    n_rebuilt = 0  # values are put in order one by one; they are sorted again only as often as they change

    def __init__(
        self,
        queries: BandQuerySet,
        report: Report,
        max_state_rows: int | None,
        known_id: KnownId = "error",
        unknown_id: UnknownId = "log",
        threads: int | None = None,
        columns: Any = None,
        metadata: Any = None,
    ) -> None:
        for option, value in (("report", report), ("known_id", known_id), ("unknown_id", unknown_id)):
            if value not in _CHOICES[option]:
                choices = ", ".join(map(repr, _CHOICES[option]))
                raise QueryError(f"must be one of: {choices}; got {shown(value)}", option=option)
        if unknown_id == "report" and report == "queries":
            raise QueryError(
                "is 'report', which adds ids to pairs; with report='queries' use 'log' or 'error'", option="unknown_id"
            )
        is_count = isinstance(max_state_rows, int) and not isinstance(max_state_rows, bool) and max_state_rows > 0
        if max_state_rows is not None and not is_count:
            raise QueryError(
                f"must be a whole number above 0, or None; got {shown(max_state_rows)}", option="max_state_rows"
            )
        self.columns = SideColumns.read(columns, tuple(SIDES.values()), PAIR_COLUMNS)
        if self.columns and report == "queries":
            raise QueryError(
                "are columns of the rows of pairs; with report='queries' there are no pairs: omit columns, or report "
                "'pairs'",
                option="columns",
            )
        self.metadata = check_columns(metadata, (*PAIR_COLUMNS, *self.columns.names), "metadata")
        self.queries = queries
        self.report = report
        self.max_state_rows = max_state_rows
        self.known_id = known_id
        self.unknown_id = unknown_id
        self.threads = check_threads(threads)
        self.n_unknown = 0  # unknown ids in deletions, in total
        self.unknown: list[str] | list[int] = []  # those of the last call
        self.clear()

    def clear(self) -> None:
        """Remove all values."""
        self.left, self.right = Side(1, self.columns.of["left"]), Side(-1, self.columns.of["right"])
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

    @property
    def state_nbytes(self) -> int:
        """As `nbytes`: monitors of one set share only the queries."""
        return self.nbytes

    def insert(self, left: Any = None, right: Any = None) -> pa.Table:
        """Insert values, rows with an `id` and a `value`; the new pairs, or the queries that are affected.

        If an id already has a value, it is an error, or with known_id="replace" the new value replaces it. Raises
        RowError, and changes nothing, if a value is not finite. Raises AnswerError, and changes nothing, if the pairs
        exceed the setting max_answer_bytes; `insert_batches` has no such limit.
        """
        advice = "pass fewer values at once, or take the pairs with insert_batches"
        return self._make(self._read_insertion(left, right), advice)

    def insert_batches(
        self, left: Any = None, right: Any = None, *, max_bytes: int | None = None
    ) -> Iterator[pa.Table]:
        """The answer of `insert` in batches of at most `max_bytes`, by default the setting answer_batch_bytes.

        The values are inserted with the last batch. If the iteration stops earlier, the monitor does not change. A
        batch may be larger if a single pair of values belongs to very many queries.
        """
        yield from self._make_batches(self._read_insertion(left, right), max_bytes)

    def delete(self, left: Any = None, right: Any = None) -> pa.Table:
        """Delete values by their ids; the retracted pairs, or the queries that are affected.

        Ids are a list, an array, or rows with a column `id`. Ids without a value are listed in `unknown` and counted in
        `n_unknown`. They are also logged, reported as rows of sign 0, or an error that changes nothing, as the option
        `unknown_id` says. Raises AnswerError as `insert` does; `delete_batches` has no such limit.
        """
        advice = "pass fewer ids at once, or take the pairs with delete_batches"
        return self._make(self._read_deletion(left, right), advice)

    def delete_batches(
        self, left: Any = None, right: Any = None, *, max_bytes: int | None = None
    ) -> Iterator[pa.Table]:
        """The answer of `delete` in batches, as from `insert_batches`."""
        yield from self._make_batches(self._read_deletion(left, right), max_bytes)

    def step(self, left: Any = None, right: Any = None) -> pa.Table:
        """Apply rows in order; how the pairs change from before the first row to after the last one.

        A row inserts the `value` of an `id`, unless its column `op` is 'delete'. A value that is inserted and deleted
        within the call makes no change. A value that is replaced loses its pairs and gets new ones. The options
        `known_id` and `unknown_id` apply to each row. Raises what `insert` raises; `step_batches` has no limit.
        """
        advice = "pass fewer rows at once, or take the pairs with step_batches"
        return self._make(self._read_step(left, right), advice)

    def step_batches(self, left: Any = None, right: Any = None, *, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The answer of `step` in batches, as from `insert_batches`."""
        yield from self._make_batches(self._read_step(left, right), max_bytes)

    def step_read(
        self,
        left: ValueRows | None,
        right: ValueRows | None,
        *,
        max_bytes: int | None = None,
        sides_reported: Collection[str] = tuple(SIDES.values()),
    ) -> Iterator[pa.Table]:
        """As `step_batches`, with rows that were read before. Both sides may be None.

        Unknown ids are handled only for `sides_reported`: if rows are sent to several shards, one of them does so.
        """
        yield from self._make_batches(self._find_change(left, right, sides_reported), max_bytes)

    def refresh(self) -> pa.Table:
        """The pairs that change because queries were added, removed or replaced since the last call.

        Every other call reports them, too. With report="queries" the answer is empty. Raises AnswerError as `insert`
        does; `refresh_batches` has no such limit.
        """
        return self._make(Change(), "take the pairs with refresh_batches")

    def refresh_batches(self, *, max_bytes: int | None = None) -> Iterator[pa.Table]:
        """The answer of `refresh` in batches, as from `insert_batches`."""
        yield from self._make_batches(Change(), max_bytes)

    def pairs(self, query_id: str | int) -> pa.Table:
        """The current pairs of one query: columns left and right. Raises AnswerError as `insert` does."""
        low, high = self.queries.band(query_id)
        most = max_answer_bytes()
        pieces = find_all_pairs(self.left, self.right, np.array([low]), np.array([high]), 1, most)
        advice = "narrow the band, or raise the setting"
        found = _collect(pieces, most, advice)
        rows = self._rows_of(found, Change(), most, advice)
        pairs = to_pair_table(found, self.queries.query_ids(), self.left, self.right).select(["left", "right"])
        return self.columns.add_to(pairs, rows)

    def values(self, side: Literal["left", "right"]) -> pa.Table:
        """The current values of a side: columns id and value, and those of its rows that answers carry."""
        if side not in SIDES.values():
            raise QueryError(f"must be 'left' or 'right'; got {shown(side)}", option="side")
        held = self.left if side == "left" else self.right
        slots = held.living
        values = pa.table({"id": pa.array(held.ids.take(slots)), "value": held.values[slots]})
        if held.carried:
            carried = held.carried.at(slots)
            for name in (each for each in carried.column_names if each.lower() not in ("id", "value")):
                values = values.append_column(name, carried[name])
        return values

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

    def _check_room(self, change: Change) -> None:
        if self.max_state_rows is None:
            return
        n_now = self.n_left + self.n_right
        n_new = sum(len(each.slots) for each in change.new) - sum(len(slots) for _, _, slots in change.gone)
        if n_now + n_new > self.max_state_rows:
            raise RowError(
                f"is {self.max_state_rows:,}, but the join keeps {count(n_now, 'value')} and would keep "
                f"{n_now + n_new:,}; delete values first, or allow more",
                option="max_state_rows",
            )

    def _read_insertion(self, left: Any, right: Any) -> Change:
        if self.known_id == "replace":
            return self._read_step(left, right, has_ops=False)
        new = []
        for side, other, rows in self._given(left, right):
            ids, values = read_new_values(rows, side)
            carried = self._read_columns(rows, side, len(ids))
            if len(ids):
                new.append(NewValues(side, other, ids, values, side.slots_for(ids), carried))
        change = Change(new=new)
        self._check_room(change)
        return change

    def _read_deletion(self, left: Any, right: Any) -> Change:
        gone, unknown = [], []
        for side, other, ids in self._given(left, right):
            read = read_deleted(ids, side)
            slots = side.find(read) if len(read) else np.empty(0, np.int32)
            missing = np.flatnonzero(slots < 0)
            if len(missing):
                unknown.append((side, take_ids(read, missing)))
            if len(missing) < len(slots):
                gone.append((side, other, slots[slots >= 0]))
        return self._checked(Change(gone, (), unknown))

    def _read_step(self, left: Any, right: Any, *, has_ops: bool = True) -> Change:
        self._given(left, right)
        left_rows, right_rows = (
            None if rows is None else self._read_rows(rows, side, has_ops)
            for side, rows in ((self.left, left), (self.right, right))
        )
        return self._find_change(left_rows, right_rows, tuple(SIDES.values()))

    def _read_rows(self, rows: Any, side: Side, has_ops: bool) -> ValueRows:
        read = read_rows(rows, side, has_ops=has_ops)
        only_deletes = len(read.ids) > 0 and bool(read.deletes.all())
        return read if only_deletes else replace(read, carried=self._read_columns(rows, side, len(read.ids)))

    def _read_columns(self, rows: Any, side: Side, n: int) -> pa.Table | None:
        return self.columns.read_rows(rows, SIDES[side.sign], n, side.carried) if side.carried else None

    def _find_change(self, left: ValueRows | None, right: ValueRows | None, sides_reported: Collection[str]) -> Change:
        gone, new, unknown, same = [], [], [], []
        for side, other, rows in ((self.left, self.right, left), (self.right, self.left, right)):
            if rows is None:
                continue
            net = find_net_change(rows, side, replaces=self.known_id == "replace")
            if len(net.deleted):
                gone.append((side, other, net.deleted))
            if len(net.inserted):
                slots, carried = side.slots_for(net.inserted), rows.carried
                carried = None if carried is None else carried.take(pa.array(net.inserted_rows))
                new.append(NewValues(side, other, net.inserted, net.values, slots, carried))
            if len(net.same) and rows.carried is not None:
                same.append((side, net.same, rows.carried.take(pa.array(net.same_rows))))
            if len(net.unknown) and SIDES[side.sign] in sides_reported:
                unknown.append((side, net.unknown))
        change = self._checked(Change(gone, new, unknown, same))
        self._check_room(change)
        return change

    def _checked(self, change: Change) -> Change:
        """The change; raises RowError if it deletes unknown ids and these are an error."""
        if change.unknown and self.unknown_id == "error":
            side, ids = change.unknown[0]
            message = unknown_ids_message(ids, SIDES[side.sign])
            others = "'log' or 'report'" if self.report == "pairs" else "'log'"
            raise RowError(f"is 'error', and {message}; use {others} to continue", option="unknown_id")
        return change

    def _make(self, change: Change, advice: str) -> pa.Table:
        """Make a change; its whole answer."""
        if self.report == "queries":
            return self._to_queries(change)
        most = max_answer_bytes()
        found = _collect(self._find(change, most), most, advice)
        table = self._finish(change, found, self._rows_of(found, change, most, advice))
        if self.unknown_id == "report" and change.unknown:
            reported = self._to_unknown(change, table.schema)
            table = pa.concat_tables([reported, table]) if table.num_rows else reported
        return table

    def _make_batches(self, change: Change, max_bytes: int | None) -> Iterator[pa.Table]:
        """Make a change; its answer in batches."""
        if self.report == "queries":
            yield self._to_queries(change)
            return
        most = settings().answer_batch_bytes if max_bytes is None else max_bytes
        now, ids = self._moment(), self.queries.query_ids()
        if self.unknown_id == "report" and change.unknown:
            yield self._to_unknown(change, self._details(to_pair_table([], ids, self.left, self.right), [], {}).schema)
        held: list[PairChanges] = []
        held_rows: list[Rows] = []
        n_bytes = 0
        for found, rows in self._cut(self._find(change, most), change, most):
            n_more = found.nbytes + count_bytes(rows)
            if held and n_bytes + n_more > most:
                new = change.new_ids(self.left), change.new_ids(self.right)
                yield self._details(to_pair_table(held, ids, self.left, self.right, new), held, concat_rows(held_rows))
                if self._moment() != now:
                    raise QueryError(
                        "the join or its queries have changed while pieces were read; read all of them first"
                    )
                held, held_rows, n_bytes = [], [], 0
            if len(found):
                held.append(found)
                held_rows.append(rows)
                n_bytes += n_more
        yield self._finish(change, held, concat_rows(held_rows))

    def _cut(self, pieces: Iterator[PairChanges], change: Change, most: int) -> Iterator[tuple[PairChanges, Rows]]:
        """The pairs with their rows, cut so that the columns that they carry fit into `most` bytes, too."""
        for found in pieces:
            rows = find_rows(found, change, self.left, self.right) if self.columns else {}
            if not rows or not len(found):
                yield found, {}
                continue
            for start, stop in cut_pairs(len(found), PAIR_BYTES, rows, most):
                part = found.take(slice(start, stop))
                yield part, {side: each.slice(start, stop) for side, each in rows.items()}

    def _rows_of(self, found: Sequence[PairChanges], change: Change, most: int, advice: str) -> Rows:
        """The rows of all pairs; raises AnswerError if their columns exceed `most` bytes."""
        if not self.columns:
            return {}
        rows = concat_rows([find_rows(each, change, self.left, self.right) for each in found])
        n_bytes = count_bytes(rows)
        if n_bytes > most:
            n = sum(map(len, found))
            raise too_large(f"has {count(n, 'pair')} with {n_bytes:,} bytes of columns", advice)
        return rows

    def _to_unknown(self, change: Change, schema: pa.Schema) -> pa.Table:
        table = to_unknown_table(change.unknown, schema)
        for field in list(schema)[table.num_columns :]:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table

    def _details(self, table: pa.Table, found: Sequence[PairChanges], rows: Rows) -> pa.Table:
        """A table of pairs with the columns of their rows, and with the metadata of their queries."""
        if self.columns:
            rows = rows or {
                name: PairRows(side.carried.at(_NONE), np.empty(0, np.int64))
                for name, side in self._sides_with_columns()
            }
            table = self.columns.add_to(table, rows)
        return self._with_metadata(table, [each.queries for each in found])

    def _with_metadata(self, table: pa.Table, queries: Sequence[NDArray[np.int32]]) -> pa.Table:
        names = np.concatenate([_NONE, *queries]) if self.metadata else _NONE
        for name, column in find_metadata(self.metadata, names, self.queries.metadata_at).items():
            table = table.append_column(name, column)
        return table

    def _sides_with_columns(self) -> list[tuple[str, Side]]:
        return [(SIDES[side.sign], side) for side in (self.left, self.right) if side.carried]

    def _moment(self) -> tuple[Any, ...]:
        """A value that differs after values or queries have changed."""
        return self.queries.version, self.left, self.left.n_calls, self.right, self.right.n_calls

    def _find(self, change: Change, most: int) -> Iterator[PairChanges]:
        """The pairs of the change, and of the queries that changed since the last call. Nothing changes yet."""
        groups = self.queries.groups()
        yield from limit_each(self.threads, self._follow(most))
        yield from limit_each(self.threads, change.find_pairs(groups, most))

    def _finish(self, change: Change, found: list[PairChanges], rows: Rows) -> pa.Table:
        change.apply()
        self._note(change)
        table = to_pair_table(found, self.queries.query_ids(), self.left, self.right)
        table = self._details(table, found, rows)
        change.tidy()
        return table

    def _to_queries(self, change: Change) -> pa.Table:
        """Make a change; the queries that it affects, each once."""
        found = change.apply_affected(self.queries.groups())
        self._note(change)
        names: NDArray[np.int32] = found[0] if len(found) == 1 else np.unique(np.concatenate([_NONE, *found]))
        change.tidy()
        return self._with_metadata(to_query_table(names, self.queries.query_ids()), [names])

    def _note(self, change: Change) -> None:
        self.version = self.queries.version
        self.unknown = [each for _, ids in change.unknown for each in ids.tolist()]
        self.n_unknown += len(self.unknown)
        if change.unknown and self.unknown_id == "log":
            for side, ids in change.unknown:
                _log.warning(unknown_ids_message(ids, SIDES[side.sign]))

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
