"""A registry in Spark SQL: its query sets as functions, and as a format to read and write.

A set gets a table function, which returns one row per row and matching query, and `vedette_queries` returns the
matching ids of a row as an array. Both call the same worker as `vs.match`. A table function of Spark cannot derive its
columns from those of its argument, so it returns the fields of the set, and each set has a function of its own.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.errors import PipelineError, nearest, shown
from vedette.registry.kinds import MATCH, kinds_for
from vedette.registry.read.pins import SQL
from vedette.settings import settings
from vedette.spark.data_source import make_data_source
from vedette.spark.declared import spark_type
from vedette.spark.session_checks import check_settings
from vedette.spark.shipping.kernels import Sent, send_kernels
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import VERSION, QuerySource
from vedette.spark.table_function import make_table_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry

SCALAR = "vedette_queries"
TABLE = "vedette_match_"  # and the name of the set
_WORKER = "vedette.spark.workers.sql"
_WORD = re.compile(r"[A-Za-z0-9_]+")


def register(
    spark: SparkSession, registry: Registry, sets: Iterable[str] | Mapping[str, str | Followed] | None = None
) -> list[str]:
    """Register a registry in a session: its sets as functions of SQL, and the format "vedette" for reads and writes.

    Returns the names of the functions.

    `SELECT * FROM vedette_match_alerts(TABLE(ticks))` returns the fields of set alerts, `query` and `version`, one row
    per pair. `vedette_queries('alerts', struct(*))` returns an array of ids as strings. Table functions need Spark 4.1.

    Each micro-batch of a stream sees one version, and so does each query that is not a stream: the current one when it
    begins. `sets` are names of sets, by default all of kind match or border. A dict gives them other names in SQL:
    `sets={"prices": "price-alerts", "last_week": registry.follow("alerts", version=7)}`.

    Sets that are created, dropped or altered later need another call. The format is described in docs/sql.md.
    """
    if not hasattr(registry, "follow"):
        raise PipelineError(f"vs.register needs a vd.Registry; got {type(registry).__name__}")
    followed = _follow(registry, sets)
    calls, kernels = f"{SQL}{uuid.uuid4().hex}", send_kernels(spark)
    facts: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for name, each in followed.items():
        given = QuerySource.read(each, "vs.register", MATCH)
        _check_fields(given, name)
        try:
            check_settings(spark, given.queries)
        except PipelineError as error:
            raise PipelineError(f"{error}; or pass sets= without this set").within(f"set {each.name!r}") from None
        facts[name] = given.pack_followed(is_live=True) | {"calls": calls}
        if hasattr(f, "arrow_udtf"):  # from Spark 4.1 on
            tables[TABLE + name] = _table_function(facts[name], given, kernels)
    for name, function in tables.items():
        spark.udtf.register(name, function)
    if facts:
        spark.udf.register(SCALAR, _scalar_function(facts, kernels))
    spark.dataSource.register(make_data_source(registry))
    return [*tables, *([SCALAR] if facts else [])]


def _follow(registry: Registry, sets: Any) -> dict[str, Followed]:
    """The sets to register, by their names in SQL."""
    kinds = [kind.name for kind in kinds_for(MATCH)]
    known = {info.name: info.kind for info in registry.sets()}
    if sets is None:
        sets = [name for name, kind in known.items() if kind in kinds]
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise PipelineError(f"must be names of sets, as a list or a dict; got {shown(sets)}", option="sets")
    wanted = dict(sets) if isinstance(sets, Mapping) else {name: name for name in sets}
    found: dict[str, Followed] = {}
    folded: dict[str, str] = {}
    for name, which in wanted.items():
        if not hasattr(which, "to_plain"):
            if not isinstance(which, str) or which not in known:
                has = f"it has: {', '.join(known)}{nearest(str(which), known)}" if known else "it is empty"
                raise PipelineError(f"the registry has no set {shown(which)}; {has}")
            which = registry.follow(which)
        _check_name(name)
        if name.lower() in folded:
            raise PipelineError(
                f"sets {folded[name.lower()]!r} and {which.name!r} would both be {TABLE}{name.lower()}: SQL ignores "
                f"case; give one another name: sets={{'another_name': {which.name!r}, ...}}"
            )
        folded[name.lower()] = which.name
        found[name] = which
    return found


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise PipelineError(
            f"the name {shown(name)} cannot be part of the name of a SQL function: only letters A to Z, digits and "
            f"underscores can; give the set another name in SQL: sets={{'another_name': {shown(name)}, ...}}"
        )


def _check_fields(given: QuerySource, name: str) -> None:
    for field in given.queries.schema:
        if field.name.lower() in ("query", VERSION):
            raise PipelineError(
                f"set {name!r} has a field {field.name!r}, and {TABLE}{name} adds a column with that name; alter the "
                f"schema of the set, or pass sets= without it"
            )


def _table_function(facts: dict[str, Any], given: QuerySource, kernels: Sent | None) -> Any:
    """A table function from Arrow batches to Arrow batches. It does not import this package until it runs."""
    bound = (facts, settings().answer_batch_bytes)
    match = worker_function(_WORKER, "match_table", facts["sender"], *bound, kernels=kernels)
    fields = [t.StructField(field.name, spark_type(field)) for field in given.queries.schema]
    answer = [t.StructField("query", given.id_type), *given.added_columns]
    return make_table_function(match, t.StructType([*fields, *answer]))


def _scalar_function(facts: dict[str, Any], kernels: Sent | None) -> Any:
    """A function from the name of a set and a struct to an array of ids."""
    sender = next(iter(facts.values()))["sender"]
    returned = t.ArrayType(t.StringType(), False)
    if hasattr(f, "arrow_udf"):  # from Spark 4.1 on
        bound = (facts, settings().answer_batch_bytes)
        find = worker_function(_WORKER, "find_queries", sender, *bound, kernels=kernels)

        def queries(sets: pa.Array, rows: pa.Array) -> pa.Array:  # Spark reads the types
            return find(sets, rows)

        return f.arrow_udf(queries, returned)
    find_one = worker_function(_WORKER, "find_queries_of_row", sender, facts, kernels=kernels)
    return f.udf(lambda name, row: find_one(name, row), returned, useArrow=False)
