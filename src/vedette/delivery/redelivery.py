"""Sends dead letters again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from vedette.delivery.dead_letters import EVENT, DeadLetters, Letter
from vedette.delivery.options import WebhookOptions
from vedette.delivery.requests import Event, cut
from vedette.delivery.sender import Sender


def redeliver(letters: DeadLetters, chosen: Sequence[Letter], options: WebhookOptions) -> tuple[int, int]:
    """Send these events again: delivered ones are removed, the others keep their place with the new reason.

    Returns how many were delivered, and how many were not.
    """
    events = [letter for letter in chosen if letter.kind == EVENT]
    by_id = {(letter.id, letter.url, letter.group): letter for letter in events}
    with Sender(options) as sender:
        outcomes = sender.send(cut(map(_as_event, events), options.max_events))
    now = datetime.now(UTC)
    delivered, failed = [], []
    for outcome in outcomes:
        for event in outcome.request.events:
            letter = by_id[event.id, event.url, event.group]
            if outcome.is_delivered:
                delivered.append(letter)
            else:
                failed.append(
                    replace(
                        letter,
                        reason=outcome.answer.reason,
                        status=outcome.answer.status,
                        attempts=letter.attempts + outcome.attempts,
                        failed_at=now,
                    )
                )
    letters.remove(delivered)
    letters.update(failed)
    return len(delivered), len(failed)


def choose(
    letters: Iterable[Letter],
    *,
    kind: str | None = None,
    source: str | None = None,
    group: str | None = None,
    ids: Sequence[str] = (),
) -> list[Letter]:
    """The letters that fit all that is given."""
    return [
        letter
        for letter in letters
        if kind in (None, letter.kind)
        and source in (None, letter.source)
        and group in (None, letter.group)
        and (not ids or letter.id in ids)
    ]


def _as_event(letter: Letter) -> Event:
    return Event(letter.id, letter.url, letter.group, letter.body)
