"""The migration that creates the table of tokens. It must not change after a release."""

from __future__ import annotations

from sqlalchemy import Connection, text

_TABLE = """
CREATE TABLE vedette_tokens (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    digest TEXT NOT NULL,
    sets TEXT,
    owner TEXT,
    max_queries BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (id)
)
"""


def make_tokens(connection: Connection) -> None:
    connection.execute(text(_TABLE))
