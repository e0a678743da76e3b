"""The first migration: the tables of a registry as SQL.

It must not change after a release: add a migration to migrations.py instead.
"""

from __future__ import annotations

from sqlalchemy import Connection

_SQLITE = {"serial": "INTEGER", "key": "INTEGER", "name": "TEXT", "double": "DOUBLE"}
_POSTGRES = {"serial": "BIGSERIAL", "key": "BIGINT", "name": 'TEXT COLLATE "C"', "double": "DOUBLE PRECISION"}

_TABLES = """
CREATE TABLE vedette_migrations (
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    vedette TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE vedette_sets (
    id {serial} NOT NULL,
    uid TEXT NOT NULL,
    name {name} NOT NULL,
    kind TEXT NOT NULL,
    schemas TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    time_zone TEXT NOT NULL,
    windows TEXT,
    id_kind TEXT,
    version BIGINT NOT NULL,
    oldest BIGINT NOT NULL,
    n_active BIGINT NOT NULL,
    n_parked BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    max_match_share {double},
    dimensions INTEGER,
    PRIMARY KEY (id),
    UNIQUE (uid),
    UNIQUE (name)
);

CREATE TABLE vedette_samples (
    set_id {key} NOT NULL,
    digest TEXT NOT NULL,
    sample TEXT NOT NULL,
    PRIMARY KEY (set_id),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);

CREATE TABLE vedette_schemas (
    set_id {key} NOT NULL,
    version BIGINT NOT NULL,
    schemas TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    PRIMARY KEY (set_id, version),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);

CREATE TABLE vedette_versions (
    set_id {key} NOT NULL,
    version BIGINT NOT NULL,
    mark BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (set_id, version),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);

CREATE TABLE vedette_revisions (
    id {serial} NOT NULL,
    set_id {key} NOT NULL,
    name {name},
    number BIGINT,
    added BIGINT NOT NULL,
    removed BIGINT,
    reason TEXT,
    is_parked BOOLEAN NOT NULL,
    text TEXT,
    windows TEXT,
    low {double},
    high {double},
    x_low {double},
    x_high {double},
    y_low {double},
    y_high {double},
    z_low {double},
    z_high {double},
    metadata TEXT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (id),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);
CREATE INDEX vedette_revisions_added ON vedette_revisions (set_id, added, id);
CREATE INDEX vedette_revisions_due ON vedette_revisions (set_id, expires_at)
    WHERE removed IS NULL AND expires_at IS NOT NULL;
CREATE INDEX vedette_revisions_ended_name ON vedette_revisions (set_id, name, removed)
    WHERE removed IS NOT NULL AND name IS NOT NULL;
CREATE INDEX vedette_revisions_ended_number ON vedette_revisions (set_id, number, removed)
    WHERE removed IS NOT NULL AND number IS NOT NULL;
CREATE INDEX vedette_revisions_parked ON vedette_revisions (set_id)
    WHERE is_parked;
CREATE INDEX vedette_revisions_removed ON vedette_revisions (set_id, removed)
    WHERE removed IS NOT NULL;
CREATE UNIQUE INDEX vedette_revisions_active_name ON vedette_revisions (set_id, name)
    WHERE removed IS NULL AND name IS NOT NULL;
CREATE UNIQUE INDEX vedette_revisions_active_number ON vedette_revisions (set_id, number)
    WHERE removed IS NULL AND number IS NOT NULL;

CREATE TABLE vedette_pins (
    set_id {key} NOT NULL,
    pipeline {name} NOT NULL,
    batch BIGINT NOT NULL,
    version BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    run TEXT,
    PRIMARY KEY (set_id, pipeline, batch),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);

CREATE TABLE vedette_snapshots (
    set_id {key} NOT NULL,
    version BIGINT NOT NULL,
    file TEXT NOT NULL,
    checksum TEXT NOT NULL,
    n_bytes BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (set_id, version),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
);

CREATE TABLE vedette_leases (
    set_id {key} NOT NULL,
    purpose TEXT NOT NULL,
    holder TEXT NOT NULL,
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (set_id, purpose),
    FOREIGN KEY (set_id) REFERENCES vedette_sets (id)
)
"""


def make_first_tables(connection: Connection) -> None:
    for statement in statements(connection.dialect.name == "postgresql"):
        connection.exec_driver_sql(statement)


def statements(is_postgres: bool) -> list[str]:
    """The statements for one of the two databases."""
    return [each.strip() for each in _TABLES.format_map(_POSTGRES if is_postgres else _SQLITE).split(";")]
