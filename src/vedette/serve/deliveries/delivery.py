"""One delivery: it follows the events of a set and sends them, in the background, from where it has come to.

Its position is written after the outcome of events, and dead letters before it. So every event is delivered at least
once, or is a dead letter, also if the process is killed in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from vedette.delivery.dead_letters import EVENT, DeadLetters, Letter, Part
from vedette.delivery.options import WebhookOptions
from vedette.delivery.requests import Event as Sent
from vedette.delivery.requests import cut
from vedette.delivery.sender import Outcome, Sender
from vedette.operators.stable_ids import EVENT_ID
from vedette.serve.deliveries.delivery_file import DeliveryFile
from vedette.serve.event_feed import Event, EventFilter
from vedette.serve.json_answers import dump
from vedette.serve.live_set import LiveSet

_AT_ONCE = 1000  # events
_PAUSE_SECONDS = 5.0  # after dead letters or a position could not be written
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Delivery:
    """The delivery of one set under one name. Its methods are called in the event loop."""

    def __init__(
        self,
        name: str,
        live: LiveSet,
        file: DeliveryFile,
        sending: WebhookOptions,
        open_letters: Callable[[], DeadLetters],
    ) -> None:
        content = file.read()
        self.name, self.sending = name, sending
        self.options: dict[str, Any] = content["options"]
        self.position: int = content["position"]
        self.n_sent = self.n_dead = self.n_missed = 0  # since the service has started
        self.failing_since: datetime | None = None
        self.last_error: str | None = None
        self._live, self._file, self._open_letters = live, file, open_letters
        form = live.event_form
        query, key, owner = (self.options[each] for each in ("query", "key", "owner"))
        self._filter = EventFilter(query, key, owner, form.query, form.keys)
        self._type_of = form.type_of
        self._write: asyncio.Future[None] | None = None  # of the position
        self._task = asyncio.create_task(self._run())

    @property
    def source(self) -> str:
        """The name of the delivery among dead letters."""
        return source_of(self._live.name, self.name)

    def to_record(self) -> dict[str, Any]:
        """The options and the status."""
        status = {
            "sent": self.n_sent,
            "dead": self.n_dead,
            "missed": self.n_missed,
            "lag": max(0, self._live.feed.next - 1 - self.position),
            "failing_since": self.failing_since,
            "last_error": self.last_error,
        }
        return {"name": self.name, **self.options, "status": status}

    async def stop(self) -> None:
        """End it. What is being sent may still arrive, and is then sent again after a restart."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._write is not None:  # the file has no writer after this
            await asyncio.gather(self._write, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._live.call(self._live.need_feed)  # the events of before a restart
                await self._follow()
                return
            except Exception as error:
                self._fail(f"{type(error).__name__}: {error}")
                _log.error("delivery %r: %s", self.source, error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _follow(self) -> None:
        feed = self._live.feed
        self.position = min(self.position, feed.next - 1)  # the monitor may be a new one
        while not feed.is_closed:
            events = feed.after(self.position, _AT_ONCE)
            if not events:
                await feed.wait(self.position, 10.0)
                continue
            if events[0].sequence > self.position + 1:
                self.n_missed += events[0].sequence - self.position - 1
            await self._settle([event for event in events if self._wants(event)], events[-1].sequence)

    async def _settle(self, events: Sequence[Event], position: int) -> None:
        """Deliver events, or make them dead letters. Then this is their position for ever."""
        outcomes = await in_thread(lambda: self._send(events)) if events else []
        for outcome in outcomes:
            n = len(outcome.request.events)
            if outcome.is_delivered:
                self.n_sent += n
                self.failing_since = None
            else:
                self.n_dead += n
                self._fail(outcome.answer.reason)
        self._write = asyncio.ensure_future(in_thread(lambda: self._file.write(self.name, self.options, position)))
        await asyncio.shield(self._write)
        self.position = position

    def _send(self, events: Sequence[Event]) -> list[Outcome]:
        with Sender(self.sending) as sender:
            outcomes = sender.send(cut(map(self._to_sent, events), self.sending.max_events))
        letters = [letter for outcome in outcomes if not outcome.is_delivered for letter in self._letters_of(outcome)]
        if letters:
            part = Part(f"serve:{self._live.followed.uid}", events[0].sequence, self.name)
            self._open_letters().write(part, letters)
        return outcomes

    def _letters_of(self, outcome: Outcome) -> list[Letter]:
        now, answer = datetime.now(UTC), outcome.answer
        stream = f"serve:{self._live.followed.uid}"
        return [
            Letter(
                each.id, EVENT, self.source, each.body, answer.reason, now, each.url, each.group, answer.status,
                outcome.attempts, stream,
            )
            for each in outcome.request.events
        ]  # fmt: skip

    def _wants(self, event: Event) -> bool:
        types = self.options["events"]
        return (types is None or self._type_of(event.record) in types) and self._filter.accepts(event)

    def _to_sent(self, event: Event) -> Sent:
        record = event.record
        name = record.get(EVENT_ID) or _hash(self._live.followed.uid, event.text)
        body = dump({**record, EVENT_ID: name}).decode()
        group = None if self.options["group_by"] is None else record.get(self.options["group_by"])
        return Sent(name, self.sending.url, None if group is None else str(group), body)

    def _fail(self, reason: str) -> None:
        self.last_error = reason
        self.failing_since = self.failing_since or datetime.now(UTC)


def source_of(set_name: str, name: str) -> str:
    return f"serve/{set_name}/{name}"


def _hash(uid: str, text: bytes) -> str:
    """The id of an event that has none: it depends on its set and its content, which has its sequence number."""
    return hashlib.blake2b(uid.encode() + text, digest_size=16).hexdigest()


async def in_thread(work: Callable[[], Result]) -> Result:
    """The result of work that may take minutes. Its thread is its own, and does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        try:
            done: tuple[Any, BaseException | None] = (work(), None)
        except BaseException as error:
            done = (None, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *done)

    threading.Thread(target=run, name="vedette-delivery", daemon=True).start()
    return await future
