"""Queries, sets and the registry on the command line: changes, output and errors."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vedette as vd
from vedette.cli.jobs import query_export as exporting

SCHEMA = "symbol string, price double"


@pytest.fixture
def url(tmp_path, monkeypatch):
    """A registry with a set of alerts, which commands find in the environment."""
    address = f"sqlite:///{tmp_path}/alerts.db"
    vd.Registry(address).create("alerts", kind="match", schema=SCHEMA)
    monkeypatch.setenv("VEDETTE_REGISTRY", address)
    return address


def type_in(monkeypatch, text):
    stdin = io.TextIOWrapper(io.BytesIO(text.encode(errors="surrogateescape")))
    monkeypatch.setattr("sys.stdin", stdin)


def rows_of(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_a_query_is_added_shown_replaced_and_removed(run, url):
    assert run("query", "add", "cheap", "price < 40", "--metadata", "owner=me", "--metadata", "level=3") == (
        0, "set,id,version\nalerts,cheap,1\n", ""
    )  # fmt: skip
    shown = json.loads(run("query", "show", "cheap", "--json")[1])
    assert (shown["id"], shown["where"], shown["metadata"], shown["added"]) == (
        "cheap", "price < 40", {"owner": "me", "level": 3}, 1
    )  # fmt: skip
    assert run("query", "replace", "cheap", "price < 39")[0] == 0
    assert run("query", "remove", "cheap", "--json")[1].split() == [
        "{",
        '"set":',
        '"alerts",',
        '"removed":',
        "1,",
        '"version":',
        "3",
        "}",
    ]

    revisions = rows_of(run("query", "history", "cheap")[1])

    assert [
        (revision["where"], revision["added"], revision["removed"], revision["state"]) for revision in revisions
    ] == [
        ("price < 40", "1", "2", "replaced"),
        ("price < 39", "2", "3", "removed"),
    ]


def test_texts_and_ids_are_read_from_files_and_standard_input(run, url, tmp_path, monkeypatch):
    (tmp_path / "text.sql").write_text("price < 1\n")
    (tmp_path / "ids.txt").write_text("a\n\nb\n")

    run("query", "add", "a", "--file", tmp_path / "text.sql")
    type_in(monkeypatch, "price < 2\n")
    run("query", "add", "b", "-")
    type_in(monkeypatch, "id,where\nc,price < 3\n")
    assert run("query", "import", "-")[0] == 0
    assert [(row["id"], row["where"]) for row in rows_of(run("query", "list")[1])] == [
        ("a", "price < 1"), ("b", "price < 2"), ("c", "price < 3")
    ]  # fmt: skip
    run("query", "remove", "--file", tmp_path / "ids.txt")
    type_in(monkeypatch, "c\n")
    run("query", "remove", "-")

    assert rows_of(run("query", "list")[1]) == []


def test_lists_are_by_prefix_metadata_and_page(run, url):
    registry = vd.Registry(url)
    for number in range(5):
        registry.add("alerts", f"q{number}", "price < 1", metadata={"odd": number % 2 == 1})
    registry.add("alerts", "other", "price < 1")

    def listed(*options):
        return [row["id"] for row in rows_of(run("query", "list", *options)[1])]

    assert listed("--prefix", "q", "--limit", 2) == ["q0", "q1"]
    assert listed("--prefix", "q", "--after", "q1") == ["q2", "q3", "q4"]
    assert listed("--metadata", "odd=true") == ["q1", "q3"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_exported_queries_can_be_imported(run, url, tmp_path, kind):
    run(
        "query",
        "add",
        "a",
        "price < 1 AND symbol = 'x,\"y'",
        "--metadata",
        '{"owner": "me"}',
        "--expires-at",
        "2999-01-01",
    )
    run("query", "add", "b", "price < 2")
    out = tmp_path / f"out.{kind}"
    assert run("query", "export", "-o", out) == (0, "", "")
    run("set", "create", "again", "--schema", SCHEMA)

    code, reported, err = run("query", "import", out, "--set", "again", "--json")

    assert (code, err) == (0, "")
    assert json.loads(reported) == {"set": "again", "added": 2, "replaced": 0, "version": 1}
    registry = vd.Registry(url)
    facts = [
        [(query.id, query.text, query.metadata, query.expires_at) for query in registry.list(name)]
        for name in ("alerts", "again")
    ]
    assert facts[0] == facts[1]
    assert facts[0][0][2] == {"owner": "me"}


def test_an_import_is_one_version_or_none(run, url, tmp_path):
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\nb,prise < 2\nc,price < 3\n")

    code, _, err = run("query", "import", file)
    assert code == 2
    assert "q.csv, line 3: " in err
    assert rows_of(run("query", "list")[1]) == []
    code, reported, err = run("query", "import", file, "--skip-bad")
    assert (code, rows_of(reported)[0]["skipped"]) == (0, "1")
    assert "skipped 1 bad query" in err
    file.write_text("id,where\na,price < 9\nd,price < 4\n")
    assert run("query", "import", file)[0] == 2  # a already exists
    reported = rows_of(run("query", "import", file, "--replace")[1])[0]

    assert (reported["added"], reported["replaced"]) == ("1", "1")
    assert vd.Registry(url).get("alerts", "a").text == "price < 9"


def facts_of(url, name="alerts"):
    return {
        query.id: (query.text, query.metadata, query.expires_at and query.expires_at.isoformat()[:10])
        for query in vd.Registry(url).list(name)
    }


def test_an_import_that_replaces_keeps_what_the_file_lacks(run, url, monkeypatch):
    for query_id in ("a", "b"):
        own = ("--metadata", "owner=z", "--expires-at", "2999-01-01")
        run("query", "add", query_id, "price < 1", *own)

    type_in(monkeypatch, "id,where\na,price < 2\nc,price < 3\n")
    assert run("query", "import", "-", "--replace")[:2] == (0, "set,added,replaced,version\nalerts,1,1,3\n")
    assert facts_of(url) == {
        "a": ("price < 2", {"owner": "z"}, "2999-01-01"),
        "b": ("price < 1", {"owner": "z"}, "2999-01-01"),
        "c": ("price < 3", {}, None),
    }
    type_in(monkeypatch, "id,where,metadata,expires_at\na,price < 4,,\n")  # columns that are there and empty
    run("query", "import", "-", "--replace")
    assert facts_of(url)["a"] == ("price < 4", {}, None)
    type_in(monkeypatch, '{"id": "b", "where": "price < 5", "owner": "y"}\n{"id": "a", "where": "price < 6"}\n')
    run("query", "import", "-", "--format", "jsonl", "--replace", "--expires-at", "2998-01-01")
    assert facts_of(url)["b"] == ("price < 5", {"owner": "y"}, "2998-01-01")
    type_in(monkeypatch, "id,where\na,price < 7\na,price < 8\n")
    assert run("query", "import", "-", "--replace")[0] == 2  # twice in one file
    assert facts_of(url)["a"] == ("price < 6", {}, "2998-01-01")


def test_an_import_that_replaces_keeps_the_window_of_a_join(run, url, monkeypatch):
    run("set", "create", "joins", "--kind", "window join", "--left", SCHEMA, "--right", SCHEMA, "--windows", "any")
    text = "left.price > right.price"
    for query_id, window in (("a", ("--within", "2 seconds")), ("b", ("--rows", "5"))):
        run("query", "add", query_id, text, *window, "--metadata", "owner=z", "--set", "joins")

    type_in(monkeypatch, f"id,where,within\na,{text} + 1,\nb,{text} + 1,3 seconds\n")
    assert run("query", "import", "-", "--replace", "--set", "joins")[0] == 0

    found = {query.id: (query.text, query.window, query.metadata) for query in vd.Registry(url).list("joins")}
    assert found == {
        "a": (f"{text} + 1", {"within": "2 seconds"}, {"owner": "z"}),
        "b": (f"{text} + 1", {"within": "3 seconds"}, {"owner": "z"}),
    }


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_further_columns_of_an_import_are_metadata(run, url, tmp_path, kind):
    file = tmp_path / f"q.{kind}"
    rows = [
        {"id": "a", "where": "price < 1", "metadata": '{"team": "x"}', "Owner": "ann", "level": 3},
        {"id": "b", "where": "price < 2", "metadata": None, "Owner": "NaN", "level": None},
    ]
    if kind == "csv":
        file.write_text('id,where,metadata,Owner,level\na,price < 1,"{""team"": ""x""}",ann,3\nb,price < 2,,NaN,\n')
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        dated = [row | {"day": date(2026, 3, 2)} for row in rows]
        pq.write_table(pa.Table.from_pylist(dated), file)

    assert run("query", "import", file)[::2] == (0, "")

    day = {"day": "2026-03-02"} if kind == "parquet" else {}
    assert {query_id: metadata for query_id, (_, metadata, _) in facts_of(url).items()} == {
        "a": {"team": "x", "Owner": "ann", "level": 3} | day,
        "b": {"Owner": "NaN"} | day,
    }
    assert [row["id"] for row in rows_of(run("query", "list", "--metadata", "level=3")[1])] == ["a"]


@pytest.mark.parametrize(
    ("form", "text", "output"),
    [
        ("csv", "id,what\na,b\n", "standard input has no column 'where'"),
        ("csv", "id,where\udcff\n", "standard input, line 1: invalid CSV: 'utf-8' codec can't decode byte 0xff"),
        ("csv", "id,where\n", "standard input has no queries"),
        ("csv", "id,where\na\n", "standard input, line 2: it has 1 columns"),
        ("csv", "id,where\na,prise < 1\n", "standard input, line 2: query 'a': unknown field 'prise'"),
        ("jsonl", '{"id": 1\n', "standard input, line 1: invalid JSON"),
        (
            "jsonl",
            '{"id": "a", "where": "price < 1", "metadata": 3}\n',
            "standard input, line 1: query 'a': its",
        ),
    ],
)
def test_an_error_in_standard_input_names_standard_input(run, url, monkeypatch, form, text, output):
    type_in(monkeypatch, text)

    code, _, err = run("query", "import", "-", "--format", form)

    assert code == 2
    assert err.startswith(f"vedette: {output}")


@pytest.mark.parametrize("value", ["123", "1.5", "true", '["2999-01-01"]', '"soon"'])
def test_an_expiry_that_is_not_a_time_is_refused_with_its_line(run, url, tmp_path, value):
    file = tmp_path / "q.jsonl"
    good = '{"id": "b", "where": "price < 1"}'
    file.write_text(f'{good}\n{{"id": "a", "where": "price < 1", "expires_at": {value}}}\n')

    code, out, err = run("query", "import", file)

    assert (code, out) == (2, "")
    assert err.startswith(f"vedette: {file}, line 2: query 'a': its expires_at is ")
    assert err.endswith("time such as 2026-03-02T14:00:00Z\n")
    assert facts_of(url) == {}


def test_an_expiry_that_is_a_date_is_its_midnight_in_utc(run, url, tmp_path):
    file = tmp_path / "q.parquet"
    rows = {"id": ["a", "b"], "where": ["price < 1"] * 2, "expires_at": [date(2999, 1, 2), None]}
    pq.write_table(pa.table(rows), file)

    assert run("query", "import", file)[::2] == (0, "")

    ends = {query.id: query.expires_at for query in vd.Registry(url).list("alerts")}
    assert ends == {"a": datetime(2999, 1, 2, tzinfo=UTC), "b": None}


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("csv", '"id","low","high","metadata","expires_at"\n"a",,0.5,,\n"b",-0.5,,,\n"c",,,,\n'),
        (
            "jsonl",
            '{"id": "a", "low": null, "high": 0.5, "metadata": null, "expires_at": null}\n'
            '{"id": "b", "low": -0.5, "high": null, "metadata": null, "expires_at": null}\n'
            '{"id": "c", "low": null, "high": null, "metadata": null, "expires_at": null}\n',
        ),
        ("parquet", None),
    ],
)
def test_an_end_that_a_band_has_not_is_exported_as_nothing_and_read_back(run, url, tmp_path, kind, written):
    registry = vd.Registry(url)
    bands = {"a": (-math.inf, 0.5), "b": (-0.5, math.inf), "c": (-math.inf, math.inf)}
    for name in ("bands", "again"):
        registry.create(name, kind="band join")
    for query_id, (low, high) in bands.items():
        registry.add("bands", query_id, low=low, high=high)
    file = tmp_path / f"out.{kind}"

    assert run("query", "export", "-o", file, "--set", "bands") == (0, "", "")
    assert run("query", "import", file, "--set", "again")[::2] == (0, "")

    if written is None:
        assert pq.read_table(file)["low"].to_pylist() == [None, -0.5, None]
    else:
        assert file.read_text() == written
    assert {query.id: (query.low, query.high) for query in registry.list("again")} == bands
    registry.add("bands", "d", low=math.inf, high=math.inf)  # whose low is an end
    run("query", "export", "-o", file, "--set", "bands")
    assert run("query", "import", file, "--replace", "--set", "again")[::2] == (0, "")
    assert (registry.get("again", "d").low, registry.get("again", "d").high) == (math.inf, math.inf)


@pytest.mark.parametrize("replace", [[], ["--replace"]])
def test_an_id_that_is_twice_in_a_file_is_reported_with_both_lines(run, url, tmp_path, replace):
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\nb,price < 2\na,price < 3\n")

    for active in ({}, {"a": ("price < 0", {}, None)}):
        for query_id, (text, _, _) in active.items():
            run("query", "add", query_id, text)
        reported = f"vedette: {file}, line 4: query 'a': its id is also in line 2; each id must be unique in a file\n"
        assert run("query", "import", file, *replace) == (2, "", reported)
        assert facts_of(url) == active
    code, _, err = run("query", "import", file, "--skip-bad", *replace)

    assert code == 0
    assert f"skipped {file}, line 4: query 'a': its id is also in line 2" in err
    assert facts_of(url)["a"][0] == ("price < 1" if replace else "price < 0")
    assert len(vd.Registry(url).history("alerts", "a")) == (2 if replace else 1)


@pytest.mark.parametrize("written", ["abc", "1_000", "005", "+5", "-0", " 5", "5.0", "\u0665", "1" * 30, str(2**63)])
def test_an_id_that_is_not_written_as_a_number_is_refused_where_ids_are_numbers(run, url, tmp_path, written):
    vd.Registry(url).add("alerts", 7, "price < 1")
    file = tmp_path / "q.csv"
    file.write_text(f"id,where\n-12,price < 1\n{written},price < 2\n0,price < 3\n", encoding="utf-8")

    code, out, err = run("query", "import", file)
    assert (code, out) == (2, "")
    assert err == (
        f"vedette: {file}, line 3: query {written!r}: the ids of set 'alerts' are 64-bit integers, such as 5 or -12; "
        f"got {written!r}\n"
    )
    assert run("query", "import", file, "--skip-bad")[0] == 0

    assert sorted(facts_of(url)) == [-12, 0, 7]


def test_an_import_that_skips_is_one_version_too(run, url, tmp_path):
    file = tmp_path / "q.csv"
    lines = [f"q{n},price < {'x' if n % 1000 == 7 else n}" for n in range(20_000)]
    file.write_text("\n".join(["id,where", *lines]))

    reported = rows_of(run("query", "import", file, "--skip-bad")[1])[0]

    assert (reported["added"], reported["skipped"], reported["version"]) == ("19980", "20", "1")
    assert vd.Registry(url).set("alerts").version == 1
    reported = rows_of(run("query", "import", file, "--skip-bad")[1])[0]  # none is left
    assert (reported["added"], reported["skipped"], reported["version"]) == ("0", "20000", "1")


def test_an_import_skips_a_literal_of_thousands_of_digits_in_one_short_line(run, url, tmp_path):
    file = tmp_path / "q.csv"
    file.write_text(f"id,where\na,price < 1\nb,price < {'9' * 4301}\nc,NULL / 1.5 IS NULL\n")

    code, out, err = run("query", "import", file, "--skip-bad")

    assert code == 0
    assert rows_of(out)[0]["added"] == "2"
    assert f"{file}, line 3: query 'b': 999" in err
    assert "has more than 38 digits" in err
    assert len(err) < 2000


def test_one_end_of_a_band_alone_replaces_nothing(run, url):
    run("set", "create", "bands", "--kind", "band join")
    run("query", "add", "near", "--low", "-0.5", "--high", "0.5", "--set", "bands")

    code, _, err = run("query", "replace", "near", "--low", "-1", "--set", "bands")

    assert (code, err) == (
        2, "vedette: a new band needs both --low and --high; -inf and inf mean unbounded\n"
    )  # fmt: skip
    assert run("query", "replace", "near", "--low", "-1", "--high", "inf", "--set", "bands")[0] == 0
    band = vd.Registry(url).get("bands", "near")
    assert (band.low, band.high) == (-1, math.inf)


def test_ids_are_removed_as_they_are_written(run, url, monkeypatch, tmp_path):
    vd.Registry(url).add_many("alerts", ["a", " a", "b ", "c", "d"], ["price < 1"] * 5)

    assert run("query", "remove", " a")[0] == 0
    type_in(monkeypatch, "b \r\n\nc")
    assert run("query", "remove", "-")[0] == 0
    (tmp_path / "ids").write_text("d\n")
    assert run("query", "remove", "--file", tmp_path / "ids")[0] == 0

    assert list(facts_of(url)) == ["a"]


@pytest.mark.parametrize("command", [["add", "x", "-"], ["remove", "-"], ["check", "-", "--schema", "x double"]])
def test_standard_input_that_is_not_utf8_is_refused_in_one_sentence(run, url, monkeypatch, command):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))

    code, _, err = run("query", *command)

    assert code == 2
    assert err.startswith("vedette: cannot read standard input: ")


def test_a_text_to_check_has_any_source_and_the_answer_any_format(run, monkeypatch, tmp_path):
    schema = ["--schema", "price double"]
    never = "price > 5 AND price < 3"
    (tmp_path / "text").write_text(never)
    type_in(monkeypatch, "price > 5\n")

    assert run("query", "check", "-", *schema) == (0, "ok\n", "")
    reported = json.loads(run("query", "check", "--file", tmp_path / "text", *schema, "--json")[1])
    assert reported == {"where": never, "warnings": ["never matches: no value of price lies in all its ranges"]}
    assert run("query", "check", "price > 5", *schema, "--csv")[1] == "where,warnings\nprice > 5,[]\n"
    assert "no text is given" in run("query", "check", *schema)[2]


def test_a_stream_has_no_name_that_means_something_else(run, url):
    for name in ("kind", "self"):
        streams = ["--stream", f"{name}=id bigint", "--stream", "streams=id bigint"]

        code, _, err = run("set", "create", "odd", "--kind", "window join", *streams)

        assert (code, err) == (
            2, f"vedette: {name!r} cannot be the name of a stream: it is an option; use another name\n"
        )  # fmt: skip


def test_ctrl_c_is_one_line(run, url, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    def end(code):
        raise SystemExit(code)

    monkeypatch.setattr("vedette.cli.query.inputs._read_input", interrupt)
    monkeypatch.setattr("vedette.cli.command.os._exit", end)

    assert run("query", "add", "a", "-") == (130, "", "vedette: interrupted\n")


def test_a_reader_may_close_the_pipe_early(url):
    vd.Registry(url).add_many("alerts", list(range(50_000)), ["price < 1"] * 50_000)
    command = [sys.executable, "-c", "from vedette.cli import main; main()", "query", "export"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b'"id","where"')
        process.stdout.close()
        assert (process.wait(timeout=60), process.stderr.read()) == (0, b"")


def test_a_table_shows_ids_as_they_are(run, url):
    vd.Registry(url).add("alerts", "acct:a:7 [bold]", "price < 1")

    assert " acct:a:7 [bold] " in run("query", "list", "--table")[1]


def test_an_id_that_already_exists_is_reported_with_its_line(run, url, tmp_path):
    run("query", "add", "b", "price < 0")
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\nb,price < 2\n")

    reported = f"vedette: {file}, line 3: query 'b': its id already exists in the set; use --replace to replace it\n"
    assert run("query", "import", file) == (2, "", reported)
    assert facts_of(url) == {"b": ("price < 0", {}, None)}


@pytest.mark.parametrize("skip", [[], ["--skip-bad"]])
def test_the_id_of_a_parked_query_is_reported_as_parked(run, url, tmp_path, skip):
    run("query", "add", "b", "price < 0")
    run("set", "alter", "alerts", "--schema", "symbol string", "--force")
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,symbol = 'x'\nb,symbol = 'y'\n")

    code, _, err = run("query", "import", file, *skip)

    assert code == (0 if skip else 2)
    assert (
        f"{file}, line 3: query 'b': its id belongs to a parked query, whose text is invalid under the set's schema; "
        in err
    )
    assert list(facts_of(url)) == (["a"] if skip else [])


def test_an_id_that_is_added_during_an_import_is_skipped(run, url, tmp_path, monkeypatch):
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\nb,price < 2\n")

    def check_slowly(*given):
        monkeypatch.undo()
        vd.Registry(url).add("alerts", "b", "price < 0")

    monkeypatch.setattr("vedette.cli.jobs.query_import.check_texts", check_slowly)
    code, _, err = run("query", "import", file, "--skip-bad", "--registry", url)

    assert code == 0
    assert "line 3: query 'b': its id already exists in the set" in err
    assert facts_of(url) == {"a": ("price < 1", {}, None), "b": ("price < 0", {}, None)}


@pytest.mark.parametrize("end", [["--ttl", "soon"], ["--ttl", "1 day", "--expires-at", "2030-01-01"]])
def test_an_invalid_expiry_for_all_lines_is_not_an_error_of_a_line(run, url, tmp_path, end):
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\n")

    code, out, err = run("query", "import", file, "--skip-bad", *end)

    assert (code, out) == (2, "")
    assert "ttl" in err
    assert "skipped" not in err
    assert facts_of(url) == {}


@pytest.mark.parametrize("name", ["zones.geojson", "zones.json"])
def test_properties_of_polygons_become_metadata(run, url, tmp_path, name):
    run("set", "create", "zones", "--schema", "lon double, lat double")
    rings = [[[0, 0], [4, 0], [4, 3], [0, 0]]]
    own = [{"name": "harbour", "depth": 4.5, "expires_at": "2099-01-01T00:00:00Z"}, None]
    features = [
        {
            "type": "Feature",
            "id": f"zone-{n}",
            "properties": each,
            "geometry": {"type": "Polygon", "coordinates": rings},
        }
        for n, each in enumerate(own)
    ]
    file = tmp_path / name
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))

    assert run("query", "import", file, "--set", "zones")[::2] == (0, "")

    registry = vd.Registry(url)
    harbour, bare = registry.get("zones", "zone-0"), registry.get("zones", "zone-1")
    assert harbour.text.startswith("ST_Contains(")
    assert (harbour.metadata, harbour.expires_at.year) == ({"name": "harbour", "depth": 4.5}, 2099)
    assert (bare.metadata, bare.expires_at) == ({}, None)


def test_a_number_is_refused_as_an_id_if_ids_are_strings(run, url, tmp_path):
    run("query", "add", "a", "price < 1")
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": 5, "where": "price < 1"}\n')

    reported = f"vedette: {file}, line 1: query 5: the ids of set 'alerts' are strings; got the number 5\n"
    assert run("query", "import", file) == (2, "", reported)


@pytest.mark.parametrize("more", ['"n": NaN', '"metadata": {"n": [Infinity]}', '"n": 1e999', '"n": "\\u0000"'])
@pytest.mark.parametrize("replace", [[], ["--replace"]])
def test_metadata_that_json_cannot_say_is_refused_with_its_line(run, url, tmp_path, more, replace):
    file = tmp_path / "q.jsonl"
    lines = ['{"id": "a", "where": "price < 1"}', '{"id": "b", "where": "price < 1", ' + more + "}"]
    file.write_text("\n".join(lines))
    if replace:
        run("query", "add", "b", "price < 0")

    code, out, err = run("query", "import", file, *replace)

    assert (code, out) == (2, "")
    assert err.startswith(f"vedette: {file}, line 2: query 'b': metadata ")
    assert len(err.splitlines()) == 1
    assert rows_of(run("query", "import", file, "--skip-bad", *replace)[1])[0]["skipped"] == "1"
    assert facts_of(url).keys() == ({"a", "b"} if replace else {"a"})


def test_a_number_too_large_for_metadata_stays_a_text(run, url, monkeypatch):
    type_in(monkeypatch, "id,where,n,m\na,price < 1,1e999,1e99\n")

    assert run("query", "import", "-")[::2] == (0, "")

    assert facts_of(url)["a"][1] == {"n": "1e999", "m": 1e99}


def test_a_join_that_is_new_and_has_no_window_is_reported_with_its_line(run, url, tmp_path):
    run("set", "create", "joins", "--kind", "window join", "--left", SCHEMA, "--right", SCHEMA)
    text = "left.price > right.price"
    run("query", "add", "a", text, "--within", "2 seconds", "--set", "joins")
    file = tmp_path / "q.csv"
    file.write_text(f"id,where\na,{text} + 1\nb,{text}\n")

    for more, line in (([], 2), (["--replace"], 3)):
        code, out, err = run("query", "import", file, "--set", "joins", *more)
        assert (code, out) == (2, "")
        query_id = "a" if line == 2 else "b"
        assert err.startswith(f"vedette: {file}, line {line}: query {query_id!r}: the window of the left stream is ")
    file.write_text(f"id,where,rows\na,{text},\nb,{text},3\n")
    err = run("query", "import", file, "--set", "joins", "--replace")[2]
    assert err.startswith(
        f"vedette: {file}, line 3: query 'b': set 'joins' is of kind window join over windows of time"
    )

    assert facts_of(url, "joins") == {"a": (text, {}, None)}


def test_an_invalid_option_is_not_an_error_of_a_line(run, url, monkeypatch):
    type_in(monkeypatch, "id,where\na,price < 1\n")

    code, _, err = run("query", "import", "-", "--ttl", "soon")

    assert code == 2
    assert err.startswith("vedette: --ttl ")


def test_numbers_are_ids_where_the_set_has_numbers(run, url):
    vd.Registry(url).add("alerts", 7, "price < 1")

    assert rows_of(run("query", "show", "7")[1])[0]["where"] == "price < 1"
    assert run("query", "add", "8", "price < 2")[0] == 0
    for written in ("x", "1_000", "05", str(2**63)):
        reported = f"the ids of set 'alerts' are 64-bit integers, such as 5 or -12; got {written!r}"
        assert reported in run("query", "show", written)[2]


def test_joins_and_bands_have_their_own_columns(run, url, tmp_path):
    run("set", "create", "spreads", "--kind", "window join", "--left", SCHEMA, "--right", SCHEMA)
    run("set", "create", "bands", "--kind", "band join")
    assert run("query", "add", "s", "left.price > right.price", "--within", "10 seconds", "--set", "spreads")[0] == 0
    assert run("query", "add", "b", "--low", "-0.5", "--high", "0.5", "--set", "bands")[0] == 0

    (join,) = rows_of(run("query", "list", "--set", "spreads")[1])
    (band,) = rows_of(run("query", "list", "--set", "bands")[1])

    assert (join["where"], join["within"]) == ("left.price > right.price", "10 seconds")
    assert (band["low"], band["high"]) == ("-0.5", "0.5")
    assert run("query", "add", "c", "--high", "2", "--set", "bands")[0] == 0
    shown = json.loads(run("query", "show", "c", "--set", "bands", "--json")[1], parse_constant=pytest.fail)
    assert (shown["low"], shown["high"]) == (None, 2.0)
    assert "needs low and high" in run("query", "add", "d", "--set", "bands")[2]
    for name in ("spreads", "bands"):
        out = tmp_path / f"{name}.csv"
        run("query", "export", "-o", out, "--set", name)
        assert run("query", "import", out, "--replace", "--set", name)[0] == 0, name


ZONE = ("--x-low", "0", "--x-high", "4.5", "--y-low", "-1", "--y-high", "1")


def test_zones_are_added_replaced_listed_and_removed(run, url):
    assert run("set", "create", "zones", "--kind", "moving join")[0] == 0
    assert run("query", "add", "port", *ZONE, "--metadata", "owner=me", "--set", "zones")[0] == 0

    (zone,) = rows_of(run("query", "list", "--set", "zones")[1])
    assert list(zone)[:5] == ["id", "x_low", "x_high", "y_low", "y_high"]
    assert (zone["x_low"], zone["x_high"], zone["y_low"], zone["y_high"]) == ("0.0", "4.5", "-1.0", "1.0")
    assert run("query", "replace", "port", *ZONE[:3], "5", *ZONE[4:], "--set", "zones")[0] == 0
    shown = json.loads(run("query", "show", "port", "--set", "zones", "--json")[1])
    assert (shown["x_high"], shown["metadata"], shown["state"]) == (5.0, {"owner": "me"}, "active")
    assert [row["state"] for row in rows_of(run("query", "history", "port", "--set", "zones")[1])] == [
        "replaced", "active"
    ]  # fmt: skip
    assert "a zone needs all its sides" in run("query", "replace", "port", "--x-low", "1", "--set", "zones")[2]
    assert "its queries have no 'x_low'" in run("query", "add", "port", "price < 1", *ZONE, "--set", "alerts")[2]
    assert run("query", "remove", "port", "--set", "zones")[0] == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_zones_are_exported_and_imported(run, url, tmp_path, kind, dimensions):
    for name in ("zones", "again"):
        assert run("set", "create", name, "--kind", "moving join", "--dimensions", str(dimensions))[0] == 0
    registry = vd.Registry(url)
    sides = {f"{axis}_{end}": 0.5 * n for n, axis in enumerate("xyz"[:dimensions]) for end in ("low", "high")}
    registry.add("zones", "a", **sides, metadata={"owner": "ann"})
    registry.add("zones", "b", **sides | {"x_high": 7.25})
    file = tmp_path / f"zones.{kind}"

    assert run("query", "export", "-o", file, "--set", "zones")[0] == 0
    assert run("query", "import", file, "--set", "again")[0] == 0
    assert run("query", "import", file, "--replace", "--set", "again")[0] == 0

    found = [(each.id, each.sides, each.metadata) for each in registry.list("again")]
    assert found == [(each.id, each.sides, each.metadata) for each in registry.list("zones")]


def test_an_invalid_zone_of_a_file_is_reported_with_its_line(run, url, tmp_path):
    run("set", "create", "zones", "--kind", "moving join")
    file = tmp_path / "zones.csv"
    file.write_text("id,x_low,x_high,y_low,y_high,owner\na,0,1,0,1,ann\nb,2,1,0,1,\nc,0,x,0,1,\nd,0,1,,1,\n")

    code, _, err = run("query", "import", file, "--set", "zones")
    assert (code, vd.Registry(url).set("zones").n_active) == (2, 0)
    assert "line 4: zone 'c': its x_high is 'x'; it must be a number" in err
    code, out, err = run("query", "import", file, "--skip-bad", "--set", "zones")

    assert (code, rows_of(out)[0]["added"], rows_of(out)[0]["skipped"]) == (0, "1", "3")
    assert "line 3: x_low 2 of zone 'b' is above its x_high 1" in err
    assert "line 5: " in err
    assert vd.Registry(url).get("zones", "a").metadata == {"owner": "ann"}


def test_sets_are_created_listed_altered_and_dropped(run, url):
    assert run("set", "create", "rooms", "--schema", "temp double", "--time-zone", "Europe/Berlin")[0] == 0
    run("query", "add", "hot", "temp > 30", "--set", "rooms")

    rows = {row["name"]: row for row in rows_of(run("set", "list")[1])}
    code, _, err = run("set", "alter", "rooms", "--schema", "warmth double")
    assert code == 2
    assert "hot" in err
    altered = rows_of(run("set", "alter", "rooms", "--schema", "warmth double", "--force")[1])[0]
    kept = run("set", "drop", "rooms")
    dropped = run("set", "drop", "rooms", "--yes")

    assert (rows["rooms"]["queries"], rows["rooms"]["schema"], rows["rooms"]["kind"]) == ("1", "temp double", "match")
    assert (altered["queries"], altered["parked"], altered["schema"]) == ("0", "1", "warmth double")
    assert kept[0] == 2
    assert "--yes" in kept[2]
    assert dropped[0] == 0
    assert [row["name"] for row in rows_of(run("set", "list")[1])] == ["alerts"]


def test_a_set_may_be_created_for_integer_ids(run, url):
    made = rows_of(run("set", "create", "numbers", "--schema", "x double", "--ids", "integer")[1])[0]

    assert (made["name"], made["ids"]) == ("numbers", "integer")
    assert {row["name"]: row["ids"] for row in rows_of(run("set", "list")[1])} == {"alerts": "", "numbers": "integer"}
    assert "are 64-bit integers" in run("query", "add", "a", "x > 1", "--set", "numbers")[2]
    assert run("query", "add", "5", "x > 1", "--set", "numbers")[0] == 0
    assert vd.Registry(url).list("numbers")[0].id == 5


def test_the_registry_is_compacted_counted_and_verified(run, url):
    run("query", "add", "a", "price < 1")

    assert rows_of(run("registry", "compact")[1])[0]["set"] == "alerts"
    assert rows_of(run("registry", "stats")[1])
    assert run("registry", "verify", "--json") == (0, "[]\n", "")
    assert run("registry", "verify") == (0, "", "")


def test_streams_are_listed_and_unpinned(run, url):
    run("query", "add", "a", "price < 1")
    registry = vd.Registry(url)
    for batch in range(3):
        registry.pin("job", batch, "alerts")

    listed = rows_of(run("registry", "pins")[1])
    assert [(row["set"], row["stream"], row["first_batch"], row["last_batch"], row["version"]) for row in listed] == [
        ("alerts", "job", "0", "2", "1")
    ]
    assert rows_of(run("registry", "pins", "alerts")[1]) == listed
    assert run("registry", "unpin", "job", "--from-batch", "1", "--dry-run")[1] == "stream,would_delete\njob,2\n"
    assert run("registry", "unpin", "job", "--from-batch", "1", "--set", "alerts")[1] == "stream,deleted\njob,2\n"
    assert run("registry", "unpin", "job")[1] == "stream,deleted\njob,1\n"
    code, out, err = run("registry", "unpin", "job")
    assert (code, out, err) == (2, "", "vedette: stream 'job' has no pins\n")


def test_a_table_is_for_people(run, url):
    run("query", "add", "a", "price < 1")

    out = run("query", "list", "--table")[1]

    assert "│ a  │ price < 1 │" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "add", "a", "prise < 1"], "unknown field 'prise'"),
        (["query", "add", "a"], "vedette: "),
        (
            ["query", "add", "a", "price < 1", "--metadata", "x"],
            "--metadata must be name=value, or a JSON object; got 'x'",
        ),
        (["query", "add", "a", "price < 1", "--ttl", "soon"], "vedette: "),
        (
            ["query", "add", "a", "price < 1", "--expires-at", "soon"],
            "--expires-at must be a time such as 2026-03-02T14:00:00Z; got 'soon'",
        ),
        (
            ["query", "add", "a", "price < 1", "--expect-version", "7"],
            "read the changes since version 7, and try again",
        ),
        (["query", "remove"], "no id is given"),
        (["query", "remove", "nobody"], "nobody"),
        (["query", "show", "nobody"], "nobody"),
        (["query", "list", "--set", "alert"], "did you mean 'alerts'?"),
        (["query", "list", "--json", "--csv"], "--json and --csv exclude each other"),
        (["query", "import", "no.csv"], "cannot read no.csv"),
        (["set", "create", "alerts", "--schema", "x double"], "alerts"),
        (["set", "create", "b", "--kind", "mach", "--schema", "x double"], "match"),
        (
            ["set", "create", "b", "--ids", "int", "--schema", "x double"],
            "ids must be one of: string, integer; got 'int'",
        ),
        (["set", "alter", "alerts"], "give the new schema with --schema"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(run, url, arguments, message):
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_without_a_registry_or_with_several_sets_one_must_be_named(run, url, monkeypatch):
    vd.Registry(url).create("more", kind="match", schema=SCHEMA)

    assert "choose one with --set: alerts, more" in run("query", "list")[2]
    monkeypatch.delenv("VEDETTE_REGISTRY")
    assert "no registry is given; use --registry" in run("query", "list")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "list"],
        ["set", "alter", "alerts", "--schema", SCHEMA],
        ["set", "drop", "alerts", "--yes"],
        ["query", "add", "a", "price < 1"],
        ["query", "list"],
        ["query", "import", "q.csv"],
        ["query", "export"],
        ["registry", "compact"],
        ["registry", "stats"],
        ["registry", "verify"],
    ],
)
@pytest.mark.parametrize("place", ["none.db", "nowhere/none.db"])
def test_a_missing_registry_is_reported_and_not_created(run, tmp_path, monkeypatch, arguments, place):
    monkeypatch.chdir(tmp_path)

    code, out, err = run(*arguments, "--registry", f"sqlite:///{place}")

    assert (code, out) == (2, "")
    assert err == f"vedette: no registry in sqlite:///{place}; create one with `vedette set create`\n"
    assert list(tmp_path.iterdir()) == []


def test_the_registry_of_a_pipeline_is_not_created(run, tmp_path):
    file = tmp_path / "pipeline.toml"
    file.write_text(
        f"""
        checkpoint = "{tmp_path}/checkpoint"
        source = {{ format = "json", path = "{tmp_path}" }}
        registry = {{ url = "sqlite:///{tmp_path}/none.db", set = "alerts" }}
        operator = {{ kind = "match" }}
        sink = [{{ name = "hits", format = "parquet", path = "{tmp_path}/hits" }}]
        """
    )

    code, _, err = run("run", file)

    assert code == 2
    assert "no registry in " in err
    assert list(tmp_path.iterdir()) == [file]


def test_many_queries_go_in_and_out_page_by_page(run, url, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.cli.jobs.query_export.PAGE", 3)
    file, out = tmp_path / "q.csv", tmp_path / "out.csv"
    file.write_text("id,where\n" + "".join(f"q{number},price < {number}\n" for number in range(10)))

    assert rows_of(run("query", "import", file, "--ttl", "1 hour")[1])[0]["version"] == "1"
    file.write_text(file.read_text().replace("price <", "price >") + "q10,price > 10\n")
    reported = rows_of(run("query", "import", file, "--replace")[1])[0]
    run("query", "export", "-o", out)

    assert (reported["added"], reported["replaced"], reported["version"]) == ("1", "10", "2")
    exported = {row["id"]: (row["where"], row["expires_at"]) for row in rows_of(out.read_text())}
    assert {query_id: where for query_id, (where, _) in exported.items()} == {
        f"q{number}": f"price > {number}" for number in range(11)
    }
    assert [query_id for query_id, (_, end) in exported.items() if not end] == ["q10"]  # the others keep theirs


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_has_one_version_even_if_queries_change_between_its_pages(run, url, tmp_path, monkeypatch, kind):
    registry = vd.Registry(url)
    registry.add_many("alerts", [f"q{number}" for number in range(10)], ["price < 1"] * 10)
    before, after = tmp_path / f"before.{kind}", tmp_path / f"after.{kind}"
    run("query", "export", "-o", before)
    monkeypatch.setattr("vedette.cli.jobs.query_export.PAGE", 3)
    to_row = exporting.to_row

    def change_once(query, info):
        if query.id == "q4":  # the second page is read
            with registry.change("alerts") as change:
                change.remove_many(["q0", "q9"])
                change.replace("q7", "price < 7")
                change.add("q66", "price < 66")
        return to_row(query, info)

    monkeypatch.setattr("vedette.cli.jobs.query_export.to_row", change_once)
    assert run("query", "export", "-o", after)[0] == 0

    assert registry.set("alerts").version == 2
    assert after.read_text() == before.read_text()


def test_an_export_of_a_set_that_is_dropped_and_created_again_is_refused(run, url, tmp_path, monkeypatch):
    registry = vd.Registry(url)
    registry.add_many("alerts", ["a", "b", "c"], ["price < 1"] * 3)
    monkeypatch.setattr("vedette.cli.jobs.query_export.PAGE", 2)
    to_row = exporting.to_row

    def make_again(query, info):
        if query.id == "b":
            registry.drop("alerts")
            registry.create("alerts", schema=SCHEMA)
            registry.add_many("alerts", ["a", "b", "z"], ["price < 2"] * 3)
        return to_row(query, info)

    monkeypatch.setattr("vedette.cli.jobs.query_export.to_row", make_again)
    code, _, err = run("query", "export", "-o", tmp_path / "out.csv")

    assert (code, err) == (2, "vedette: set 'alerts' was dropped; if it was created again, read it again by its name\n")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("n_queries", [0, 1, 5])
def test_an_export_is_printed_in_the_requested_format(run, url, tmp_path, monkeypatch, n_queries):
    monkeypatch.setattr("vedette.cli.jobs.query_export.PAGE", 2)
    for number in range(n_queries):
        run(
            "query", "add", f"q{number}", f"price < {number}", "--metadata", f"n={number}", "--expires-at", "2999-01-01"
        )

    reported = json.loads(run("query", "export", "--json")[1])
    printed = run("query", "export", "--csv")[1]
    table = run("query", "export", "--table")[1]

    assert reported == [
        {
            "id": f"q{number}",
            "where": f"price < {number}",
            "metadata": {"n": number},
            "expires_at": "2999-01-01T00:00:00+00:00",
        }
        for number in range(n_queries)
    ]
    assert printed == run("query", "export")[1]
    assert [row["id"] for row in rows_of(printed)] == [query["id"] for query in reported]
    assert [line.split()[1] for line in table.splitlines() if line.startswith("│")] == [q["id"] for q in reported]
    assert "where" in table


def test_joins_and_bands_are_printed_as_json_has_them(run, url):
    run("set", "create", "spreads", "--kind", "window join", "--left", SCHEMA, "--right", SCHEMA, "--windows", "any")
    run("set", "create", "bands", "--kind", "band join")
    run("query", "add", "s", "left.price > right.price", "--rows", "left=3", "--rows", "right=4", "--set", "spreads")
    run("query", "add", "b", "--low", "-0.5", "--set", "bands")

    (join,) = json.loads(run("query", "export", "--set", "spreads", "--json")[1])
    (band,) = json.loads(run("query", "export", "--set", "bands", "--json")[1], parse_constant=pytest.fail)

    assert (join["within"], join["rows"]) == (None, {"left": 3, "right": 4})
    assert (band["low"], band["high"]) == (-0.5, None)


@pytest.mark.parametrize(("name", "form"), [("q.csv", "--csv"), ("q.jsonl", "--json"), ("q.json", "--json")])
def test_a_format_may_be_given_by_extension_and_by_option(run, url, tmp_path, name, form):
    run("query", "add", "a", "price < 1")

    assert run("query", "export", "-o", tmp_path / name, form) == (0, "", "")
    assert (tmp_path / name).read_text().count("price < 1") == 1


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("q.csv", "--json", "the extension of q.csv means CSV, but --json means JSON; omit one of them"),
        ("q.jsonl", "--csv", "the extension of q.jsonl means JSON lines, but --csv means CSV; omit one of them"),
        ("q.parquet", "--csv", "the extension of q.parquet means Parquet, but --csv means CSV; omit one of them"),
        (
            "q.csv",
            "--table",
            "--table prints to the terminal and cannot be written to a file; omit --table or -o q.csv",
        ),
    ],
)
def test_an_extension_that_contradicts_the_format_option_is_refused(
    run, url, tmp_path, monkeypatch, name, form, message
):
    monkeypatch.chdir(tmp_path)
    run("query", "add", "a", "price < 1")

    assert run("query", "export", "-o", name, form) == (2, "", f"vedette: {message}\n")
    assert not (tmp_path / name).exists()


def test_the_commands_of_the_operations_page_run_unchanged(run, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    shown = next(
        block for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "vedette " in block
    )
    monkeypatch.chdir(tmp_path)
    output = {}
    for line in shown.splitlines():
        typed, _, command = line.rpartition(" | ")
        if typed:
            type_in(monkeypatch, shlex.split(typed)[1] + "\n")
        program, *words = shlex.split(command)
        if program == "export":
            monkeypatch.setenv(*words[0].split("=", 1))
            continue
        code, out, err = run(*words)
        assert (program, code) == ("vedette", 0), line
        assert err == "", line
        output[" ".join(words[:2])] = out

    assert [revision["where"] for revision in rows_of(output["query history"])] == [
        "symbol = 'IBM' AND price < 40",
        "symbol = 'IBM' AND price < 38",
    ]
    assert [query["id"] for query in json.loads(output["query list"])] == ["cheap-ibm"]


def test_an_import_reports_the_line_that_exceeds_a_limit(run, url, tmp_path, set_limits):
    set_limits(max_terms=2, max_text_length=60)
    file = tmp_path / "q.csv"
    long = "symbol = '" + "a" * 100_000 + "'"
    file.write_text(f"id,where\na,price < 1\nb,price < 2 AND price > 1 AND price > 0\nc,{long}\nd,price < 4\n")

    code, _, err = run("query", "import", file)
    assert code == 2
    assert "line 3: the condition has 3 terms" in err.replace("query 'b': ", "")
    code, reported, err = run("query", "import", file, "--skip-bad")

    assert (code, rows_of(reported)[0]["skipped"]) == (0, "2")
    assert len(err) < 3000
    assert [query.id for query in vd.Registry(url).list("alerts")] == ["a", "d"]
    code, _, err = run("query", "add", "e", "price < 2 AND price > 1 AND price > 0")
    assert (code, "the limit is 2 (setting max_terms)" in err) == (2, True)


def test_a_set_with_a_sample_refuses_broad_queries_by_line(run, url, tmp_path):
    rows, file = tmp_path / "rows.csv", tmp_path / "q.csv"
    rows.write_text("symbol,price\n" + "".join(f"IBM,{price}\n" for price in range(10)))
    made = run("set", "create", "guarded", "--schema", SCHEMA, "--max-match-share", "0.5", "--sample", rows, "--json")
    assert json.loads(made[1])["max_match_share"] == 0.5
    file.write_text("id,where\na,price < 1\nb,price < 6\nc,price < 3\n")

    code, _, err = run("query", "import", file, "--set", "guarded")
    assert (code, "matches 60% of the 10 rows of the sample, more than 50%" in err) == (2, True)
    code, reported, err = run("query", "import", file, "--set", "guarded", "--skip-bad")
    assert (code, rows_of(reported)[0]["skipped"]) == (0, "1")
    assert "line 3: " in err
    assert run("set", "alter", "guarded", "--max-match-share", "lots")[0] == 2
    assert run("set", "alter", "guarded", "--max-match-share", "0.6")[0] == 0
    assert run("query", "add", "b", "price < 6", "--set", "guarded")[0] == 0
    assert run("query", "add", "d", "price < 7", "--set", "guarded")[0] == 2
    assert run("set", "alter", "guarded", "--max-match-share", "none")[0] == 0
    assert run("query", "add", "d", "price < 7", "--set", "guarded")[0] == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_empty_id_is_exported_and_imported(run, url, tmp_path, kind):
    registry, file = vd.Registry(url), tmp_path / f"out.{kind}"
    registry.add("alerts", "", "price < 1")

    assert run("query", "export", "-o", file)[0] == 0
    registry.remove("alerts", "")
    assert run("query", "import", file)[0] == 0

    assert [query.id for query in registry.list("alerts")] == [""]


def test_the_first_invalid_line_of_a_file_is_reported(run, url, tmp_path):
    file = tmp_path / "q.csv"
    file.write_text("id,where\na,price < 1\na,price < 2\nb,price <\nc,\n")

    assert f"{file}, line 3: query 'a': its id is also in line 2" in run("query", "import", file)[2]
    _, _, err = run("query", "import", file, "--skip-bad")

    assert re.findall(r"line (\d)", err.split("skipped 3 bad")[0]) == ["3", "2", "4", "5"]
    assert f"skipped 3 bad queries of {file}: 'a', 'b', 'c'" in err


def test_a_query_explains_a_row_as_the_library_does(run, url, tmp_path):
    run("query", "add", "cheap", "symbol = 'IBM' AND price < 40")
    queries = vd.QuerySet(SCHEMA)
    queries.add("cheap", "symbol = 'IBM' AND price < 40")
    row = {"symbol": "IBM", "price": 41.5}

    code, out, _ = run("query", "why", "cheap", "--row", json.dumps(row))

    assert (code, out) == (0, f"{queries.why('cheap', row)}\n")
    told = json.loads(run("query", "why", "cheap", "--set", "alerts", "--row", json.dumps(row), "--json")[1])
    assert told == queries.why("cheap", row).to_dict()
    file = tmp_path / "rows.csv"
    file.write_text("symbol,price\nIBM,41.5\nIBM,39\n")
    told = json.loads(run("query", "why", "cheap", "--rows", str(file), "--json")[1])
    assert [each["holds"] for each in told] == [False, True]


def test_rows_of_why_have_the_types_of_the_set_and_are_checked(run, url):
    registry = vd.Registry(url)
    fields = "ts timestamp, d date, m decimal(10,2), x array<double>, o struct<a: double>, p map<string, double>"
    registry.create("times", schema=fields)
    text = "ts > now() - INTERVAL 1 HOUR AND d = DATE '2026-01-01' AND m > 1.5 AND o.a > x[0] AND p['k'] < 3"
    registry.add("times", "q", text)
    row = '{"ts": "2026-01-01T00:00:00Z", "d": "2026-01-01", "m": 1.75, "o": {"a": 2.5}, "x": [1.5], "p": {"k": 2.25}}'
    asked = ("query", "why", "q", "--set", "times", "--now", "2026-01-01T00:30:00Z", "--row")

    assert run(*asked, row)[1].startswith("query 'q' matches\n")
    assert "is timestamp; cannot read 'noon' as one; write 2026" in run(*asked, '{"ts": "noon"}')[2]
    assert "the row is not valid JSON" in run(*asked, "{")[2]
    assert "a row is a JSON object" in run(*asked, "[1]")[2]
    assert "give a row with --row" in run("query", "why", "q", "--set", "times")[2]
    assert "no query 'p'" in run("query", "why", "p", "--set", "times", "--row", "{}")[2]


def test_a_join_is_explained_for_a_row_of_each_stream(run, url):
    registry = vd.Registry(url)
    registry.create("pairs", kind="window join", left="x double", right="x double", windows="rows")
    registry.add("pairs", "q", "left.x < right.x", rows=10)

    code, out, _ = run("query", "why", "q", "--set", "pairs", "--row", '{"left": {"x": 1}, "right": {"x": 2.5}}')

    assert (code, out.splitlines()[0]) == (0, "query 'q' matches")
    assert '{"left": {...}, "right": {...}}' in run("query", "why", "q", "--set", "pairs", "--row", "{}")[2]
