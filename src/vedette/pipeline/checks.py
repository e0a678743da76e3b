"""Checks that a pipeline file fits its query set, before Spark starts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from vedette.delivery.probe import find_obstacle
from vedette.errors import FileError, VedetteError, count
from vedette.extras import check_extra
from vedette.pipeline.hosts import remote_setting
from vedette.pipeline.operators import BY_STREAM, Border, Match, MovingJoin, WindowJoin, at_key, options_of
from vedette.registry.kinds import kinds_for

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.registry.read.followed import Followed
    from vedette.registry.read.set_info import SetInfo


_log = logging.getLogger(__name__)
_MOVING = ("max_update_interval", "expire_overdue", "late")  # options that the operator itself validates


def check_set(plan: PipelineFile, queries: SetInfo) -> None:
    """Raise an error with the key if an option does not fit the set."""
    operator = plan.operator
    kinds = [kind.name for kind in kinds_for(operator.kind)]
    if queries.kind not in kinds:
        raise FileError(
            f"operator.kind: it is {operator.kind!r}, but set {queries.name!r} is of kind {queries.kind}; create a set "
            f"for it with: vedette set create NAME --kind {kinds[0]!r}"
        )
    if plan.registry.version is not None and queries.id_kind is None:
        raise FileError(
            f"registry.version: it is {plan.registry.version}, but set {queries.name!r} has never had a query, so the "
            f"type of its ids is unknown; omit the key, or create the set with: vedette set create NAME --ids TYPE"
        )
    streams = list(queries.schema) if queries.kind == "window join" else ["left", "right"]
    if plan.sources is not None and sorted(plan.sources) != sorted(streams):
        raise FileError(
            f"sources: they are {', '.join(plan.sources)}, but the streams of set {queries.name!r} are: "
            f"{', '.join(streams)}"
        )
    for name in BY_STREAM:
        given = getattr(operator, name, None)
        unknown = [stream for stream in given if stream not in streams] if isinstance(given, dict) else []
        if unknown:
            known = f"the streams of set {queries.name!r} are: {', '.join(streams)}"
            raise FileError(f"operator.{name}: unknown stream {unknown[0]!r}; {known}")
    if isinstance(operator, WindowJoin):
        _check_windows(operator, queries)
    options = options_of(operator, streams)
    try:
        _try_options(plan, queries, options)
    except VedetteError as error:
        raise at_key(error, "operator") from None


def check_hosts(plan: PipelineFile, queries: Followed) -> None:
    """Raise FileError if Spark runs on hosts that cannot open the registry."""
    remote = remote_setting(plan.spark) if queries.is_local else None
    if remote is not None:
        raise FileError(
            f"registry.url: the registry is a SQLite file on this host, but Spark's workers run on other hosts "
            f"({remote}); use a registry in PostgreSQL, or a local master"
        )


def warn_unreachable(plan: PipelineFile) -> None:
    """Log a warning for each webhook that cannot be reached now. Raise PipelineError if its address is refused."""
    for sink in plan.sink:
        if sink.webhook is None:
            continue
        check_extra("webhook", f"sink {sink.name!r}")
        if sink.webhook.url is None:
            continue
        try:
            obstacle = find_obstacle(sink.webhook.url, sink.webhook.sending().allowed)
        except VedetteError as error:
            raise at_key(error, f"sink {sink.name!r}.webhook") from None
        if obstacle is not None:
            _log.warning("sink %r: %s; the pipeline starts, and delivery is retried", sink.name, obstacle)


def describe_set(plan: PipelineFile, queries: SetInfo, n_active: int) -> str:
    """The set in one line: name, kind, number of active queries, and version."""
    fixed = plan.registry.version
    version = f"version {queries.version}, followed" if fixed is None else f"fixed version {fixed}"
    return f"set {queries.name!r} of kind {queries.kind}, {count(n_active, 'query', 'queries')}, {version}"


def _check_windows(operator: WindowJoin, queries: SetInfo) -> None:
    """Raise FileError if an option does not fit the windows that queries of the set may have."""
    if queries.windows == "time" and operator.time is None:
        raise FileError(
            f"operator.time: it is missing, but set {queries.name!r} has time windows; give the column with the time"
        )
    if queries.windows == "time" and len(queries.streams) == 2:
        return
    why = "has more than two streams" if queries.windows == "time" else "may have windows that count rows"
    if operator.layout == "grid":
        raise FileError(f"operator.layout: it is 'grid', but set {queries.name!r} {why}; use 'one'")
    if operator.shards not in (None, 1):
        raise FileError(
            f"operator.shards: it is {operator.shards}, but set {queries.name!r} {why}, and needs one shard; omit the "
            f"key"
        )


def _try_options(plan: PipelineFile, queries: SetInfo, options: dict[str, Any]) -> None:
    """Let the operator validate its options with an empty set."""
    if isinstance(plan.operator, Match):
        return
    from vedette.registry.snapshots.compiled_set import make_empty

    empty = make_empty(queries)
    if isinstance(plan.operator, Border):
        empty.border(**_without(options, "shards", "on_bad_row"))
    elif isinstance(plan.operator, MovingJoin):
        empty.monitor(**{name: value for name, value in options.items() if name in _MOVING})
    elif isinstance(plan.operator, WindowJoin):
        empty.window(**_without(options, "shards", "layout", "on_bad_row"))
    else:
        empty.monitor(**{name: value for name, value in options.items() if name in ("report", "max_state_rows")})


def _without(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}
