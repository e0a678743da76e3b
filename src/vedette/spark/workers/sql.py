"""Functions of SQL inside Spark's Python workers: they find the columns by name, and match as `vs.match` does."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from vedette.data.moments import NOW
from vedette.data.schema import Schema, arrow_type
from vedette.errors import AnswerError, PipelineError, RowError, nearest, shown
from vedette.spark.checks import find_fields
from vedette.spark.workers.following import open_queries
from vedette.spark.workers.match import match_batches

_LONGEST_ARRAY = 2**31 - 1  # bytes of the strings in an Arrow array


def match_table(facts: dict[str, Any], batch_bytes: int, rows: Any) -> Iterator[pa.RecordBatch]:
    """The fields of the set, `query` and `version`: one row per row of a batch and matching query."""
    if not isinstance(rows, pa.RecordBatch):
        raise RowError(
            f"the argument of a function vedette_match_... must be a table: vedette_match_alerts(TABLE(ticks)); got "
            f"{rows.type}"
        )
    schema = _read_schema(facts["followed"]["info"]["schema"][""])
    fields = _read_fields(rows, schema, "the table")
    yield from match_batches(facts, _places(fields), "pairs", batch_bytes, False, iter([fields]))


def find_queries(sets: dict[str, dict[str, Any]], batch_bytes: int, names: pa.Array, rows: pa.Array) -> pa.Array:
    """For each row, a struct, the ids of the matching queries of the set with that name, as strings."""
    if not pa.types.is_struct(rows.type):
        raise RowError(f"the second argument of vedette_queries must be a struct, such as struct(*); got {rows.type}")
    columns = pa.RecordBatch.from_arrays(rows.flatten(), names=[field.name for field in rows.type])
    distinct = pc.unique(names).to_pylist()
    if len(distinct) == 1:
        return _find(_facts_of(sets, distinct[0]), batch_bytes, columns)
    found, order = [pa.array([], pa.list_(pa.string()))], [np.empty(0, np.int64)]
    for name in distinct:
        facts = _facts_of(sets, name)
        chosen = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
        found.append(_find(facts, batch_bytes, columns.take(pa.array(chosen))))
        order.append(chosen)
    return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))


def find_queries_of_row(sets: dict[str, dict[str, Any]], name: Any, row: Any) -> list[str]:
    """The same for one row, in a version of Spark that passes single rows."""
    facts = _facts_of(sets, name)
    if row is not None and not hasattr(row, "__fields__"):
        raise RowError(f"the second argument of vedette_queries must be a struct, such as struct(*); got {shown(row)}")
    schema = _read_schema(facts["followed"]["info"]["schema"][""])
    values = {} if row is None else _fields_of_row(row, schema)
    queries = open_queries(facts).queries
    now = None if row is None or NOW not in row.__fields__ else row[NOW].astimezone(datetime.UTC)
    if now is None and queries.uses_now:
        raise PipelineError(
            f"a query uses now(), and the struct has no moment; add current_timestamp() AS `{NOW}` to it"
        )
    return [str(query) for query in queries.match_one(values, now=now)]


def _find(facts: dict[str, Any], batch_bytes: int, rows: pa.RecordBatch) -> pa.Array:
    schema = _read_schema(facts["followed"]["info"]["schema"][""])
    fields = _read_fields(rows, schema, "the struct")
    parts = match_batches(facts, _places(fields), "list", batch_bytes, False, iter([fields]))
    lists = [part.column("queries").cast(pa.list_(pa.string())) for part in parts]
    if sum(part.nbytes for part in lists) > _LONGEST_ARRAY:
        raise AnswerError(
            f"the ids that {rows.num_rows:,} rows match take more than 2 GB, the most that vedette_queries can return "
            f"at once; use vedette_match_..., or lower spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    return pa.concat_arrays(lists) if lists else pa.array([], pa.list_(pa.string()))


def _facts_of(sets: dict[str, dict[str, Any]], name: Any) -> dict[str, Any]:
    """The set with that name in SQL."""
    if name not in sets:
        has = f"vs.register knew: {', '.join(sets)}{nearest(str(name), sets)}"
        raise PipelineError(f"vedette_queries: unknown set {shown(name)}; {has}; call vs.register again for new sets")
    return sets[name]


@lru_cache(maxsize=64)
def _read_schema(text: str) -> Schema:
    return Schema.parse(text)


def _places(fields: pa.RecordBatch) -> dict[str, int]:
    return {name: place for place, name in enumerate(fields.schema.names)}


def _read_fields(rows: pa.RecordBatch, schema: Schema, frame: str) -> pa.RecordBatch:
    """The columns of the fields, in the order and with the types of the schema, and the moment if there is one.

    Raises RowError if a column does not fit.
    """
    columns = [t.StructField(column.name, _spark_type(column, schema)) for column in rows.schema]
    places = find_fields(columns, schema, schema.names, frame, follows=True)
    arrays = [rows.column(places[field.name]) for field in schema]
    fields = [
        array if field.type.name == "string" else array.cast(arrow_type(field.type))
        for field, array in zip(schema, arrays, strict=True)
    ]
    names = schema.names
    if schema.find(NOW) is None and NOW in rows.schema.names:
        fields, names = [*fields, _check_moment(rows.column(NOW))], [*names, NOW]
    return pa.RecordBatch.from_arrays(fields, names=names)


def _check_moment(moments: pa.Array) -> pa.Array:
    """One moment for all rows. Raises RowError if there are several, or something else."""
    if not pa.types.is_timestamp(moments.type) or len(pc.unique(moments)) > 1 or moments.null_count:
        raise RowError(
            f"the column `{NOW}` must be one moment for all rows: current_timestamp() AS `{NOW}`; got values of type "
            f"{moments.type}, {len(pc.unique(moments)):,} of them distinct"
        )
    return moments


def _spark_type(column: pa.Field, schema: Schema) -> t.DataType:
    """The type of a column in Spark, if it is a field of the schema."""
    return t.NullType() if schema.find(column.name) is None else from_arrow_type(column.type)


def _fields_of_row(row: Any, schema: Schema) -> dict[str, Any]:
    """The values of the fields. Spark passes timestamps without a zone, in that of the worker's system."""
    names = list(row.__fields__)
    values: dict[str, Any] = {}
    for field in schema:
        found = [place for place, name in enumerate(names) if name.lower() == field.name.lower()]
        if len(found) != 1:
            has = f"it has: {', '.join(names)}{nearest(field.name, names)}"
            raise RowError(
                f"the struct has {'no field' if not found else f'{len(found)} fields'} {field.name!r}, but later "
                f"queries of a followed set may use this field; {has}"
            )
        value = row[found[0]]
        values[field.name] = value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value
    return values
