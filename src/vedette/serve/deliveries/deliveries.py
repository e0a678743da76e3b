"""All deliveries of a service: those of its state directory are started with it, and managed through HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from vedette.delivery.addresses import Allowed
from vedette.delivery.dead_letters import DeadLetters, open_letters
from vedette.delivery.options import WebhookOptions
from vedette.errors import PipelineError, nearest, shown
from vedette.registry.registry import Registry
from vedette.serve.deliveries.delivery import Delivery
from vedette.serve.deliveries.delivery_file import DeliveryFile, forget_deliveries
from vedette.serve.live_set import LiveSet
from vedette.serve.operators.operator import EventForm
from vedette.serve.options import ServeOptions
from vedette.serve.problems import Problem

_SECRETS = "VEDETTE_WEBHOOK_"  # what the names of environment variables with secrets begin with
_START_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Deliveries:
    """The running deliveries, by set and name."""

    def __init__(self, registry: Registry, options: ServeOptions) -> None:
        self._registry, self._options = registry, options
        self._running: dict[tuple[str, str], Delivery] = {}
        self._letters: DeadLetters | None = None
        self._lock = asyncio.Lock()
        self._started = asyncio.Event()  # all that the state directory has

    def letters(self) -> DeadLetters:
        """The dead letters of the registry. Not in the event loop."""
        self._letters = self._letters or open_letters(self._registry)
        return self._letters

    async def start(self, open_set: Callable[[str], Awaitable[LiveSet]]) -> None:
        """Start the deliveries that the state directory has."""
        try:
            await self._start_all(open_set)
        finally:
            self._started.set()

    async def wait_started(self) -> None:
        """Wait for the deliveries of the state directory. Raises a problem if that takes long."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._started.wait()
        except TimeoutError:
            message = "the service is starting its deliveries; try again"
            raise Problem(503, "starting", message, headers={"Retry-After": "1"}) from None

    async def _start_all(self, open_set: Callable[[str], Awaitable[LiveSet]]) -> None:
        for info in await run_in_threadpool(self._registry.sets):
            for file in DeliveryFile.find_all(self._options.state, info.uid):
                try:
                    await self._start_one(await open_set(info.name), file)
                except Exception as error:  # of this delivery; the others are started
                    _log.error("cannot start the delivery of set %r in %s: %s", info.name, file.path, error)

    async def _start_one(self, live: LiveSet, file: DeliveryFile) -> None:
        async with self._lock:
            content = file.read()
            name, sending = content["name"], self._sending_of(content["options"])
            if (live.name, name) not in self._running:  # a request may have been faster
                self._running[live.name, name] = Delivery(name, live, file, sending, self.letters)

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._running.values()))
        self._running = {}

    def list(self, set_name: str) -> list[Delivery]:
        return [each for (own, _), each in sorted(self._running.items()) if own == set_name]

    def find(self, set_name: str, name: str) -> Delivery:
        found = self._running.get((set_name, name))
        if found is None:
            raise Problem(404, "unknown_delivery", f"set {set_name!r} has no delivery {name!r}")
        return found

    def by_source(self, source: str) -> Delivery | None:
        return next((each for each in self._running.values() if each.source == source), None)

    async def put(self, live: LiveSet, name: str, options: dict[str, Any]) -> Delivery:
        """Create a delivery, or change its options. A new one begins with the next event."""
        sending = await run_in_threadpool(self._sending_of, options)
        _check_address(options["url"], sending.allowed)
        await live.call(live.need_feed)
        _check_choice(options, live.event_form, await live.call(live.event_fields))
        async with self._lock:
            known = self._running.pop((live.name, name), None)
            if known is not None:
                await known.stop()
            file = DeliveryFile.of(self._options.state, live.followed.uid, name)
            position = file.read()["position"] if file.exists else live.feed.next - 1
            try:
                await run_in_threadpool(file.write, name, options, position)
            except OSError as error:
                if known is not None:  # it continues as before
                    self._running[live.name, name] = Delivery(name, live, file, known.sending, self.letters)
                message = f"the delivery was not changed: its file cannot be written: {error.strerror}"
                raise Problem(503, "unavailable", message) from None
            made = self._running[live.name, name] = Delivery(name, live, file, sending, self.letters)
        return made

    async def delete(self, live: LiveSet, name: str) -> None:
        async with self._lock:
            await self.find(live.name, name).stop()
            del self._running[live.name, name]
            DeliveryFile.of(self._options.state, live.followed.uid, name).delete()

    async def forget(self, live: LiveSet) -> None:
        """End the deliveries of a set that was dropped."""
        for each in self.list(live.name):
            await each.stop()
            self._running.pop((live.name, each.name), None)
        await run_in_threadpool(forget_deliveries, self._options.state, live.followed.uid)

    def _sending_of(self, options: dict[str, Any]) -> WebhookOptions:
        """How requests are sent. Allowed addresses are a setting of the service."""
        variable = options["secret_env"]
        if variable is not None and not variable.startswith(_SECRETS):
            raise PipelineError(
                f"must begin with {_SECRETS}, so that no other secret of the service is used; got {shown(variable)}",
                option="secret_env",
            )
        names = ("url", "secret_env", "max_events", "attempts", "timeout", "time_limit")
        given = {name: options[name] for name in names}
        return WebhookOptions.read(given.pop("url"), **given, allow_addresses=self._options.allow_addresses)


def _check_choice(options: dict[str, Any], form: EventForm, fields: Sequence[str] | None) -> None:
    """Raise PipelineError if a delivery names types or a field that events of the set do not have."""
    types, field = options["events"], options["group_by"]
    if types is not None and not types:
        raise PipelineError("must have at least one type; leave it out to send all events", option="events")
    for each in types or ():
        if each not in form.types:
            known = ", ".join(form.types)
            raise PipelineError(
                f"has {shown(each)}; events of this set are: {known}{nearest(each, form.types)}", option="events"
            )
    if field is not None and fields is not None and field not in fields:
        known = ", ".join(fields)
        raise PipelineError(
            f"is {shown(field)}; events of this set have: {known}{nearest(field, fields)}", option="group_by"
        )


def _check_address(url: str, allowed: Allowed) -> None:
    """Raise PipelineError for an address that no connection may be made to. Names are checked when they are used."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    is_local = host == "localhost" or host.endswith(".localhost")
    meant = ["127.0.0.1", "::1"] if is_local else [_address_of(host)]
    refused = [each for each in meant if each is not None and allowed.refuses(each) is not None]
    if refused and len(refused) == len(meant):
        raise PipelineError(
            f"is of the address {refused[0]}, which is not public; start the service with --allow-address "
            f"{refused[0]} to allow it",
            option="url",
        )


def _address_of(host: str) -> str | None:
    """The address that a host is written as, also in the short forms of IPv4; None if it is a name."""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if host and host[0].isdigit() else None
    except OSError:
        return None
