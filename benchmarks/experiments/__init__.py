"""The experiments: importing this package registers them all."""

from __future__ import annotations

from benchmarks.experiments import (
    band_join,
    border,
    churn,
    construct_indexes,
    latency,
    loading,
    match_1d,
    match_2d,
    match_many,
    memory,
    moving,
    mtb_interval,
    mtb_join,
    planner,
    registry,
    spark_border,
    spark_join,
    spark_match,
    spatial_join,
    spatial_join_windows,
)

__all__ = [
    "band_join",
    "border",
    "churn",
    "construct_indexes",
    "latency",
    "loading",
    "match_1d",
    "match_2d",
    "match_many",
    "memory",
    "moving",
    "mtb_interval",
    "mtb_join",
    "planner",
    "registry",
    "spark_border",
    "spark_join",
    "spark_match",
    "spatial_join",
    "spatial_join_windows",
]
