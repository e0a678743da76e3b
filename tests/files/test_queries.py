"""GeoJSON as a file of queries; the other formats are tested with the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vedette as vd
from vedette.cli.jobs.match import match_files
from vedette.files.queries import QueriesFile

SQUARE = [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]
CROSSED = [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]


def write(path: Path, *polygons: list[Any], indent: int | None = None, **more: Any) -> Path:
    features = [
        {"type": "Feature", "id": f"zone-{k}", "properties": more, "geometry": {"type": "Polygon", "coordinates": each}}
        for k, each in enumerate(polygons)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}, indent=indent))
    return path


@pytest.mark.parametrize("name", ["zones.geojson", "zones.json", "ZONES.GEOJSON"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("x", "y"), [("lon", "lat"), ("lng", "latitude"), ("x", "y")])
def test_polygons_are_queries_over_the_fields_of_a_point(
    tmp_path: Path, name: str, indent: int | None, x: str, y: str
) -> None:
    path = write(tmp_path / name, SQUARE, indent=indent, where="anywhere")

    queries = QueriesFile(path).load(f"id bigint, {y} double, {x} double")

    assert queries.match_one({x: 1.0, y: 2.0}) == ["zone-0"]
    assert queries.match_one({x: 5.0, y: 2.0}) == []


def test_a_polygon_that_seems_to_cross_the_antimeridian_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    across = [[[179, 0], [-179, 0], [-179, 5], [179, 0]]]
    path = write(tmp_path / "zones.geojson", SQUARE, *[across] * 7)

    assert len(QueriesFile(path).load("lon double, lat double")) == 8

    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"vedette: warning: {path}, feature 2: the polygon spans 358 degrees of lon")
    assert lines[-1] == "vedette: warning: and 2 more such features"


def test_a_json_file_may_have_lines_of_queries(tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    path.write_text('{"id": "a", "where": "lon < 3", "type": "Feature"}\n{"id": "b", "where": "lon < 4"}\n')

    assert QueriesFile(path).load("lon double").match_one({"lon": 3.5}) == ["b"]


def test_a_schema_without_a_point_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.geojson", SQUARE)

    with pytest.raises(vd.FileError) as caught:
        QueriesFile(path).load("price double, lat double")

    known = "lon or lng or long or longitude with lat or latitude, or x with y"
    assert str(caught.value) == (
        f"{path} has polygons, which need two fields of the rows: {known}; the schema has: price, lat"
    )


def test_fields_that_are_not_numbers_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.geojson", SQUARE)

    with pytest.raises(
        vd.FileError, match=r"zones\.geojson, feature 1: query 'zone-0': ST_Point takes numbers, not field"
    ):
        QueriesFile(path).load("lon string, lat double")


def test_a_bad_feature_is_reported_or_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "zones.geojson", SQUARE, CROSSED, SQUARE)
    reason = f"{path}, feature 2, id 'zone-1': invalid geometry: ring 1: it crosses itself, at 1 1"

    with pytest.raises(vd.FileError) as caught:
        QueriesFile(path).load("lon double, lat double")
    assert str(caught.value) == reason

    queries = QueriesFile(path, skip_bad=True).load("lon double, lat double")
    assert queries.match_one({"lon": 1.0, "lat": 2.0}) == ["zone-0", "zone-2"]
    assert f"skipped {reason}\n" in capsys.readouterr().err


def test_a_broken_file_is_reported_as_the_format_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "zones.json"
    path.write_text('{\n  "type": "FeatureCollection",\n  "features": [\n')

    with pytest.raises(vd.FileError, match=r"zones\.json is not JSON: "):
        QueriesFile(path).load("lon double, lat double")


def test_rows_are_matched_with_the_polygons_of_a_file(tmp_path: Path) -> None:
    zones = write(tmp_path / "zones.geojson", SQUARE)
    (tmp_path / "rows.csv").write_text("ship,lon,lat\na,1.5,2\nb,4,2\nc,,2\n")
    out = tmp_path / "out.csv"

    match_files(tmp_path / "rows.csv", QueriesFile(zones), out)

    assert out.read_text().splitlines() == ['ship,lon,lat,"query"', 'a,1.5,2,"zone-0"']


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("q.csv", "id,where,WHERE\na,x > 0,x < 0\n", "has 2 columns 'where', ignoring case; keep one of them"),
        ("q.csv", "id,Id,where\na,b,x > 0\n", "has 2 columns 'id', ignoring case; keep one of them"),
        ("q.csv", "id,where,where\na,x > 0,x < 0\n", "has 2 columns 'where', ignoring case; keep one of them"),
        ("q.jsonl", '{"id": "a", "ID": "b", "where": "x > 0"}\n', "line 1: it has 'id' more than once, ignoring case"),
    ],
)
def test_columns_of_queries_that_differ_only_in_case_are_refused(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(vd.FileError) as caught:
        QueriesFile(path).load("x double")

    assert reason in str(caught.value)


def test_columns_of_a_parquet_file_of_queries_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    pq.write_table(pa.table({"id": ["a"], "ID": ["b"], "where": ["x > 0"]}), path)

    with pytest.raises(vd.FileError, match="has 2 columns 'id', ignoring case"):
        QueriesFile(path).load("x double")


@pytest.mark.parametrize("schema", [None, "x double"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_columns_of_rows_that_differ_only_in_case_are_refused(tmp_path: Path, name: str, schema: str | None) -> None:
    rows, queries = tmp_path / name, tmp_path / "q.csv"
    queries.write_text("id,where\na,x > 0\n")
    if name == "rows.parquet":
        pq.write_table(pa.table({"x": [1.0], "X": [2.0], "y": [3.0]}), rows)
    else:
        rows.write_text("x,X,y\n1,2,3\n" if name == "rows.csv" else '{"x": 1, "X": 2, "y": 3}\n')

    with pytest.raises(vd.VedetteError, match=r"rows\.\w+ has several columns .[xX]., ignoring case"):
        match_files(rows, QueriesFile(queries), tmp_path / "out.csv", schema=schema)


@pytest.mark.parametrize("name", ["q.jsonl", "q.json"])
@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5_000])
def test_a_line_that_python_cannot_read_is_a_bad_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    path = tmp_path / name
    path.write_text(f'{{"id": "bad", "type": "Feature", "where": {value}}}\n{{"id": "ok", "where": "lon < 3"}}\n')
    if name == "q.json":  # not GeoJSON: its first line is a query
        path.write_text("\n".join(reversed(path.read_text().splitlines())))

    with pytest.raises(vd.FileError, match=f"{name}, line .: invalid JSON"):
        QueriesFile(path).load("lon double")
    assert QueriesFile(path, skip_bad=True).load("lon double").match_one({"lon": 1.0}) == ["ok"]
    assert "skipped 1 bad query" in capsys.readouterr().err
