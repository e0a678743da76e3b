"""The migration that creates the tables of running pipelines. It must not change after a release."""

from __future__ import annotations

from sqlalchemy import Connection, text

_PIPELINES = """
CREATE TABLE vedette_pipelines (
    run TEXT NOT NULL,
    name {name} NOT NULL,
    set_name {name} NOT NULL,
    operator TEXT NOT NULL,
    host TEXT NOT NULL,
    process BIGINT NOT NULL,
    vedette TEXT NOT NULL,
    state TEXT NOT NULL,
    queries BIGINT,
    sinks TEXT NOT NULL,
    error TEXT,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (run)
)
"""
_EVENTS = """
CREATE TABLE vedette_pipeline_events (
    name {name} NOT NULL,
    set_name {name} NOT NULL,
    sink {name} NOT NULL,
    batch BIGINT NOT NULL,
    task BIGINT NOT NULL,
    n_events BIGINT NOT NULL,
    events TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (name, set_name, sink, batch, task)
)
"""


def make_pipelines(connection: Connection) -> None:
    name = 'TEXT COLLATE "C"' if connection.dialect.name == "postgresql" else "TEXT"
    for table in (_PIPELINES, _EVENTS):
        connection.execute(text(table.format(name=name)))
