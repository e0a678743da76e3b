"""Migrations: old registries are brought up to date, and new ones run all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Text, inspect, text

import vedette as vd
from vedette.registry.store import first_tables, migrations
from vedette.registry.store.tables import METADATA, revisions

NOTE = "a note with each query"


def where(index: Any) -> list[str]:
    """The condition of a partial index."""
    options = index.get("dialect_options", {})
    return [" ".join(str(condition).split()) for name, condition in options.items() if name.endswith("_where")]


def describe(registry: vd.Registry) -> dict[str, Any]:
    """All tables with their columns, keys and indexes; columns may be in any order."""

    def read(connection: Connection) -> dict[str, Any]:
        found = inspect(connection)
        return {
            table: {
                "columns": {
                    each["name"]: (str(each["type"]), getattr(each["type"], "collation", None), each["nullable"])
                    for each in found.get_columns(table)
                },
                "key": found.get_pk_constraint(table)["constrained_columns"],
                "foreign": [
                    (each["constrained_columns"], each["referred_table"], each["referred_columns"])
                    for each in found.get_foreign_keys(table)
                ],
                "unique": sorted(each["column_names"] for each in found.get_unique_constraints(table)),
                "indexes": {
                    each["name"]: (each["column_names"], bool(each["unique"]), where(each))
                    for each in found.get_indexes(table)
                },
            }
            for table in found.get_table_names()
        }

    return registry.database.read(read)


def make_as_in_code(registry: vd.Registry) -> None:
    """Create the tables again as the code declares them, without migrations."""

    def make(connection: Connection) -> None:
        METADATA.drop_all(connection)
        METADATA.create_all(connection)

    registry.database.write(make)


@pytest.fixture
def learn_note(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Simulates a later Vedette with one more column and the migration that adds it."""
    note: Column[str] = Column("note", Text)

    def add_note(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE vedette_revisions ADD COLUMN note TEXT"))
        connection.execute(text("UPDATE vedette_revisions SET note = 'old'"))

    def learn() -> None:
        revisions.append_column(note)
        monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, (NOTE, add_note)])

    yield learn
    if note.table is revisions:
        revisions._columns.remove(note)  # type: ignore[attr-defined]


def notes(registry: vd.Registry) -> list[tuple[Any, ...]]:
    statement = text("SELECT name, note FROM vedette_revisions ORDER BY name")
    return registry.database.read(lambda connection: [tuple(each) for each in connection.execute(statement)])


def test_the_migrations_make_the_tables_that_the_code_declares(registry: vd.Registry) -> None:
    made = describe(registry)
    indexes = made["vedette_revisions"]["indexes"].values()
    assert (len(indexes), sum(bool(condition) for _, _, condition in indexes)) == (
        8,
        7,
    )  # with their conditions

    make_as_in_code(registry)

    assert made == describe(registry), "tables.py has changed: add a step to migrations.py that does the same"


def test_an_old_registry_is_migrated_with_its_queries(
    open_registry: Callable[..., vd.Registry], learn_note: Callable[[], None]
) -> None:
    old = open_registry()
    old.create("alerts", schema="price double")
    old.add_many("alerts", ["a", "b"], ["price < 1", "price < 2"], metadata={"owner": "ann"})
    learn_note()

    new = open_registry(create=False)
    new.add("alerts", "c", "price < 3")

    assert [(each.id, each.text) for each in new.list("alerts", metadata={"owner": "ann"})] == [
        ("a", "price < 1"),
        ("b", "price < 2"),
    ]
    assert notes(new) == [("a", "old"), ("b", "old"), ("c", None)]
    assert notes(open_registry()) == notes(new)  # a migration runs once
    made = describe(new)
    make_as_in_code(new)
    assert made == describe(new)


def test_a_new_registry_runs_all_migrations(
    open_registry: Callable[..., vd.Registry], learn_note: Callable[[], None]
) -> None:
    learn_note()

    new = open_registry()
    new.create("alerts", schema="price double")
    new.add("alerts", "a", "price < 1")

    assert notes(new) == [("a", None)]
    done = text("SELECT number, name FROM vedette_migrations ORDER BY number")
    made = new.database.read(lambda connection: [tuple(each) for each in connection.execute(done)])
    assert made == [(number, name) for number, (name, _) in enumerate(migrations.STEPS, 1)]
    assert made[-1][1] == NOTE


def test_a_failed_migration_changes_nothing(
    open_registry: Callable[..., vd.Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = open_registry()
    before = describe(old)

    def fail(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE vedette_revisions ADD COLUMN note TEXT"))
        connection.execute(text("ALTER TABLE vedette_revisions ADD COLUMN note TEXT"))

    monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, (NOTE, fail)])
    with pytest.raises(vd.RegistryError, match="failed, so nothing was changed"):
        open_registry()
    monkeypatch.undo()

    assert describe(open_registry()) == before


def test_a_registry_with_the_tables_of_an_earlier_vedette_is_refused_with_the_way_out(
    open_registry: Callable[..., vd.Registry],
) -> None:
    names = ["tables of sets, lives, versions, pins, snapshots and leases", "the run of a pipeline that made a pin"]
    old = open_registry()

    def record(connection: Connection) -> None:
        connection.execute(text("DELETE FROM vedette_migrations"))
        for number, name in enumerate(names, 1):
            values = {"number": number, "name": name}
            connection.execute(text("INSERT INTO vedette_migrations VALUES (:number, :name, '0.1.0', 0)"), values)

    old.database.write(record)

    for create in (False, True):
        with pytest.raises(vd.RegistryError) as caught:
            open_registry(create=create)
        message = str(caught.value)
        assert f"was made by an earlier Vedette and has other tables: migration 1 is {names[0]!r}; Vedette " in message
        assert message.endswith("(`vedette query export`), and import them into a new registry")
        assert "newer" not in message


@pytest.mark.parametrize(
    ("is_postgres", "digest"), [(False, "3f0570b3f679b853"), (True, "05473ee2f4442f28")], ids=["sqlite", "postgres"]
)
def test_the_first_migration_never_changes(is_postgres: bool, digest: str) -> None:
    statements = "\n".join(first_tables.statements(is_postgres))

    found = hashlib.blake2b(statements.encode(), digest_size=8).hexdigest()

    assert found == digest, "registries exist that the step has made; leave it, and add another to migrations.py"
