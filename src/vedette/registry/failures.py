"""What a failure of the database means for the owner of a registry, in a sentence without secrets."""

from __future__ import annotations

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from vedette.errors import RegistryError, count
from vedette.registry.address import show_address, without_secrets

_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "not permitted")
_PASSING_STATES = ("08", "40", "57P", "53300", "55P03")  # connection lost, deadlock, shutdown, too many, lock


def is_passing(error: SQLAlchemyError) -> bool:
    """Whether trying again may help."""
    original, state = _original(error)
    if state:
        return state.startswith(_PASSING_STATES)
    if type(original).__module__.startswith("sqlite3"):
        return False  # SQLite has waited for its locks itself
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return type(original).__name__ in ("OperationalError", "ConnectionTimeout", "InterfaceError") and not any(
        refusal in str(original) for refusal in _REFUSALS
    )


def explain_failure(error: SQLAlchemyError, url: URL, n_attempts: int, waited: float) -> RegistryError:
    """The error for the owner."""
    original, state = _original(error)
    where = show_address(url)
    said = without_secrets(" ".join(str(original).split()), url)
    if not is_passing(error) and state[:2] not in ("", "25", "42", "53", "28", "3D"):
        return RegistryError(f"the registry's database {where} failed, so nothing was changed: {said}")
    tried = f"tried {count(n_attempts, 'time')} in {waited:.0f} seconds; " if n_attempts > 1 else ""
    return RegistryError(_explain(said, state, where, tried))


def _explain(said: str, state: str, where: str, tried: str) -> str:
    low = said.lower()
    if "readonly" in low or "read-only" in low or state == "25006":
        return (
            f"the registry's database {where} is read-only, so nothing was changed; it can still be read and followed"
        )
    if state == "42501":
        return f"this user may not do that in the registry's database {where}: {said}"
    if "database is locked" in low or "database table is locked" in low or state == "55P03":
        return (
            f"the registry's database {where} is locked by another process that does not end its change, so nothing was "
            f"changed; try again later, or use PostgreSQL where many write"
        )
    if "disk is full" in low or "no space left" in low or state == "53100":
        return f"the disk of the registry's database {where} is full, so nothing was changed; make room and try again"
    if "unable to open database file" in low:
        return f"cannot open the registry's file {where}: is there such a directory, and may we write in it?"
    if "not a database" in low or "malformed" in low:
        return f"{where} is no SQLite database, or is damaged: {said}"
    if any(refusal in low for refusal in _REFUSALS):
        return f"the registry's database {where} refuses us: {said}"
    return f"the registry's database {where} cannot be reached: {said}; {tried}is it running, and may this host connect to it?"


def _original(error: SQLAlchemyError) -> tuple[BaseException, str]:
    """The driver's own error, and its SQLSTATE where it has one."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return original, str(getattr(original, "sqlstate", None) or "")
