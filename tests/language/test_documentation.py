"""Every example of docs/language.md is run, here and in Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from language.documentation import PAGE, conditions, refusals, sample
from language.plain import answers, columns_of

from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.catalogue import FUNCTIONS


def test_the_examples_keep_the_rows_the_page_says() -> None:
    schema, rows = sample()
    compiled = compile_texts([condition for condition, _, _ in conditions()], schema)
    kept = answers(compiled, columns_of(rows, schema), 6)

    for (condition, expected, _), found in zip(conditions(), kept, strict=True):
        assert {row + 1 for row in found} == expected, condition


def test_spark_keeps_the_same_rows(spark: Any) -> None:
    from pyspark.sql.functions import expr

    schema, rows = sample()
    arrow = schema.to_arrow()
    table = pa.table({name: pa.array(column, arrow.field(name).type) for name, column in rows.items()})
    examples = conditions()
    columns = [expr(text).alias(f"c{k}") for k, (_, _, text) in enumerate(examples)]
    result = spark.createDataFrame(table).coalesce(1).select(*columns).toArrow()

    for k, (condition, expected, _) in enumerate(examples):
        kept = {row + 1 for row, value in enumerate(result.column(k).to_pylist()) if value is True}
        assert kept == expected, condition


def test_every_function_is_on_the_page() -> None:
    page = PAGE.read_text()

    assert [name for name in FUNCTIONS if f"`{name}" not in page] == []


@pytest.mark.parametrize(("text", "words"), refusals())
def test_what_the_page_says_is_refused_is_refused_with_its_words(text: str, words: str) -> None:
    schema, _ = sample()

    with pytest.raises(QueryError) as caught:
        compile_texts([text], schema)

    assert words in str(caught.value)
    assert text in str(caught.value), "the text is shown, with the place"
