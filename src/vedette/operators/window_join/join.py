"""The window join: new rows of several streams against the windows of the others, for all queries at once.

As in Kang et al. (Lim et al. 2006, section 6), a new row probes the windows of the other streams, is inserted into its
own window, and expired rows are dropped. Here this is done per batch: all new rows are first inserted into the lists of
selected rows, then probe the lists of the other streams for earlier rows. So each pair is found once, by its later row,
and the cost is that of selecting rows and reporting pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.data.schema import Type
from vedette.language import Link
from vedette.language.links import SIGN as SIGN_LINK
from vedette.native.budget import UNBOUNDED, Pieces
from vedette.native.kernels import kernel
from vedette.native.threads import limited, run_pieces
from vedette.operators.window_join.branches import Branches, Edge, Hop, Signature, hops_from
from vedette.operators.window_join.bundles import Bundle, IndexMaker
from vedette.operators.window_join.group import JoinGroup, Port, Selected, Share, slices
from vedette.operators.window_join.keys import EdgeCodes, RowKeys
from vedette.operators.window_join.pair_sink import JoinedRows, PairSink
from vedette.operators.window_join.probe_pieces import Hopping, Named
from vedette.operators.window_join.probes import (
    DOUBLES,
    INTEGERS,
    NO_LINK,
    SIGN,
    Before,
    LinkRanges,
    Probes,
    Reach,
    is_in_range,
)
from vedette.operators.window_join.window_rows import StreamRows

CANDIDATES_AT_ONCE = 1 << 23  # pairs that are checked together, if the answer may be that large
FEW_CANDIDATES = 1 << 16  # pairs that are checked together, even if the answer must be small
PAIR_BYTES = 12  # of a pair of two streams
BUNDLE_BYTES = 1 << 26  # of matches of a bundle that are checked together
PIECE_ROWS = 1 << 14  # fewer rows are inserted by one thread
FEW_CODES = 1 << 16  # up to this number, codes of values without a row are kept

# The selections that contain each row of a stream: (stream, columns, number of rows) -> matches.
Selector = Callable[[int, dict[str, Column], int], Matches]


@dataclass(frozen=True)
class Batch:
    """New rows of one stream, in their order."""

    times: NDArray[Any]
    ids: Column
    id_type: Type
    columns: dict[str, Column]
    carried: pa.Table | None = None  # columns that answers carry

    def __len__(self) -> int:
        return len(self.times)

    def slice(self, start: int, end: int) -> Batch:
        columns = {name: column.slice(start, end) for name, column in self.columns.items()}
        carried = None if self.carried is None else self.carried.slice(start, end - start)
        return Batch(self.times[start:end], self.ids.slice(start, end), self.id_type, columns, carried)


@dataclass(frozen=True)
class _NewRows:
    """The rows that were inserted last, by stream, for `find`."""

    times: list[NDArray[Any]]
    firsts: list[int]  # the number of the first new row
    selected: dict[RowKeys, Selected]
    limits: list[list[NDArray[np.int64]]]  # for each new row, by stream, the number of earlier rows


class PairFinder(Protocol):
    """Finds pairs of two streams without ordered lists (see `algorithms`)."""

    @property
    def nbytes(self) -> int: ...

    def follow(self) -> None:
        """The branches have changed."""

    def find(
        self, join: WindowJoin, firsts: Sequence[int], limits: Sequence[Sequence[NDArray[np.int64]]]
    ) -> Iterator[tuple[JoinGroup, NDArray[np.int32], list[NDArray[np.int32]]]]:
        """The branches of a group and the rows that they join, by stream. The group's conditions are not checked.

        By stream, `firsts` is the first new row, and `limits` has, for each new row, the number of earlier rows of
        either stream.
        """


class WindowJoin:
    """The windows of all streams, and the groups of active branches."""

    def __init__(
        self,
        streams: Sequence[str],
        time_dtype: Any,
        time_zone: str,
        make_index: IndexMaker,
        finder: PairFinder | None = None,
        carried: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.make_index = make_index
        self.finder = finder
        self.names = list(streams)
        self.time_dtype = time_dtype
        self.time_zone = time_zone
        self.streams = [StreamRows(time_dtype, (carried or {}).get(name, ())) for name in streams]
        self.clocks: list[Any] = [None] * len(self.names)  # by stream: later rows are not before this time
        self.groups: dict[Signature, JoinGroup] = {}
        self.n_failed = 0
        self._passed: list[Any] | None = None  # in a step with late rows, by stream: the earliest clock of the others
        self._new = _NewRows([], [], {}, [])
        self._sink = PairSink()
        self._bases = [0] * len(self.names)  # by stream: reported rows are numbered from here
        self._codes: dict[Any, EdgeCodes] = {}
        self._keys: dict[Any, RowKeys] = {}
        self._listed = [0] * len(self.names)  # by stream: rows from this number on are not in the lists yet

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self.streams, *self.groups.values(), *self._codes.values(), *self._keys.values()]
        parts += [] if self.finder is None else [self.finder]
        return sum(each.nbytes for each in parts)

    @property
    def n_rows(self) -> int:
        """The number of kept rows."""
        return sum(map(len, self.streams))

    # Queries.

    def follow(
        self,
        groups: dict[Signature, tuple[Branches, NDArray[np.bool_]]],
        select: Selector,
        *,
        replaces_all: bool = False,
    ) -> None:
        """Update the branches: some are new, some are removed. With `replaces_all`, all are replaced."""
        if replaces_all:
            self.groups, self._codes, self._keys = {}, {}, {}
        new_lists = []
        for signature, (branches, is_removed) in groups.items():
            if signature not in self.groups:
                self.groups[signature] = self._make_group(signature)
            new_lists += self.groups[signature].follow(branches, is_removed, self.time_dtype)
        self._listed = [stream.end for stream in self.streams]
        if self.finder is not None:
            self.finder.follow()
            return
        new_lists = [(port, lists) for port, lists in new_lists if len(lists)]
        for number in {port.stream for port, _ in new_lists}:
            stream = self.streams[number]
            if len(stream):
                matches = select(number, stream.read(), len(stream))
                for port, lists in new_lists:
                    if port.stream == number:
                        selected = _by_selection(matches, port.keys, stream.first, stream.first)
                        port.fill(lists, selected, stream.times.values, stream.first)

    def list_rows(self, select: Selector) -> None:
        """Insert rows that were appended to the streams, as a delta does, into the lists. They do not probe."""
        selected: dict[RowKeys, Selected] = {}
        firsts = self._listed
        for number, (stream, first) in enumerate(zip(self.streams, firsts, strict=True)):
            n_rows = stream.end - first
            if not n_rows:
                continue
            columns = {name: column.last(n_rows) for name, column in stream.columns.items()}
            matches = None if self.finder is not None else select(number, columns, n_rows)
            selected |= self._append_keys(number, columns, n_rows, matches)[0]  # failures were counted before
        self._insert_lists(selected, firsts)
        self._listed = [stream.end for stream in self.streams]

    def _append_keys(
        self, number: int, columns: dict[str, Column], n_rows: int, matches: Matches | None
    ) -> tuple[dict[RowKeys, Selected], int]:
        """Add keys for the last rows of a stream. Returns the rows by selection, and how many evaluations failed."""
        selected, n_failed, stream = {}, 0, self.streams[number]
        for (of_stream, *_), keys in self._keys.items():
            if of_stream == number:
                n_failed += keys.append(columns, n_rows)
                if matches is not None:
                    selected[keys] = _by_selection(matches, keys, stream.end - n_rows, stream.first)
        return selected, n_failed

    def has_too_many_codes(self) -> bool:
        """Whether most codes belong to values without a row, so that codes should be numbered again."""
        return any(len(codes) > 4 * self.n_rows + FEW_CODES for codes in self._codes.values())

    def _make_group(self, signature: Signature) -> JoinGroup:
        ports, kinds = [], []
        for edge in signature.edges:
            first, second = (
                Port(stream, self._keys_of(edge, side, stream), has_codes=bool(edge.equalities))
                for side, stream in enumerate(edge.streams)
            )
            ports.append((first, second))
            kinds.append(NO_LINK if edge.link is None else kind_of(edge.link))
        for link in signature.conditions:
            for side, stream in enumerate(link.streams):
                self._keys_of(self._lone_edge(link), side, self.names.index(stream))
        return JoinGroup(signature, ports, kinds)

    def _lone_edge(self, link: Link) -> Edge:
        """An edge of a single link. Strings have codes instead of keys: they can only be compared for equality."""
        first, second = (self.names.index(name) for name in link.streams)
        return Edge((first, second), (link,), None) if link.type.is_text else Edge((first, second), (), link)

    def _keys_of(self, edge: Edge, side: int, stream: int) -> RowKeys:
        """The keys of a stream's rows on one side of an edge. Groups share them."""
        names = tuple(link.name for link in edge.equalities)
        place = (stream, names, None if edge.link is None else (edge.link.name, side))
        if place not in self._keys:
            codes = self._codes.setdefault(names, EdgeCodes(len(names)))
            equalities = [link.sides[link.streams.index(self.names[stream])] for link in edge.equalities]
            key = None if edge.link is None else edge.link.sides[side]
            keys = RowKeys(equalities, codes, key, self.time_zone)
            rows = self.streams[stream]
            keys.append(rows.read(), len(rows))  # failures were counted when the rows arrived
            self._keys[place] = keys
        return self._keys[place]

    # Rows.

    def insert(self, batches: Sequence[Batch], select: Selector, bases: Sequence[int]) -> list[Share]:
        """Insert new rows, each stream's in order, into the windows. Then call `find` with each share, and `finish`.

        Rows of a stream are reported as numbers from its base on. Late rows join with those that were still in their
        windows before this call.
        """
        self._bases = list(bases)
        firsts = [stream.end for stream in self.streams]
        is_late = [
            len(batch) > 0 and clock is not None and bool(batch.times[0] < clock)
            for batch, clock in zip(batches, self.clocks, strict=True)
        ]
        self._passed = [self._horizon(number) for number in range(len(batches))] if any(is_late) else None
        selected: dict[RowKeys, Selected] = {}
        for number, (stream, batch) in enumerate(zip(self.streams, batches, strict=True)):
            if not len(batch):
                continue
            stream.append(batch.times, batch.ids, batch.id_type, batch.columns, batch.carried)
            matches = None
            if self.finder is None:
                matches = select(number, batch.columns, len(batch))
                self.n_failed += matches.n_failed
            more, n_failed = self._append_keys(number, batch.columns, len(batch), matches)
            selected |= more
            self.n_failed += n_failed
        self._listed = [stream.end for stream in self.streams]
        limits = [_rows_before(batches, firsts, number) for number in range(len(self.streams))]
        self._new = _NewRows([batch.times for batch in batches], firsts, selected, limits)
        if self.finder is not None:
            return [Share(0, 0, 0)]
        self._insert_lists(selected, firsts)
        return [Share(number, 0, len(batch)) for number, batch in enumerate(batches) if len(batch)]

    def _insert_lists(self, selected: dict[RowKeys, Selected], firsts: Sequence[int]) -> None:
        horizons = [self._horizon(number) for number in range(len(self.streams))]
        ports = [
            (port, signature.counts[port.stream])
            for signature, group in self.groups.items()
            for port in group.all_ports
            if port.keys in selected
        ]

        def insert(place: int) -> None:
            port, counts = ports[place]
            number, stream = port.stream, self.streams[port.stream]
            horizon, n_before = (None, firsts[number]) if counts else (horizons[number], None)
            port.insert(selected[port.keys], stream.times.values, stream.first, horizon, n_before)

        n_rows = sum(len(each.rows) for each in selected.values())
        with limited(None if n_rows >= PIECE_ROWS else 1):
            run_pieces(insert, len(ports))

    def find(self, share: Share, most: int = UNBOUNDED) -> Iterator[JoinedRows]:
        """The pairs of a share of the new rows.

        They come in pieces of about `most` bytes, plus at most the pairs of one slice of candidates.
        """
        self._sink.n = 0  # an earlier call may not have been read to its end
        for pairs in self._probe(share, most) if self.finder is None else self._find_with(self.finder, share):
            yield from self._sink.take()
            yield pairs
        yield from self._sink.take()

    def finish(self) -> None:
        """All pairs of the new rows are found: advance the clocks of the streams."""
        for number, times in enumerate(self._new.times):
            if len(times):
                self.advance(number, times[-1])

    def _find_with(self, finder: PairFinder, share: Share) -> Iterator[JoinedRows]:
        new = self._new
        for group, branches, rows in finder.find(self, new.firsts, new.limits):
            assert group.branches is not None
            if self._passed is not None:
                kept = self._find_kept(group, branches, rows, new.firsts, new.limits[0][1])
                branches, rows = branches[kept], [each[kept] for each in rows]
            if share.queries is not None:
                kept = share.is_of(group.branches.queries[branches])
                branches, rows = branches[kept], [each[kept] for each in rows]
            yield from self._check(group, branches, rows)

    def _probe(self, share: Share, most: int) -> Iterator[JoinedRows]:
        new, number = self._new, share.stream
        first, limits = new.firsts[number], new.limits[number]
        is_whole = share.end - share.start == len(new.times[number])
        for group in self.groups.values():
            hops = hops_from(group.signature.edges, number)
            own_port, _ = self._ports_of(group, hops[0])
            selected = new.selected[own_port.keys]
            if not is_whole:
                selected = selected.of_rows(first + share.start, first + share.end)
            bundled = []
            for bundle in group.bundles if self._passed is None and share.queries is None else ():
                found = self._match_bundle(group, bundle, hops[0], selected, first, limits[hops[0].to_stream], most)
                if found is not None:
                    yield from found
                    bundled.append(bundle)
            for branches, rows in group.probes(selected, bundled, share):
                known: list[Any] = [None] * len(self.streams)
                known[number] = rows
                yield from self._hop(group, hops, branches, known, number, first, limits, most)

    def advance(self, stream: int, time: Any) -> None:
        """Later rows of the stream are not before this time."""
        clock = self.clocks[stream]
        self.clocks[stream] = time if clock is None else max(clock, time)

    def expire(self, longest: Sequence[Any], most: Sequence[int]) -> None:
        """Drop rows outside all windows of these lengths and row counts, by stream. A length below 0 is no window."""
        for number, stream in enumerate(self.streams):
            n = self.count_expired(longest[number], most[number], stream.times.values, self._horizon(number))
            if n:
                self.drop_until(number, stream.first + n)

    def drop_until(self, number: int, first: int) -> None:
        """Drop the rows of a stream before number `first`, which may be after its last row."""
        stream = self.streams[number]
        n = min(first - stream.first, len(stream))
        stream.drop(n)
        stream.first = first
        for (of_stream, *_), keys in self._keys.items():
            if of_stream == number:
                keys.drop(n)
        self._listed[number] = max(self._listed[number], first)

    @staticmethod
    def count_expired(longest: Any, most: int, times: NDArray[Any], horizon: Any) -> int:
        """How many of the first rows of a stream are expired: no later row joins with them."""
        n = max(0, len(times) - most)
        if longest >= 0 and n:
            if horizon is None:
                return 0
            alive = np.flatnonzero(ages_of(times[:n], horizon) <= longest)
            n = int(alive[0]) if len(alive) else n
        return n

    def _horizon(self, stream: int) -> Any:
        """Later rows of other streams are not before this time; None if that is unknown."""
        return horizon_of(self.clocks, stream)

    # Probes.

    def _hop(
        self,
        group: JoinGroup,
        hops: Sequence[Hop],
        branches: NDArray[np.int32],
        known: list[Any],
        origin: int,
        first: int,
        limits: list[NDArray[np.int64]],
        most: int,
    ) -> Iterator[JoinedRows]:
        """Extend known rows of some streams by rows of the next stream, recursively up to the last."""
        if not hops:
            yield from self._check(group, branches, known)
            return
        hop, *rest = hops
        kind = group.kinds[hop.edge]
        own_port, port = self._ports_of(group, hop)
        assert group.branches is not None
        to_stream, from_stream = self.streams[hop.to_stream], self.streams[hop.from_stream]
        places, arrivals = known[hop.from_stream] - np.int32(from_stream.first), known[origin] - np.int32(first)
        link = LinkRanges(kind, hop.is_first, group.branches.lows[hop.edge], group.branches.highs[hop.edge])
        probes = Probes(branches, places, arrivals)
        hopping = Hopping.of(probes, own_port.keys.arrays, link, port.list_of, port.lists.arrays)
        latest, own_windows = None, np.empty(0, self.time_dtype)
        if hop.from_stream != origin or sum(each is not None for each in known) > 1 or self._passed is not None:
            latest = self._latest(known)
            if self._passed is not None and self._passed[hop.to_stream] is not None:
                latest = np.maximum(latest, self._passed[hop.to_stream])  # older rows have expired
        elif not group.signature.counts[origin]:
            own_windows = group.windows[origin]
        new_times = self.streams[origin].times.values[first - self.streams[origin].first :]
        before = Before(limits[hop.to_stream], new_times if latest is None else latest, latest is None)
        counts, windows = group.signature.counts[hop.to_stream], group.windows[hop.to_stream]
        reach = Reach(to_stream.times.values, to_stream.first, counts, windows, own_windows)
        is_last = len(known) == 2 and not group.signature.conditions and self._passed is None
        taken = np.empty(len(branches), np.int32)
        at_once = min(CANDIDATES_AT_ONCE, max(FEW_CANDIDATES, most // PAIR_BYTES))
        named = Named(group.branches.queries, known[origin], origin, hop.to_stream, self._bases)
        for span in slices(hopping.runs.lengths, at_once):
            if is_last:
                hopping.deliver(before, reach, span, taken, named, self._sink)
                if PAIR_BYTES * self._sink.n > most:
                    yield from self._sink.take()
                continue
            rows = hopping.take_all(before, reach, span, taken)
            if not len(rows):
                continue
            which = np.repeat(np.arange(*span, dtype=np.int32), taken[slice(*span)])
            more = [None if each is None else each[which] for each in known]
            more[hop.to_stream] = rows
            yield from self._hop(group, rest, branches[which], more, origin, first, limits, most)

    def _match_bundle(
        self,
        group: JoinGroup,
        bundle: Bundle,
        hop: Hop,
        selected: Selected,
        first: int,
        limits: NDArray[np.int64],
        most: int,
    ) -> Iterator[JoinedRows] | None:
        """The pairs of new rows with earlier rows by the branches of a bundle; None if probing is cheaper."""
        own_port, port = self._ports_of(group, hop)
        assert group.branches is not None
        one = bundle.branches[:1]
        rows = selected.of(int(group.branches.selections[hop.from_stream, one[0]]))
        if not len(rows):
            return iter(())
        origin = self.streams[hop.from_stream]
        probes = Probes(np.zeros(len(rows), np.int32), rows - np.int32(origin.first), rows - np.int32(first))
        link = LinkRanges(NO_LINK, hop.is_first, _NO_RANGE, _NO_RANGE)
        hopping = Hopping.of(probes, own_port.keys.arrays, link, port.list_of[one], port.lists.arrays)
        if not bundle.is_cheaper(len(rows), int(hopping.runs.lengths.sum())):
            return None
        return self._take_bundle(group, bundle, hop, rows, hopping, first, limits, most)

    def _take_bundle(
        self,
        group: JoinGroup,
        bundle: Bundle,
        hop: Hop,
        rows: NDArray[np.int32],
        hopping: Hopping,
        first: int,
        limits: NDArray[np.int64],
        most: int,
    ) -> Iterator[JoinedRows]:
        """The pairs of new rows with the runs of the bundle's list."""
        origin, to_stream = self.streams[hop.from_stream], self.streams[hop.to_stream]
        counts = group.signature.counts
        own_windows = np.array([bundle.longest[hop.from_stream]] * (not counts[hop.from_stream]), self.time_dtype)
        longest = np.array([bundle.longest[hop.to_stream]], self.time_dtype)
        before = Before(limits, origin.times.values[first - origin.first :], True)
        reach = Reach(to_stream.times.values, to_stream.first, counts[hop.to_stream], longest, own_windows)
        taken = np.empty(len(rows), np.int32)
        for span in slices(hopping.runs.lengths, CANDIDATES_AT_ONCE // 8):
            others = hopping.take_all(before, reach, span, taken)
            which = np.repeat(np.arange(*span, dtype=np.int32), taken[slice(*span)])
            own_limits = limits[hopping.probes.arrivals[which]]
            yield from self._name_bundle(group, bundle, hop, rows[which], others, own_limits, most)

    def _name_bundle(
        self,
        group: JoinGroup,
        bundle: Bundle,
        hop: Hop,
        rows: NDArray[np.int32],
        others: NDArray[np.int32],
        limits: NDArray[np.int64],
        most: int,
    ) -> Iterator[JoinedRows]:
        """Pairs of rows with the branches whose ranges contain their value, as many rows at a time as fit."""

        def find(start: int, end: int) -> Matches:
            return bundle.match(keys[0][start:end], keys[1][start:end], lows, highs, self.make_index)

        assert group.branches is not None
        known: list[Any] = [None, None]
        known[hop.from_stream], known[hop.to_stream] = rows, others
        first, second = group.ports[hop.edge]
        keys = [port.keys.keys.values[known[port.stream] - self.streams[port.stream].first] for port in (first, second)]
        lows, highs = group.branches.lows[hop.edge], group.branches.highs[hop.edge]
        n_bytes = min(most, BUNDLE_BYTES)
        for start, _, matches in Pieces(len(rows), n_bytes // 2, n_bytes).of(find, len(rows)):
            branches, pairs = bundle.branches[matches.positions], matches.rows + np.int32(start)
            joined = [each[pairs] for each in known]
            if not bundle.is_even:
                keep = np.ones(len(branches), np.bool_)
                latest = self._latest(joined)
                for number, counts in enumerate(group.signature.counts):
                    windows = group.windows[number][branches]
                    if not counts:
                        keep &= ages_of(self._times_of(number, joined[number]), latest) <= windows
                    elif number == hop.to_stream:
                        keep &= limits[pairs] - joined[number] <= windows
                branches, joined = branches[keep], [each[keep] for each in joined]
            yield from self._check(group, branches, joined)

    def _find_kept(
        self,
        group: JoinGroup,
        branches: NDArray[np.int32],
        rows: list[NDArray[np.int32]],
        firsts: Sequence[int],
        limits: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Which pairs have an earlier row that was still in its window before the step."""
        assert self._passed is not None
        first, second = rows
        is_second_earlier = first >= firsts[0]
        new = np.flatnonzero(is_second_earlier)
        is_second_earlier[new] = second[new] < limits[first[new] - firsts[0]]
        keep = np.ones(len(branches), np.bool_)
        for number, is_earlier in enumerate((~is_second_earlier, is_second_earlier)):
            if self._passed[number] is not None and not group.signature.counts[number]:
                ages = ages_of(self._times_of(number, rows[number]), self._passed[number])
                keep &= ~is_earlier | (ages <= group.windows[number][branches])
        return keep

    @staticmethod
    def _ports_of(group: JoinGroup, hop: Hop) -> tuple[Port, Port]:
        """The ports of the stream where a hop starts, and of the stream where it ends."""
        first, second = group.ports[hop.edge]
        return (first, second) if hop.is_first else (second, first)

    def _latest(self, known: Sequence[Any]) -> NDArray[Any]:
        """The latest time of the known rows."""
        times = [self._times_of(number, rows) for number, rows in enumerate(known) if rows is not None]
        return times[0] if len(times) == 1 else np.maximum.reduce(times)

    def _times_of(self, stream: int, rows: NDArray[np.int32]) -> NDArray[Any]:
        return np.asarray(self.streams[stream].times.values[rows - self.streams[stream].first])

    def _check(self, group: JoinGroup, branches: NDArray[np.int32], rows: list[NDArray[np.int32]]) -> list[JoinedRows]:
        """The rows that are in each other's windows, if there are several, and satisfy the group's conditions."""
        signature = group.signature
        assert group.branches is not None
        keep = np.ones(len(branches), np.bool_)
        if len(rows) > 2 or self._passed is not None:
            latest = self._latest(rows)
            for number, each in enumerate(rows):
                if not signature.counts[number]:
                    keep &= ages_of(self._times_of(number, each), latest) <= group.windows[number][branches]
        for place, link in enumerate(signature.conditions):
            edge = self._lone_edge(link)
            codes, sides = [], []
            for side, number in enumerate(edge.streams):
                keys, at = self._keys_of(edge, side, number), rows[number] - self.streams[number].first
                codes.append(keys.codes.values[at])
                sides.append(keys.keys.values[at])
            keep &= (codes[0] >= 0) & (codes[1] >= 0)
            if edge.equalities:
                keep &= codes[0] == codes[1]
            lows, highs = group.branches.condition_lows[place], group.branches.condition_highs[place]
            keep &= _hold(kind_of(link), sides[0], sides[1], lows[branches], highs[branches])
        kept = np.flatnonzero(keep)
        if not len(kept):
            return []
        rows_out = [each[kept] - np.int32(base) for each, base in zip(rows, self._bases, strict=True)]
        return [JoinedRows(group.branches.queries[branches[kept]], rows_out)]


def kind_of(link: Link) -> int:
    """How the value of a link is computed from two keys."""
    if link.kind == SIGN_LINK:
        return SIGN
    return DOUBLES if link.type.name == "double" else INTEGERS


def ages_of(times: NDArray[Any], now: Any) -> NDArray[Any]:
    """The ages of times. An age beyond the range of doubles is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(now - times)


def horizon_of(clocks: Sequence[Any], stream: int) -> Any:
    """The earliest of the other streams' clocks, or None if one has no clock."""
    others = [clock for number, clock in enumerate(clocks) if number != stream]
    return None if None in others else min(others)


_NO_RANGE = np.zeros(1, np.int64)  # of a branch without a link


def _rows_before(batches: Sequence[Batch], firsts: Sequence[int], stream: int) -> list[NDArray[np.int64]]:
    """For each new row of a stream, by stream, the number of earlier rows, ordered by time, then by stream."""
    times = batches[stream].times
    limits = []
    for number, batch in enumerate(batches):
        before = np.searchsorted(batch.times, times, side="left" if stream < number else "right")
        limits.append(before.astype(np.int64) + firsts[number])
    return limits


def _by_selection(matches: Matches, keys: RowKeys, first: int, shift: int) -> Selected:
    """Matches by selection instead of by row, ordered by key. Rows are numbered from `first`."""
    if not len(matches.positions):
        return Selected(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32))
    order = keys.order_from(first - shift)
    return Selected(
        *_list_by_selection(matches.starts, matches.positions, order, first, int(matches.positions.max()) + 1)
    )


@kernel
def _list_by_selection(
    starts: NDArray[np.int64], positions: NDArray[np.int32], order: NDArray[np.int64], first: int, n: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """The selections with rows, where their rows start, and the rows."""
    counts = np.zeros(n + 1, np.int64)
    for position in positions:
        counts[position] += 1
    n_some = 0
    for selection in range(n):
        n_some += counts[selection] > 0
    selections, new_starts = np.empty(n_some, np.int32), np.empty(n_some + 1, np.int64)
    total = n_some = 0
    for selection in range(n):
        if counts[selection]:
            selections[n_some], new_starts[n_some] = selection, total
            n_some += 1
            total += counts[selection]
            counts[selection] = total - counts[selection]
    new_starts[n_some] = total
    rows = np.empty(len(positions), np.int32)
    for row in order:
        for i in range(starts[row], starts[row + 1]):
            rows[counts[positions[i]]] = first + row
            counts[positions[i]] += 1
    return selections, new_starts, rows


@kernel
def _hold(
    kind: int,
    firsts: NDArray[np.int64],
    seconds: NDArray[np.int64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
) -> NDArray[np.bool_]:
    kept = np.empty(len(firsts), np.bool_)
    for i in range(len(firsts)):
        kept[i] = is_in_range(kind, firsts[i], seconds[i], lows[i], highs[i])
    return kept
