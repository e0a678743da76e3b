"""SQLAlchemy's dialect for PostgreSQL, without the statements that it sends when a process connects for the first time.

It asks for the server's version, its schema and two settings. The driver knows what is needed of them: the server sends
it with every connection. So a new process costs the database no statement besides its own.
"""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Connection
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

DRIVER = "postgresql+vedette"


class Dialect(PGDialect_psycopg):
    """The dialect of psycopg, initialised without statements."""

    supports_statement_cache = True

    def _get_server_version_info(self, connection: Connection) -> tuple[int, int]:
        return divmod(int(_driver_info(connection).server_version), 10_000)

    def _get_default_schema_name(self, connection: Connection) -> str:
        raise NotImplementedError  # only needed to inspect other schemas

    def get_default_isolation_level(self, dbapi_conn: Any) -> Literal["READ COMMITTED"]:
        return "READ COMMITTED"  # each transaction sets its own

    def _set_backslash_escapes(self, connection: Connection) -> None:
        setting = _driver_info(connection).parameter_status("standard_conforming_strings")
        self._backslash_escapes = setting == "off"


def _driver_info(connection: Connection) -> Any:
    driver_connection: Any = connection.connection.dbapi_connection
    return driver_connection.info


registry.register("postgresql.vedette", __name__, Dialect.__name__)
