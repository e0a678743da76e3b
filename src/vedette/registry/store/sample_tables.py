"""The step that gives sets a sample of rows. It is never changed, whatever tables.py says today."""

from __future__ import annotations

from sqlalchemy import Connection


def make_samples(connection: Connection) -> None:
    is_postgres = connection.dialect.name == "postgresql"
    key, double = ("BIGINT", "DOUBLE PRECISION") if is_postgres else ("INTEGER", "DOUBLE")
    connection.exec_driver_sql(f"ALTER TABLE vedette_sets ADD COLUMN max_match_share {double}")
    connection.exec_driver_sql(
        f"CREATE TABLE vedette_samples (set_id {key} NOT NULL, digest TEXT NOT NULL, sample TEXT NOT NULL, "
        "PRIMARY KEY (set_id), FOREIGN KEY (set_id) REFERENCES vedette_sets (id))"
    )
