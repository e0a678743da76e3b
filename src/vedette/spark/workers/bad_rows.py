"""Bad rows inside Spark's Python workers: the last two columns of a batch say why a row is bad, and what it has."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from vedette.delivery.dead_letters import ROW, Letter, Part
from vedette.delivery.letter_writer import LetterWriter
from vedette.spark.workers.following import BATCH, STREAM


def keep_good(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The good rows without these columns. The others are written as dead letters."""
    part = find_part(plan["label"])
    letters = LetterWriter(plan["place"].address, part)
    n_bad = 0
    for batch in batches:
        *columns, reasons, bodies = batch.columns
        rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names[:-2])
        if reasons.null_count < len(reasons):
            is_bad = reasons.is_valid()
            bad = list(zip(reasons.filter(is_bad).to_pylist(), bodies.filter(is_bad).to_pylist(), strict=True))
            letters.add(_letters(bad, n_bad, plan["place"].source, part))
            n_bad += len(bad)
            rows = rows.filter(reasons.is_null())
        yield rows
    letters.close()


def find_part(source: str) -> Part:
    """Under which name this task writes dead letters: the same in each repetition of a micro-batch."""
    context = TaskContext.get()
    stream = None if context is None else context.getLocalProperty(STREAM)
    batch = None if context is None else context.getLocalProperty(BATCH)
    if context is None or stream is None or batch is None:  # not a stream: nothing is repeated under a known name
        return Part("", None, f"{source} {uuid.uuid4().hex}")
    return Part(stream, int(batch), f"{source} {context.partitionId()}")


def _letters(bad: list[tuple[str, str]], first: int, source: str, part: Part) -> Iterator[Letter]:
    now = datetime.now(UTC)
    for number, (reason, body) in enumerate(bad, first):
        place = f"{part.stream} {part.batch} {part.task} {number}"
        id_ = hashlib.blake2b(place.encode(), digest_size=16).hexdigest()
        yield Letter(id_, ROW, source, body, reason, now, stream=part.stream, batch=part.batch)
