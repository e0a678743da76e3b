"""`vedette moving` in a shell: changes, pairs, overdue objects, exit code and standard error."""

from __future__ import annotations

import csv
import io
import json
import random

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from oracles_moving_joins import meet_at, pairs_at


@pytest.fixture
def run(run_with_summary):
    return run_with_summary


NAMES = ("id", "time", "x_low", "x_high", "y_low", "y_high", "vx_low", "vx_high", "vy_low", "vy_high", "removed")
VESSELS = [
    ("Ada", 0, 0, 2, 0, 2, 1, 1, 0, 0, None),
    ("Bob", 3, 50.5, 52, 0, 2, 0, 0, 0, 0, None),
    ("Ada", 20, 20, 22, 0, 2, -1, -1, 0, 0, None),
    ("Bob", 30, *[None] * 8, True),
]
STORMS = [(7, 0, 30, 40, -5, 5, -1, 0, 0, 0, None), (8, 25, 50, 60, -5, 5, 0, 0, 0, 0, None)]
# Ada moves towards storm 7 and turns around inside; Bob is where storm 8 appears, and is removed at 30.
CHANGES = [
    (1, "Ada", 7, 14, 40),
    (-1, "Ada", 7, 14, 40),
    (1, "Ada", 7, 14, pytest.approx(20)),
    (1, "Ada", 7, 20, 60),
    (1, "Bob", 8, 25, 63),
    (-1, "Bob", 8, 25, 63),
    (1, "Bob", 8, 25, pytest.approx(30)),
]
COUNTS = "vedette: 4 a rows, 2 b rows, 7 changes, "
EVERY = ("--max-update-interval", "60")


