"""Whether a pipeline's file fits the query set that it names: checked before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.errors import FileError, VedetteError, count
from vedette.pipeline.operators import BY_STREAM, Border, Match, WindowJoin, options_of

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.registry.set_info import SetInfo

_KINDS = {
    "match": ("match", "border"),  # of these two, only sets for border remember what was removed
    "border": ("border",),
    "window join": ("window join",),
    "band join": ("band join",),
}


def check_set(plan: PipelineFile, queries: SetInfo) -> None:
    """Raise a FileError with the key that does not fit the set."""
    operator = plan.operator
    if queries.kind not in _KINDS[operator.kind]:
        raise FileError(
            f"operator.kind: it is {operator.kind!r}, but the set {queries.name!r} is for {queries.kind}; sets for it "
            f"are made with: vedette set create NAME --kind {_KINDS[operator.kind][0]!r}"
        )
    streams = list(queries.schema) if queries.kind == "window join" else ["left", "right"]
    if plan.sources is not None and sorted(plan.sources) != sorted(streams):
        raise FileError(
            f"sources: they are {', '.join(plan.sources)}, but the set {queries.name!r} is about: {', '.join(streams)}"
        )
    for name in BY_STREAM:
        given = getattr(operator, name, None)
        unknown = [stream for stream in given if stream not in streams] if isinstance(given, dict) else []
        if unknown:
            known = f"the set {queries.name!r} is about: {', '.join(streams)}"
            raise FileError(f"operator.{name}: there is no stream {unknown[0]!r}; {known}")
    try:
        _try_options(plan, queries, options_of(operator, streams))
    except VedetteError as error:
        raise FileError(f"operator: {error}") from None


def name_queries(plan: PipelineFile, queries: SetInfo, n_standing: int) -> str:
    """The set in words: its name, how many queries stand in the version that is taken, and which that is."""
    at = plan.registry.at
    version = f"version {queries.version}, followed" if at is None else f"version {at}, for good"
    return f"set {queries.name!r} for {queries.kind}, {count(n_standing, 'query', 'queries')}, {version}"


def _try_options(plan: PipelineFile, queries: SetInfo, options: dict[str, Any]) -> None:
    """Let the operator look at its options, with a set that is empty."""
    options = {name: value for name, value in options.items() if name not in ("shards", "layout")}
    if isinstance(plan.operator, Match):
        return
    if isinstance(plan.operator, Border):
        from vedette.engine.query_set import QuerySet

        QuerySet(queries.schema[""], time_zone=queries.time_zone).border(**options)
    elif isinstance(plan.operator, WindowJoin):
        from vedette.engine.join_query_set import JoinQuerySet

        JoinQuerySet(**queries.schema, time_zone=queries.time_zone).window(**options)
