"""Requests to real receivers on the loopback, most of which misbehave. No receiver can hold a sender for ever."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator

import pytest
from standardwebhooks.webhooks import Webhook

from tests.delivery.receiver import Handler, answer, reset, serve, stall, write_raw
from vedette.delivery import retries
from vedette.delivery.options import WebhookOptions
from vedette.delivery.requests import Event, cut
from vedette.delivery.sender import Outcome, Sender

LOOPBACK = ["127.0.0.1"]
SECRET = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(retries, "LONGEST_DELAY", 0.1)  # however many tries fail in a row, the time limit is far away
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def events(url: str | None, n: int = 1, group: str | None = "g") -> list[Event]:
    return [Event(f"{group}-{i}", url, group, json.dumps({"event_id": f"{group}-{i}"})) for i in range(n)]


def send(given: list[Event], **options) -> list[Outcome]:
    read = WebhookOptions.read(None, **{"allow_addresses": LOOPBACK, "timeout": "300 ms", "attempts": 2} | options)
    with Sender(read) as sender:
        return sender.send(cut(given, read.max_events))


def test_events_arrive_signed_and_in_order():
    with serve() as receiver:
        outcomes = send(events(receiver.url, 25), max_events=10, secret_env="HOOK_SECRET")

    assert [outcome.is_delivered for outcome in outcomes] == [True] * 3
    assert receiver.ids == [f"g-{i}" for i in range(25)]
    for got in receiver.accepted:
        assert Webhook(SECRET).verify(got.body, got.headers)["group"] == "g"
        assert got.headers["content-type"] == "application/json"
        assert "cookie" not in got.headers


def test_a_request_is_repeated_until_it_is_accepted_with_the_same_id():
    script = [answer(500), reset, stall(0.6), answer(429, Retry_After="0"), answer(503)]
    with serve(lambda n: script[n] if n < len(script) else None) as receiver:
        (outcome,) = send(events(receiver.url), attempts=8)

    assert (outcome.is_delivered, outcome.attempts) == (True, 6)
    assert len({got.headers["webhook-id"] for got in receiver.requests}) == 1
    assert receiver.ids == ["g-0"]


def test_retry_after_is_honoured():
    with serve(lambda n: answer(429, Retry_After="1") if n == 0 else None) as receiver:
        start = time.monotonic()
        (outcome,) = send(events(receiver.url))

    assert outcome.is_delivered
    assert time.monotonic() - start >= 1


def test_a_retry_after_beyond_the_time_limit_ends_the_tries_at_once():
    with serve(lambda n: answer(429, Retry_After="86400")) as receiver:
        start = time.monotonic()
        (outcome,) = send(events(receiver.url), attempts=8)

    assert time.monotonic() - start < 5
    assert outcome.answer.reason.endswith("the time limit of 120 s is over, and the receiver asks to wait for 86400 s")


def test_an_answer_that_will_not_change_is_not_tried_again():
    with serve(lambda n: answer(404, b"no such hook")) as receiver:
        (outcome,) = send(events(receiver.url), attempts=8)

    assert (outcome.attempts, outcome.answer.status, len(receiver.requests)) == (1, 404, 1)
    assert outcome.answer.reason.endswith("answered 404: 'no such hook'")


def test_a_redirect_is_not_followed():
    with serve() as inner, serve(lambda n: answer(307, Location=inner.url)) as outer:
        (outcome,) = send(events(outer.url))
    assert (inner.requests, outcome.answer.status) == ([], 307)

    with serve(lambda n: answer(302, Location="http://169.254.169.254/latest/meta-data/")) as outer:
        (outcome,) = send(events(outer.url))
    assert outcome.answer.reason.endswith(
        "answered 302, a redirect, which is not followed; use the URL that it leads to"
    )


def test_a_stalled_receiver_does_not_keep_others_waiting():
    with serve(lambda n: stall(1.0)) as stalled, serve() as quick:
        given = [*events(stalled.url, 3, "slow"), *events(quick.url, 50, "fast")]
        start = time.monotonic()
        outcomes = send(given, max_events=1, connections=4, attempts=1, timeout="700 ms")

    assert len(quick.ids) == 50
    assert [outcome.is_delivered for outcome in outcomes].count(False) == 3
    assert time.monotonic() - start < 4


def test_after_a_request_failed_the_rest_of_its_group_is_tried_once():
    with serve(lambda n: answer(500) if n < 4 else None) as receiver:
        outcomes = send(events(receiver.url, 3), max_events=1, attempts=3)

    assert [(outcome.attempts, outcome.is_delivered) for outcome in outcomes] == [(3, False), (1, False), (1, True)]


def test_the_time_limit_ends_everything():
    with serve(lambda n: stall(5)) as receiver:
        start = time.monotonic()
        outcomes = send(events(receiver.url, 5), max_events=1, attempts=100, timeout="5 s", time_limit="1 second")

    assert time.monotonic() - start < 3
    assert all(not outcome.is_delivered and outcome.answer.is_retryable for outcome in outcomes)
    assert outcomes[-1].answer.reason == "the time limit of 1 s is over"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "127.1", "2130706433"]
)
def test_a_loopback_address_is_refused_in_every_spelling(host):
    with serve() as receiver:
        url = receiver.url.replace("127.0.0.1", host)
        (outcome,) = send(events(url), allow_addresses=[], attempts=5)

    assert receiver.requests == []
    assert (outcome.attempts, outcome.is_delivered) == (1, False)
    assert not outcome.answer.is_retryable


def test_the_address_that_a_socket_connects_to_is_checked_whatever_a_name_resolved_to(monkeypatch):
    monkeypatch.setattr("vedette.delivery.client._CheckedResolver.resolve", _resolve_to_loopback)
    with serve() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.example")
        (outcome,) = send(events(url), allow_addresses=[], attempts=5)

    assert (receiver.requests, outcome.attempts) == ([], 1)
    assert "hook.example:" in outcome.answer.reason
    assert "address 127.0.0.1 is not public" in outcome.answer.reason


async def _resolve_to_loopback(self, host, port=0, family=0):
    from aiohttp.resolver import ThreadedResolver

    return await ThreadedResolver().resolve("127.0.0.1", port, family)


def test_the_host_name_stays_in_the_request(monkeypatch):
    monkeypatch.setattr("vedette.delivery.client._CheckedResolver.resolve", _resolve_to_loopback)
    with serve() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.example")
        (outcome,) = send(events(url))

    assert outcome.is_delivered
    assert receiver.accepted[0].headers["host"].startswith("hook.example:")


@pytest.mark.parametrize(("url", "reason"), [(None, "the event has no URL"), ("ftp://x/", "has the scheme 'ftp'")])
def test_an_event_without_a_usable_url_is_not_sent(url, reason):
    (outcome,) = send(events(url))

    assert (outcome.attempts, outcome.is_delivered, outcome.answer.is_retryable) == (0, False, False)
    assert reason in outcome.answer.reason


def drip(text: bytes) -> Iterator[bytes]:
    for byte in itertools.cycle([text[i : i + 1] for i in range(len(text))]):
        time.sleep(0.01)
        yield byte


HOSTILE = {
    "slow headers": lambda: drip(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10**4),
    "endless headers": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X: y\r\n")),
    "an endless line": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], itertools.repeat(b"y" * 4096)),
    "endless 1xx": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "102 and then nothing": lambda: itertools.chain([b"HTTP/1.1 102 Processing\r\n\r\n"], drip(b" ")),
    "an endless error": lambda: itertools.chain([b"HTTP/1.1 500 No\r\n\r\n"], itertools.repeat(b"x" * 65536)),
    "a slow error": lambda: itertools.chain([b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n"], drip(b"x")),
    "no HTTP": lambda: iter([b"SSH-2.0-OpenSSH_9.6\r\n"]),
    "bytes": lambda: iter([random.Random(1).randbytes(5000)]),
    "a wrong length": lambda: iter([b"HTTP/1.1 500 No\r\nContent-Length: -5\r\n\r\n"]),
    "a wrong chunk": lambda: iter([b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]),
    "nothing": lambda: iter([]),
    "a bomb": lambda: iter([b"HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\n\r\n" + b"\x1f\x8b" + b"\0" * 9999]),
    "a huge wait": lambda: iter([b"HTTP/1.1 503 No\r\nRetry-After: " + b"9" * 50 + b"\r\nContent-Length: 0\r\n\r\n"]),
}  # fmt: skip


@pytest.mark.parametrize("pieces", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_receiver_costs_a_limited_time_and_is_a_failure(pieces):
    with serve(lambda n: write_raw(pieces)) as receiver:
        start = time.monotonic()
        (outcome,) = send(events(receiver.url), timeout="400 ms", attempts=2)

    assert time.monotonic() - start < 5
    assert not outcome.is_delivered
    assert len(outcome.answer.reason) < 600


@pytest.mark.parametrize("tail", [lambda: itertools.repeat(b"x" * 65536), lambda: drip(b"x"), lambda: iter([])])
def test_the_content_of_a_successful_response_does_not_matter(tail):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"
    with serve(lambda n: write_raw(lambda: itertools.chain([head], tail()))) as receiver:
        start = time.monotonic()
        (outcome,) = send(events(receiver.url))

    assert outcome.is_delivered
    assert time.monotonic() - start < 4


def test_every_event_arrives_at_a_receiver_that_fails_at_random():
    chance = random.Random(7)

    def behave(n: int):
        return chance.choice([None, None, answer(500), reset, answer(429, Retry_After="0"), stall(0.4)])

    with serve(behave) as receiver:
        given = [event for group in "abcdefgh" for event in events(receiver.url, 20, group)]
        outcomes = send(given, max_events=3, attempts=100)

    assert all(outcome.is_delivered for outcome in outcomes)
    assert set(receiver.ids) == {event.id for event in given}


def test_a_receiver_that_accepts_and_then_fails_gets_the_same_ids_again():
    def accept_and_fail(handler: Handler) -> None:
        handler.receiver.accepted.append(handler.receiver.requests[-1])
        reset(handler)

    with serve(lambda n: accept_and_fail if n == 0 else None) as receiver:
        send(events(receiver.url, 3))

    assert receiver.ids == ["g-0", "g-1", "g-2"] * 2


def test_a_micro_batch_without_events_sends_nothing():
    assert send([]) == []
    with Sender(WebhookOptions.read(None)):
        pass
