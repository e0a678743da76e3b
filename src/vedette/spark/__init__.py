"""Vedette inside a Spark pipeline: transforms of DataFrames, and a session with suitable settings.

    from vedette import spark as vs

    hits = ticks.transform(vs.match(alerts))

The transforms use no SparkContext, so they also work through Spark Connect.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vedette.extras import needs_extra

with needs_extra("spark", "vedette.spark"):
    import pyspark.sql.streaming.stateful_processor  # noqa: F401 releases before 4.0 lack it

if TYPE_CHECKING:
    from vedette.spark.backtest import backtest
    from vedette.spark.band_join import band_join
    from vedette.spark.border import border
    from vedette.spark.match import match
    from vedette.spark.moving_join import moving_join
    from vedette.spark.moving_pairs import moving_pairs
    from vedette.spark.register import register
    from vedette.spark.reported import RemoveReported
    from vedette.spark.session import session
    from vedette.spark.webhook import webhook
    from vedette.spark.window_join import window_join

__all__ = [
    "RemoveReported",
    "backtest",
    "band_join",
    "border",
    "match",
    "moving_join",
    "moving_pairs",
    "register",
    "session",
    "webhook",
    "window_join",
]

# Most names are those of their modules. They are imported when first used: a worker needs none of them.
_HOMES = {name: name for name in __all__} | {"RemoveReported": "reported"}


class _Package(ModuleType):
    """Importing `vedette.spark.match` does not bind the name `match`, which is the transform, to that module."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vedette.spark' has no attribute {name!r}")
    value = getattr(import_module(f"vedette.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
