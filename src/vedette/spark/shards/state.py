"""The state of a shard in Spark's store: a base, and one delta per batch since.

The size of a delta depends on the keys that the batch changed. Once the deltas are larger than the base, a new base
replaces them. A new base is also written if the queries are different ones, or have changed so often that a registry
may soon forget their old versions. Every entry has a random token. So a worker can reuse a monitor in its memory
exactly if the store has the monitor's token, whichever batches failed, were repeated or ran on other workers; it then
reads only the later deltas.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from vedette.errors import SnapshotError
from vedette.queries.query_set import RETAINED_VERSIONS

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, ValueState

FORMAT = 2
PIECE_BYTES = 4 << 20  # of one value in the store
LEAST_WEIGHT = 64 << 10  # bytes that a small delta counts as, for the cost of reading it
LIGHT = 2 << 20  # deltas up to this total never require a new base
KEPT_BYTES = 1 << 30  # of monitors in a worker's memory, approximately; at least one is kept

_NEW_CHECKPOINT = "start the stream with a new checkpoint"


class Monitor(Protocol):
    """Stores the rows of a shard between batches, for any operator."""

    @property
    def nbytes(self) -> int: ...

    def save(self) -> bytes: ...

    def load(self, blob: bytes) -> None: ...

    def take_delta(self) -> bytes: ...

    def apply_delta(self, blob: bytes) -> None: ...


@dataclass(frozen=True)
class Entry:
    """A base or a delta, which is stored in pieces."""

    token: str
    n_pieces: int
    n_bytes: int


class ShardState:
    """The state of one shard during one batch.

    `facts` describe the stream and must equal those of the checkpoint: numbers, strings, or columns as [name, type].
    `make` makes an empty monitor. A worker keeps one monitor per `place`, a stream and a shard; `kind` identifies its
    queries and options.
    """

    def __init__(
        self,
        head: ValueState,
        pieces: MapState,
        facts: dict[str, Any],
        make: Callable[[], Any],
        place: Hashable,
        kind: str,
    ) -> None:
        self._head = head
        self._pieces = pieces
        self._facts = facts
        self._make = make
        self._place = place
        self._kind = kind
        self._saved_kind = kind
        self._first = 0  # the number of the base; deltas have the numbers after it
        self._entries: list[Entry] = []
        self._queries: Any = None  # the followed set
        self.version: int | None = None  # of the followed set in this batch
        self.base_version: int | None = None  # when the base was written
        self._saved_version: int | None = None  # when the last entry was written

    @property
    def is_new(self) -> bool:
        """Whether nothing was saved yet."""
        return not self._entries

    @property
    def is_changed(self) -> bool:
        """Whether the saved state has other queries or options, or another version of the queries."""
        return self._saved_kind != self._kind or self._saved_version != self.version

    def follow(self, queries: Any, version: int | None) -> None:
        """Set the followed queries and their version in this batch. Monitors of another set object are not reused."""
        self._queries, self.version = queries, version

    def open(self) -> None:
        """Read the head of the state, and check that it belongs to this stream."""
        if not self._head.exists():  # `get` would log a warning for each new shard
            return
        head = self._head.get()
        assert head is not None
        content = json.loads(head[0])
        _check_facts(content["facts"], self._facts)
        self._saved_kind, self._first = content["kind"], content["first"]
        self._entries = [Entry(*entry) for entry in content["entries"]]
        self.base_version, self._saved_version = content.get("versions", (None, None))

    def load(self) -> Any:
        """The shard's monitor after the last batch."""
        tag, monitor = _cache.take(self._place)
        numbers = {(self._kind, entry.token): number for number, entry in enumerate(self._entries)}
        start = numbers.get(tag, -1) + 1  # the first entry that the monitor does not have
        if monitor is not None and self._queries is not None and getattr(monitor, "queries", None) is not self._queries:
            monitor = None  # its set is no longer updated
        try:
            if monitor is None or start == 0:
                monitor = self._make()
                if not self.is_new:
                    monitor.load(self._read(0))
                start = 1
            for number in range(start, len(self._entries)):
                monitor.apply_delta(self._read(number))
        except SnapshotError as error:
            raise error.within("the stream cannot continue from its checkpoint") from None
        return monitor

    def save(self, monitor: Monitor) -> None:
        """Write what changed since `load`."""
        blob = monitor.take_delta()
        sizes = [max(entry.n_bytes, LEAST_WEIGHT) for entry in self._entries[1:]]
        weight = sum(sizes) + max(len(blob), LEAST_WEIGHT)
        old: list[tuple[int, int]] = []
        if self.is_new or self._is_base_old or weight > max(self._entries[0].n_bytes, LIGHT):
            blob = monitor.save()
            old = [(self._first + i, piece) for i, each in enumerate(self._entries) for piece in range(each.n_pieces)]
            self._first += len(self._entries)
            self._entries = []
            self.base_version = self.version
        number = self._first + len(self._entries)
        cuts = range(0, max(1, len(blob)), PIECE_BYTES)
        for piece, start in enumerate(cuts):
            self._pieces.updateValue((number, piece), (blob[start : start + PIECE_BYTES],))
        for key in old:
            self._pieces.removeKey(key)
        self._entries.append(Entry(uuid.uuid4().hex[:16], len(cuts), len(blob)))
        entries = [[entry.token, entry.n_pieces, entry.n_bytes] for entry in self._entries]
        content = {"facts": self._facts, "kind": self._kind, "first": self._first, "entries": entries}
        if self.version is not None:
            content["versions"] = [self.base_version, self.version]
        self._head.update((json.dumps(content, separators=(",", ":")),))
        self.keep(monitor)

    @property
    def _is_base_old(self) -> bool:
        if self.version is not None and self.base_version is not None:
            return self._saved_kind != self._kind or self.version - self.base_version > RETAINED_VERSIONS // 2
        return self.is_changed

    def keep(self, monitor: Monitor) -> None:
        """Keep the monitor in memory for the next batch. It must equal the state in the store."""
        _cache.put(self._place, (self._kind, self._entries[-1].token), monitor)

    def _read(self, number: int) -> bytes:
        entry = self._entries[number]
        found = [self._pieces.getValue((self._first + number, piece)) for piece in range(entry.n_pieces)]
        blob = b"".join(bytes(value[0]) for value in found if value is not None)
        if len(blob) != entry.n_bytes:
            raise SnapshotError(f"a part of the state is missing; {_NEW_CHECKPOINT}")
        return blob


