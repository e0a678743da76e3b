"""Dead letters in the database of a registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, and_, delete, select, tuple_

from vedette.delivery.dead_letters import Letter, Part
from vedette.registry.store.database import Database
from vedette.registry.store.migrations import migrate
from vedette.registry.store.tables import dead_letters
from vedette.registry.store.times import as_datetime, to_microseconds

_PAGE = 500  # letters per statement


class DatabaseLetters:
    def __init__(self, url: str) -> None:
        self._database = Database(url)
        migrate(self._database, create=False)

    def __str__(self) -> str:
        return str(self._database)

    def write(self, part: Part, letters: Sequence[Letter]) -> None:
        table = dead_letters.c
        same = and_(table.stream == part.stream, table.batch == (part.batch or 0), table.task == part.task)

        def replace(connection: Connection) -> None:
            connection.execute(delete(dead_letters).where(same))
            self._insert(connection, letters, part.task)

        self._database.write(replace)

    def read(self) -> Iterator[Letter]:
        names = [column for column in dead_letters.c if column.name != "task"]
        query = select(*names).order_by(dead_letters.c.failed_at, dead_letters.c.id)
        for row in self._database.read(lambda connection: connection.execute(query).mappings().all()):
            yield Letter(**{**row, "failed_at": as_datetime(row["failed_at"])})

    def remove(self, letters: Iterable[Letter]) -> int:
        keys = [(each.source, each.id) for each in letters]

        def remove(connection: Connection) -> int:
            return sum(
                connection.execute(delete(dead_letters).where(_is_among(keys[start : start + _PAGE]))).rowcount
                for start in range(0, len(keys), _PAGE)
            )

        return self._database.write(remove)

    def update(self, letters: Iterable[Letter]) -> None:
        given = list(letters)
        self._database.write(lambda connection: self._insert(connection, given, None))

    def _insert(self, connection: Connection, letters: Sequence[Letter], task: str | None) -> None:
        """Insert letters; those with the same source and id are replaced."""
        if not letters:
            return
        insert = self._database.insert_into(dead_letters)
        rows = {(each.source, each.id): _to_row(each, task) for each in letters}
        kept = ("source", "id") if task is not None else ("source", "id", "task", "stream", "batch")
        new = {column.name: insert.excluded[column.name] for column in dead_letters.c if column.name not in kept}
        connection.execute(insert.on_conflict_do_update(index_elements=["source", "id"], set_=new), list(rows.values()))


def _is_among(keys: Sequence[tuple[str, str]]) -> Any:
    return tuple_(dead_letters.c.source, dead_letters.c.id).in_(keys)


def _to_row(letter: Letter, task: str | None) -> dict[str, Any]:
    at = to_microseconds(letter.failed_at, "failed_at")
    row = asdict(letter) | {"failed_at": at, "batch": letter.batch or 0, "task": task or ""}
    # PostgreSQL has no texts with the character 0.
    return {name: value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in row.items()}
