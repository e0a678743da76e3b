"""Where a registry is, such as sqlite:///alerts.db or postgresql://user@host/database, shown without secrets."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from vedette.errors import RegistryError

_WANTED = "write sqlite:///alerts.db for a file, or postgresql://user:password@host/database"
_SECRETS = ("password", "sslpassword", "passfile", "sslkey")


def read_address(url: str | URL) -> URL:
    """The address, with the driver we use. Errors do not repeat what they got: it may hold a password."""
    if not isinstance(url, (str, URL)):
        raise RegistryError(f"a registry's address is a text; {_WANTED}; got {type(url).__name__}")
    try:
        read = make_url(url)
        backend = read.get_backend_name()
    except (ArgumentError, ValueError):
        raise RegistryError(f"cannot read the registry's address; {_WANTED}") from None
    if backend in ("postgresql", "postgres"):
        if "@" in f"{read.host}{read.database}":
            raise RegistryError(
                "an '@' in the registry's address separates the password from the host, and there is another after it; "
                "write '@' in a user's name or password as %40, and every other sign but letters and digits likewise"
            )
        return read.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise RegistryError(f"a registry is on SQLite or on PostgreSQL, not on {backend!r}; {_WANTED}")
    if read.database in (None, "", ":memory:") or "mode=memory" in str(read.query):
        raise RegistryError("a registry on SQLite is a file, which other processes can open; write sqlite:///alerts.db")
    return read


def show_address(url: URL) -> str:
    """The address without passwords."""
    query = {name: "***" if name in _SECRETS else value for name, value in url.query.items()}
    shown = url.set(drivername=url.get_backend_name(), query=query).render_as_string(hide_password=True)
    return shown.replace("%2A%2A%2A", "***")


def without_secrets(text: str, url: URL) -> str:
    """A text, in which passwords of the address are stars."""
    secrets = [url.password, *(value for name, value in url.query.items() if name in _SECRETS)]
    for secret in secrets:
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "***")
    return text
