"""Checks of the Spark session: predicates must have the same meaning under its settings as in the query set.

Every setting of Spark 4.3 that could matter was changed in turn, and the answers of random predicates were compared;
those below change answers. Settings are read when a transform is applied to a DataFrame; later changes have no effect
on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vedette.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from vedette.operators.window_join.query_set import JoinQuerySet
    from vedette.queries.query_set import QuerySet

_ANSI = "spark.sql.ansi.enabled"
_ZONE = "spark.sql.session.timeZone"
_UTC_NAMES = {"UTC", "ETC/UTC", "Z", "GMT", "UTC+0", "+00:00", "UTC+00:00", "GMT+0", "ZULU", "ETC/UCT", "UCT"}


@dataclass(frozen=True)
class Setting:
    """A setting, the value that queries assume, and what another value changes."""

    name: str
    value: str
    changes: str


SETTINGS = (
    Setting(_ANSI, "true", "how types meet and which casts are allowed"),
    Setting("spark.sql.ansi.doubleQuotedIdentifiers", "false", 'whether "x" is a string or a field'),
    Setting("spark.sql.parser.escapedStringLiterals", "false", "what a backslash means in a string"),
    Setting("spark.sql.legacy.consecutiveStringLiterals.enabled", "false", "what 'a''b' means"),
    Setting("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "false", "the type of 1e3"),
    Setting("spark.sql.legacy.literal.pickMinimumPrecision", "true", "the precision of integers beside decimals"),
    Setting("spark.sql.decimalOperations.allowPrecisionLoss", "true", "the scale of decimal results"),
    Setting("spark.sql.legacy.decimal.retainFractionDigitsOnTruncate", "false", "the scale of decimal results"),
    Setting("spark.sql.timestampType", "TIMESTAMP_LTZ", "whether a timestamp has a time zone"),
    Setting("spark.sql.session.collation.default", "UTF8_BINARY", "how strings are compared"),
)


def check_session(rows: DataFrame, queries: QuerySet | JoinQuerySet) -> None:
    """Raise PipelineError unless predicates have the same meaning in the session of the rows as in the query set."""
    check_settings(rows.sparkSession, queries)


def check_settings(spark: SparkSession, queries: QuerySet | JoinQuerySet) -> None:
    """The same, of a session."""
    conf = spark.conf
    zone = conf.get(_ZONE) or ""
    if _folded(zone) != _folded(queries.time_zone):
        raise PipelineError(
            f"the Spark session's time zone is {zone!r} but the query set's is {queries.time_zone!r}; set it: "
            f'spark.conf.set("{_ZONE}", {queries.time_zone!r}), or create the set with time_zone={zone!r}'
        )
    for setting in SETTINGS:
        # The default of ANSI mode depends on the environment of the Spark server, so it is read from there.
        got = conf.get(setting.name) if setting.name == _ANSI else conf.get(setting.name, setting.value)
        if (got or "").upper() != setting.value.upper():
            raise PipelineError(
                f"the Spark session has {setting.name}={got}, which changes {setting.changes}; queries assume "
                f'{setting.value}; set it before the transform: spark.conf.set("{setting.name}", "{setting.value}")'
            )


def _folded(zone: str) -> str:
    return "UTC" if zone.upper() in _UTC_NAMES else zone
