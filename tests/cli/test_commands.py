"""The commands in a shell: output, exit code and standard error."""

from __future__ import annotations

import importlib
import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

ROWS = {
    "symbol": ["IBM", "SAP", "IBM", None],
    "price": [39.5, 100.0, 41.0, None],
    "volume": [100, 2000, 5, 7],
}
QUERIES = [("cheap-ibm", "symbol = 'IBM' AND price < 40"), ("block", "volume >= 1000"), ("unpriced", "price IS NULL")]
PAIRS = [("IBM", "cheap-ibm"), ("SAP", "block"), (None, "unpriced")]


def write_rows(path):
    table = pa.table(ROWS)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def write_queries(path, queries=QUERIES):
    table = pa.table({"id": [q for q, _ in queries], "where": [w for _, w in queries], "owner": ["me"] * len(queries)})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def read_pairs(path):
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        options = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        rows = pa_csv.read_csv(path, convert_options=options).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(rows[0]) == {"symbol", "price", "volume", "query"}
    return [(row["symbol"], row["query"]) for row in rows]


@pytest.mark.parametrize("rows_kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_match_reads_and_writes_each_format(run, tmp_path, rows_kind, kind):
    rows, queries, out = (
        write_rows(tmp_path / f"rows.{rows_kind}"),
        write_queries(tmp_path / f"q.{kind}"),
        tmp_path / f"o.{kind}",
    )

    assert run("match", rows, "--queries", queries, "-o", out) == (0, "", "")

    assert read_pairs(out) == PAIRS
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([rows.name, queries.name, out.name])


def test_match_without_an_output_writes_csv_to_standard_output(run, tmp_path):
    code, out, err = run("match", write_rows(tmp_path / "r.csv"), "--queries", write_queries(tmp_path / "q.csv"))

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        '"symbol","price","volume","query"',
        '"IBM",39.5,100,"cheap-ibm"',
        '"SAP",100,2000,"block"',
        ',,7,"unpriced"',
    ]


def test_match_in_spark_gives_the_same(spark, run, tmp_path):
    rows, queries = write_rows(tmp_path / "r.csv"), write_queries(tmp_path / "q.csv")

    assert run("match", rows, "--queries", queries, "--spark", "-o", tmp_path / "o.jsonl")[0] == 0

    assert sorted(read_pairs(tmp_path / "o.jsonl"), key=str) == sorted(PAIRS, key=str)


