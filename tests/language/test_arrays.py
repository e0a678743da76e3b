"""Conditions on arrays keep the rows that Spark keeps, whether an index or a residual finds them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from array_conditions import FIELDS, POOLS, ArrayMaker, items
from language.documentation import array_conditions, array_sample

import vedette as vd

ARROW = pa.schema(
    [
        ("tags", pa.list_(pa.string())),
        ("ns", pa.list_(pa.int64())),
        ("xs", pa.list_(pa.float64())),
        ("s", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
    ]
)
SCHEMA = f"{FIELDS}, s string, n bigint, x double"
SINGLES = {"tags": "s", "ns": "n", "xs": "x"}


def rows_of(source: random.Random, n: int) -> pa.Table:
    def item(values: list[Any]) -> Any:
        return None if source.random() < 0.15 else source.choice(values)

    lists = [[items(source, values) for _ in range(n)] for values in POOLS.values()]
    single = [[item(values) for _ in range(n)] for values in POOLS.values()]
    arrays = [pa.array(column, field.type) for column, field in zip(lists + single, ARROW, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ARROW)


@pytest.mark.fast
def test_the_examples_of_the_page_keep_its_rows_here_and_in_spark(spark: Any) -> None:
    schema, rows = array_sample()
    texts, expected = zip(*array_conditions(), strict=True)
    queries = vd.QuerySet(schema)
    queries.add_many(np.arange(len(texts)), texts)
    pairs = queries.match(rows).to_arrow().to_pylist()
    ours = [{pair["row"] + 1 for pair in pairs if pair["query"] == place} for place in range(len(texts))]
    assert dict(zip(texts, ours, strict=True)) == dict(zip(texts, expected, strict=True))
    safe = [text.replace("sizes[0]", "get(sizes, 0)") for text in texts]
    assert _spark_keeps(spark, rows, safe) == [{row - 1 for row in kept} for kept in expected]


@pytest.mark.fast
def test_random_conditions_on_arrays_keep_the_rows_that_spark_keeps(spark: Any) -> None:
    source = random.Random(16)
    rows, maker = rows_of(source, 80), ArrayMaker(source, SINGLES)
    texts = [maker.predicate() for _ in range(300)]
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(np.arange(len(texts)), texts)
    ours: list[set[int]] = [set() for _ in texts]
    for pair in queries.match(rows).to_arrow().to_pylist():
        ours[pair["query"]].add(pair["row"])

    theirs = _spark_keeps(spark, rows, texts)
    different = [
        (text, sorted(ours[place] - theirs[place]), sorted(theirs[place] - ours[place]))
        for place, text in enumerate(texts)
        if ours[place] != theirs[place]
    ]
    assert not different, different[:5]


def _spark_keeps(spark: Any, rows: pa.Table, texts: list[str]) -> list[set[int]]:
    """The rows that each text keeps. Without code generation, which takes longer than the evaluation."""
    from pyspark.sql.functions import expr

    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = spark.createDataFrame(rows).coalesce(1)
        found = frame.select(*(expr(text).alias(str(place)) for place, text in enumerate(texts))).toArrow()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    columns = [found.column(str(place)).to_pylist() for place in range(len(texts))]
    return [{row for row, kept in enumerate(column) if kept is True} for column in columns]