def _check_facts(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found["format"] != wanted["format"]:
        raise SnapshotError(
            f"the checkpoint's state has format {found['format']} but this version of vedette writes format "
            f"{wanted['format']}; continue with the version that wrote it, or {_NEW_CHECKPOINT}"
        )
    if found["operator"] != wanted["operator"]:
        raise SnapshotError(
            f"the checkpoint is of a {found['operator']} but the stream is a {wanted['operator']}; {_NEW_CHECKPOINT}"
        )
    for name in found | wanted:
        old, new = (_describe(name, facts.get(name)) for facts in (found, wanted))
        if old != new and name != "shards":
            raise SnapshotError(
                f"the checkpoint was written with {old} but the stream has {new}; continue with the old value, or "
                f"{_NEW_CHECKPOINT}"
            )
    if found["shards"] != wanted["shards"]:
        raise SnapshotError(
            f"the checkpoint has {found['shards']} shards but the stream has {wanted['shards']}; pass "
            f"shards={found['shards']}, or {_NEW_CHECKPOINT}"
        )


def _describe(name: str, fact: Any) -> str:
    """A fact, written like an argument."""
    if isinstance(fact, list | tuple):
        column, type_ = fact
        return f"{name}={column!r} ({type_})"
    return f"{name}={fact!r}"


class _Cache:
    """Monitors by place, each with the tag of its state. The least recently used ones are dropped."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, Monitor]] = OrderedDict()

    def take(self, place: Hashable) -> tuple[Any, Monitor | None]:
        """Remove and return the monitor: it is about to change, and is put back after its state is saved."""
        return self._kept.pop(place, (None, None))

    def put(self, place: Hashable, tag: Any, monitor: Monitor) -> None:
        self._kept[place] = tag, monitor
        while len(self._kept) > 1 and sum(kept.nbytes for _, kept in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)


_cache = _Cache()
