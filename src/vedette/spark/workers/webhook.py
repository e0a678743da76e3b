"""Delivery of events inside Spark's Python workers: Arrow batches of events in, what became of each request out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from vedette.delivery.dead_letters import EVENT, Letter, Part
from vedette.delivery.letter_writer import LetterWriter
from vedette.delivery.options import WebhookOptions
from vedette.delivery.requests import Event, cut
from vedette.delivery.sender import Outcome, Sender
from vedette.delivery.urls import host_of
from vedette.errors import PipelineError, count
from vedette.spark.shipping.query_sets import check_sender
from vedette.spark.workers.bad_rows import find_part
from vedette.spark.workers.reports import REPORT, keep_warnings, write_report

OUTCOMES = pa.schema(
    {
        "request": pa.string(),
        "host": pa.string(),
        "group": pa.string(),
        "events": pa.int32(),
        "attempts": pa.int32(),
        "status": pa.int32(),
        "outcome": pa.string(),
        "reason": pa.string(),
    }
)
DELIVERED, DEAD = "delivered", "dead letter"
_MOST_WAITING = 32 << 20  # bytes of events that are sent together


def deliver(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Send events, given by the columns id, url, group and body. Returns a row per request, and at the end a report.

    Events that cannot be delivered become dead letters. Without a place for them, the task fails.
    """
    check_sender(plan["sender"])
    options: WebhookOptions = plan["options"]
    counts = {"delivered": 0, "dead_letters": 0, "requests": 0, "retries": 0}
    part = find_part(plan["source"])
    letters = None if plan["dead_letters"] is None else LetterWriter(plan["dead_letters"], part)
    failed: list[Outcome] = []
    if plan["reports"]:
        keep_warnings()
    with Sender(options) as sender:
        for events in _in_chunks(batches):
            outcomes = sender.send(cut(events, options.max_events))
            failed = [outcome for outcome in outcomes if not outcome.is_delivered]
            _count(outcomes, counts)
            if letters is not None:
                letters.add(letter for outcome in failed for letter in _letters_of(outcome, plan["source"], part))
            elif failed:
                break
            yield _as_batch(outcomes, plan["reports"])
    if letters is not None:
        letters.close()
    elif failed:
        raise PipelineError(
            f"{count(counts['dead_letters'], 'event')} could not be delivered: {failed[0].answer.reason}; the "
            f"micro-batch is repeated when the stream starts again. To continue without them, set dead_letters"
        )
    if plan["reports"]:
        nulls = [pa.nulls(1, field.type) for field in OUTCOMES]
        report = pa.array([write_report(counts, None)], pa.string())
        yield pa.RecordBatch.from_arrays([*nulls, report], names=[*OUTCOMES.names, REPORT])


def _in_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[Event]]:
    """The events of all batches, in chunks of limited size."""
    waiting: list[Event] = []
    size = 0
    for batch in batches:
        for event in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            waiting.append(Event(*event))
            size += len(waiting[-1].body)
            if size > _MOST_WAITING:
                yield waiting
                waiting, size = [], 0
    if waiting:
        yield waiting


def _letters_of(outcome: Outcome, source: str, part: Part) -> Iterator[Letter]:
    now = datetime.now(UTC)
    for event in outcome.request.events:
        yield Letter(
            event.id,
            EVENT,
            source,
            event.body,
            outcome.answer.reason,
            now,
            event.url,
            event.group,
            outcome.answer.status,
            outcome.attempts,
            part.stream,
            part.batch,
        )


def _count(outcomes: Sequence[Outcome], counts: dict[str, int]) -> None:
    for outcome in outcomes:
        counts["requests"] += 1
        counts["retries"] += max(0, outcome.attempts - 1)
        counts["delivered" if outcome.is_delivered else "dead_letters"] += len(outcome.request.events)


def _as_batch(outcomes: Sequence[Outcome], reports: bool) -> pa.RecordBatch:
    rows = [
        {
            "request": each.request.id,
            "host": host_of(each.request.url or ""),
            "group": each.request.group,
            "events": len(each.request.events),
            "attempts": each.attempts,
            "status": each.answer.status,
            "outcome": DELIVERED if each.is_delivered else DEAD,
            "reason": each.answer.reason or None,
        }
        for each in outcomes
    ]
    batch = pa.RecordBatch.from_pylist(rows, OUTCOMES)
    return batch.append_column(REPORT, pa.nulls(len(rows), pa.string())) if reports else batch
