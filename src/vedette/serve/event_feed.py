"""The recent events of a set, by sequence number, for the clients that follow them.

Events are kept once for all clients. A client has a place in the sequence and reads on from there at its own speed, so
a slow one costs nothing and blocks nobody. If it is too slow, events that it has not read are dropped from the feed,
and it is told so.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa

from vedette.serve.json_answers import dump, to_values

_RESTORED_EVENTS = 1000  # of a chunk: all of them are written when a client asks for one


@dataclass(frozen=True)
class Event:
    """An event, ready to be sent."""

    sequence: int
    record: dict[str, Any]
    text: bytes  # the record as JSON


@dataclass(frozen=True)
class EventFilter:
    """Which events a client wants. None means any."""

    query: str | None = None
    key: str | None = None
    owner: str | None = None
    query_field: str = "query"
    key_fields: tuple[str, ...] = ("key",)  # one of them must have the key

    def accepts(self, event: Event) -> bool:
        record = event.record
        return (
            (self.query is None or _is_text(record.get(self.query_field), self.query))
            and (self.owner is None or _is_text(record.get("owner"), self.owner))
            and (self.key is None or any(_is_text(record.get(name), self.key) for name in self.key_fields))
        )


class Chunk:
    """The events of one step."""

    def __init__(self, first: int, table: pa.Table) -> None:
        self.first = first
        self.table = plain(table)

    @property
    def end(self) -> int:
        """The sequence number after the last event."""
        return self.first + int(self.table.num_rows)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The events with their sequence numbers, as answers have them."""
        names = ("sequence", *self.table.column_names)
        columns = [range(self.first, self.end), *map(to_values, self.table.columns)]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    @cached_property
    def events(self) -> list[Event]:
        """The events, ready to be sent. They are written once for all clients, and not before one follows them."""
        return [Event(record["sequence"], record, dump(record)) for record in self.records]


class EventFeed:
    """The last events of a set: `most` of them, and those of the last step."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: deque[Chunk] = deque()
        self._lock = threading.Lock()
        self._waiting: set[asyncio.Event] = set()
        self.next = 1  # the sequence number of the next event
        self.is_closed = False

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest event that is kept."""
        with self._lock:
            return self._chunks[0].first if self._chunks else self.next

    def to_tables(self) -> list[tuple[int, pa.Table]]:
        """The events in few tables, each with the sequence number of its first event. `restore` reads them."""
        with self._lock:
            chunks = list(self._chunks)
        runs = groupby(chunks, key=lambda chunk: chunk.table.schema)  # they differ if the monitor was created again
        return [
            (own[0].first, pa.concat_tables([chunk.table for chunk in own])) for own in (list(run) for _, run in runs)
        ]

    def restore(self, tables: list[tuple[int, pa.Table]], following: int) -> None:
        """Continue from saved events. `following` is the sequence number of the next event."""
        with self._lock:
            self._chunks = deque(
                Chunk(first + start, table.slice(start, _RESTORED_EVENTS))
                for first, table in tables
                for start in range(0, table.num_rows, _RESTORED_EVENTS)
            )
            self.next = following

    def append(self, chunk: Chunk) -> None:
        """Publish the events of a step. From any thread; `wake` then tells the clients."""
        if chunk.end == chunk.first:
            return
        with self._lock:
            self._chunks.append(chunk)
            self.next = chunk.end
            while len(self._chunks) > 1 and self.next - self._chunks[1].first >= self._most:
                self._chunks.popleft()

    def after(self, sequence: int, most: int = 1000) -> list[Event]:
        """The events after a sequence number, at most so many."""
        found: list[Event] = []
        for chunk in self._chunks_after(sequence, most):
            found += chunk.events[max(0, sequence + 1 - chunk.first) :]
            if len(found) >= most:
                return found[:most]
        return found

    def _chunks_after(self, sequence: int, most: int) -> list[Chunk]:
        """At most so many chunks with later events. Only they are looked at: each client asks after each step."""
        with self._lock:
            start = bisect_right(self._chunks, sequence + 1, key=lambda chunk: chunk.end)
            return [self._chunks[place] for place in range(start, min(start + most, len(self._chunks)))]

    def wake(self) -> None:
        """Tell the clients that there are events, or that the feed is closed. In the event loop only."""
        for each in self._waiting:
            each.set()

    def close(self) -> None:
        """End the streams of all clients. In the event loop only."""
        self.is_closed = True
        self.wake()

    async def wait(self, sequence: int, seconds: float) -> None:
        """Return when there are events after a sequence number, when the feed is closed, or after some seconds."""
        if self.next > sequence + 1 or self.is_closed:
            return
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(woken)


def _is_text(found: Any, wanted: str) -> bool:
    return found is not None and str(found) == wanted


def plain(table: pa.Table) -> pa.Table:
    """A table without dictionaries, which would keep the ids of all keys in memory."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            value_type = column.type.value_type
            column = column.cast(value_type)
        columns[name] = column
    return pa.table(columns)
