"""When a request is tried again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.delivery.requests import Event, cut
from vedette.delivery.retries import FIRST_DELAY, LONGEST_DELAY, Answer, delay_before, read_retry_after


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 599])
def test_an_answer_that_may_change_is_retried(status):
    assert Answer(status).is_retryable


@pytest.mark.parametrize("status", [100, 301, 302, 307, 308, 400, 401, 403, 404, 410, 413, 422])
def test_an_answer_that_will_not_change_is_not_retried(status):
    assert not Answer(status).is_retryable
    assert not Answer(status).is_delivered


def test_delays_double_up_to_a_limit_and_are_shortened_at_random():
    jitter = random.Random(1)
    for attempt, longest in zip(range(2, 12), [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30], strict=True):
        delays = [delay_before(attempt, None, jitter) for _ in range(200)]
        assert longest / 2 <= min(delays) < max(delays) <= longest
    assert (FIRST_DELAY, LONGEST_DELAY) == (0.5, 30.0)
    assert delay_before(10**6, None, jitter) <= LONGEST_DELAY


def test_retry_after_is_a_minimum():
    assert delay_before(2, 100.0, random.Random(1)) == 100.0
    assert delay_before(8, 0.1, random.Random(1)) > 1


def test_retry_after_may_be_seconds_or_a_date():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=90), usegmt=True)

    assert read_retry_after("90") == read_retry_after(date, now.timestamp()) == 90
    assert read_retry_after(format_datetime(now - timedelta(days=1), usegmt=True), now.timestamp()) == 0


@given(st.text(max_size=200) | st.sampled_from(["-5", "1e9", "9" * 90, "Thu, 99 Foo 2026", "nan", "٣"]))
def test_any_text_in_retry_after_is_read_or_ignored(text):
    after = read_retry_after(text, now=0.0)

    assert after is None or after >= 0


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, "x", "y"]), st.integers(1, 30)), max_size=40),
    st.integers(1, 5),
)
def test_requests_have_each_event_once_in_the_order_of_its_group(given_, max_events):
    events = [Event(str(i), url, group, f'"{"x" * size}"') for i, (url, group, size) in enumerate(given_)]
    requests = list(cut(events, max_events, max_bytes=40))

    for target in {(event.url, event.group) for event in events}:
        sent = [event for request in requests if (request.url, request.group) == target for event in request.events]
        assert sent == [event for event in events if (event.url, event.group) == target]
    assert sum(len(request.events) for request in requests) == len(events)
    for request in requests:
        assert 1 <= len(request.events) <= max_events
        assert len(request.events) == 1 or sum(len(event.body) for event in request.events) <= 40


def test_the_id_of_a_request_depends_on_its_events_only():
    def request(*ids: str):
        (made,) = cut([Event(each, "u", "g", "{}") for each in ids], 10)
        return made

    assert request("a", "b").id == request("a", "b").id
    assert len({request(*ids).id for ids in [("a", "b"), ("b", "a"), ("ab",), ("a",)]}) == 4
