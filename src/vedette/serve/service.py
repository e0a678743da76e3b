"""What all routes share: the registry, the open sets, the tokens, the limits and the metrics."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from vedette.errors import FileError, UnknownSetError, VedetteError
from vedette.host_files.private_files import make_directory
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.serve.access import Caller, Tokens
from vedette.serve.deliveries.deliveries import Deliveries
from vedette.serve.live_set import Accepted, LiveSet
from vedette.serve.metrics import Metrics
from vedette.serve.options import ServeOptions
from vedette.serve.problems import Problem
from vedette.serve.rates import Rates
from vedette.serve.zones import ZoneIndexes

_log = logging.getLogger(__name__)


class Service:
    """The state of one server process."""

    def __init__(self, registry: Registry, options: ServeOptions) -> None:
        self.registry = registry
        self.options = options
        self.tokens = Tokens(registry.database, required=not options.is_local, port=options.port)
        self.metrics = Metrics(self)
        self.rates = Rates(options.rows_per_second)
        self.zones = ZoneIndexes(registry)
        self.live: dict[str, LiveSet] = {}
        self.deliveries = Deliveries(registry, options)
        self.n_streams = 0
        self._streams_of: Counter[str] = Counter()  # by token
        self.n_requests = 0  # that are being answered
        self.n_body_bytes = 0  # of them, as far as they are received
        self.is_ready = False
        self.is_stopping = False
        self.last_poll_error: str | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ticks: dict[str, asyncio.Future[Accepted]] = {}
        self._lock: int | None = None

    # Start and stop.

    async def start(self) -> None:
        """Read the tokens, and begin to open the sets that have a monitor and to follow the registry."""
        self._lock = lock_directory(self.options.state)
        await run_in_threadpool(self.tokens.refresh)
        self._tasks = [asyncio.create_task(self._open_monitors()), asyncio.create_task(self._poll_for_ever())]
        self._tasks.append(asyncio.create_task(self._tick_for_ever()))

    async def _open_monitors(self) -> None:
        """Restore the states, so that the first rows do not wait for it. Then the service is ready."""
        for info in await self._read_sets():
            if (self.options.state / info.uid / "monitor.json").exists():
                try:
                    live = await self.open(info.name)
                    await live.call(lambda live=live: live.queries.version)  # type: ignore[misc]
                except Exception as error:  # of this set; the others are opened
                    _log.error("cannot open set %r: %s", info.name, error)
        try:
            await self.deliveries.start(self.open)
        except VedetteError as error:
            _log.error("cannot start deliveries: %s", error)
        gc.freeze()  # what is loaded stays: to look through it for garbage takes 150 ms with 100k queries
        self.is_ready = True

    async def _read_sets(self) -> list[SetInfo]:
        """The sets of the registry, as soon as it can be reached."""
        while True:
            try:
                return await run_in_threadpool(self.registry.sets)
            except VedetteError as error:
                _log.error("cannot read the sets of the registry: %s", error)
                await asyncio.sleep(self.options.poll_seconds)

    def begin_stop(self) -> None:
        """End the streams of events, so that their requests end. In the event loop."""
        self.is_stopping = True
        for live in self.live.values():
            live.feed.close()

    async def stop(self) -> None:
        """Write snapshots and close everything."""
        self.begin_stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.deliveries.stop()
        for live in self.live.values():
            try:
                await live.close()
            except (VedetteError, OSError) as error:
                _log.error("cannot close set %r: %s", live.name, error)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # Sets.

    async def open(self, name: str) -> LiveSet:
        """The open set with a name. Opening is lazy: its thread compiles it on first use."""
        known = self.live.get(name)
        if known is not None:
            return known
        followed = await run_in_threadpool(self.registry.follow, name)
        if name not in self.live:  # another request may have opened it meanwhile
            self.live[name] = LiveSet(self.registry, followed, self.options)
        return self.live[name]

    async def changed(self, name: str) -> None:
        """Follow a change that this service has made, before it is answered."""
        live = self.live.get(name)
        if live is not None and not live.is_idle:
            await live.call(live.advance)

    async def dropped(self, name: str) -> None:
        """Close a set that was dropped, and delete the state of its monitor."""
        live = self.live.pop(name, None)
        if live is not None:
            await self.deliveries.forget(live)
            await live.forget()

    # Following.

    async def poll(self) -> None:
        """See changes that other processes have made: of sets and of tokens."""
        await run_in_threadpool(self.tokens.refresh)
        known = list(self.live.values())  # before the sets are read: those that are opened meanwhile exist
        infos = {info.name: info for info in await run_in_threadpool(self.registry.sets)}
        await asyncio.gather(*(self._follow(live, infos.get(live.name)) for live in known))

    async def _follow(self, live: LiveSet, info: SetInfo | None) -> None:
        """Bring an open set to the state that was read; close it if it was dropped."""
        if self.live.get(live.name) is not live:
            return
        if info is None or info.uid != live.followed.uid:
            await self.dropped(live.name)
        elif not live.is_idle and info.version > live.version:
            try:
                await live.call(live.advance)
            except UnknownSetError:
                if self.live.get(live.name) is live:
                    await self.dropped(live.name)

    async def _poll_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self.options.poll_seconds)
            try:
                await self.poll()
                self.last_poll_error = None
            except Exception as error:
                if self.last_poll_error is None:
                    _log.error("cannot follow the registry: %s", error)
                self.last_poll_error = str(error)

    def tick(self) -> list[asyncio.Future[Accepted]]:
        """Let time pass by the clock, in the sets whose monitors ask for that and are not still busy with it."""
        for live in list(self.live.values()):
            waiting = self._ticks.get(live.name)
            if waiting is None or waiting.done():
                passing = live.pass_wall_time(time.time())
                if passing is not None:
                    passing.add_done_callback(_note_tick)
                    self._ticks[live.name] = passing
        return list(self._ticks.values())

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self.options.tick_seconds)
            self.tick()

    # Limits.

    def check_waiting(self) -> None:
        """Raise a problem if the bodies of unanswered requests take too much memory."""
        most = self.options.max_waiting_bytes
        if self.n_body_bytes > most > 0:
            raise Problem(
                429,
                "too_many_bytes",
                f"the bodies of waiting requests have more than {most:,} bytes, the limit (--max-waiting-bytes)",
                headers={"Retry-After": "1"},
            )

    def take_stream(self, caller: Caller) -> None:
        """Count a stream of events, keys or rows."""
        most, own = self.options.max_streams, self.options.max_streams_per_token
        if most and self.n_streams >= most:
            raise Problem(429, "too_many_streams", f"{most:,} streams are open, the limit (--max-streams)")
        if own and self._streams_of[caller.token_id] >= own:
            raise Problem(
                429, "too_many_streams", f"the token has {own:,} open streams, the limit (--max-streams-per-token)"
            )
        self.n_streams += 1
        self._streams_of[caller.token_id] += 1

    def give_stream(self, caller: Caller) -> None:
        """A stream has ended."""
        self.n_streams -= 1
        self._streams_of[caller.token_id] -= 1
        if not self._streams_of[caller.token_id]:
            del self._streams_of[caller.token_id]

    def check_rate(self, caller: Caller, n_rows: int) -> None:
        self.rates.take(caller.token_id, n_rows, caller.rows_per_second)

    def correct_rate(self, caller: Caller, more: int) -> None:
        self.rates.correct(caller.token_id, more)


def _note_tick(passed: asyncio.Future[Accepted]) -> None:
    if not passed.cancelled() and passed.exception() is not None:
        _log.warning("the clock cannot advance a monitor: %s", passed.exception())


def lock_directory(path: Path) -> int:
    """A lock on the state directory, so that two servers never write the same state."""
    make_directory(path)
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise FileError(
            f"another server uses the state directory {path}; stop it, or choose another directory with --state"
        ) from None
    return handle


def service_of(request: Any) -> Service:
    """The service that answers a request."""
    service: Service = request.app.state.service
    return service