def write_rows(path, rows, names=NAMES):
    if path.suffix == ".csv":
        lines = [",".join(names)] + [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        removed = {"removed": pa.array(columns.pop("removed"), pa.bool_())} if "removed" in columns else {}
        pq.write_table(pa.table(columns | removed), path)
    return path


def moving(tmp_path, *more, a=VESSELS, b=STORMS, kind="csv", names=NAMES):
    """The arguments of a command over two files."""
    files = write_rows(tmp_path / f"a.{kind}", a, names), write_rows(tmp_path / f"b.{kind}", b, names)
    every = () if "--max-update-interval" in more else EVERY
    return ("moving", "--a", files[0], "--b", files[1], *every, *more)


def read_answer(path):
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        rows = pa_csv.read_csv(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [tuple(row.values()) for row in rows]


def read_csv(out):
    """What was written as CSV to standard output: the header, and lines of strings."""
    header, *lines = csv.reader(io.StringIO(out))
    return header, [tuple(line) for line in lines]


@pytest.mark.parametrize("rows_kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_changes_are_read_from_and_written_to_each_format(run, tmp_path, rows_kind, kind):
    code, printed, err = run(*moving(tmp_path, "-o", tmp_path / f"o.{kind}", kind=rows_kind))

    assert (code, printed) == (0, "")
    assert err.startswith(COUNTS)
    assert read_answer(tmp_path / f"o.{kind}") == CHANGES


def test_the_answer_s_columns_are_plain(run, tmp_path):
    out = tmp_path / "o.parquet"
    run(*moving(tmp_path, "-o", out))
    assert pq.read_schema(out).names == ["sign", "a", "b", "start", "end"]
    assert pq.read_schema(out).types == [pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.float64()]

    run(*moving(tmp_path, "--at", "26", "-o", out))
    assert (pq.read_schema(out).names, pq.read_schema(out).types) == (["a", "b"], [pa.string(), pa.int64()])

    run(*moving(tmp_path, "--overdue", "26", "-o", out))
    assert pq.read_schema(out).names == ["set", "a", "b", "deadline"]
    assert pq.read_schema(out).types == [pa.string(), pa.string(), pa.int64(), pa.float64()]

    run(*moving(tmp_path, "--overdue", "26", "--static", "b", "-o", out))
    assert pq.read_schema(out).names == ["set", "id", "deadline"]
    assert pq.read_schema(out).types == [pa.string(), pa.string(), pa.float64()]


@pytest.mark.parametrize(
    ("time", "pairs"),
    [
        ("-1", []),
        ("13", []),
        ("14", [("Ada", "7")]),
        ("26", [("Ada", "7"), ("Bob", "8")]),
        ("30", [("Ada", "7")]),
        ("1e3", [("Ada", "7")]),  # without updates for long, they continue their motions
    ],
)
def test_pairs_at_a_time_are_those_of_the_updates_until_then(run, tmp_path, time, pairs):
    code, out, err = run(*moving(tmp_path, "--at", time))

    assert code == 0
    header, lines = read_csv(out)
    assert (header, sorted(lines)) == (["a", "b"], pairs)
    assert f"4 a rows, 2 b rows, {len(pairs)} pair" in err


def test_overdue_objects_may_be_removed_from_the_result(run, tmp_path):
    often = ("--max-update-interval", "10")

    _, out, err = run(*moving(tmp_path, "--overdue", "26", *often))
    assert read_csv(out) == (["set", "a", "b", "deadline"], [("a", "Bob", "", "13"), ("b", "", "7", "10")])
    assert "2 overdue objects" in err
    numbers = [(9, *row[1:]) for row in VESSELS if row[0] == "Bob"]
    reported = run(*moving(tmp_path, "--overdue", "26", *often, a=numbers))[1]
    assert read_csv(reported) == (["set", "id", "deadline"], [("a", "9", "13"), ("b", "7", "10")])
    reported = run(*moving(tmp_path, "--overdue", "26", *often, a=[changed(VESSELS[0], time=99)]))[1]
    assert read_csv(reported) == (["set", "a", "b", "deadline"], [("b", "", "7", "10")])
    assert read_csv(run(*moving(tmp_path, "--overdue", "26", *often, "--static", "b"))[1])[1] == [("a", "Bob", "13")]

    assert len(read_csv(run(*moving(tmp_path, "--at", "26", *often))[1])[1]) == 2
    assert read_csv(run(*moving(tmp_path, "--at", "26", *often, "--expire-overdue"))[1])[1] == []


def make_updates(made, n, n_objects):
    """Rows of some objects in time order; some objects are removed."""
    rows = []
    for time in sorted(made.choices(range(12), k=n)):
        x, y = made.randint(-6, 6), made.randint(-6, 6)
        speeds = [made.choice([-1, 0, 0.5, 1]) for _ in range(2)]
        sides = (x, x + made.randint(0, 4), y, y + made.randint(0, 4), speeds[0], speeds[0], speeds[1], speeds[1])
        rows.append((made.randrange(n_objects), time, *sides, made.random() < 0.15))
    return rows


def boxes_at(rows, time):
    """By object, its last reported box up to a time."""
    boxes = {}
    for name, when, x0, x1, y0, y1, vx0, vx1, vy0, vy1, is_removed in rows:
        if when <= time:
            boxes[name] = None if is_removed else ((x0, y0), (x1, y1), (vx0, vy0), (vx1, vy1), when)
    return {name: box for name, box in boxes.items() if box is not None}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [3, 1000])
def test_the_pairs_of_each_time_equal_brute_force_for_any_batches(run, tmp_path, monkeypatch, seed, batch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", batch)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", batch)
    made = random.Random(seed)
    a, b = make_updates(made, 30, 5), make_updates(made, 45, 6)

    code, out, err = run(*moving(tmp_path, "--max-update-interval", "5", a=a, b=b, kind="parquet"))

    assert code == 0, err
    changes = [(int(s), int(i), int(j), float(start), float(end)) for s, i, j, start, end in read_csv(out)[1]]
    for time in [half / 2 for half in range(2 * min(a[-1][1], b[-1][1]) + 1)]:
        expected = pairs_at(boxes_at(a, time), boxes_at(b, time), time)
        sums = {}
        for sign, i, j, start, end in changes:
            sums[i, j] = sums.get((i, j), 0) + sign * (start <= time <= end)
        assert {pair: n for pair, n in sums.items() if n} == dict.fromkeys(expected, 1)
        if time % 3 == 0:
            reported = run(*moving(tmp_path, "--at", time, "--max-update-interval", "5", a=a, b=b, kind="parquet"))[1]
            assert {tuple(map(int, line)) for line in read_csv(reported)[1]} == expected


def test_pairs_at_a_time_need_no_order(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 2)

    _, out, _ = run(*moving(tmp_path, "--at", "26", a=BY_OBJECT, kind="parquet"))

    assert sorted(read_csv(out)[1]) == [("Ada", "7"), ("Bob", "8")]


BY_OBJECT = [(name, time, x, x, 0, 0, 0, 0, 0, 0, None) for name, x in (("Ada", 35), ("Bob", 55)) for time in range(9)]


@pytest.mark.parametrize(("late", "names"), [("apply", {"Ada", "Bob"}), ("drop", {"Ada"})])
def test_late_rows_of_a_file_are_applied_or_dropped_and_counted(run, tmp_path, monkeypatch, late, names):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 2)
    zones = [("z", 0, 30, 60, -5, 5, 0, 0, 0, 0, None)]

    code, out, err = run(*moving(tmp_path, "--late", late, a=BY_OBJECT[:-2], b=zones, kind="parquet"))

    assert code == 0, err
    assert {a for _, a, *_ in read_csv(out)[1]} == names
    assert ("late rows dropped" in err) == (late == "drop")


def test_a_late_row_of_a_file_may_be_an_error(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    monkeypatch.setattr("vedette.cli.jobs.streams.MIN_ROWS", 2)

    code, _, err = run(*moving(tmp_path, "--late", "error", "-o", tmp_path / "o.csv", a=BY_OBJECT, kind="parquet"))

    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(
        "vedette: rows of time 0: --late is 'error', and 1 row of set a came late: the first has time 0"
    )
    assert not (tmp_path / "o.csv").exists()


def test_points_and_boxes_of_three_dimensions_are_followed(run, tmp_path):
    points = ("id", "time", "x", "y", "z", "vx", "vy", "vz")
    a, b = [(1, 0, 0, 0, 0, 1, 0, 0)], [(2, 0, 4, 0, 2, 0, 0, -0.5)]

    _, out, _ = run(*moving(tmp_path, a=a, b=b, names=points))

    assert read_csv(out)[1] == [("1", "1", "2", "4", "4")]
    assert meet_at(
        ((0, 0, 0), (0, 0, 0), (1, 0, 0), (1, 0, 0), 0), ((4, 0, 2), (4, 0, 2), (0, 0, -0.5), (0, 0, -0.5), 0), 4
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("zone", ["Z", ""])
def test_timestamps_count_in_seconds_since_1970(run, tmp_path, kind, zone):
    def stamped(rows):
        return [changed(row, time=f"1970-01-01T00:00:{row[1]:02d}{zone}") for row in rows]

    arguments = moving(tmp_path, a=stamped(VESSELS), b=stamped(STORMS), kind=kind)
    if kind == "parquet":
        for name in ("a", "b"):
            table = pq.read_table(tmp_path / f"{name}.parquet")
            times = table["time"].cast(pa.timestamp("ms", tz="UTC" if zone else None))
            pq.write_table(table.set_column(1, "time", times), tmp_path / f"{name}.parquet")

    run(*arguments, "-o", tmp_path / "o.csv")
    assert read_answer(tmp_path / "o.csv") == CHANGES

    for at in ("26", "1970-01-01T00:00:26Z", "1970-01-01 01:00:26+01:00"):
        assert sorted(read_csv(run(*arguments, "--at", at)[1])[1]) == [("Ada", "7"), ("Bob", "8")]


def test_static_zones_need_neither_speeds_nor_updates(run, tmp_path):
    zones = tmp_path / "zones.csv"
    zones.write_text("id,time,x_low,x_high,y_low,y_high\nharbour,0,10,20,-5,5\n")
    arguments = [*moving(tmp_path, "--at", "150", "--static", "b")]
    arguments[arguments.index("--b") + 1] = zones

    assert read_csv(run(*arguments)[1])[1] == []

    arguments[arguments.index("150")] = "12"
    assert read_csv(run(*arguments)[1])[1] == [("Ada", "harbour")]


def zones_without_times(tmp_path, *more):
    zones = tmp_path / "zones.csv"
    zones.write_text("id,x_low,x_high,y_low,y_high\nharbour,10,20,-5,5\nbay,0,1,0,1\n")
    boats = [changed(VESSELS[0], time=5), changed(VESSELS[0], time=8, x_low=90, x_high=91)]
    arguments = [*moving(tmp_path, "--static", "b", *more, a=boats)]
    arguments[arguments.index("--b") + 1] = zones
    return arguments


def check_zones(out):
    changes = [(sign, a, b, float(start)) for sign, a, b, start, _ in read_csv(out)[1]]
    assert sorted(changes) == [("-1", "Ada", "harbour", 13), ("1", "Ada", "bay", 5), ("1", "Ada", "harbour", 13)]


def test_static_zones_need_no_times(run, tmp_path):
    arguments = zones_without_times(tmp_path)
    code, out, err = run(*arguments)

    assert (code, "2 a rows, 2 b rows, " in err) == (0, True)
    check_zones(out)
    assert read_csv(run(*arguments, "--at", "6")[1])[1] == [("Ada", "bay")]
    (tmp_path / "zones.csv").write_text("id,x,y,vx,vy\nstorm,10,0,1,0\n")
    code, _, err = run(*arguments)
    assert (code, "the rows of set b lack column 'time'" in err) == (2, True)


def test_static_zones_need_no_times_in_spark(spark, run, tmp_path):
    code, out, err = run(*zones_without_times(tmp_path, "--spark"))

    assert code == 0, err
    check_zones(out)


def test_integers_may_be_followed_by_other_numbers(run, tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 128)
    a = [("Ada", time, 0, 2, 0, 2, 0, 0, 0, 0, None) for time in range(20)] + [
        ("Ada", 20.5, 0.25, 2, 0, 2, 0, 0, 0, 0, None)
    ]

    code, out, _ = run(*moving(tmp_path, "--at", "30", a=a, b=[(1, 0, 0, 0.25, 0, 1, 0, 0, 0, 0, None)]))

    assert (code, read_csv(out)[1]) == (0, [("Ada", "1")])


def test_ids_with_leading_zeros_stay_as_they_are(run, tmp_path):
    parts = {"a": [("007", *VESSELS[0][1:])], "b": STORMS}

    assert read_csv(run(*moving(tmp_path, "--at", "14", "--schema", "a=id string", **parts))[1])[1] == [("007", "7")]
    assert read_csv(run(*moving(tmp_path, "--at", "14", **parts))[1])[1] == [("007", "7")]


def test_other_columns_may_hold_anything(run, tmp_path):
    names = (*NAMES, "note")
    a = [(*row, note) for row, note in zip(VESSELS, (1, "", "many", 2), strict=True)]

    code, out, _ = run(*moving(tmp_path, a=a, b=[(*row, "") for row in STORMS], names=names))

    assert (code, len(read_csv(out)[1])) == (0, len(CHANGES))


def test_nothing_found_leaves_the_header(run, tmp_path):
    far = [("Ada", 0, 900, 901, 900, 901, 0, 0, 0, 0, None)]
    for more, header in (
        ((), '"sign","a","b","start","end"\n'),
        (("--at", "1"), '"a","b"\n'),
        (("--overdue", "1"), '"set","a","b","deadline"\n'),
    ):
        assert run(*moving(tmp_path, *more, a=far))[:2] == (0, header)

    empty = pa.table({name: pa.array([], pa.string() if name == "id" else pa.float64()) for name in NAMES[:-1]})
    arguments = moving(tmp_path, kind="parquet")
    pq.write_table(empty, tmp_path / "a.parquet")
    pq.write_table(empty, tmp_path / "b.parquet")
    code, out, err = run(*arguments)
    assert (code, out) == (0, '"sign","a","b","start","end"\n')
    assert "0 a rows, 0 b rows, 0 changes" in err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--max-update-interval", "0"],
            "--max-update-interval must be a number above 0, or a duration",
        ),
        (["--max-update-interval", "nan"], "--max-update-interval must be a number above 0, or a duration"),
        (["--late", "never"], "--late must be one of: 'apply', 'drop', 'error'; got 'never'"),
        (["--static", "c"], "--static must be 'a', 'b' or None; got 'c'"),
        (["--at", "inf"], "time must be a finite number; got inf"),
        (["--at", "noon"], "--at must be a number, or a time such as 2026-03-02T14:00:00Z; got 'noon'"),
        (["--overdue", "later"], "--overdue must be a number, or a time such as"),
        (["--at", "1", "--spark"], "--at and --overdue do not work with --spark; omit --spark"),
        (["--at", "1", "--overdue", "1"], "--at and --overdue exclude each other; give one of them"),
        (["--schema", "c=id string"], "--schema names an unknown stream 'c'; the streams are: a, b"),
        (["--schema", "id text"], "text"),
    ],
)
def test_invalid_options_are_reported_in_a_sentence(run, tmp_path, more, message):
    code, out, err = run(*moving(tmp_path, "-o", tmp_path / "o.csv", *more))

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("vedette: ")
    assert message in err
    assert not (tmp_path / "o.csv").exists()


