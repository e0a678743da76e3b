"""Rules between keys of a pipeline file, which can be checked without the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vedette.pipeline.operators import BandJoin, Border, WindowJoin

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.pipeline.source import Source
    from vedette.pipeline.validation import Mistake


def find_conflicts(plan: PipelineFile) -> Iterator[Mistake]:
    """Each key that contradicts another one, or needs one that is missing."""
    operator = plan.operator
    if isinstance(operator, Border):
        yield from _find_missing_watermark(operator, plan.streams[""])
    elif isinstance(operator, WindowJoin):
        yield from _find_wrong_layout(operator, len(plan.streams))
    elif isinstance(operator, BandJoin) and operator.unknown_id == "report" and operator.report == "queries":
        sentence = 'it is "report", which needs report = "pairs"; with report = "queries" use "log" or "error"'
        yield "operator.unknown_id", sentence


def _find_missing_watermark(operator: Border, source: Source) -> Iterator[Mistake]:
    """Durations in words need a timestamp column, whose time advances by a watermark."""
    mark = source.watermark
    if mark is not None and mark.column.strip("`").lower() == operator.time.lower():
        return
    found = "it has none" if mark is None else f"its watermark is on {mark.column!r}"
    wanted = f'source.watermark = {{ column = "{operator.time}", delay = "10 minutes" }}'
    for name in ("expire_after", "dwell"):
        if isinstance(getattr(operator, name), str):
            yield (
                f"operator.{name}",
                f"it needs a watermark on {operator.time!r} of the source, and {found}; set {wanted}",
            )


def _find_wrong_layout(operator: WindowJoin, n_streams: int) -> Iterator[Mistake]:
    """The set of a pipeline is in a registry, so any query may be added later."""
    if operator.layout == "equality":
        yield (
            "operator.layout",
            "it is 'equality', which a set of a registry cannot use: a query without an equality may be added later; "
            "use 'grid' or 'one'",
        )
    elif operator.layout == "grid" and n_streams > 2:
        yield "operator.layout", f"it is 'grid', which is for two streams, but there are {n_streams}; use 'one'"
    elif operator.layout == "one" and operator.shards not in (None, 1):
        yield "operator.shards", f"it is {operator.shards}, but layout 'one' has one shard; omit the key"
