"""The migration that creates the table of dead letters. It must not change after a release."""

from __future__ import annotations

from sqlalchemy import Connection, text

_TABLE = """
CREATE TABLE vedette_dead_letters (
    source TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    failed_at BIGINT NOT NULL,
    url TEXT,
    "group" TEXT,
    status INTEGER,
    attempts INTEGER NOT NULL,
    stream TEXT NOT NULL,
    batch BIGINT NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (source, id)
)
"""


def make_dead_letters(connection: Connection) -> None:
    connection.execute(text(_TABLE))
    connection.execute(text("CREATE INDEX vedette_dead_letters_part ON vedette_dead_letters (stream, batch)"))
