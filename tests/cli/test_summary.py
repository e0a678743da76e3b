"""The summary line of commands that succeed."""

from __future__ import annotations

import json

import pytest

BOW_TIE = [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]
SQUARE = [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "rows.csv").write_text("k,ts,x,y\na,1,1.5,1.0\nb,2,5.0,5.0\nb,1,1.0,1.5\n,3,1.0,1.0\n")
    (tmp_path / "queries.csv").write_text("id,where\nlow,x < 2\nbad,z < 1\nworse,x <\n")
    (tmp_path / "bands.csv").write_text("id,low,high\nnear,-1,1\nbad,2,1\n")
    (tmp_path / "left.csv").write_text("id,value\n1,2.0\n2,9.0\n")
    (tmp_path / "right.csv").write_text("id,value\n7,2.5\n")
    features = [
        {"type": "Feature", "id": name, "geometry": {"type": "Polygon", "coordinates": each}}
        for name, each in (("tie", BOW_TIE), ("box", SQUARE))
    ]
    (tmp_path / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return tmp_path


def test_match_reports_rows_matches_skipped_queries_and_the_file(files, summary_of):
    out = files / "out.csv"

    printed = summary_of("match", files / "rows.csv", "--queries", files / "queries.csv", "--skip-bad", "-o", out)

    assert printed == f"4 rows, 3 matches, 2 queries skipped, written to {out}"


def test_skipped_lines_are_named_by_id(files, run):
    _, _, err = run("match", files / "rows.csv", "--queries", files / "queries.csv", "--skip-bad")

    assert f"vedette: skipped 2 bad queries of {files}/queries.csv: 'bad', 'worse'\n" in err
    assert f"vedette: skipped {files}/queries.csv, line 3: query 'bad': unknown field 'z'" in err


def test_border_reports_rows_events_keys_and_dropped_rows(files, summary_of):
    options = ["--key", "k", "--time", "ts", "--null-key", "drop", "--schema", "k string, ts bigint, x double"]

    printed = summary_of("border", files / "rows.csv", "--queries", files / "queries.csv", "--skip-bad", *options)

    assert printed == "4 rows, 3 events, 2 keys, 1 row without a key dropped, 2 queries skipped"


def test_join_reports_the_rows_of_each_stream(files, summary_of):
    sides = ["--left", files / "left.csv", "--right", files / "right.csv"]

    printed = summary_of("join", *sides, "--bands", files / "bands.csv", "--skip-bad")

    assert printed == "2 left rows, 1 right row, 1 pair, 1 band skipped"


@pytest.mark.parametrize("command", ["match", "border"])
def test_repaired_polygons_are_counted_and_named(files, run_with_summary, command):
    options = ["--key", "k", "--time", "ts", "--null-key", "drop"] if command == "border" else []
    schema = "k string, ts bigint, x double, y double"

    code, out, err = run_with_summary(
        command, files / "rows.csv", "--queries", files / "zones.geojson", "--repair", "--schema", schema, *options
    )

    assert code == 0
    assert f"vedette: repaired 1 polygon of {files}/zones.geojson: 'tie'\n" in err
    assert "1 polygon repaired" in err.splitlines()[-1]
    assert "tie" in out  # the point (1.5, 1) is in the right part of the bow tie


def test_an_import_counts_what_it_repairs(files, run_with_summary, monkeypatch):
    monkeypatch.setenv("VEDETTE_REGISTRY", f"sqlite:///{files}/r.db")
    run_with_summary("set", "create", "zones", "--schema", "x double, y double")

    code, _, err = run_with_summary("query", "import", files / "zones.geojson")
    assert (code, "feature 1, id 'tie': invalid geometry: ring 1: it crosses itself, at 1 1" in err) == (2, True)

    code, out, err = run_with_summary("query", "import", files / "zones.geojson", "--repair", "--json")
    assert (code, json.loads(out)["repaired"], json.loads(out)["added"]) == (0, 1, 2)
    assert err.splitlines()[-1].startswith("vedette: set 'zones': 2 added, 0 replaced, 1 repaired, version 1, ")


def test_every_registry_command_prints_one_summary_line_unless_quiet(files, run_with_summary, monkeypatch):
    monkeypatch.setenv("VEDETTE_REGISTRY", f"sqlite:///{files}/r.db")
    (files / "more.csv").write_text("id,where\nc,x > 1\n")
    for words in (
        "set create alerts --schema x\tdouble",
        "set list",
        "query add a x\t>\t1",
        "query replace a x\t>\t2",
        "query list",
        "query show a",
        "query history a",
        f"query import {files}/more.csv",
        f"query export -o {files}/out.csv",
        "query check x\t>\t1 --schema x\tdouble",
        'query why a --row {"x":3}',
        "query remove c",
        "registry compact",
        "registry stats",
        "registry pins",
        "registry verify",
        "set alter alerts --schema x\tdouble,\ty\tdouble",
        "set drop alerts --yes",
    ):
        arguments = [word.replace("\t", " ") for word in words.split(" ")]
        code, _, err = run_with_summary(*arguments)
        assert (code, err.count("\n")) == (0, 1), (words, err)
        assert err.startswith("vedette: ")
        assert err.endswith(" s\n")
        if arguments[1] in ("list", "show", "history", "check", "why", "compact", "stats", "pins", "verify"):
            assert run_with_summary(*arguments, "--quiet")[2] == "", words
