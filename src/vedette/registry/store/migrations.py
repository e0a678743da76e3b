"""The migrations that create and update the tables of a registry. Each one is recorded in the database.

A migration must not change after a release: add a new one. All migrations together create exactly what tables.py
declares, so a new column needs a migration here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, text

from vedette.errors import RegistryError, shown
from vedette.registry.store.database import Database
from vedette.registry.store.dead_letter_table import make_dead_letters
from vedette.registry.store.first_tables import make_first_tables
from vedette.registry.store.pipeline_table import make_pipelines
from vedette.registry.store.report_table import make_reports
from vedette.registry.store.tables import migrations
from vedette.registry.store.token_table import make_tokens

_LOCK = 0x76656465747465  # "vedette": PostgreSQL's lock during migrations

STEPS: list[tuple[str, Callable[[Connection], None]]] = [
    ("the tables of a registry", make_first_tables),
    ("dead letters", make_dead_letters),
    ("options of queries", lambda connection: _add_column(connection, "vedette_revisions", "options TEXT")),
    ("authors of versions", lambda connection: _add_column(connection, "vedette_versions", "author TEXT")),
    ("tokens", make_tokens),
    ("reports of queries", make_reports),
    ("running pipelines", make_pipelines),
    ("rates of tokens", lambda connection: _add_column(connection, "vedette_tokens", "rows_per_second BIGINT")),
]


def _add_column(connection: Connection, table: str, column: str) -> None:
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column}"))


def migrate(database: Database, create: bool = True) -> None:
    """Bring the tables up to date. Without `create`, the registry must exist."""
    is_missing = not create and database.is_missing()
    done = {} if is_missing else database.read(_read_done)
    if not done and not create:
        raise RegistryError(f"no registry in {database}; create one with `vedette set create`")
    _check_known(database, done)
    if len(done) < len(STEPS):
        database.write(lambda connection: _make_steps(database, connection))


def _check_known(database: Database, done: dict[int, str]) -> None:
    """Raise RegistryError unless the migrations of a registry are the first ones of STEPS."""
    from vedette import __version__

    for number, (name, _) in enumerate(STEPS, 1):
        if done.get(number, name) != name:
            raise RegistryError(
                f"the registry in {database} was made by an earlier Vedette and has other tables: migration {number} "
                f"is {shown(done[number])}; Vedette {__version__} cannot update them. Export its queries with the "
                f"Vedette that made it (`vedette query export`), and import them into a new registry"
            )
    last = max(done, default=0)
    if last > len(STEPS):
        raise RegistryError(
            f"the registry in {database} was written by a newer Vedette: its tables have {last} migrations, and "
            f"Vedette {__version__} knows {len(STEPS)}; update Vedette here"
        )


def check_migrations(database: Database, n_done: int | None) -> None:
    """Raise RegistryError unless the registry has exactly the tables of this Vedette: so many migrations are done."""
    if n_done != len(STEPS):
        migrate(database, create=False)


def _read_done(connection: Connection) -> dict[int, str]:
    """The recorded migrations: the name of each by its number."""
    if not inspect(connection).has_table(migrations.name):
        return {}
    made = connection.execute(select(migrations.c.number, migrations.c.name).order_by(migrations.c.number))
    return {each.number: each.name for each in made}


def _make_steps(database: Database, connection: Connection) -> None:
    from vedette import __version__

    if database.is_postgres:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    done = _read_done(connection)  # another process may have made some while this one waited
    _check_known(database, done)
    now = database.now(connection)
    for number, (name, make) in enumerate(STEPS[len(done) :], len(done) + 1):
        make(connection)
        connection.execute(insert(migrations).values(number=number, name=name, vedette=__version__, made_at=now))
