"""Optional packages, by the extra of the installation that has them: `pip install 'vedette[spark]'`.

An import that fails because an extra is not installed raises an error that names it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from vedette.errors import MissingPackageError, VedetteError

# By extra: the module that it installs, and the name of its package in messages.
_EXTRAS = {
    "metrics": ("prometheus_client", "prometheus-client"),
    "plots": ("matplotlib", "matplotlib"),
    "postgres": ("psycopg", "psycopg"),
    "serve": ("fastapi", "FastAPI"),
    "spark": ("pyspark", "PySpark"),
    "webhook": ("aiohttp", "aiohttp"),
}
_OLDEST = {"spark": "4.0"}  # the versions before it lack modules that are imported


@contextmanager
def needs_extra(extra: str, purpose: str, kind: type[VedetteError] = MissingPackageError) -> Iterator[None]:
    """Raise an error of this kind if the block imports a module of the extra that is not installed.

    `purpose` is what needs the package, and the subject of the message.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _EXTRAS[extra][0]:
            raise
        raise _missing(extra, purpose, kind) from None


def check_extra(extra: str, purpose: str) -> None:
    """Raise MissingPackageError if the package of an extra is not installed."""
    if _is_missing(_EXTRAS[extra][0]):
        raise _missing(extra, purpose, MissingPackageError)


def _missing(extra: str, purpose: str, kind: type[VedetteError]) -> VedetteError:
    module, package = _EXTRAS[extra]
    lack = f"{package}, which is not installed"
    if not _is_missing(module):  # a version that lacks a module
        found = getattr(importlib.import_module(module), "__version__", "another version")
        lack = f"{package} {_OLDEST[extra]} or later, but {found} is installed"
    error = kind(f"{purpose} needs {lack}; pip install 'vedette[{extra}]'")
    if isinstance(error, MissingPackageError):
        error.name = module
    return error


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except (ValueError, ModuleNotFoundError):  # a module without a spec, or a finder that raises
        return True
