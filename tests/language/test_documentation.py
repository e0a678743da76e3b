"""Every example of docs/language.md is run, here and in Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from language.documentation import (
    PAGE,
    conditions,
    fence_program,
    fence_refusals,
    fence_sample,
    fences,
    refusals,
    sample,
)
from language.plain import answers, columns_of

from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.language.function_table import FUNCTIONS


def test_the_examples_of_the_page_keep_its_rows() -> None:
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
    page = PAGE.read_text().lower()

    assert [name for name in FUNCTIONS if f"`{name}" not in page] == []


@pytest.mark.parametrize(("text", "words"), refusals())
def test_refused_examples_of_the_page_are_refused_with_its_words(text: str, words: str) -> None:
    schema, _ = sample()

    with pytest.raises(QueryError) as caught:
        compile_texts([text], schema)

    assert words in str(caught.value)
    assert text in str(caught.value), "the text is shown, with the place"


def test_the_geofences_of_the_page_keep_its_points() -> None:
    schema, rows = fence_sample()
    compiled = compile_texts([text for text, _ in fences()], schema)
    kept = answers(compiled, columns_of(rows, schema), len(rows["lon"]))

    for (text, expected), found in zip(fences(), kept, strict=True):
        assert {row + 1 for row in found} == expected, text


@pytest.mark.parametrize(("text", "words"), fence_refusals())
def test_refused_geofences_of_the_page_are_refused_with_its_words(text: str, words: str) -> None:
    schema, _ = fence_sample()

    with pytest.raises(QueryError) as caught:
        compile_texts([text], schema)

    assert words in str(caught.value)


def test_the_page_s_program_reads_a_file_of_geofences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feature = {
        "type": "Feature",
        "id": "dock",
        "properties": {"city": "Ghent"},
        "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]},
    }
    (tmp_path / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    monkeypatch.chdir(tmp_path)

    names: dict[str, Any] = {}
    exec(fence_program(), names)

    assert names["zones"].match_one({"lon": 3.0, "lat": 1.0}) == ["dock"]


def test_spark_has_no_function_of_these_names(spark: Any) -> None:
    functions = {row.function for row in spark.sql("SHOW FUNCTIONS").collect()}

    assert "st_geomfromwkb" in functions
    assert {name for name in FUNCTIONS if name.startswith("st_")} & functions == set()