@pytest.mark.parametrize(
    ("type_", "values", "text"),
    [
        ("decimal(10,2)", pa.array([3900.0]), "a > 1"),
        ("bigint", pa.array(["12"]), "a > 1"),
        ("bigint", pa.array([True]), "a > 0"),
        ("bigint", pa.array([2.0]), "a > 0"),
        ("string", pa.array([12]), "a = '12'"),
        ("boolean", pa.array([1]), "a"),
        ("date", pa.array([0], pa.timestamp("us")), "a = DATE '1970-01-01'"),
        ("timestamp", pa.array([0], pa.date32()), "a IS NOT NULL"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_with_spark_a_column_is_refused_as_it_is_without(run, tmp_path, type_, values, text):
    pq.write_table(pa.table({"a": values}), tmp_path / "r.parquet")
    queries = write_queries(tmp_path / "q.csv", [("q", text)])
    command = ("match", tmp_path / "r.parquet", "--queries", queries, "--schema", f"a {type_}", "-q")

    here, there = run(*command), run(*command, "--spark")

    assert here[0] == 2
    assert "field 'a' is " in here[2]
    assert there == here


@pytest.mark.parametrize("more", [(), ("--spark",)])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_without_any_field_that_queries_use_are_refused(run, tmp_path, kind, more):
    rows, queries = write_rows(tmp_path / f"r.{kind}"), write_queries(tmp_path / "q.csv", [("q", "a > 1")])

    code, out, err = run("match", rows, "--queries", queries, "--schema", "a double", *more)

    assert (code, out) == (2, "")
    assert err == "vedette: the rows lack field 'a', which queries use; they have: price, symbol, volume\n"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_without_any_declared_field_match_queries_that_use_none(run, tmp_path, kind):
    rows, queries = write_rows(tmp_path / f"r.{kind}"), write_queries(tmp_path / "q.csv", [("q", "TRUE")])

    code, out, err = run("match", rows, "--queries", queries, "--schema", "a double")

    assert (code, err, len(out.splitlines())) == (0, "", 5)


def test_a_declared_schema_overrides_inferred_types(run, tmp_path):
    (tmp_path / "r.csv").write_text("code,at\n007,2026-03-02 14:00:00\n")
    queries = write_queries(tmp_path / "q.csv", [("bond", "code = '007' AND at >= TIMESTAMP '2026-03-02 14:00:00'")])

    code, out, _ = run("match", tmp_path / "r.csv", "--queries", queries, "--schema", "code string, at timestamp")

    assert code == 0
    assert len(out.splitlines()) == 2
    assert ',"bond"' in out


def test_nothing_matched_leaves_the_header(run, tmp_path):
    queries = write_queries(tmp_path / "q.csv", [("none", "price < 0")])

    assert (
        run("match", write_rows(tmp_path / "r.csv"), "--queries", queries)[1] == '"symbol","price","volume","query"\n'
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.csv", "id,where\na,price < 1\nb,price <\n", "q.csv, line 3: query 'b'"),
        ("q.csv", "id,where\na,price < 1\nb\n", "q.csv, line 3: it has 1 columns, the first line has 2"),
        ("q.csv", "id,where\na,price < 1\na,price < 2\n", "q.csv, line 3: "),
        ("q.csv", "id,where\na,\n", "q.csv, line 2: query 'a': it has no text under 'where'"),
        ("q.csv", "name,where\na,price < 1\n", "has no column 'id'"),
        ("q.csv", "id,where\n", "has no queries"),
        ("q.jsonl", '{"id": "a", "where": "price < 1"}\n{"id": \n', "q.jsonl, line 2: invalid JSON"),
        ("q.jsonl", '{"id": "a"}\n', "q.jsonl, line 1: it is not an object with 'id' and 'where'"),
        (
            "q.jsonl",
            '{"id": 1, "where": "price < 1"}\n{"id": "a", "where": "price < 1"}\n',
            "line 2: query 'a': its id is a string",
        ),
        ("q.parquet", "no parquet", "q.parquet is not a Parquet file"),
        ("q.txt", "", "unknown extension of"),
    ],
)
def test_an_error_in_a_queries_file_is_reported_with_its_line(run, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    out = tmp_path / "out.csv"

    code, _, err = run("match", write_rows(tmp_path / "r.csv"), "--queries", tmp_path / name, "-o", out)

    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not out.exists()


def test_skip_bad_continues_and_counts(run, tmp_path):
    (tmp_path / "q.csv").write_text(
        "id,where\ncheap,price < 40\nbad,price <\nworse\ncheap,price < 3\nblock,volume > 1000\n"
    )

    code, out, err = run("match", write_rows(tmp_path / "r.csv"), "--queries", tmp_path / "q.csv", "--skip-bad")

    assert code == 0
    assert [line.rsplit(",", 1)[1] for line in out.splitlines()[1:]] == ['"cheap"', '"block"']
    assert "skipped 3 bad queries" in err
    assert "line 3" in err


def test_an_output_that_cannot_be_written_is_reported_before_any_work(run, tmp_path):
    rows = write_rows(tmp_path / "r.csv")
    (tmp_path / "q.csv").write_text("this is not even looked at")

    code, _, err = run("match", rows, "--queries", tmp_path / "q.csv", "-o", tmp_path / "none" / "out.csv")

    assert (code, err) == (
        2,
        f"vedette: cannot write {tmp_path}/none/out.csv: No such file or directory; choose another file with -o\n",
    )


def test_a_missing_file_of_rows_is_reported(run, tmp_path):
    code, _, err = run("match", tmp_path / "r.csv", "--queries", write_queries(tmp_path / "q.csv"))

    assert (code, err) == (2, f"vedette: cannot read {tmp_path}/r.csv: No such file or directory\n")


def test_rows_that_cannot_be_read_on_leave_no_output(run, tmp_path):
    (tmp_path / "r.csv").write_text("price\n1.5\nmany\n")
    queries = write_queries(tmp_path / "q.csv", [("a", "price < 40")])

    code, _, err = run(
        "match", tmp_path / "r.csv", "--queries", queries, "--schema", "price double", "-o", tmp_path / "o.csv"
    )

    assert code == 2
    assert "cannot read" in err
    assert "many" in err
    assert not (tmp_path / "o.csv").exists()


def test_check_prints_ok_or_a_warning_or_the_place_of_an_error(run):
    schema = ("--schema", "symbol string, price double")

    assert run("query", "check", "price < 40", *schema) == (0, "ok\n", "")
    code, out, _ = run("query", "check", "price < 1 AND price > 2", *schema)
    assert code == 0
    assert out.startswith("warning: ")
    code, out, err = run("query", "check", "prise < 40", *schema)
    assert (code, out) == (2, "")
    assert "did you mean 'price'?" in err
    assert "\n  ^^^^^\n" in err


def test_explain_names_the_indexes(run, tmp_path):
    queries = write_queries(tmp_path / "q.csv")

    code, out, _ = run("explain", "--queries", queries, "--schema", "symbol string, price double, volume bigint")
    assert code == 0
    assert "3" in out
    assert run("explain", "--queries", queries, "--rows", write_rows(tmp_path / "r.csv"))[1] == out


def test_explain_without_types_asks_for_a_schema(run, tmp_path):
    code, _, err = run("explain", "--queries", write_queries(tmp_path / "q.csv"))

    assert code == 2
    assert "give --schema" in err


def test_version_is_the_package_s(run):
    assert run("--version") == (0, "vedette 0.1.0\n", "")


def test_an_invalid_option_is_reported_without_a_traceback(run):
    code, _, err = run("match", "--colour")

    assert code == 2
    assert "Traceback" not in err


def test_progress_shows_on_a_terminal_and_not_when_quiet(terminal_output, tmp_path):
    rows, queries = write_rows(tmp_path / "r.csv"), write_queries(tmp_path / "q.csv")

    assert "4 rows, 3 matches" in terminal_output("match", rows, "--queries", queries, "-o", tmp_path / "o.csv")
    assert terminal_output("match", rows, "--queries", queries, "-o", tmp_path / "o.csv", "--quiet") == ""


def test_failed_comparisons_are_reported(run, tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,0\n4,2\n")
    queries = write_queries(tmp_path / "q.csv", [("half", "a / b = 2")])

    code, out, err = run("match", tmp_path / "r.csv", "--queries", queries)

    assert (code, out.splitlines()[1:]) == (0, ['4,2,"half"'])
    what = "failed (a division by zero, an overflow, a cast) and counted as null"
    assert err == f"vedette: 1 comparison {what}\n"


def test_without_java_the_demo_and_spark_say_what_to_install(run, tmp_path, monkeypatch):
    rows, queries = write_rows(tmp_path / "r.csv"), write_queries(tmp_path / "q.csv")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    session = importlib.import_module("vedette.spark.session")
    monkeypatch.setattr(session, "has_session", lambda: False)  # that of other tests needs no Java any more

    for command in (("demo", "--output-dir", tmp_path / "out"), ("match", rows, "--queries", queries, "--spark")):
        code, out, err = run(*command)
        assert (code, out) == (2, "")
        assert err.startswith("vedette: Spark needs Java 17 or later")
        assert err.count("\n") == 1


def test_rows_with_a_column_named_query_are_refused(run, tmp_path):
    (tmp_path / "r.csv").write_text("price,query\n1.5,a\n")

    code, _, err = run(
        "match", tmp_path / "r.csv", "--queries", write_queries(tmp_path / "q.csv", [("a", "price < 4")])
    )

    assert (code, err) == (
        2,
        "vedette: the rows have a column 'query', which is also a column of the answer; rename it\n",
    )


def test_a_type_that_csv_does_not_support_is_refused_and_leaves_no_output(run, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"price": 1.5, "tags": ["a", "b"]}\n')
    queries = write_queries(tmp_path / "q.csv", [("a", "price < 4")])

    code, _, err = run("match", tmp_path / "r.jsonl", "--queries", queries, "-o", tmp_path / "o.csv")
    assert (code, "which CSV does not support; use -o with .jsonl or .parquet" in err) == (2, True)
    assert not (tmp_path / "o.csv").exists()

    assert run("match", tmp_path / "r.jsonl", "--queries", queries, "-o", tmp_path / "o.jsonl")[0] == 0
    assert json.loads((tmp_path / "o.jsonl").read_text()) == {"price": 1.5, "tags": ["a", "b"], "query": "a"}


@pytest.mark.parametrize(("time", "query"), [("2026-03-02T14:00:00Z", "zoned"), ("2026-03-02T14:00:00", "local")])
def test_times_in_json_lines_keep_the_zone_they_name(run, tmp_path, time, query):
    (tmp_path / "r.jsonl").write_text(json.dumps({"ts": time}) + "\n")
    texts = [("zoned", "ts = TIMESTAMP '2026-03-02 15:00:00'"), ("local", "ts = TIMESTAMP '2026-03-02 14:00:00'")]
    queries = write_queries(tmp_path / "q.csv", texts)

    _, out, _ = run("match", tmp_path / "r.jsonl", "--queries", queries, "--time-zone", "Europe/Berlin")

    assert [line.rsplit(",", 1)[1] for line in out.splitlines()[1:]] == [f'"{query}"']


def test_columns_that_no_query_uses_are_copied_unchanged(run, tmp_path):
    (tmp_path / "r.csv").write_text("zip,price,note\n0123,1.50,1.0\n0456,9,\n")
    queries = write_queries(tmp_path / "q.csv", [("cheap", "price < 4")])

    for declared in ((), ("--schema", "price double")):
        code, out, _ = run("match", tmp_path / "r.csv", "--queries", queries, *declared)
        assert (code, out.splitlines()[1:]) == (0, ['0123,1.50,1.0,"cheap"'])


@pytest.mark.parametrize("name", ["r.csv", "q.csv"])
def test_an_answer_that_would_overwrite_an_input_is_refused(run, tmp_path, name):
    rows, queries = write_rows(tmp_path / "r.csv"), write_queries(tmp_path / "q.csv")
    before = (tmp_path / name).read_text()

    code, _, err = run("match", rows, "--queries", queries, "-o", tmp_path / name)

    assert code == 2
    assert "would overwrite" in err
    assert (tmp_path / name).read_text() == before


def test_columns_that_spark_cannot_read_do_not_go_through_spark(spark, run, tmp_path):
    rows = pa.table(
        {
            "price": [1.0, 5.0, 2.0],
            "ts": pa.array([1, 2, 3], pa.timestamp("ns", tz="Europe/Berlin")),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "at": pa.array([1, 2, 3], pa.time32("s")),
        }
    )
    pq.write_table(rows, tmp_path / "r.parquet")
    queries = write_queries(tmp_path / "q.csv", [("cheap", "price < 4")])

    code, _, err = run(
        "match", tmp_path / "r.parquet", "--queries", queries, "--spark", "-o", tmp_path / "o.parquet", "-q"
    )

    assert code == 0, err
    assert (
        pq.read_table(tmp_path / "o.parquet")
        .drop_columns("query")
        .equals(pq.read_table(tmp_path / "r.parquet").take([0, 2]))
    )


def test_a_check_with_rows_warns_of_a_query_that_matches_most_of_them(run, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("symbol,price\n" + "".join(f"IBM,{price}\n" for price in range(100)))
    schema = ("--schema", "symbol string, price double")

    assert run("query", "check", "price < 5", *schema, "--rows", rows)[:2] == (0, "ok\n")
    code, out, _ = run("query", "check", "price < 60", *schema, "--rows", rows)
    assert code == 0
    assert out.startswith("warning: matches 60% of the 100 rows of the sample, more than 10%: ")
    assert run("query", "check", "price < 5", *schema, "--rows", tmp_path / "none.csv")[0] == 2


def test_now_is_one_moment_for_all_rows_of_a_match(run, tmp_path):
    rows, queries, out = tmp_path / "rows.csv", tmp_path / "queries.csv", tmp_path / "hits.csv"
    rows.write_text("n,ts\n1,2026-03-01T11:56:00Z\n2,2026-03-01T11:54:00Z\n")
    queries.write_text("id,where\nfresh,ts > now() - INTERVAL 5 MINUTES\n")
    match = ("match", rows, "--queries", queries, "--time-zone", "Europe/Berlin", "-o", out)

    code, _, _ = run(*match, "--now", "2026-03-01 13:00:00")

    assert code == 0
    assert [line.split(",")[0] for line in out.read_text().splitlines()[1:]] == ["1"]
    code, _, err = run(*match, "--now", "soon")
    assert (code, "--now must be a timestamp such as '2026-03-01 12:00:00'; got 'soon'" in err) == (2, True)
    code, _, err = run(*match, "--now", "2026-03-01", "--spark")
    assert (code, "--now is not supported with --spark" in err) == (2, True)
