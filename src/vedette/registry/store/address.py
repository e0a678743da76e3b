"""The address of a registry, such as sqlite:///alerts.db or postgresql://user@host/database, shown without secrets."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from vedette.errors import RegistryError

_WANTED = "write sqlite:///alerts.db for a file, or postgresql://user:password@host/database"
_SECRETS = ("password", "sslpassword", "passfile", "sslkey")


def read_address(url: str | URL) -> URL:
    """The address, with the driver to use. Errors do not repeat the given address: it may contain a password."""
    if not isinstance(url, (str, URL)):
        raise RegistryError(f"the registry's address must be a string; {_WANTED}; got {type(url).__name__}")
    try:
        read = make_url(url)
        backend = read.get_backend_name()
    except (ArgumentError, ValueError):
        raise RegistryError(f"the registry's address is invalid; {_WANTED}") from None
    if backend in ("postgresql", "postgres"):
        if "@" in f"{read.host}{read.database}":
            raise RegistryError(
                "the registry's address contains more than one '@'; only the one between password and host is allowed; "
                "percent-encode special characters in a user name or password: write '@' as %40"
            )
        return read.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise RegistryError(f"a registry needs SQLite or PostgreSQL, not {backend!r}; {_WANTED}")
    if read.database in (None, "", ":memory:") or "mode=memory" in str(read.query):
        raise RegistryError(
            "a SQLite registry must be a file that other processes can open, not in memory; write sqlite:///alerts.db"
        )
    return read


def show_address(url: URL) -> str:
    """The address without passwords."""
    query = {name: "***" if name in _SECRETS else value for name, value in url.query.items()}
    shown = url.set(drivername=url.get_backend_name(), query=query).render_as_string(hide_password=True)
    return shown.replace("%2A%2A%2A", "***")


def without_secrets(text: str, url: URL) -> str:
    """A text with the passwords of the address replaced by stars."""
    secrets = [url.password, *(value for name, value in url.query.items() if name in _SECRETS)]
    for secret in secrets:
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "***")
    return text
