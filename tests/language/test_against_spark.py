"""Spark is the judge: a predicate keeps exactly the rows that Spark's own `filter` keeps.

Random predicates over random rows, a few hundred a job. VEDETTE_PREDICATES sets how many (400 with the `full` profile),
VEDETTE_SEED where the draws begin; VEDETTE_CODEGEN=1 leaves Spark's code generation on.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from language.plain import answers, columns_of
from strategies import NESTED, Maker, Pair, mutate

from tests.profiles import scaled
from vedette.data.schema import Schema
from vedette.errors import QueryError
from vedette.language import compile_texts

N_PREDICATES = int(os.environ.get("VEDETTE_PREDICATES", scaled(400)))
SEED = int(os.environ.get("VEDETTE_SEED", "20240229"))
N_ROWS = 60
CODEGEN = os.environ.get("VEDETTE_CODEGEN") == "1"
PER_JOB = 30 if CODEGEN else 250
ZONES = ("UTC", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu")
# What fails a job of Spark over one row, where we have null.
FAILED_JOB = re.compile(
    r"\[(DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|CAST_|NUMERIC_VALUE_OUT|REMAINDER_BY|INVALID_FORMAT|BINARY_ARITH)"
    r"|calling o\d+\.getResult"  # a job that failed with an exception of Java's
)
schema = Schema.parse(NESTED)


@pytest.fixture(scope="module")
def interpreted(spark: Any) -> Iterator[Any]:
    """The session without code generation: compiling hundreds of expressions takes longer than running them."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in (*settings, "spark.sql.session.timeZone")}
    for name, value in ({} if CODEGEN else settings).items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def spark_keeps(spark: Any, rows: dict[str, list[Any]], texts: list[str]) -> list[set[int] | str]:
    """The rows each text keeps, or the first line of what Spark says against it."""
    from py4j.protocol import Py4JError  # now and then Spark's analysis crashes instead of complaining
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    arrow = schema.to_arrow()
    table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in rows.items()})
    frame = spark.createDataFrame(table, str(schema)).coalesce(1)
    kept: list[set[int] | str] = []
    accepted: list[tuple[int, Any]] = []
    for place, text in enumerate(texts):
        try:
            frame.filter(text)
            accepted.append((place, expr(text)))
            kept.append(set())
        except (PySparkException, Py4JError) as error:
            kept.append(str(error).split("\n")[0])
    for start in range(0, len(accepted), PER_JOB):
        chunk = accepted[start : start + PER_JOB]
        _run(frame, chunk, kept)
    return kept


def _run(frame: Any, chunk: list[tuple[int, Any]], kept: list[set[int] | str]) -> None:
    """One job for a chunk; where it fails, halves, until the text that fails is alone."""
    from py4j.protocol import Py4JError  # of functions that raise Java's own exceptions, such as `unbase64`
    from pyspark.errors import PySparkException

    try:
        result = frame.select(*(column.alias(f"p{place}") for place, column in chunk)).toArrow()
    except (PySparkException, Py4JError) as error:
        if len(chunk) == 1:
            kept[chunk[0][0]] = str(error).split("\n")[0]
            return
        middle = len(chunk) // 2
        _run(frame, chunk[:middle], kept)
        _run(frame, chunk[middle:], kept)
        return
    for place, _ in chunk:
        found = result.column(f"p{place}").to_pylist()
        kept[place] = {row for row, value in enumerate(found) if value is True}


def differences(
    spark: Any, pairs: list[Pair], rows: dict[str, list[Any]], zone: str, *, quiet: bool = False
) -> tuple[list[str], int]:
    """Each predicate that is answered otherwise than by Spark, in words; and how many only we refuse."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    errors: list[tuple[int, QueryError]] = []
    compiled = compile_texts([pair.ours for pair in pairs], schema, zone, errors=errors)
    refused = {place: error.reason for place, error in errors}
    ours = answers(compiled, columns_of(rows, schema), len(rows["i"]))
    found: list[str] = []
    n_refused = 0
    for place, theirs in enumerate(spark_keeps(spark, rows, [pair.spark for pair in pairs])):
        pair = pairs[place]
        if isinstance(theirs, str):
            if place not in refused:
                found.append(f"{pair.ours}\n   Spark refuses: {theirs}")
        elif place in refused:
            n_refused += 1
            if not quiet:
                print("refused here only:", pair.ours, "|", refused[place])
        elif theirs != ours[place]:
            more, fewer = sorted(ours[place] - theirs), sorted(theirs - ours[place])
            shown = {
                row: {name: rows[name][row] for name in rows if name in pair.ours.lower()} for row in (more + fewer)[:2]
            }
            found.append(f"[{zone}] {pair.ours}\n   {pair.spark}\n   too many {more}, too few {fewer}\n   {shown}")
    return found, n_refused


@pytest.mark.timeout(3600)
def test_what_spark_refuses_is_refused_and_what_both_take_means_the_same(interpreted: Any) -> None:
    """Texts with tokens dropped, doubled and swapped: sqlglot takes more than Spark, and groups otherwise."""
    found: list[str] = []
    n_texts = N_PREDICATES // 4
    for number in range(-(-n_texts // 400)):
        maker = Maker(random.Random(-SEED - number), hostile=True, nested=True)
        texts = [mutate(maker.predicate(1).ours, maker.random) for _ in range(min(400, n_texts))]
        pairs = [Pair.same(text) for text in texts]
        one, _ = differences(interpreted, pairs, maker.rows(20), "UTC", quiet=True)
        found += [words for words in one if not FAILED_JOB.search(words)]
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:20])


@pytest.mark.timeout(3600)
@pytest.mark.fast
def test_random_predicates_keep_the_rows_that_spark_keeps(interpreted: Any) -> None:
    n_refused = 0
    found: list[str] = []
    for number in range(-(-N_PREDICATES // 400)):
        maker = Maker(random.Random(SEED + number), hostile=True, nested=True)
        pairs = [maker.predicate() for _ in range(min(400, N_PREDICATES))]
        one, refused = differences(interpreted, pairs, maker.rows(N_ROWS), ZONES[number % len(ZONES)])
        found += one
        n_refused += refused
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:20])
    assert n_refused <= N_PREDICATES // 20
