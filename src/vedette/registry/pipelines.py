"""Running pipelines: what `vedette run` processes write about themselves into the registry of their set.

A process writes its status every few seconds. One that has not done so for LOST_SECONDS, and has not said that it
ended, is shown as lost: it was killed, or cannot reach the database.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, or_, select

from vedette.registry.store.database import Database
from vedette.registry.store.tables import pipeline_events, pipelines
from vedette.registry.store.times import as_datetime
from vedette.registry.store.values import is_text

BEAT_SECONDS, LOST_SECONDS = 5.0, 30.0
LOST = "lost"
FINAL = ("ended", "stopped", "failed")
_KEPT_DAYS = 7  # of pipelines that have ended
_MOST_EVENT_LENGTH = 10_000  # characters; longer ones are left out
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class PipelineRun:
    """One process that runs a pipeline. Times are set by the database's clock when it is written."""

    run: str
    name: str
    set_name: str
    operator: str
    host: str
    process: int
    vedette: str
    state: str  # starting, running, stopping, stopped, ended, failed; when it is read also lost
    queries: int | None = None  # active ones
    sinks: dict[str, dict[str, Any]] = field(default_factory=dict)  # progress by sink
    error: str | None = None  # the last one
    started_at: datetime | None = None
    seen_at: datetime | None = None
    ended_at: datetime | None = None

    def to_record(self) -> dict[str, Any]:
        """The run as answers show it."""
        names = ("name", "set_name", "operator", "state", "host", "process", "vedette", "queries", "error")
        record = {("set" if name == "set_name" else name): getattr(self, name) for name in names}
        times = {name: getattr(self, name) for name in ("started_at", "seen_at", "ended_at")}
        return {**record, **times, "sinks": [{"sink": name, **facts} for name, facts in self.sinks.items()]}


def write_run(database: Database, run: PipelineRun) -> None:
    """Write the status of a run. The first time, ended and lost runs of the same pipeline are deleted."""

    def write(connection: Connection) -> None:
        now = database.now(connection)
        known = connection.scalar(select(pipelines.c.started_at).where(pipelines.c.run == run.run))
        if known is None:
            _clean(connection, run, now)
        names = ("run", "name", "set_name", "operator", "host", "process", "vedette", "state", "queries", "error")
        values = {name: _plain(getattr(run, name)) for name in names}
        values |= {"sinks": json.dumps(run.sinks), "seen_at": now, "ended_at": now if run.state in FINAL else None}
        insert = database.insert_into(pipelines).values(**values, started_at=known or now)
        connection.execute(insert.on_conflict_do_update(index_elements=["run"], set_=values))

    database.write(write)


def _clean(connection: Connection, run: PipelineRun, now: int) -> None:
    is_over = or_(pipelines.c.state.in_(FINAL), pipelines.c.seen_at < now - int(LOST_SECONDS * _MICROSECONDS))
    is_same = and_(pipelines.c.name == run.name, pipelines.c.set_name == run.set_name)
    oldest = now - _KEPT_DAYS * 86_400 * _MICROSECONDS
    connection.execute(delete(pipelines).where(or_(and_(is_same, is_over), pipelines.c.seen_at < oldest)))
    connection.execute(delete(pipeline_events).where(pipeline_events.c.made_at < oldest))


def list_pipelines(database: Database) -> list[PipelineRun]:
    """All runs, by name; of the same name the one that started last is first."""
    every = select(pipelines).order_by(pipelines.c.name, pipelines.c.started_at.desc(), pipelines.c.run)

    def read(connection: Connection) -> list[PipelineRun]:
        now = database.now(connection)
        return [_run_of(dict(row), now) for row in connection.execute(every).mappings()]

    return database.read(read)


def _run_of(row: dict[str, Any], now: int) -> PipelineRun:
    is_lost = row["state"] not in FINAL and now - row["seen_at"] > LOST_SECONDS * _MICROSECONDS
    times = {name: as_datetime(row[name]) for name in ("started_at", "seen_at", "ended_at")}
    state = LOST if is_lost else row["state"]
    return PipelineRun(**{**row, **times, "state": state, "sinks": json.loads(row["sinks"])})


def write_events(
    database: Database, run: tuple[str, str, str], batch: int, task: int, events: Sequence[str], *, keep: int
) -> None:
    """Keep the last answers of a task, as JSON texts. `run`: pipeline, set and sink. `keep`: of the sink, about."""
    name, set_name, sink = (_plain(each) for each in run)
    kept = [each.replace("\0", "\ufffd") for each in events[-keep:] if len(each) <= _MOST_EVENT_LENGTH]
    table = pipeline_events.c
    own = and_(table.name == name, table.set_name == set_name, table.sink == sink)

    def write(connection: Connection) -> None:
        key = {"name": name, "set_name": set_name, "sink": sink, "batch": batch, "task": task}
        values = {"n_events": len(kept), "events": "\n".join(kept), "made_at": database.now(connection)}
        insert = database.insert_into(pipeline_events).values(**key, **values)
        connection.execute(insert.on_conflict_do_update(index_elements=list(key), set_=values))
        # A checkpoint that was deleted begins again with batch 0: what is written last is the newest.
        parts = connection.execute(select(table.batch, table.task, table.n_events).where(own).order_by(*_NEWEST))
        n_newer = 0
        for part in parts.all():
            if n_newer >= keep:
                connection.execute(delete(pipeline_events).where(own, table.batch == part[0], table.task == part[1]))
            n_newer += part[2]

    if kept:
        database.write(write)


_NEWEST = (pipeline_events.c.made_at.desc(), pipeline_events.c.batch.desc(), pipeline_events.c.task.desc())


def read_events(database: Database, name: str, set_name: str, limit: int) -> list[dict[str, Any]]:
    """The last answers of a pipeline, newest first, each with its sink and micro-batch."""
    table = pipeline_events.c
    parts = select(pipeline_events).where(table.name == name, table.set_name == set_name).order_by(*_NEWEST)

    def read(connection: Connection) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for part in connection.execute(parts).mappings():
            for line in reversed(part["events"].split("\n")):
                if len(found) == limit:
                    return found
                found.append({"sink": part["sink"], "batch": part["batch"], "event": json.loads(line)})
        return found

    return database.read(read) if is_text(name) and is_text(set_name) else []


def _plain(value: Any) -> Any:
    """A value without the character 0, which PostgreSQL's texts cannot have."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
