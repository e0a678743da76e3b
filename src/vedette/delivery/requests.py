"""Requests of a webhook: the events of one group, as JSON, cut into bodies of limited size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

MOST_BYTES = 1 << 20  # of the events in a body; a larger event is sent alone


class Event(NamedTuple):
    """An event: its id, where it goes to, and its JSON object, which contains the id."""

    id: str
    url: str | None
    group: str | None
    body: str


@dataclass(frozen=True)
class Request:
    """Events of one group that are sent together."""

    url: str | None
    group: str | None
    events: tuple[Event, ...]

    @property
    def id(self) -> str:
        """The same for the same events, so that a receiver recognises a repeated request."""
        digest = hashlib.blake2b(digest_size=16)
        for event in self.events:
            digest.update(len(event.id).to_bytes(8, "big") + event.id.encode())
        return f"msg_{digest.hexdigest()}"

    @property
    def body(self) -> bytes:
        group = json.dumps(self.group, ensure_ascii=False)
        return f'{{"group":{group},"events":[{",".join(event.body for event in self.events)}]}}'.encode()


def cut(events: Iterable[Event], max_events: int, max_bytes: int = MOST_BYTES) -> Iterator[Request]:
    """The requests for these events. Events of one URL and group keep their order."""
    by_target: dict[tuple[str | None, str | None], list[Event]] = {}
    sizes: dict[tuple[str | None, str | None], int] = {}
    for event in events:
        target = event.url, event.group
        waiting = by_target.setdefault(target, [])
        size = sizes.get(target, 0) + len(event.body)
        if waiting and (len(waiting) >= max_events or size > max_bytes):
            yield Request(*target, tuple(waiting))
            waiting.clear()
            size = len(event.body)
        waiting.append(event)
        sizes[target] = size
    for target, waiting in by_target.items():
        yield Request(*target, tuple(waiting))
