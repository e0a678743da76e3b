"""The migration that creates the table of reports. It must not change after a release."""

from __future__ import annotations

from sqlalchemy import Connection, text

_TABLE = """
CREATE TABLE vedette_reports (
    set_id {key} NOT NULL,
    revision BIGINT NOT NULL,
    stream TEXT NOT NULL,
    batch BIGINT NOT NULL,
    part INTEGER NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (set_id, revision, stream),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
)
"""


def make_reports(connection: Connection) -> None:
    key = "BIGINT" if connection.dialect.name == "postgresql" else "INTEGER"
    connection.execute(text(_TABLE.format(key=key)))
