"""The migrations that create and update the tables of a registry. Each one is recorded in the database.

A migration must not change after a release: add a new one. All migrations together create exactly what tables.py
declares, so a new column needs a migration here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, func, insert, inspect, select, text

from vedette.errors import RegistryError
from vedette.registry.store.database import Database
from vedette.registry.store.first_tables import make_first_tables
from vedette.registry.store.tables import migrations

_LOCK = 0x76656465747465  # "vedette": PostgreSQL's lock during migrations

STEPS: list[tuple[str, Callable[[Connection], None]]] = [
    ("the tables of a registry", make_first_tables),
]


def migrate(database: Database, create: bool = True) -> None:
    """Bring the tables up to date. Without `create`, the registry must exist."""
    is_missing = not create and database.is_missing()
    done = 0 if is_missing else database.read(_count_done)
    if done == 0 and not create:
        raise RegistryError(f"no registry in {database}; create one with `vedette set create`")
    _check_known(database, done)
    if done < len(STEPS):
        database.write(lambda connection: _make_steps(database, connection))


def _check_known(database: Database, done: int) -> None:
    if done > len(STEPS):
        from vedette import __version__

        raise RegistryError(
            f"the registry in {database} was written by a newer Vedette: its tables have {done} migrations, and "
            f"Vedette {__version__} knows {len(STEPS)}; update Vedette here"
        )


def _count_done(connection: Connection) -> int:
    if not inspect(connection).has_table(migrations.name):
        return 0
    return int(connection.scalar(select(func.coalesce(func.max(migrations.c.number), 0))) or 0)


def _make_steps(database: Database, connection: Connection) -> None:
    from vedette import __version__

    if database.is_postgres:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    done = _count_done(connection)  # by another process, while this one waited
    _check_known(database, done)
    now = database.now(connection)
    for number, (name, make) in enumerate(STEPS[done:], done + 1):
        make(connection)
        connection.execute(insert(migrations).values(number=number, name=name, vedette=__version__, made_at=now))
