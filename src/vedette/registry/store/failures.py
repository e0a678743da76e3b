"""What a failure of the database means for the owner of a registry, in a sentence without secrets."""

from __future__ import annotations

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from vedette.errors import RegistryError, count
from vedette.registry.store.address import show_address, without_secrets

_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "not permitted")
_PASSING_STATES = ("08", "40", "57P", "53300", "55P03")  # connection lost, deadlock, shutdown, too many, lock
_CONNECTION_ERRORS = ("OperationalError", "ConnectionTimeout", "InterfaceError", "AdminShutdown")


class ReadOnlyError(RegistryError):
    """The database cannot be written."""


class DeniedError(RegistryError):
    """The database lets us in, and not do what we asked for."""


class DroppedError(RegistryError):
    """A set that was asked for is no more; one of its name is another."""


def is_retryable(error: SQLAlchemyError) -> bool:
    """Whether trying again may help."""
    original, state = _original(error)
    if _is_sqlite(original) or isinstance(error, PoolTimeoutError):
        return False  # it was waited for already
    if state:
        return state.startswith(_PASSING_STATES)
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
    of_sqlite = low if _is_sqlite(original) else ""  # PostgreSQL has states, and repeats the names of hosts and users
    if "readonly" in of_sqlite or "read-only" in of_sqlite or state == "25006":
        return ReadOnlyError(f"{where} is read-only, so nothing was changed; it can still be read")
    if "is locked" in of_sqlite or state == "55P03":
        return RegistryError(
            f"{where} is locked by another process that does not end its change, so nothing was changed; try again "
            f"later, or use PostgreSQL where many write",
            is_retryable=True,
        )
    if "disk is full" in of_sqlite or "no space left" in of_sqlite or state == "53100":
        reason = f"the disk of {where} is full, so nothing was changed; make room and try again"
        return RegistryError(reason, is_retryable=True)
    if "unable to open database file" in of_sqlite:
        return RegistryError(
            f"cannot open {where}: is there such a directory, and may this account read and write the file? It is "
            f"created for its owner alone unless file_mode is set"
        )
    if "not a database" in of_sqlite or "malformed" in of_sqlite:
        return RegistryError(f"{where} is no database of SQLite, or is damaged: {said}")
    if state == "42501":
        return DeniedError(f"{where} refuses us: {said}")
    if any(refusal in low for refusal in _REFUSALS):
        return RegistryError(f"{where} refuses us: {said}")
    if isinstance(error, PoolTimeoutError):
        reason = f"all connections to {where} are in use for {waited:.0f} seconds; use fewer threads"
        return RegistryError(reason, is_retryable=True)
    if not is_retryable(error):
        return RegistryError(f"{where} failed, so nothing was changed: {said}")
    tried = f"tried {count(n_attempts, 'time')} in {waited:.0f} seconds; " if n_attempts > 1 else ""
    reason = f"{where} cannot be reached: {said}; {tried}is it running, and may this host connect to it?"
    return RegistryError(reason, is_retryable=True)


def _is_sqlite(original: BaseException) -> bool:
    return type(original).__module__.startswith("sqlite3")


def _original(error: SQLAlchemyError) -> tuple[BaseException, str]:
    """The driver's own error, and its SQLSTATE where it has one."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return original, str(getattr(original, "sqlstate", None) or "")
