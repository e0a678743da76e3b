"""`vedette border` in a shell: events, exit code and standard error."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def run(run_with_summary):
    return run_with_summary


ROWS = [
    ("IBM", 41.0, "2026-03-02T14:00:00Z"),
    ("SAP", 39.0, "2026-03-02T14:00:00Z"),
    ("IBM", 39.5, "2026-03-02T14:01:00Z"),
    ("IBM", 38.0, "2026-03-02T14:02:00Z"),
    ("IBM", 40.5, "2026-03-02T14:03:00Z"),
]
QUERIES = [("cheap", "price < 40"), ("dear", "price > 100")]
# By key and time, as the rows above have it.
EVENTS = [
    ("IBM", "14:01:00", "cheap", "enter", "moved"),
    ("IBM", "14:03:00", "cheap", "exit", "moved"),
    ("SAP", "14:00:00", "cheap", "enter", "first"),
]
COLUMNS = ["key", "time", "query", "event", "reason"]
COUNTS = "vedette: 5 rows, 3 events, 2 keys, "


def write_rows(path, rows=ROWS, names=("symbol", "price", "ts")):
    if path.suffix == ".csv":
        lines = [",".join(names)] + [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        place = table.schema.get_field_index("ts")
        if pa.types.is_string(table["ts"].type):
            times = table["ts"].cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(place, "ts", times)
        pq.write_table(table, path)
    return path


def write_queries(path, queries=QUERIES):
    path.write_text("id,where\n" + "".join(f'{name},"{text}"\n' for name, text in queries))
    return path


def border(tmp_path, *more, rows=ROWS, queries=QUERIES):
    """The arguments of a command over rows with the columns symbol, price and ts."""
    paths = write_rows(tmp_path / "r.csv", rows), "--queries", write_queries(tmp_path / "q.csv", queries)
    return ("border", *paths, "--key", "symbol", "--time", "ts", *more)


def read_events(path):
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        rows = pa_csv.read_csv(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(list(row) == COLUMNS for row in rows)
    return sorted((row["key"], str(row["time"])[11:19], row["query"], row["event"], row["reason"]) for row in rows)


def events_of(out):
    """Events that were written as CSV to standard output."""
    header, *lines = [line.replace('"', "").split(",") for line in out.splitlines()]
    assert header == COLUMNS
    return sorted(tuple(line) for line in lines)


@pytest.mark.parametrize("rows_kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_border_reads_and_writes_each_format(run, tmp_path, rows_kind, kind):
    rows, queries, out = (
        write_rows(tmp_path / f"r.{rows_kind}"),
        write_queries(tmp_path / "q.csv"),
        tmp_path / f"o.{kind}",
    )

    code, printed, err = run("border", rows, "--queries", queries, "--key", "symbol", "--time", "ts", "-o", out)

    assert (code, printed) == (0, "")
    assert err.startswith(COUNTS)
    assert read_events(out) == EVENTS
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([rows.name, "q.csv", out.name])


def test_the_answer_s_columns_are_plain(run, tmp_path):
    run(*border(tmp_path, "-o", tmp_path / "o.parquet"))

    types = [pa.string(), pa.timestamp("us", tz="UTC"), pa.string(), pa.string(), pa.string()]
    assert pq.read_schema(tmp_path / "o.parquet").types == types


def test_keys_times_and_ids_may_be_numbers(run, tmp_path):
    rows = [(7, 41.0, 1), (7, 39.0, 2), (8, 12.0, 2)]

    code, out, _ = run(*border(tmp_path, rows=rows, queries=[("1", "price < 40")]))

    assert code == 0
    assert events_of(out) == [("7", "2", "1", "enter", "moved"), ("8", "2", "1", "enter", "first")]


def test_without_an_output_csv_is_on_standard_output_and_counts_on_standard_error(run, tmp_path):
    code, out, err = run(*border(tmp_path))

    assert code == 0
    assert out.splitlines()[0] == '"key","time","query","event","reason"'
    assert '"IBM",2026-03-02 14:01:00.000000Z,"cheap","enter","moved"' in out.splitlines()
    assert err.startswith(COUNTS)


def test_quiet_prints_only_dropped_rows(run, tmp_path):
    assert run(*border(tmp_path, "-o", tmp_path / "o.csv", "--quiet")) == (0, "", "")

    rows = [*ROWS, (None, 1.0, "2026-03-02T14:04:00Z")]
    reported = run(*border(tmp_path, "-o", tmp_path / "o.csv", "--quiet", "--null-key", "drop", rows=rows))
    assert reported == (0, "", "vedette: 1 row without a key dropped\n")


def test_no_event_leaves_the_header(run, tmp_path):
    code, out, err = run(*border(tmp_path, queries=[("none", "price < 0")]))

    assert (code, out) == (0, '"key","time","query","event","reason"\n')
    assert "5 rows, 0 events, 2 keys" in err


def test_a_file_without_rows_leaves_the_header(run, tmp_path):
    pq.write_table(pa.table({"symbol": ["a"], "price": [1.0], "ts": [1]}).slice(0, 0), tmp_path / "r.parquet")
    queries = write_queries(tmp_path / "q.csv")

    code, out, err = run("border", tmp_path / "r.parquet", "--queries", queries, "--key", "symbol", "--time", "ts")

    assert (code, out) == (0, '"key","time","query","event","reason"\n')
    assert "0 rows, 0 events, 0 keys" in err


@pytest.fixture
def small_batches(monkeypatch):
    """Parquet files are read two rows at a time."""
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)


def border_parquet(tmp_path, rows, *more):
    path, queries = write_rows(tmp_path / "r.parquet", rows), write_queries(tmp_path / "q.csv")
    return ("border", path, "--queries", queries, "--key", "symbol", "--time", "ts", *more)


# The fourth row comes in the batch after the third, and is older.
BACKWARDS = [("IBM", 41.0, 1), ("IBM", 39.0, 5), ("IBM", 38.0, 6), ("IBM", 41.0, 6), ("IBM", 50.0, 3), ("IBM", 37.0, 7)]


def test_rows_whose_times_run_backwards_are_dropped_and_counted(run, tmp_path, small_batches):
    code, out, err = run(*border_parquet(tmp_path, BACKWARDS))

    assert code == 0
    assert [event[1:4] for event in events_of(out)] == [
        ("5", "cheap", "enter"),
        ("6", "cheap", "exit"),
        ("7", "cheap", "enter"),
    ]
    assert "6 rows, 3 events, 1 key, 1 late row dropped" in err


def test_late_rows_are_applied_on_request(run, tmp_path, small_batches):
    rows = [("IBM", 41.0, 1), ("IBM", 42.0, 5), ("IBM", 38.0, 3), ("IBM", 37.0, 4)]

    _, out, err = run(*border_parquet(tmp_path, rows, "--late", "apply"))

    assert [event[2:4] for event in events_of(out)] == [("cheap", "enter")]
    assert "late" not in err


def test_an_error_in_a_row_of_a_later_batch_has_the_number_of_rows_before_it(run, tmp_path, small_batches):
    rows = [("IBM", 41.0, 1), ("IBM", 39.0, 5), ("IBM", 38.0, 6), (None, 41.0, 7)]

    code, _, err = run(*border_parquet(tmp_path, rows))

    assert code == 2
    assert err.startswith(f"vedette: {tmp_path}/r.parquet, after row 2: --null-key is 'error', and the key ")
    assert err.count("\n") == 1


def test_keys_that_follow_one_another_in_the_file_do_not_expire_each_other(run, tmp_path, small_batches):
    rows = [("IBM", 30.0, 0), ("IBM", 30.0, 50), ("IBM", 30.0, 100), ("SAP", 30.0, 0), ("SAP", 30.0, 20)]

    _, out, _ = run(*border_parquet(tmp_path, rows, "--expire-after", "60"))

    assert events_of(out) == [
        ("IBM", "0", "cheap", "enter", "first"),
        ("SAP", "0", "cheap", "enter", "first"),
        ("SAP", "80", "cheap", "exit", "expired"),
    ]


def test_durations_are_such_as_minutes_where_the_time_is_a_timestamp(run, tmp_path):
    _, out, _ = run(*border(tmp_path, "--expire-after", "2 minutes 30 seconds"))
    assert ("SAP", "2026-03-02 14:02:30.000000Z", "cheap", "exit", "expired") in events_of(out)

    _, out, _ = run(*border(tmp_path, "--dwell", "90 s"))
    times = [(event[0], event[1][11:19], event[3]) for event in events_of(out)]
    assert times == [("IBM", "14:02:30", "enter"), ("IBM", "14:03:00", "exit"), ("SAP", "14:01:30", "enter")]


@pytest.mark.parametrize("margin", [["--margin", "0.6"], ["--margin", "price=0.6"]])
def test_a_margin_is_one_for_all_or_by_field(run, tmp_path, margin):
    _, out, _ = run(*border(tmp_path, *margin))

    assert [(event[0], event[3]) for event in events_of(out)] == [("IBM", "enter"), ("SAP", "enter")]


def test_margins_of_several_fields_are_given_one_after_another(run, tmp_path):
    rows = [("a", 1.0, 1.0, 1), ("a", 2.5, 2.5, 2), ("a", 4.0, 2.5, 3)]
    path = write_rows(tmp_path / "r.csv", rows, ("name", "x", "y", "t"))
    queries = write_queries(tmp_path / "q.csv", [("box", "x BETWEEN 0 AND 2 AND y BETWEEN 0 AND 2")])

    _, out, _ = run(
        "border", path, "--queries", queries, "--key", "name", "--time", "t", "--margin", "x=1", "--margin", "y=1"
    )

    assert [event[1] for event in events_of(out)] == ["1", "3"]


def test_cross_reports_keys_that_jump_over_a_range(run, tmp_path):
    queries = [("band", "price BETWEEN 39.6 AND 39.9")]

    assert len(events_of(run(*border(tmp_path, queries=queries))[1])) == 0
    out = run(*border(tmp_path, "--cross", queries=queries))[1]
    assert [event[0::3] for event in events_of(out)] == [("IBM", "cross"), ("IBM", "cross")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--key", "symbl"],
            "no column 'symbl' for the key; they have: price, symbol, ts; did you mean 'symbol'?",
        ),
        (["--time", "when"], "no column 'when' for the time"),
        (["--key", "price"], "key 'price' is double; a key must be a string or a whole number"),
        (["--time", "symbol"], "time 'symbol' is string; a time must be a timestamp or a number"),
        (["--late", "never"], "late must be one of: 'drop', 'apply'; got 'never'"),
        (["--null-key", "keep"], "--null-key must be one of: 'error', 'drop'; got 'keep'"),
        (["--dwell", "soon"], "dwell must be a duration such as '5 minutes'; got 'soon'"),
        (["--expire-after", "600"], "--expire-after must be a duration such as '5 minutes'; got 600"),
        (["--margin", "-1"], "--margin must be a number of 0 or more"),
        (["--margin", "prise=1"], "margin names 'prise', which is not a numeric field"),
        (
            ["--margin", "price=much"],
            "--margin must be a number, price=0.5 for one field, or metres such as 50m; got 'price=much'",
        ),
        (["--margin", "1", "--margin", "price=2"], "give --margin once, or once per field, such as price=0.5; got "),
        (
            ["--margin", "price=1", "--margin", "price=2"],
            "give --margin once, or once per field, such as price=0.5; got ",
        ),
    ],
)
def test_invalid_options_are_reported_in_a_sentence_before_the_queries_are_read(run, tmp_path, more, message):
    arguments = border(tmp_path, "-o", tmp_path / "o.csv", *more)
    (tmp_path / "q.csv").write_text("this is not even looked at")

    code, out, err = run(*arguments)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("vedette: ")
    assert message in err
    assert not (tmp_path / "o.csv").exists()


def test_a_row_without_a_key_is_an_error_that_leaves_no_output(run, tmp_path):
    code, _, err = run(*border(tmp_path, "-o", tmp_path / "o.csv", rows=[*ROWS, (None, 1.0, "2026-03-02T14:09:00Z")]))

    assert (code, err.count("\n")) == (2, 1)
    assert "key 'symbol' is null in row 5" in err
    assert not (tmp_path / "o.csv").exists()


def test_an_error_in_a_queries_file_is_reported_with_its_line(run, tmp_path):
    code, _, err = run(*border(tmp_path, queries=[("a", "price < 1"), ("b", "price <")]))
    assert (code, "q.csv, line 3: query 'b'" in err) == (2, True)

    code, out, err = run(*border(tmp_path, "--skip-bad", queries=[*QUERIES, ("b", "price <")]))
    assert (code, len(events_of(out))) == (0, 3)
    assert "skipped 1 bad query" in err


def test_a_declared_schema_need_not_name_the_key_and_the_time(run, tmp_path):
    for schema in ("price double", "price double, symbol string, ts timestamp"):
        code, out, _ = run(*border(tmp_path, "--schema", schema))
        assert (code, len(events_of(out))) == (0, 3)


def test_keys_are_read_as_the_schema_declares_them(run, tmp_path):
    code, out, _ = run(*border(tmp_path, "--schema", "symbol string, price double", rows=[("007", 1.0, 1)]))

    assert (code, events_of(out)) == (0, [("007", "1", "cheap", "enter", "first")])


def test_times_without_a_zone_are_in_the_time_zone_given(run, tmp_path):
    rows = [("IBM", 39.0, "2026-03-02 14:00:00")]

    _, out, _ = run(*border(tmp_path, "--time-zone", "Europe/Berlin", rows=rows))

    assert [event[1] for event in events_of(out)] == ["2026-03-02 13:00:00.000000Z"]


def test_columns_that_are_not_needed_may_hold_anything(run, tmp_path):
    names = ("symbol", "price", "ts", "note")
    lines = [*[(f"s{n}", 1.0, n, n) for n in range(3)], ("s3", 1.0, 3, "many")]
    queries = write_queries(tmp_path / "q.csv")
    paths = [write_rows(tmp_path / "r.csv", lines, names)]
    (tmp_path / "r.jsonl").write_text('{"symbol": "a", "price": 1.0, "ts": 1, "note": [1, 2]}\n')
    paths.append(tmp_path / "r.jsonl")

    for path, n in zip(paths, (4, 1), strict=True):
        code, out, _ = run("border", path, "--queries", queries, "--key", "symbol", "--time", "ts")
        assert (code, len(events_of(out))) == (0, n)


def test_failed_comparisons_are_reported(run, tmp_path):
    rows = [("a", 0.0, 1), ("a", 2.0, 2)]

    code, out, err = run(*border(tmp_path, "--quiet", rows=rows, queries=[("half", "1 / price < 1")]))

    assert (code, len(events_of(out))) == (0, 1)
    assert "1 comparison failed" in err


def test_an_answer_that_would_overwrite_an_input_is_refused(run, tmp_path):
    code, _, err = run(*border(tmp_path, "-o", tmp_path / "q.csv"))

    assert (code, "would overwrite" in err) == (2, True)


@pytest.mark.parametrize("command", ["match", "border"])
def test_polygons_of_a_geojson_file_are_queries(run, tmp_path, command):
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
    (tmp_path / "q.geojson").write_text(json.dumps({"type": "Feature", "id": "town", "geometry": square}))
    rows = write_rows(tmp_path / "r.csv", [("a", 1.0, 1.0, 1), ("a", 5.0, 1.0, 2)], ("name", "x", "y", "t"))
    keyed = ("--key", "name", "--time", "t") if command == "border" else ()

    code, out, _ = run(command, rows, "--queries", tmp_path / "q.geojson", *keyed)

    assert code == 0
    assert [line for line in out.splitlines() if "town" in line] == (
        ['"a",1,"town","enter","first"', '"a",2,"town","exit","moved"']
        if command == "border"
        else ['a,1.0,1.0,1,"town"']
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl", pytest.param("parquet", marks=pytest.mark.fast)])
def test_border_in_spark_gives_the_same(spark, run, tmp_path, kind):
    rows, queries = write_rows(tmp_path / f"r.{kind}"), write_queries(tmp_path / "q.csv")
    given = ("--queries", queries, "--key", "symbol", "--time", "ts", "-o", tmp_path / "o.parquet", "--spark")

    code, _, err = run("border", rows, *given)

    assert code == 0
    assert err.startswith(COUNTS)
    assert read_events(tmp_path / "o.parquet") == EVENTS
    types = [pa.string(), pa.timestamp("us", tz="UTC"), pa.string(), pa.string(), pa.string()]
    assert pq.read_schema(tmp_path / "o.parquet").types == types


def test_border_in_spark_takes_the_same_options(spark, run, tmp_path):
    rows = [*ROWS, (None, 1.0, "2026-03-02T14:04:00Z"), ("IBM", 39.0, "2026-03-02T14:00:30Z")]
    more = ("--margin", "price=0.6", "--null-key", "drop", "--schema", "price double", "--spark")

    code, out, err = run(*border(tmp_path, *more, rows=rows))

    assert code == 0
    assert [(event[0], event[3]) for event in events_of(out)] == [("IBM", "enter"), ("SAP", "enter")]
    assert "7 rows, 2 events, 2 keys, 1 row without a key dropped" in err


def test_an_error_in_spark_is_one_sentence(spark, run, tmp_path):
    assert run(*border(tmp_path, "--spark", "--late", "never"))[2] == run(*border(tmp_path, "--late", "never"))[2]

    for more, rows, message in (
        (("--key", "symbl"), ROWS, "did you mean 'symbol'?"),
        ((), [*ROWS, (None, 1.0, "2026-03-02T14:04:00Z")], "is null in 1 row"),
    ):
        code, _, err = run(*border(tmp_path, "--spark", "-o", tmp_path / "o.csv", *more, rows=rows))
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
        assert not (tmp_path / "o.csv").exists()


def test_no_event_in_spark_leaves_the_header(spark, run, tmp_path):
    code, out, _ = run(*border(tmp_path, "--spark", queries=[("none", "price < 0")]))

    assert (code, out) == (0, '"key","time","query","event","reason"\n')


def test_counts_show_on_a_terminal_and_not_when_quiet(terminal_output, tmp_path):
    assert "5 rows, 3 events, 2 keys" in terminal_output(*border(tmp_path, "-o", tmp_path / "o.csv"))
    assert terminal_output(*border(tmp_path, "-o", tmp_path / "o.csv", "--quiet")) == ""


def test_events_have_columns_of_their_rows_and_ids(run, tmp_path):
    arguments = border(tmp_path, "--column", "price", "--column", "symbol", "--schema", "ts timestamp, price double")
    code, out, _ = run(*arguments)
    header, *lines = out.replace('"', "").splitlines()

    assert (code, header) == (0, "key,time,query,event,reason,price,symbol,event_id")
    assert [line.split(",")[5:7] for line in lines] == [["39.5", "IBM"], ["40.5", "IBM"], ["39", "SAP"]]


def test_bounds_that_move_with_now_pass_silent_keys(run, tmp_path):
    rows, out = write_rows(tmp_path / "rows.csv"), tmp_path / "events.jsonl"
    queries = tmp_path / "queries.csv"
    queries.write_text("id,where\nfresh,ts > now() - INTERVAL 2 MINUTES\n")

    code, _, _ = run("border", rows, "--queries", queries, "--key", "symbol", "--time", "ts", "-o", out)

    assert code == 0
    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(e["key"], e["time"][11:19], e["event"], e["reason"]) for e in events] == [
        ("IBM", "14:00:00", "enter", "first"),
        ("SAP", "14:00:00", "enter", "first"),
        ("SAP", "14:02:00", "exit", "time"),
    ]


def test_each_query_of_a_file_has_its_own_options(run, tmp_path):
    rows = write_rows(tmp_path / "r.csv")
    queries = tmp_path / "q.csv"
    queries.write_text("id,where,Once,cooldown,note\ncheap,price < 40,query,,x\nlow,price < 41,,10 minutes,y\n")
    out = tmp_path / "out.csv"
    run("border", rows, "--queries", queries, "--key", "symbol", "--time", "ts", "-o", out)
    events = [line.split(",")[2:4] for line in out.read_text().replace('"', "").splitlines()[1:]]
    assert sorted(events) == [["cheap", "enter"], ["low", "enter"], ["low", "enter"]]


def test_queries_of_a_file_differ_in_how_long_keys_may_be_silent(run, tmp_path):
    rows, queries, out = tmp_path / "r.csv", tmp_path / "q.csv", tmp_path / "out.csv"
    times = ["2026-03-02T14:00:00Z", "2026-03-02T14:30:00Z"]
    rows.write_text("symbol,price,ts\n" + "".join(f"IBM,39,{time}\n" for time in times))
    queries.write_text("id,where,expire_after\nshort,price < 40,5 minutes\nlong,price < 40,1 hour\nnever,price < 40,\n")
    run("border", rows, "--queries", queries, "--key", "symbol", "--time", "ts", "-o", out)
    events = [line.split(",")[1:4] for line in out.read_text().replace('"', "").splitlines()[1:]]
    assert [(time[11:16], query, event) for time, query, event in events[3:]] == [
        ("14:05", "short", "exit"),
        ("14:30", "short", "enter"),
    ]


def test_a_file_with_an_unknown_value_of_an_option_is_refused_with_its_line(run, tmp_path):
    rows, queries = write_rows(tmp_path / "r.csv"), tmp_path / "q.csv"
    queries.write_text("id,where,once\ncheap,price < 40,twice\n")
    arguments = ("border", rows, "--queries", queries, "--key", "symbol", "--time", "ts")
    words = "q.csv, line 2: query 'cheap': once must be True, False or 'query'; got 'twice'"
    code, _, err = run(*arguments)
    assert code == 2
    assert words in err
