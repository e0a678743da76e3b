"""Vedette inside a Spark pipeline: transforms of DataFrames, and a session with suitable settings.

    from vedette import spark as vs

    hits = ticks.transform(vs.match(alerts))

The transforms use no SparkContext, so they also work through Spark Connect.
"""

from __future__ import annotations

from vedette.extras import needs_extra

with needs_extra("spark", "vedette.spark"):
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