def changed(row, **values):
    return tuple(values.get(name, value) for name, value in zip(NAMES, row, strict=True))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"x_low": 9}, "rows of time 20: row 0 of set a, id 'Ada', has x_low 9 above x_high 2; a low side must"),
        ({"vy_high": None}, "rows of time 20: row 0 of set a, id 'Ada', has vy_high null; times, sides and"),
        ({"y_low": "-inf"}, "has y_low -inf; times, sides and speeds are finite numbers"),
        ({"time": None}, "a rows: time 'time' is missing in row 1; every row needs one"),
        ({"id": None}, "a rows: id 'id' is null in row 1; every row needs one"),
        ({"time": "inf"}, "a rows: time 'time' is infinite in row 1"),
        ({"x_low": "west"}, "invalid value 'west'"),
        ({"removed": "perhaps"}, "invalid value 'perhaps'"),
    ],
)
def test_an_error_in_a_row_is_reported(run, tmp_path, row, message):
    a = [VESSELS[0], changed(VESSELS[0], **{"time": 20} | row)]

    code, _, err = run(*moving(tmp_path, "-o", tmp_path / "o.csv", a=a))

    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("names", "row", "message"),
    [
        ("id,x,y,vx,vy", "1,2,3,4,5", "the rows of set a lack column 'time'; they have: id, vx, vy, x, y"),
        ("time,x,y,vx,vy", "1,2,3,4,5", "the rows of set a lack column 'id'"),
        ("id,time,x,y,vx", "1,2,3,4,5", "the rows of set a lack column 'vy_low' (or 'vy')"),
        ("id,time,x,y,z,vx,vy", "1,2,3,4,5,6,7", "the rows of set a lack column 'vz_low' (or 'vz')"),
        ("who,when", "1,2", "the rows of set a lack column 'time'; they have: when, who"),
        (
            "id,time,x,y,vx,vy",
            "1,2026-03-02T14:00:00Z,3,4,5,6",
            "the times of both sets must be timestamps, or both must be numbers; got (a: timestamp, b: double)",
        ),
        ("id,time,x,y,vx,vy", "1,2026-03-02,3,4,5,6", "column 'time' of set a holds date32[day]; times are numbers"),
    ],
)
def test_missing_columns_are_reported_before_anything_is_written(run, tmp_path, names, row, message):
    arguments = moving(tmp_path)
    (tmp_path / "a.csv").write_text(f"{names}\n{row}\n")

    code, out, err = run(*arguments)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_an_answer_that_would_overwrite_an_input_is_refused(run, tmp_path):
    for name in ("a.csv", "b.csv"):
        code, _, err = run(*moving(tmp_path, "-o", tmp_path / name))
        assert (code, "would overwrite" in err) == (2, True)


