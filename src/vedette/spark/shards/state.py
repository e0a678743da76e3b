"""The state of a shard in Spark's store: a base, and one delta per batch since.

The size of a delta depends on the keys that the batch changed. Once the deltas are larger than the base, a new base is
written. It is also written if the queries are different ones, or have changed so often that a registry may soon forget
their old versions. Each shard begins at another point of this cycle, so that few shards write a base in the same batch.

Every entry has a random token. So a worker can reuse a monitor in its memory exactly if the store has the monitor's
token, whichever batches failed, were repeated or ran on other workers; it then reads only the later deltas. A batch
that writes a base also writes its delta, and the deltas before it are kept for a while, so that workers whose monitors
are older than the base need not read it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vedette.errors import SnapshotError
from vedette.queries.query_set import RETAINED_VERSIONS
from vedette.spark.shards.monitor_cache import Monitor, MonitorCache

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, ValueState

FORMAT = 2
PIECE_BYTES = 4 << 20  # of one value in the store
LEAST_WEIGHT = 64 << 10  # bytes that a small delta counts as, for the cost of reading it
LIGHT = 2 << 20  # deltas up to this total never require a new base
CACHE_BYTES = 2 << 30  # of monitors in the memory of a host's workers

_NEW_CHECKPOINT = "start the stream with a new checkpoint"
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly, however many there are


@dataclass(frozen=True)
class Entry:
    """A base or a delta, which is stored in pieces under its number."""

    token: str
    n_pieces: int
    n_bytes: int
    number: int

    @property
    def weight(self) -> int:
        return max(self.n_bytes, LEAST_WEIGHT)


@dataclass
class LoadCounts:
    """How this worker got the monitors of shards, one count per batch and shard."""

    n_new: int = 0  # nothing was saved yet
    n_kept: int = 0  # in memory, and up to date
    n_caught_up: int = 0  # in memory, and brought up to date by deltas
    n_loaded: int = 0  # read from the store
    n_rebuilt: int = 0  # in memory, but the step built an index over all rows

    @property
    def n_steps(self) -> int:
        return self.n_new + self.n_kept + self.n_caught_up + self.n_loaded

    @property
    def n_full(self) -> int:
        """How often the cost was that of the whole state."""
        return self.n_loaded + self.n_rebuilt


counts = LoadCounts()
_cache = MonitorCache()


class ShardState:
    """The state of one shard during one batch.

    `facts` describe the stream and must equal those of the checkpoint: numbers, strings, or columns as [name, type].
    `make` makes an empty monitor. A worker keeps one monitor per `place`, a stream and a shard; `kind` identifies its
    queries and options. `number` is that of the shard, and `cache_bytes` limits what the workers of a host keep.
    """

    def __init__(
        self,
        head: ValueState,
        pieces: MapState,
        facts: dict[str, Any],
        make: Callable[[], Any],
        place: Hashable,
        kind: str,
        *,
        number: int = 0,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._head = head
        self._pieces = pieces
        self._facts = facts
        self._make = make
        self._place = place
        self._kind = kind
        self._saved_kind = kind
        self._phase = 1.0 - number * _GOLDEN % 1.0  # where in the cycle of bases this shard begins: above 0, up to 1
        self._cache_bytes = cache_bytes
        self._entries: list[Entry] = []  # the base, and the deltas after it
        self._earlier: list[Entry] = []  # deltas that are in the base
        self._is_shifted = True  # the next base is due after a part of a cycle
        self._n_rebuilt: int | None = None  # of the monitor, if it was in memory
        self.is_full = False  # this batch had the cost of the whole state: it was loaded, or an index was built again
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
        self._saved_kind = content["kind"]
        self._entries = [
            Entry(token, n_pieces, n_bytes, number)
            for number, (token, n_pieces, n_bytes) in enumerate(content["entries"], content["first"])
        ]
        self._earlier = [Entry(*entry) for entry in content.get("earlier", ())]
        self._is_shifted = content.get("shifted", True)
        self.base_version, self._saved_version = content.get("versions", (None, None))

    def load(self) -> Any:
        """The shard's monitor after the last batch."""
        tag, monitor = _cache.take(self._place)
        if monitor is not None and self._queries is not None and getattr(monitor, "queries", None) is not self._queries:
            monitor = None  # its set is no longer updated
        missing = None if monitor is None else self._deltas_since(tag)
        try:
            if missing is None:
                monitor, missing = self._make(), self._entries[1:]
                if self.is_new:
                    counts.n_new += 1
                else:
                    counts.n_loaded += 1
                    self.is_full = True
                    monitor.load(self._read(self._entries[0]))
            else:
                counts.n_caught_up += bool(missing)
                counts.n_kept += not missing
                self._n_rebuilt = monitor.n_rebuilt
            for entry in missing:
                monitor.apply_delta(self._read(entry))
            if missing and self._n_rebuilt is not None and hasattr(monitor, "set_version"):
                monitor.set_version(self._saved_version)
        except SnapshotError as error:
            raise error.within("the stream cannot continue from its checkpoint") from None
        return monitor

    def _deltas_since(self, tag: Any) -> list[Entry] | None:
        """The deltas that a monitor with this tag lacks. None if it cannot be brought up to date by deltas."""
        kind, token = tag
        if kind != self._kind or self.is_new:
            return None
        deltas = self._entries[1:]
        tokens = [entry.token for entry in (*self._earlier, *deltas)]
        if token in tokens:
            return [*self._earlier, *deltas][tokens.index(token) + 1 :]
        return deltas if token == self._entries[0].token else None

    def save(self, monitor: Monitor) -> None:
        """Write what changed since `load`."""
        delta, token, old = monitor.take_delta(), uuid.uuid4().hex[:16], []
        if self.is_new or self._is_base_old or self._is_base_due(len(delta)):
            is_kept = not self.is_new and self._saved_kind == self._kind  # otherwise no worker has a use for deltas
            self._is_shifted = self.is_new or self._is_base_old
            if is_kept:
                self._earlier += [*self._entries[1:], self._write(delta, token)]
                old = self._entries[:1]
            else:
                self._earlier, old = [], [*self._earlier, *self._entries]
            self._entries = [self._write(monitor.save(), token)]
            self.base_version = self.version
        else:
            self._entries.append(self._write(delta, token))
        most = max(self._entries[0].n_bytes, LIGHT)
        while sum(entry.weight for entry in self._earlier) > most:
            old.append(self._earlier.pop(0))
        for entry in old:
            for piece in range(entry.n_pieces):
                self._pieces.removeKey((entry.number, piece))
        self._write_head()
        self.keep(monitor)

    def _is_base_due(self, n_bytes: int) -> bool:
        """Whether the deltas, with one more of `n_bytes`, are too large beside the base."""
        weight = sum(entry.weight for entry in self._entries[1:]) + max(n_bytes, LEAST_WEIGHT)
        return weight > max(self._entries[0].n_bytes, LIGHT) * (self._phase if self._is_shifted else 1.0)

    @property
    def _is_base_old(self) -> bool:
        if self.version is not None and self.base_version is not None:
            most = int(RETAINED_VERSIONS * (1 + self._phase) / 4)  # between a quarter and half of those that are kept
            return self._saved_kind != self._kind or self.version - self.base_version > most
        return self.is_changed

    def keep(self, monitor: Monitor) -> None:
        """Keep the monitor in memory for the next batch. It must equal the state in the store."""
        if self._n_rebuilt not in (None, monitor.n_rebuilt):
            counts.n_rebuilt += 1
            self.is_full = True
        _cache.put(self._place, (self._kind, self._entries[-1].token), monitor, self._cache_bytes)

    def _write(self, blob: bytes, token: str) -> Entry:
        number = 1 + max((entry.number for entry in (*self._earlier, *self._entries)), default=-1)
        cuts = range(0, max(1, len(blob)), PIECE_BYTES)
        for piece, start in enumerate(cuts):
            self._pieces.updateValue((number, piece), (blob[start : start + PIECE_BYTES],))
        return Entry(token, len(cuts), len(blob), number)

    def _write_head(self) -> None:
        content: dict[str, Any] = {
            "facts": self._facts,
            "kind": self._kind,
            "first": self._entries[0].number,
            "entries": [[entry.token, entry.n_pieces, entry.n_bytes] for entry in self._entries],
            "earlier": [[entry.token, entry.n_pieces, entry.n_bytes, entry.number] for entry in self._earlier],
            "shifted": self._is_shifted,
        }
        if self.version is not None:
            content["versions"] = [self.base_version, self.version]
        self._head.update((json.dumps(content, separators=(",", ":")),))

    def _read(self, entry: Entry) -> bytes:
        found = [self._pieces.getValue((entry.number, piece)) for piece in range(entry.n_pieces)]
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
