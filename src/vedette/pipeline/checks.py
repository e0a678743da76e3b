"""Whether a pipeline's file fits the query set that it names: checked before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.errors import FileError, VedetteError, count
from vedette.pipeline.hosts import tell_elsewhere
from vedette.pipeline.operators import BY_STREAM, Border, Match, MovingJoin, WindowJoin, at_key, options_of
from vedette.registry.kinds import kinds_for

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.registry.read.followed import Followed
    from vedette.registry.read.set_info import SetInfo


_MOVING = ("max_update_interval", "expire_overdue", "late")  # options that the operator itself checks


def check_set(plan: PipelineFile, queries: SetInfo) -> None:
    """Raise an error with the key that does not fit the set."""
    operator = plan.operator
    kinds = [kind.name for kind in kinds_for(operator.kind)]
    if queries.kind not in kinds:
        raise FileError(
            f"operator.kind: it is {operator.kind!r}, but the set {queries.name!r} is for {queries.kind}; sets for it "
            f"are made with: vedette set create NAME --kind {kinds[0]!r}"
        )
    if plan.registry.version is not None and queries.id_kind is None:
        raise FileError(
            f"registry.version: it is {plan.registry.version}, but the set {queries.name!r} has had no query, so that "
            f"nobody knows whether its ids are strings or integers; leave it out, or make the set with: vedette set "
            f"create NAME --ids"
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
            raise FileError(f"operator.{name}: unknown stream {unknown[0]!r}; {known}")
    if isinstance(operator, WindowJoin):
        _check_windows(operator, queries)
    options = options_of(operator, streams)
    try:
        _try_options(plan, queries, options)
    except VedetteError as error:
        raise at_key(error, "operator") from None


def check_hosts(plan: PipelineFile, queries: Followed) -> None:
    """Raise a FileError where Spark runs on hosts that cannot open the registry."""
    elsewhere = tell_elsewhere(plan.spark) if queries.is_local else None
    if elsewhere is not None:
        raise FileError(
            f"registry.url: it is a registry on SQLite, a file of this host, and Spark's workers on other hosts "
            f"({elsewhere}) are to follow it; use a registry on PostgreSQL, or a local master"
        )


def name_queries(plan: PipelineFile, queries: SetInfo, n_active: int) -> str:
    """The set in words: its name, how many queries stand in the version that is taken, and which that is."""
    at = plan.registry.version
    version = f"version {queries.version}, followed" if at is None else f"version {at}, for good"
    return f"set {queries.name!r} for {queries.kind}, {count(n_active, 'query', 'queries')}, {version}"


def _check_windows(operator: WindowJoin, queries: SetInfo) -> None:
    """Raise where windows that queries of the set may have do not go with the operator."""
    if queries.windows == "time" and operator.time is None:
        raise FileError(
            f"operator.time: it is missing; the set {queries.name!r} is for windows of time, so name the column that "
            f"has it"
        )
    if queries.windows == "time" and len(queries.streams) == 2:
        return
    why = "has more than two streams" if queries.windows == "time" else "may have windows that count rows"
    if operator.layout == "grid":
        raise FileError(f"operator.layout: it is 'grid', but the set {queries.name!r} {why}; it takes 'one'")
    if operator.shards not in (None, 1):
        raise FileError(
            f"operator.shards: it is {operator.shards}, but the set {queries.name!r} {why}, and needs one shard; leave "
            f"it out"
        )


def _try_options(plan: PipelineFile, queries: SetInfo, options: dict[str, Any]) -> None:
    """Let the operator look at its options, with a set that is empty."""
    if isinstance(plan.operator, Match):
        return
    from vedette.registry.snapshots.bases import make_empty

    empty = make_empty(queries)
    if isinstance(plan.operator, Border):
        empty.border(**_without(options, "shards"))
    elif isinstance(plan.operator, MovingJoin):
        empty.monitor(**{name: value for name, value in options.items() if name in _MOVING})
    elif isinstance(plan.operator, WindowJoin):
        empty.window(**_without(options, "shards", "layout"))
    else:
        empty.monitor(**{name: value for name, value in options.items() if name in ("report", "max_state_rows")})


def _without(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}
