"""What keys of a pipeline's file need of one another, as far as the file alone tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vedette.pipeline.operators import BandJoin, Border, WindowJoin

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.pipeline.source import Source
    from vedette.pipeline.validation import Mistake


def find_unmet(plan: PipelineFile) -> Iterator[Mistake]:
    """Each key whose need another does not meet."""
    operator = plan.operator
    if isinstance(operator, Border):
        yield from _find_untimed(operator, plan.streams[""])
    elif isinstance(operator, WindowJoin):
        yield from _find_misplaced(operator, len(plan.streams))
    elif isinstance(operator, BandJoin) and operator.unknown_id == "report" and operator.report == "queries":
        sentence = 'it is "report", which names ids beside pairs; with report = "queries" it takes "log" or "error"'
        yield "operator.unknown_id", sentence


def _find_untimed(operator: Border, source: Source) -> Iterator[Mistake]:
    """Durations in words are of times that are timestamps, and with those it is a watermark that lets time pass."""
    mark = source.watermark
    if mark is not None and mark.column.strip("`").lower() == operator.time.lower():
        return
    found = "there is none" if mark is None else f"the one there is on {mark.column!r}"
    wanted = f'source.watermark = {{ column = "{operator.time}", delay = "10 minutes" }}'
    for name in ("expire_after", "dwell"):
        if isinstance(getattr(operator, name), str):
            yield (
                f"operator.{name}",
                f"it needs to know how far time has passed, so a watermark on {operator.time!r}, and {found}; "
                f"set {wanted}",
            )


def _find_misplaced(operator: WindowJoin, n_streams: int) -> Iterator[Mistake]:
    """A pipeline takes its set from a registry, where any query may come."""
    if operator.layout == "equality":
        yield (
            "operator.layout",
            "it is 'equality', which cannot be with a set of a registry, as a query to come may equate nothing; it "
            "takes 'grid' or 'one'",
        )
    elif operator.layout == "grid" and n_streams > 2:
        yield "operator.layout", f"it is 'grid', which is for two streams, and there are {n_streams}; it takes 'one'"
    elif operator.layout == "one" and operator.shards not in (None, 1):
        yield "operator.shards", f"it is {operator.shards}, but the layout 'one' has one shard; leave it out"
