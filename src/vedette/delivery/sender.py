"""Sends requests to their receivers: groups at the same time, the requests of a group one after the other.

A request is tried again, after a growing delay, until it is delivered, refused for good, or out of tries or time. A
receiver that is slow or down does not keep others waiting.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from vedette.delivery import signing
from vedette.delivery.client import Client
from vedette.delivery.options import WebhookOptions
from vedette.delivery.requests import Request
from vedette.delivery.retries import Answer, delay_before
from vedette.delivery.urls import find_fault


@dataclass(frozen=True)
class Outcome:
    """What became of a request after all its tries."""

    request: Request
    attempts: int
    answer: Answer

    @property
    def is_delivered(self) -> bool:
        return self.answer.is_delivered


class Sender:
    """Sends until its time is over: `with Sender(options) as sender: outcomes = sender.send(requests)`."""

    def __init__(self, options: WebhookOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._until = clock() + options.time_limit
        self._jitter = random.Random()
        self._runner = asyncio.Runner()
        self._client: Client | None = None
        self._slots: asyncio.Semaphore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()

    def send(self, requests: Iterable[Request]) -> list[Outcome]:
        """Send the requests; returns after the last one has an outcome."""
        return self._runner.run(self._send(requests))

    async def _send(self, requests: Iterable[Request]) -> list[Outcome]:
        if self._client is None or self._slots is None:
            self._client = Client(self._options.allowed, self._options.connections)
            self._slots = asyncio.Semaphore(self._options.connections)
        groups: dict[tuple[str | None, str | None], list[Request]] = {}
        for request in requests:
            groups.setdefault((request.url, request.group), []).append(request)
        sent = await asyncio.gather(*(self._send_group(group, self._client, self._slots) for group in groups.values()))
        return [outcome for outcomes in sent for outcome in outcomes]

    async def _send_group(self, group: list[Request], client: Client, slots: asyncio.Semaphore) -> list[Outcome]:
        outcomes, attempts = [], self._options.attempts
        for request in group:
            outcome = await self._try(request, attempts, client, slots)
            if not outcome.is_delivered and outcome.answer.is_retryable:
                attempts = 1  # the receiver is down: do not spend the time limit on the rest of its requests
            outcomes.append(outcome)
        return outcomes

    async def _try(self, request: Request, attempts: int, client: Client, slots: asyncio.Semaphore) -> Outcome:
        fault = "the event has no URL" if request.url is None else find_fault(request.url)
        if request.url is None or fault is not None:
            return Outcome(request, 0, Answer(reason=str(fault), is_final=True))
        body = request.body
        answer, attempt = Answer(), 0
        while attempt < attempts:
            if attempt and not await self._wait(delay_before(attempt + 1, answer.retry_after, self._jitter)):
                return Outcome(request, attempt, self._ended(answer))
            async with slots:
                left = self._until - self._clock()
                if left <= 0:
                    return Outcome(request, attempt, self._ended(answer))
                attempt += 1
                signed = signing.headers(self._secret_of(request), request.id, int(time.time()), body)
                answer = await client.post(request.url, body, signed, min(self._options.timeout, left))
            if answer.is_delivered or not answer.is_retryable:
                break
        return Outcome(request, attempt, answer)

    def _secret_of(self, request: Request) -> signing.Secret | None:
        secret = self._options.secret
        return secret.of_group(request.group or "") if secret and self._options.has_secret_per_group else secret

    async def _wait(self, seconds: float) -> bool:
        """Wait, unless that takes longer than the time that is left. Returns whether it has waited."""
        if self._clock() + seconds >= self._until:
            return False
        await asyncio.sleep(seconds)
        return True

    def _ended(self, answer: Answer) -> Answer:
        limit = f"the time limit of {self._options.time_limit:g} s is over"
        if answer.retry_after is not None:
            limit += f", and the receiver asks to wait for {answer.retry_after:g} s"
        return Answer(answer.status, f"{answer.reason}; {limit}" if answer.reason else limit)
