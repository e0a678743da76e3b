"""A lease in the database: only one process at a time does a job for a set. If it dies, another can take the lease."""

from __future__ import annotations

import logging
import threading
import uuid
from typing import Self

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.exc import IntegrityError

from vedette.errors import RegistryError
from vedette.registry.store.database import Database
from vedette.registry.store.tables import leases

LEASE_SECONDS = 30.0
_log = logging.getLogger(__name__)


class Lease:
    """Held until it is released, or until the process has not renewed it for LEASE_SECONDS."""

    def __init__(self, database: Database, set_row: int, purpose: str, holder: str) -> None:
        self._database = database
        self._own = leases.c.set_id == set_row, leases.c.purpose == purpose, leases.c.holder == holder
        self._done = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="vedette-lease", daemon=True)
        self._renewal.start()

    @classmethod
    def take(cls, database: Database, set_row: int, purpose: str) -> Lease | None:
        """The lease, or None if another process has it."""
        holder = uuid.uuid4().hex

        def take(connection: Connection) -> bool:
            now = database.now(connection)
            values = {"holder": holder, "ends_at": now + int(LEASE_SECONDS * 1e6)}
            insertion = database.insert_into(leases).values(set_id=set_row, purpose=purpose, **values)
            is_free = leases.c.ends_at < now
            connection.execute(
                insertion.on_conflict_do_update(index_elements=["set_id", "purpose"], set_=values, where=is_free)
            )
            current = select(leases.c.holder).where(leases.c.set_id == set_row, leases.c.purpose == purpose)
            return connection.scalar(current) == holder

        try:
            is_ours = database.write(take)
        except IntegrityError:
            raise RegistryError(f"cannot take a lease for {purpose}: the set was dropped by another process") from None
        return cls(database, set_row, purpose, holder) if is_ours else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._renewal.join()
        try:
            self._database.write(lambda connection: connection.execute(delete(leases).where(*self._own)))
        except RegistryError as error:  # it expires by itself
            _log.warning("cannot release a lease: %s", error)

    def _renew(self) -> None:
        while not self._done.wait(LEASE_SECONDS / 3):
            try:
                self._database.write(self._extend)
            except RegistryError as error:
                _log.warning("cannot renew a lease: %s", error)

    def _extend(self, connection: Connection) -> None:
        ends_at = self._database.now(connection) + int(LEASE_SECONDS * 1e6)
        connection.execute(update(leases).where(*self._own).values(ends_at=ends_at))