def test_counts_show_on_a_terminal_and_not_when_quiet(terminal_output, tmp_path):
    arguments = moving(tmp_path, "-o", tmp_path / "o.csv")
    assert "4 a rows, 2 b rows, 7 changes" in terminal_output(*arguments)
    assert terminal_output(*arguments, "--quiet") == ""


@pytest.mark.parametrize("kind", ["csv", "jsonl", pytest.param("parquet", marks=pytest.mark.fast)])
def test_changes_in_spark_are_the_same(spark, run, tmp_path, kind):
    code, _, err = run(*moving(tmp_path, "-o", tmp_path / "o.parquet", "--spark", kind=kind))

    assert code == 0, err
    assert err.startswith(COUNTS)
    reported = sorted(read_answer(tmp_path / "o.parquet"), key=lambda line: line[1:])
    assert reported == sorted(CHANGES, key=lambda line: (*line[1:4], getattr(line[4], "expected", line[4])))
    assert pq.read_schema(tmp_path / "o.parquet").types[:3] == [pa.int64(), pa.string(), pa.int64()]


def test_an_error_in_spark_is_one_sentence(spark, run, tmp_path):
    names = tuple("ident" if name == "id" else name for name in NAMES)

    code, _, err = run(*moving(tmp_path, "--spark", "-o", tmp_path / "o.csv", names=names))

    assert (code, err.count("\n")) == (2, 1)
    assert "'id'" in err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("more", [(), ("--at", "30"), pytest.param(("--spark",), marks=pytest.mark.full)], ids=str)
def test_changes_and_pairs_have_the_columns_that_were_asked_for(tmp_path, run, more):
    names = (*NAMES, "flag")
    vessels = [(*row, f"{row[0]} {row[1]}") for row in VESSELS]
    a = write_rows(tmp_path / "a.csv", vessels, names)
    b = write_rows(tmp_path / "b.csv", STORMS)
    code, out, err = run("moving", "--a", a, "--b", b, *EVERY, "--column", "a=flag", "--column", "b=time", *more)
    assert code == 0, err
    lines = list(csv.DictReader(io.StringIO(out)))
    assert lines
    flags = {(line.get("sign"), line["a_flag"], line["b_time"]) for line in lines}
    if "--at" in more:
        assert flags == {(None, "Ada 20", "0")}
    else:
        assert {("1", "Ada 0", "0"), ("-1", "Ada 0", "0"), ("1", "Ada 20", "0")} <= flags
        assert {("1", "Bob 3", "25"), ("-1", "Bob 3", "25")} <= flags
