"""Standing queries over data streams, by the million.

>>> import vedette as vd
>>> alerts = vd.QuerySet("symbol string, price double")
>>> alerts.add("cheap-ibm", "symbol = 'IBM' AND price < 40")
>>> alerts.match({"symbol": ["IBM", "IBM", "SAP"], "price": [39.5, 41.0, 10.0]}).to_arrow().to_pylist()
[{'row': 0, 'query': 'cheap-ibm'}]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedette.backtesting.backtest import backtest
    from vedette.backtesting.result import Backtest
    from vedette.data.matches import Matches
    from vedette.data.schema import Schema
    from vedette.errors import (
        AnswerError,
        ConflictError,
        FileError,
        MissingPackageError,
        PipelineError,
        QueryError,
        RegistryError,
        RowError,
        SchemaError,
        SnapshotError,
        VedetteError,
    )
    from vedette.files.geojson import read_geojson
    from vedette.operators.band_join.query_set import BandQuerySet
    from vedette.operators.moving_join.moving_join import MovingJoin
    from vedette.operators.moving_join.zone_set import ZoneSet
    from vedette.operators.window_join.query_set import JoinQuerySet
    from vedette.queries.query_set import QuerySet
    from vedette.queries.why import Why
    from vedette.registry.registry import Registry

__version__ = "0.1.0"

# Where the public names live. They are imported when first used: NumPy, Numba and Arrow take their time.
_HOMES = {
    "BandQuerySet": "vedette.operators.band_join.query_set",
    "JoinQuerySet": "vedette.operators.window_join.query_set",
    "MovingJoin": "vedette.operators.moving_join.moving_join",
    "ZoneSet": "vedette.operators.moving_join.zone_set",
    "QuerySet": "vedette.queries.query_set",
    "Backtest": "vedette.backtesting.result",
    "Why": "vedette.queries.why",
    "Matches": "vedette.data.matches",
    "Registry": "vedette.registry.registry",
    "Schema": "vedette.data.schema",
    "VedetteError": "vedette.errors",
    "AnswerError": "vedette.errors",
    "QueryError": "vedette.errors",
    "SchemaError": "vedette.errors",
    "RowError": "vedette.errors",
    "SnapshotError": "vedette.errors",
    "FileError": "vedette.errors",
    "MissingPackageError": "vedette.errors",
    "PipelineError": "vedette.errors",
    "RegistryError": "vedette.errors",
    "ConflictError": "vedette.errors",
    "backtest": "vedette.backtesting.backtest",
    "read_geojson": "vedette.files.geojson",
}

__all__ = [
    "AnswerError",
    "Backtest",
    "BandQuerySet",
    "ConflictError",
    "FileError",
    "JoinQuerySet",
    "Matches",
    "MissingPackageError",
    "MovingJoin",
    "PipelineError",
    "QueryError",
    "QuerySet",
    "Registry",
    "RegistryError",
    "RowError",
    "Schema",
    "SchemaError",
    "SnapshotError",
    "VedetteError",
    "Why",
    "ZoneSet",
    "backtest",
    "read_geojson",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vedette' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
