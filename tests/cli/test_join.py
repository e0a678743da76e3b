"""`vedette join` in a shell: pairs, exit code and standard error."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def run(run_with_summary):
    return run_with_summary


DAY = "2026-03-02T14:00:{:02d}Z"
LEFT = [("l1", "IBM", 40.0, DAY.format(0)), ("l2", "SAP", 90.0, DAY.format(2)), ("l3", "IBM", 41.0, DAY.format(9))]
RIGHT = [("r1", "IBM", 40.25, DAY.format(1)), ("r2", "SAP", 95.0, DAY.format(3)), ("r3", "IBM", 41.5, DAY.format(14))]
NAMES = ("id", "symbol", "price", "ts")
NEAR = "left.symbol = right.symbol AND abs(left.price - right.price) <= 0.5"
QUERIES = [("near", NEAR, "5 seconds", ""), ("above", "left.price < right.price", "", 1)]
# Of "near", l1 and r1 are a second apart, l3 and r3 five. Of "above", each row joins with the last of the other stream.
PAIRS = [
    ("above", "l1", "r1"),
    ("above", "l2", "r2"),
    ("above", "l3", "r2"),
    ("near", "l1", "r1"),
    ("near", "l3", "r3"),
]
PAIRS = sorted([*PAIRS, ("above", "l3", "r3")])
COUNTS = "vedette: 3 left rows, 3 right rows, 6 pairs, "
TIMED = ("--time", "ts", "--id", "id")


def write_rows(path, rows, names=NAMES):
    if path.suffix == ".csv":
        lines = [",".join(names)] + [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        if "ts" in names and pa.types.is_string(table["ts"].type):
            times = table["ts"].cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(table.schema.get_field_index("ts"), "ts", times)
        pq.write_table(table, path)
    return path


def write_queries(path, queries=QUERIES, names=("id", "where", "within", "rows")):
    def cell(value):
        return f'"{value}"' if isinstance(value, str) and value else str(value)

    path.write_text("\n".join([",".join(names), *(",".join(map(cell, query)) for query in queries)]) + "\n")
    return path


def join(tmp_path, *more, left=LEFT, right=RIGHT, queries=QUERIES, kind="csv", names=NAMES):
    """The arguments of a command over two files."""
    sides = (
        "--left",
        write_rows(tmp_path / f"l.{kind}", left, names),
        "--right",
        write_rows(tmp_path / f"r.{kind}", right, names),
    )
    return ("join", *sides, "--queries", write_queries(tmp_path / "q.csv", queries), *more)


def read_pairs(path):
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        rows = pa_csv.read_csv(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(list(row) == ["query", "left", "right"] for row in rows)
    return sorted(tuple(row.values()) for row in rows)


def pairs_of(out):
    """Pairs that were written as CSV to standard output."""
    header, *lines = [line.replace('"', "").split(",") for line in out.splitlines()]
    assert header == ["query", "left", "right"]
    return sorted(tuple(line) for line in lines)


@pytest.mark.parametrize("rows_kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_join_reads_and_writes_each_format(run, tmp_path, rows_kind, kind):
    code, printed, err = run(*join(tmp_path, *TIMED, "-o", tmp_path / f"o.{kind}", kind=rows_kind))

    assert (code, printed) == (0, "")
    assert err.startswith(COUNTS)
    assert read_pairs(tmp_path / f"o.{kind}") == PAIRS


def test_files_of_two_formats_are_joined(run, tmp_path):
    left, right = write_rows(tmp_path / "l.parquet", LEFT), write_rows(tmp_path / "r.jsonl", RIGHT)
    sides = ("--left", left, "--right", right, "--queries", write_queries(tmp_path / "q.csv"))
    columns = ("--left-time", "ts", "--right-time", "ts", "--left-id", "id", "--right-id", "id")

    code, out, _ = run("join", *sides, *columns)

    assert (code, pairs_of(out)) == (0, PAIRS)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_queries_may_be_json_lines_or_parquet(run, tmp_path, kind):
    arguments = list(join(tmp_path, *TIMED))
    queries = [{"id": "near", "where": NEAR, "within": "5 seconds"}, {"id": "above", "where": QUERIES[1][1], "rows": 1}]
    path = tmp_path / f"q.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(query) + "\n" for query in queries))
    else:
        pq.write_table(pa.table({name: [query.get(name) for query in queries] for name in QUERY_NAMES}), path)
    arguments[arguments.index("--queries") + 1] = path

    code, out, _ = run(*arguments)

    assert (code, pairs_of(out)) == (0, PAIRS)


QUERY_NAMES = ("id", "where", "within", "rows")


def test_the_answer_s_columns_are_plain(run, tmp_path):
    run(*join(tmp_path, *TIMED, "-o", tmp_path / "o.parquet"))
    assert pq.read_schema(tmp_path / "o.parquet").types == [pa.string()] * 3

    run(*join(tmp_path, "--time", "ts", "-o", tmp_path / "o.parquet"))
    assert pq.read_schema(tmp_path / "o.parquet").types == [pa.string(), pa.int64(), pa.int64()]


def test_rows_without_an_id_are_named_by_their_number(run, tmp_path):
    _, out, _ = run(*join(tmp_path, "--time", "ts"))

    assert pairs_of(out) == [(query, str(int(left[1]) - 1), str(int(right[1]) - 1)) for query, left, right in PAIRS]


def test_the_number_of_a_row_is_that_of_its_file_also_where_that_is_not_in_order(run, tmp_path):
    left = [("a", "IBM", 40.0, DAY.format(5)), ("b", "IBM", 40.0, DAY.format(1))]
    right = [("c", "IBM", 40.0, DAY.format(1))]
    near = [("near", NEAR, "1 second", "")]
    _, out, _ = run(*join(tmp_path, "--time", "ts", left=left, right=right, queries=near))

    assert pairs_of(out) == [("near", "1", "0")]


def test_times_and_ids_may_be_numbers(run, tmp_path):
    left, right = [(1, "a", 1.0, 5)], [(7, "a", 2.0, 9), (8, "a", 3.0, 10)]

    _, out, _ = run(*join(tmp_path, *TIMED, left=left, right=right, queries=[(3, "left.price < right.price", 4, "")]))

    assert pairs_of(out) == [("3", "1", "7")]


def test_windows_that_a_query_lacks_are_those_of_the_options(run, tmp_path):
    queries = [("near", NEAR), ("wide", NEAR)]

    def found(*more, names=("id", "where"), queries=queries):
        arguments = join(tmp_path, *TIMED, *more)
        write_queries(tmp_path / "q.csv", queries, names)
        code, out, err = run(*arguments)
        assert code == 0, err
        return pairs_of(out)

    assert found("--within", "5 seconds") == found("--rows", "9")
    assert len(found("--rows", "9")) == 4
    assert found("--within", "4 seconds") == [("near", "l1", "r1"), ("wide", "l1", "r1")]
    own = [("near", NEAR, ""), ("wide", NEAR, "5 s")]
    assert found("--within", "1 s", names=("id", "where", "within"), queries=own) == [
        ("near", "l1", "r1"),
        ("wide", "l1", "r1"),
        ("wide", "l3", "r3"),
    ]


def test_windows_may_differ_by_stream(run, tmp_path):
    left, right = [("l", "a", 1.0, 10)], [("r1", "a", 1.0, 4), ("r2", "a", 1.0, 13)]
    queries = [("both", NEAR, "", "", ""), ("own", NEAR, "", 2, 6), ("counted", NEAR, "", "", 3)]

    arguments = join(tmp_path, *TIMED, "--within", "3", "--within", "right=5", left=left, right=right)
    names = ("id", "where", "within", "left_within", "right_within")
    write_queries(tmp_path / "q.csv", queries, names)

    assert pairs_of(run(*arguments)[1]) == [("both", "l", "r2"), ("counted", "l", "r2"), ("own", "l", "r1")]


def expected(left, right, within, n_rows):
    """All pairs of a near price: within a time, and among the last rows of the other stream."""
    everything = sorted([(row[3], side, row[0], row) for side, rows in enumerate((left, right)) for row in rows])
    seen, pairs = [[], []], []
    for time, side, _, row in everything:
        other = seen[1 - side]
        for place, one in enumerate(other):
            if row[1] == one[1] and abs(row[2] - one[2]) <= 0.5:
                ids = (row[0], one[0]) if side == 0 else (one[0], row[0])
                pairs += [("timed", *ids)] if time - one[3] <= within else []
                pairs += [("counted", *ids)] if place >= len(other) - n_rows else []
        seen[side].append(row)
    return sorted((query, str(left), str(right)) for query, left, right in pairs)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_do_not_depend_on_how_files_are_cut(run, tmp_path, monkeypatch, seed):
    made = random.Random(seed)

    def some(n, spread):
        times = sorted(made.choices(range(spread), k=n))
        return [(number, made.choice("ab"), made.choice([1.0, 1.5, 2.5]), time) for number, time in enumerate(times)]

    left, right = some(40, 60), some(90, 45)
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 7)
    monkeypatch.setattr("vedette.cli.jobs.streams.MAX_LINES", 40)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 5)
    queries = [("timed", NEAR, 4, ""), ("counted", NEAR, "", 6)]

    code, out, err = run(*join(tmp_path, *TIMED, left=left, right=right, queries=queries, kind="parquet"))

    assert (code, pairs_of(out)) == (0, expected(left, right, 4, 6))
    assert "late" not in err


def test_rows_that_are_not_in_order_are_late_or_applied(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    left = [(number, "a", 1.0, time) for number, time in enumerate([1, 4, 9, 12, 3, 14])]
    right = [(number, "a", 1.0, time) for number, time in enumerate([2, 3, 8, 9, 13, 20])]
    queries = [("near", NEAR, 1, "")]
    parts = {"left": left, "right": right, "queries": queries, "kind": "parquet"}

    _, out, err = run(*join(tmp_path, *TIMED, **parts))
    assert "1 late row dropped" in err
    assert not any(pair[1] == "4" for pair in pairs_of(out))

    _, out, err = run(*join(tmp_path, *TIMED, "--late", "apply", **parts))
    assert "late" not in err


def test_a_stream_that_has_ended_keeps_no_rows_of_the_other(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 10)
    monkeypatch.setattr("vedette.cli.jobs.streams.MAX_ROWS", 10)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 10)
    left, right = [(0, "a", 1.0, 0)], [(number, "a", 1.0, number) for number in range(300)]
    parts = {"left": left, "right": right, "queries": [("near", NEAR, 5, "")], "kind": "parquet"}

    code, out, _ = run(*join(tmp_path, *TIMED, "--max-state-rows", "30", **parts))

    assert (code, len(pairs_of(out))) == (0, 6)


def test_more_rows_than_may_be_kept_are_an_error_that_leaves_no_output(run, tmp_path):
    code, _, err = run(*join(tmp_path, *TIMED, "--max-state-rows", "2", "-o", tmp_path / "o.csv"))

    assert (code, err.count("\n")) == (2, 1)
    assert "--max-state-rows is 2" in err
    assert not (tmp_path / "o.csv").exists()


def test_three_files_are_joined(run, tmp_path):
    names = ("id", "x", "t")
    files = {
        "orders": write_rows(tmp_path / "o.csv", [("o1", 1, 1), ("o2", 2, 2)], names),
        "bills": write_rows(tmp_path / "b.csv", [("b1", 1, 3), ("b2", 2, 40)], names),
        "parcels": write_rows(tmp_path / "p.csv", [("p1", 1, 5), ("p2", 2, 9)], ("key", "x", "at")),
    }
    text = "orders.x = bills.x AND bills.x = parcels.x"
    queries = write_queries(tmp_path / "q.csv", [("same", text)], ("id", "where"))
    streams = [word for name, path in files.items() for word in ("--stream", f"{name}={path}")]
    columns = ("--time", "t", "--time", "parcels=at", "--id", "id", "--id", "parcels=key", "--within", "10")

    code, out, err = run("join", *streams, "--queries", queries, *columns)

    assert (code, out) == (0, '"query","orders","bills","parcels"\n"same","o1","b1","p1"\n')
    assert err.startswith("vedette: 2 orders rows, 2 bills rows, 2 parcels rows, 1 combination, ")


def test_a_file_may_be_joined_with_itself(run, tmp_path):
    path = write_rows(tmp_path / "l.csv", LEFT)
    queries = write_queries(
        tmp_path / "q.csv", [("same", "left.symbol = right.symbol AND left.id < right.id", "1 minute", "")]
    )

    _, out, _ = run("join", "--left", path, "--right", path, "--queries", queries, *TIMED)

    assert pairs_of(out) == [("same", "l1", "l3")]


def test_no_pair_leaves_the_header_and_so_do_files_without_rows(run, tmp_path):
    header = '"query","left","right"\n'
    code, out, err = run(*join(tmp_path, *TIMED, queries=[("none", "left.price < 0", "1 s", "")]))
    assert (code, out) == (0, header)
    assert "3 left rows, 3 right rows, 0 pairs" in err

    empty = pa.table({"id": ["a"], "symbol": ["a"], "price": [1.0], "ts": [1]}).slice(0, 0)
    arguments = join(tmp_path, *TIMED, kind="parquet", queries=[("near", NEAR, 1, "")])
    pq.write_table(empty, tmp_path / "l.parquet")
    pq.write_table(empty, tmp_path / "r.parquet")
    code, out, err = run(*arguments)
    assert (code, out) == (0, header)
    assert "0 left rows, 0 right rows, 0 pairs" in err


def test_a_declared_schema_need_not_name_the_time_and_the_id(run, tmp_path):
    for schema in (
        ("--schema", "symbol string, price double"),
        ("--left-schema", "id string, symbol string, price double"),
    ):
        code, out, _ = run(*join(tmp_path, *TIMED, *schema))
        assert (code, pairs_of(out)) == (0, PAIRS)


def test_ids_with_leading_zeros_stay_as_they_are(run, tmp_path):
    left = [("007", "a", 1.0, 1)]

    _, out, _ = run(
        *join(tmp_path, *TIMED, "--schema", "left=id string", left=left, right=left, queries=[("q", "true", 1, "")])
    )

    assert pairs_of(out) == [("q", "007", "007")]


def test_columns_that_are_not_needed_may_hold_anything(run, tmp_path):
    names = (*NAMES, "note")
    left = [(*row, note) for row, note in zip(LEFT, (1, 2, "many"), strict=True)]

    code, out, _ = run(*join(tmp_path, *TIMED, left=left, right=[(*row, "") for row in RIGHT], names=names))

    assert (code, pairs_of(out)) == (0, PAIRS)


def test_a_later_row_of_another_type_is_reported_with_the_option_that_helps(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 64)
    left = [(number, "a", 1, number) for number in range(20)] + [(20, "a", 1.5, 20)]

    code, _, err = run(*join(tmp_path, *TIMED, left=left, right=left, queries=[("q", NEAR, 1, "")]))

    assert (code, "declare the columns' types with --schema left='...'" in err) == (2, True)


def test_quiet_prints_nothing(run, tmp_path):
    assert run(*join(tmp_path, *TIMED, "-o", tmp_path / "o.csv", "--quiet")) == (0, "", "")


def test_failed_comparisons_are_reported(run, tmp_path):
    left = [("l", "a", 0.0, 1)]

    _, out, err = run(
        *join(tmp_path, *TIMED, "-q", left=left, right=left, queries=[("q", "1 / left.price > right.price", 1, "")])
    )

    assert pairs_of(out) == []
    assert "comparison failed" in err or "comparisons failed" in err


OPTIONS = [
    (["--time", "when"], "left rows: the rows have no column 'when' for the time"),
    (["--time", "ts", "--left-id", "ident"], "no column 'ident' for the id"),
    (["--time", "symbol"], "--left-time 'symbol' is string; a time must be a timestamp or a number"),
    (["--time", "ts", "--id", "price"], "--left-id 'price' is double; an id must be a string or a whole number"),
    (["--left-time", "ts"], "the right rows have no time column; name it with --time, or --time right=..."),
    ([], "the left rows have no time column; name it with --time, or --time left=..."),
    (["--time", "ts", "--late", "never"], "late must be one of: 'drop', 'apply'; got 'never'"),
    (["--time", "ts", "--max-state-rows", "0"], "--max-state-rows must be a whole number above 0, or None; got 0"),
    (
        ["--time", "rigth=ts"],
        "--time names an unknown stream 'rigth'; the streams are: left, right; did you mean 'right'?",
    ),
    (["--time", "ts", "--time", "at"], "give --time once for all streams, or once per stream as NAME=...; got 'at'"),
    (["--time", "left=ts", "--left-time", "ts"], "give --time once for all streams, or once per stream as NAME=..."),
    (["--time", "ts", "--within", "5 s", "--rows", "3"], "--within and --rows both give the window of the left stream"),
    (["--time", "ts", "--rows", "few"], "--rows must be a whole number above 0; got 'few'"),
    (["--time", "ts", "--schema", "left=price money"], "money"),
    (["--time", "ts", "--value", "price"], "--value is for --bands; queries name their fields themselves"),
    (
        ["--time", "ts", "--stream", "more"],
        "--stream must be a new name and a file, such as quotes=quotes.parquet; ",
    ),
    (["--time", "ts", "--stream", "query=q.csv"], "query, index, time_zone are reserved names; got 'query=q.csv'"),
    (["--time", "ts", "--bands", "b.csv"], "a join needs either --queries or --bands"),
    (["--left-time", "ts", "--right-time", "price"], "have different types (left: timestamp, right: double)"),
]


@pytest.mark.parametrize(("more", "message"), OPTIONS)
def test_invalid_options_are_reported_in_a_sentence_before_the_queries_are_read(run, tmp_path, more, message):
    arguments = join(tmp_path, "-o", tmp_path / "o.csv", *more)
    (tmp_path / "q.csv").write_text("this is not even looked at")

    code, out, err = run(*arguments)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("vedette: ")
    assert message in err
    assert not (tmp_path / "o.csv").exists()


def test_one_file_is_not_enough_for_a_join(run, tmp_path):
    path, queries = write_rows(tmp_path / "l.csv", LEFT), write_queries(tmp_path / "q.csv")

    code, _, err = run("join", "--left", path, "--queries", queries, *TIMED)

    assert (code, "a join needs at least two files" in err, "got: left" in err) == (2, True, True)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (("b", "left.price <", "1 s", ""), "line 3: query 'b'"),
        (("b", "price < 1", "1 s", ""), "needs its stream; write left.price or right.price"),
        (("b", "middle.price < 1", "1 s", ""), "unknown stream 'middle'; the streams are: left, right"),
        (
            ("b", NEAR, "", ""),
            "line 3: query 'b': it has no window for the left stream; add a column 'within' or 'rows'",
        ),
        (("b", NEAR, "1 s", 3), "line 3: query 'b': it has both within, '1 s', and rows, '3'; give one"),
        (("b", NEAR, "soon", ""), "line 3: query 'b': within must be a duration such as '5 minutes'; got 'soon'"),
        (
            ("b", NEAR, "0 s", ""),
            "line 3: query 'b': within must be a duration above 0, such as '5 minutes'; got '0 s'",
        ),
        (("b", NEAR, "", 0), "line 3: query 'b': rows must be a whole number above 0; got '0'"),
        (("b", NEAR, "", "1.5"), "line 3: query 'b': rows must be a whole number above 0; got '1.5'"),
        (("a", NEAR, "1 s", ""), "line 3: query 'a': its id is also in line 2; each id must be unique in a file"),
        (("b", "", "1 s", ""), "line 3: query 'b': it has no text under 'where'"),
    ],
)
def test_an_error_in_a_query_is_reported_with_its_line_or_skipped(run, tmp_path, query, message):
    good = [("a", NEAR, "5 seconds", "")]
    code, _, err = run(*join(tmp_path, *TIMED, queries=[*good, query]))
    assert (code, message in err) == (2, True), err

    code, out, err = run(*join(tmp_path, *TIMED, "--skip-bad", queries=[*good, query, ("c", NEAR, "", 1)]))
    assert (code, len(pairs_of(out))) == (0, 4)
    assert "skipped 1 bad query of" in err


def test_windows_that_do_not_suit_the_times_are_reported(run, tmp_path):
    code, _, err = run(*join(tmp_path, *TIMED, queries=[("near", NEAR, 5, "")]))

    assert (code, "within must be a duration such as '10 seconds'; query 'near' has a number" in err) == (2, True)


def test_an_error_in_a_row_of_a_later_batch_has_the_number_of_rows_before_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    left = [("l1", "a", 1.0, 1), ("l2", "a", 1.0, 2), ("l3", "a", 1.0, 3), ("l4", "a", 1.0, None)]
    parts = {"left": left, "right": left[:3], "queries": [("near", NEAR, 5, "")], "kind": "parquet"}

    code, _, err = run(*join(tmp_path, *TIMED, **parts))

    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"vedette: {tmp_path}/l.parquet, after row 2: left rows: time 'ts' is missing in row 1; ")


def test_an_answer_that_would_overwrite_an_input_is_refused(run, tmp_path):
    for name in ("l.csv", "r.csv", "q.csv"):
        code, _, err = run(*join(tmp_path, *TIMED, "-o", tmp_path / name))
        assert (code, "would overwrite" in err) == (2, True)


VALUES = [("l1", 20.0), ("l2", 5.0)], [("r1", 4.75), ("r2", 19.0)]
BANDS = [("close", -0.5, 0.5), ("above", 0, ""), ("below", "", -1), ("never", 3, 4)]
BAND_PAIRS = sorted(
    [("above", "l1", "r1"), ("above", "l1", "r2"), ("above", "l2", "r1"), ("below", "l2", "r2"), ("close", "l2", "r1")]
)


def join_bands(tmp_path, *more, bands=BANDS, left=VALUES[0], right=VALUES[1], names=("id", "value"), kind="csv"):
    sides = (
        "--left",
        write_rows(tmp_path / f"l.{kind}", left, names),
        "--right",
        write_rows(tmp_path / f"r.{kind}", right, names),
    )
    return ("join", *sides, "--bands", write_queries(tmp_path / "b.csv", bands, ("id", "low", "high")), *more)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_bands_find_the_pairs_of_their_differences(run, tmp_path, kind):
    code, out, err = run(*join_bands(tmp_path, kind=kind))

    assert (code, pairs_of(out)) == (0, BAND_PAIRS)
    assert err.startswith("vedette: 2 left rows, 2 right rows, 5 pairs, ")


def test_bands_may_report_only_which_of_them_have_pairs(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 1)
    code, out, err = run(*join_bands(tmp_path, "--report", "queries"))

    assert code == 0
    assert sorted(out.splitlines()) == ['"above"', '"below"', '"close"', '"query"']
    assert "2 right rows, 3 queries, " in err


def test_columns_of_ids_and_values_may_have_other_names(run, tmp_path):
    more = ("--id", "name", "--left-value", "price", "--right-value", "price")
    _, out, _ = run(*join_bands(tmp_path, *more, names=("name", "price")))

    assert pairs_of(out) == BAND_PAIRS


def test_integer_values_may_be_followed_by_other_numbers(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 64)
    left = [*[(number, 100) for number in range(20)], (20, 0.5)]

    code, out, _ = run(*join_bands(tmp_path, left=left, right=[(1, 0)], bands=[(7, 0, 1)]))

    assert (code, pairs_of(out)) == (0, [("7", "20", "1")])


def test_no_pair_of_bands_leaves_the_header_in_its_types(run, tmp_path):
    none = [(1, 5, 6)]
    assert run(*join_bands(tmp_path, bands=none))[1] == '"query","left","right"\n'

    run(*join_bands(tmp_path, "-o", tmp_path / "o.parquet", bands=none))
    assert pq.read_schema(tmp_path / "o.parquet").types == [pa.string(), pa.string(), pa.string()]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--value", "price"],
            "the left rows have no column 'price' for the value; they have: id, value; name the column: "
            "--value COLUMN, or --value left=COLUMN for one side",
        ),
        (["--value", "valu"], "the left rows have no column 'valu' for the value; they have: id, value; did you mean"),
        (["--right-id", "key"], "the right rows have no column 'key' for the id"),
        (["--report", "all"], "--report must be one of: 'pairs', 'queries'; got 'all'"),
        (["--within", "5 s"], "--within is for joins of --queries; bands join all values of both files"),
        (["--stream", "more=m.csv"], "bands join the values of --left and --right; got: left, right, more"),
        (["--max-state-rows", "3"], "--max-state-rows is 3"),
    ],
)
def test_invalid_options_of_bands_are_reported_in_a_sentence(run, tmp_path, more, message):
    code, _, err = run(*join_bands(tmp_path, "-o", tmp_path / "o.csv", *more))

    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("band", "message"),
    [
        (("b", 3, 2), "line 3: band 'b': its low 3 is above its high 2; a band needs low <= high"),
        (("b", "nan", 2), "line 3: band 'b': its low is 'nan'; it must be a number, or empty"),
        (("b", 1, "much"), "line 3: band 'b': its high is 'much'; it must be a number"),
        (("a", 1, 2), "line 3: band 'a': its id is also in line 2; each id must be unique in a file"),
    ],
)
def test_an_error_in_a_band_is_reported_with_its_line_or_skipped(run, tmp_path, band, message):
    bands = [("a", 0, ""), band]
    code, _, err = run(*join_bands(tmp_path, bands=bands))
    assert (code, message in err) == (2, True), err

    code, out, err = run(*join_bands(tmp_path, "--skip-bad", bands=bands))
    assert (code, len(pairs_of(out))) == (0, 3)
    assert "skipped 1 bad band of" in err


def test_a_null_value_is_reported_with_its_row(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 1)
    left = [("l1", 1.0), ("l2", None)]

    code, _, err = run(*join_bands(tmp_path, left=left))

    assert (code, err.count("\n")) == (2, 1)
    assert "l.csv, after row 1: the value of left row 0, id 'l2', is null; values are finite numbers" in err


def test_a_bands_file_without_its_columns_is_reported(run, tmp_path):
    arguments = join_bands(tmp_path)
    (tmp_path / "b.csv").write_text("id,low\na,1\n")

    code, _, err = run(*arguments)

    assert code == 2
    assert "has no column 'high'; a file of bands has columns id, low and high, this one has: id, low" in err


def test_counts_show_on_a_terminal_and_not_when_quiet(terminal_output, tmp_path):
    arguments = join(tmp_path, *TIMED, "-o", tmp_path / "o.csv")
    assert "3 left rows, 3 right rows, 6 pairs" in terminal_output(*arguments)
    assert terminal_output(*arguments, "--quiet") == ""


@pytest.mark.parametrize("kind", ["csv", "jsonl", pytest.param("parquet", marks=pytest.mark.fast)])
def test_join_in_spark_gives_the_same(spark, run, tmp_path, kind):
    code, _, err = run(*join(tmp_path, *TIMED, "-o", tmp_path / "o.parquet", "--spark", kind=kind))

    assert code == 0, err
    assert err.startswith(COUNTS)
    assert read_pairs(tmp_path / "o.parquet") == PAIRS
    assert pq.read_schema(tmp_path / "o.parquet").types == [pa.string()] * 3


def test_an_error_in_spark_is_one_sentence(spark, run, tmp_path):
    for more, message in (
        (("--time", "ts"), "with --spark, left rows need an id; name its column with --id, or --id left=..."),
        (("--time", "at", "--id", "id"), "'at'"),
        ((*TIMED, "--late", "never"), "late must be one of: 'drop', 'apply'; got 'never'"),
    ):
        code, _, err = run(*join(tmp_path, "--spark", "-o", tmp_path / "o.csv", *more))
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
        assert not (tmp_path / "o.csv").exists()


def test_no_pair_in_spark_leaves_the_header(spark, run, tmp_path):
    code, out, _ = run(*join(tmp_path, *TIMED, "--spark", queries=[("none", "left.price < 0", "1 s", "")]))

    assert (code, out) == (0, '"query","left","right"\n')


@pytest.mark.parametrize("report", ["pairs", "queries"])
def test_bands_in_spark_give_the_same(spark, run, tmp_path, report):
    code, out, err = run(*join_bands(tmp_path, "--spark", "--report", report))

    assert code == 0, err
    assert sorted(out.splitlines()) == sorted(run(*join_bands(tmp_path, "--report", report))[1].splitlines())
    assert err.startswith("vedette: 2 left rows, 2 right rows, ")


@pytest.mark.parametrize("more", [(), pytest.param(("--spark",), marks=pytest.mark.full)], ids=str)
def test_pairs_have_the_columns_that_were_asked_for(tmp_path, run, more):
    left, right = write_rows(tmp_path / "left.csv", LEFT), write_rows(tmp_path / "right.csv", RIGHT)
    queries = write_queries(tmp_path / "queries.csv")
    files = ("--left", left, "--right", right, "--queries", queries, *TIMED)
    code, out, err = run("join", *files, "--column", "price", "--column", "left=symbol", *more)
    assert code == 0, err
    names, *lines = (line.split(",") for line in out.replace('"', "").splitlines())
    assert names == ["query", "left", "right", "left_price", "left_symbol", "right_price", "event_id"]
    assert sorted(tuple(line[:3]) for line in lines) == PAIRS
    prices = {row[0]: row[1:3] for row in (*LEFT, *RIGHT)}
    for _, one, other, left_price, symbol, right_price, event_id in lines:
        assert (symbol, float(left_price), float(right_price)) == (*prices[one], prices[other][1])
        assert len(event_id) == 32


def test_pairs_of_bands_have_columns_also_of_values_that_are_replaced(tmp_path, run):
    names = ("id", "value", "city")
    left = write_rows(tmp_path / "left.csv", [("a", 1.0, "Oslo"), ("b", 9.0, "Rome")], names)
    right = write_rows(tmp_path / "right.csv", [("x", 50.0, "no"), ("y", 1.5, "Bonn"), ("x", 9.5, "Lima")], names)
    bands = write_queries(tmp_path / "bands.csv", [("near", -1, 1)], ("id", "low", "high"))
    files = ("--left", left, "--right", right, "--bands", bands, "--column", "city", "--known-id", "replace")
    code, out, err = run("join", *files)
    assert code == 0, err
    assert sorted(out.replace('"', "").splitlines()[1:]) == ["near,a,y,Oslo,Bonn", "near,b,x,Rome,Lima"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--column", "prise"), "'prise', which is not a column of the rows"),
        (("--column", "lft=price"), "--column names an unknown stream 'lft'; the streams are: left, right"),
        (("--column", "price", "--column", "price"), "asked for twice"),
    ],
)
def test_columns_that_do_not_exist_are_refused(tmp_path, run, more, message):
    left, right = write_rows(tmp_path / "left.csv", LEFT), write_rows(tmp_path / "right.csv", RIGHT)
    files = ("--left", left, "--right", right, "--queries", write_queries(tmp_path / "queries.csv"), *TIMED)
    code, out, err = run("join", *files, *more)
    assert (code, out) == (2, "")
    assert message in err
