"""Translates failures of the database into errors for the owner of a registry, without secrets."""

from __future__ import annotations

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from vedette.errors import RegistryError, count
from vedette.registry.store.address import show_address, without_secrets

_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "not permitted")
_RETRYABLE_STATES = ("08", "40", "57P", "53300", "55P03")  # connection lost, deadlock, shutdown, too many, lock
_CONNECTION_ERRORS = ("OperationalError", "ConnectionTimeout", "InterfaceError", "AdminShutdown")


class ReadOnlyError(RegistryError):
    """The database cannot be written."""


class DeniedError(RegistryError):
    """The account has no permission for an operation on the database."""


class DroppedError(RegistryError):
    """The set was dropped. A set with the same name is another set."""


def is_retryable(error: SQLAlchemyError) -> bool:
    """Whether a retry may succeed."""
    original, state = _original(error)
    if _is_sqlite(original) or isinstance(error, PoolTimeoutError):
        return False  # both have already waited
    if state:
        return state.startswith(_RETRYABLE_STATES)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    is_refusal = any(refusal in str(original) for refusal in _REFUSALS)
    return type(original).__name__ in _CONNECTION_ERRORS and not is_refusal


def explain_failure(error: SQLAlchemyError, url: URL, n_attempts: int, waited: float) -> RegistryError:
    """The error for the owner."""
    original, state = _original(error)
    where = f"the registry's database {show_address(url)}"
    said = without_secrets(" ".join(str(original).split()), url)
    low = said.lower()
    of_sqlite = low if _is_sqlite(original) else ""  # PostgreSQL's messages contain names of users; it has states
    if "readonly" in of_sqlite or "read-only" in of_sqlite or state == "25006":
        return ReadOnlyError(f"{where} is read-only, so nothing was changed; it can still be read")
    if "is locked" in of_sqlite or state == "55P03":
        return RegistryError(
            f"{where} is locked by another process, so nothing was changed; try again later, or use PostgreSQL if many "
            f"processes write",
            is_retryable=True,
        )
    if "disk is full" in of_sqlite or "no space left" in of_sqlite or state == "53100":
        reason = f"the disk of {where} is full, so nothing was changed; free some space and try again"
        return RegistryError(reason, is_retryable=True)
    if "unable to open database file" in of_sqlite:
        return RegistryError(
            f"cannot open {where}: check that the directory exists and that this account can read and write the file; "
            f"only the owner can, unless the setting file_mode allows more"
        )
    if "not a database" in of_sqlite or "malformed" in of_sqlite:
        return RegistryError(f"{where} is not a SQLite database, or is damaged: {said}")
    if state == "42501":
        return DeniedError(f"{where} denied access: {said}")
    if any(refusal in low for refusal in _REFUSALS):
        return RegistryError(f"{where} denied access: {said}")
    if isinstance(error, PoolTimeoutError):
        reason = f"all connections to {where} have been in use for {waited:.0f} seconds; use fewer threads"
        return RegistryError(reason, is_retryable=True)
    if not is_retryable(error):
        return RegistryError(f"{where} failed, so nothing was changed: {said}")
    tried = f"tried {count(n_attempts, 'time')} in {waited:.0f} seconds; " if n_attempts > 1 else ""
    reason = f"{where} cannot be reached: {said}; {tried}check that it is running and that this host can connect to it"
    return RegistryError(reason, is_retryable=True)


def _is_sqlite(original: BaseException) -> bool:
    return type(original).__module__.startswith("sqlite3")


def _original(error: SQLAlchemyError) -> tuple[BaseException, str]:
    """The driver's own error, and its SQLSTATE if it has one."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return original, str(getattr(original, "sqlstate", None) or "")
