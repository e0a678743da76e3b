"""Late rows, known and unknown ids, expiry and order are the same in Python, Spark, a pipeline file and the CLI.

Each case has two batches of rows per stream. Python and Spark receive them as batches. A command reads them as one
file, a few rows at a time, so that the same rows are late.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from spark import fleets
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from tests.sinks import read_committed
from vedette import spark as vs


@dataclass(frozen=True)
class Operator:
    """Rows by stream, the one query q, and the columns of the answer. All cases have the `fixed` options."""

    schema: str
    streams: dict[str, list[list[tuple[Any, ...]]]]
    query: dict[str, Any]
    answer: tuple[str, ...]
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def batches(self):
        """The batches of each stream as tables."""
        names, types = zip(*(each.split() for each in self.schema.split(", ")), strict=True)
        return {
            stream: [
                pa.table(
                    [pa.array(each, TYPES[type_]) for each, type_ in zip(zip(*rows, strict=True), types, strict=True)],
                    names,
                )
                for rows in batches
            ]
            for stream, batches in self.streams.items()
        }

    def to_lines(self, rows):
        return [tuple(row[name] for name in self.answer) for row in rows]


TYPES = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64(), "boolean": pa.bool_()}
STILL = (0.0, 0.0, 0.0, 0.0)  # x, y, vx, vy
# Rows of a batch are not in order. In the second batch, one is older than the first batch.
OPERATORS = {
    "border": Operator(
        "key string, t bigint, price double",
        {"": [[("A", 10, 30.0), ("A", 0, 50.0)], [("A", 20, 50.0), ("A", 5, 50.0)]]},
        {"text": "price < 40"},
        ("key", "time", "query", "event"),
        {"key": "key", "time": "t"},
    ),
    "window join": Operator(
        "id string, t bigint, x bigint",
        {
            "left": [
                [("l10", 10, 2), ("l0", 0, 1), ("l20", 20, 1)],
                [("l30", 30, 1), ("l5", 5, 7), ("l31", 31, 1)],
            ],
            "right": [[("r0", 0, 7)], [("r40", 40, 2)]],
        },
        {"text": "left.x = right.x", "within": 100},
        ("query", "left", "right"),
        {"left_time": "t", "right_time": "t", "left_id": "id", "right_id": "id"},
    ),
    "band join": Operator(
        "id bigint, value double, op string",
        {
            "left": [
                [(1, 5.0, "insert"), (2, 50.0, "insert")],
                [(1, 5.5, "insert"), (4, None, "delete"), (2, None, "delete")],
            ],
            "right": [[(9, 5.0, "insert")], [(8, 50.0, "insert")]],
        },
        {"low": -1.0, "high": 1.0},
        ("sign", "query", "left", "right"),
        {"left_op": "op", "right_op": "op"},
    ),
    "moving join": Operator(
        "id string, time double, x double, y double, vx double, vy double, removed boolean",
        {
            "": [
                [("Ada", 10.0, *STILL, False), ("Ada", 0.0, *STILL, False), ("Ada", 20.0, *STILL, False)],
                [("Ada", 30.0, *STILL, False), ("Bob", 5.0, *STILL, False), ("Cleo", 31.0, *STILL, True)],
            ]
        },
        {"x_low": -1.0, "x_high": 1.0, "y_low": -1.0, "y_high": 1.0},
        ("sign", "a", "b", "start", "end"),
        {"max_update_interval": 25},
    ),
}


@dataclass(frozen=True)
class Case:
    """Options, and the expected answer: lines, for a moving join the ids at some times, or the end of an error."""

    operator: str
    options: dict[str, Any]
    expected: list[tuple[Any, ...]] | dict[float, str] | str
    n_late: int = 0  # late rows that are dropped

    def __str__(self):
        return f"{self.operator} {self.options}"

    @property
    def all_options(self):
        return OPERATORS[self.operator].fixed | self.options


KNOWN = "is 'error', and left id 1 already has a value; delete it first, use another id, or use 'replace'"
UNKNOWN = "is 'error', and 1 left id to delete has no value: 4; use 'log' or 'report' to continue"
LATE = (
    "is 'error', and 1 row of set a came late: the first has time 5 and id 'Bob', and the join is at 20; use 'apply' "
    "or 'drop' to continue"
)
REPLACED = [(1, "q", 1, 9), (-1, "q", 1, 9), (1, "q", 1, 9)]
CASES = [
    Case("border", {}, [("A", 10, "q", "enter"), ("A", 20, "q", "exit")], n_late=1),
    Case("border", {"late": "apply"}, [("A", 10, "q", "enter"), ("A", 5, "q", "exit")]),
    Case("border", {"expire_after": 8}, [("A", 10, "q", "enter"), ("A", 18, "q", "exit")], n_late=1),
    Case("window join", {}, [("q", "l10", "r40")], n_late=1),
    Case("window join", {"late": "apply"}, [("q", "l10", "r40"), ("q", "l5", "r0")]),
    Case("band join", {}, KNOWN),
    Case("band join", {"known_id": "replace"}, REPLACED),
    Case("band join", {"known_id": "replace", "unknown_id": "report"}, [*REPLACED, (0, None, 4, None)]),
    Case("band join", {"known_id": "replace", "unknown_id": "error"}, UNKNOWN),
    Case("moving join", {}, {15: "Ada", 25: "Ada Bob", 31: "Ada Bob"}),
    Case("moving join", {"late": "drop"}, {15: "Ada", 25: "Ada", 31: "Ada"}, n_late=1),
    # Bob is dropped, because he is late by more than the interval.
    Case(
        "moving join",
        {"expire_overdue": True, "max_update_interval": 8},
        {7: "Ada", 9: "", 15: "Ada", 19: "", 25: "Ada", 29: "", 31: "Ada"},
        n_late=1,
    ),
    Case("moving join", {"late": "error"}, LATE),
]


# Each place returns the lines of the answer, or the text of an error.


def make_set(case):
    operator = OPERATORS[case.operator]
    if case.operator == "border":
        made: Any = vd.QuerySet(operator.schema)
        made.add("q", operator.query["text"])
    elif case.operator == "window join":
        made = vd.JoinQuerySet(left=operator.schema, right=operator.schema)
        made.add("q", operator.query["text"], within=operator.query["within"])
    else:
        made = vd.BandQuerySet() if case.operator == "band join" else vd.ZoneSet()
        made.add("q", **operator.query)
    return made


def run_in_python(case, tmp_path, spark, run):
    operator, queries, options = OPERATORS[case.operator], make_set(case), case.all_options
    options = {name: value for name, value in options.items() if not name.endswith("_op")}  # a column of `step`
    make = {"border": "border", "window join": "window"}.get(case.operator, "monitor")
    monitor = getattr(queries, make)(**options)
    step = getattr(monitor, "update" if case.operator == "moving join" else "step")
    lines = []
    try:
        for number in range(2):
            rows = {stream: batches[number] for stream, batches in operator.batches.items()}
            found = step(rows[""]) if "" in rows else step(**rows)
            lines += operator.to_lines(found.to_pylist())
    except vd.VedetteError as error:
        return str(error)
    assert getattr(monitor, "n_late", 0) == case.n_late
    return lines


def run_on_spark(case, tmp_path, spark, run):
    operator, queries, options = OPERATORS[case.operator], make_set(case), case.all_options | {"shards": 2}
    frames = {}
    for stream, batches in operator.batches.items():
        write_batches(batches, tmp_path / f"rows {stream}")
        frames[stream] = read_stream(spark, tmp_path / f"rows {stream}")
    if case.operator == "border":
        answers = frames[""].transform(vs.border(queries, **options))
    elif case.operator == "window join":
        answers = vs.window_join(frames["left"], frames["right"], queries, **options)
    elif case.operator == "band join":
        answers = vs.band_join(frames["left"], frames["right"], queries, **options)
    else:
        answers = vs.moving_join(frames[""], queries, **options)
    try:
        return operator.to_lines(row.asDict() for row in run_stream(spark, answers, tmp_path).collect())
    except StreamingQueryException as error:
        return str(error)


def run_from_a_file(case, tmp_path, spark, run):
    operator = OPERATORS[case.operator]
    registry = vd.Registry(f"sqlite:///{tmp_path}/queries.db")
    schema = {"border": {"schema": operator.schema}, "window join": dict.fromkeys(operator.streams, operator.schema)}
    registry.create("queries", kind=case.operator, **schema.get(case.operator, {}))
    registry.add("queries", "q", **operator.query)
    registry.close()
    sources = ""
    for stream, batches in operator.batches.items():
        write_batches(batches, tmp_path / f"rows {stream}")
        sources += (
            f"[{f'sources.{stream}' if stream else 'source'}]\nformat = 'parquet'\npath = '{tmp_path}/rows {stream}'\n"
            f"schema = '{operator.schema}'\noptions = {{ maxFilesPerTrigger = 1 }}\n"
        )
    both = {name.removeprefix("left_"): value for name, value in case.all_options.items() if "right_" not in name}
    options = "".join(
        f"{name} = {str(value).lower() if value is True else repr(value)}\n" for name, value in both.items()
    )
    path = tmp_path / "pipeline.toml"
    path.write_text(
        f"checkpoint = '{tmp_path}/checkpoint'\ntrigger = 'available now'\n{sources}"
        f"[registry]\nurl = 'sqlite:///{tmp_path}/queries.db'\nset = 'queries'\n"
        f"[operator]\nkind = '{case.operator}'\n{options}shards = 2\n"
        f"[[sink]]\nformat = 'parquet'\npath = '{tmp_path}/answers'\n"
    )
    code, _, err = run("run", path)
    return err if code else operator.to_lines(read_committed(tmp_path / "answers"))


def run_on_the_command_line(case, tmp_path, spark, run):
    operator = OPERATORS[case.operator]
    files = {}
    for stream, batches in operator.batches.items():
        files[stream] = tmp_path / f"rows{stream}.parquet"
        pq.write_table(pa.concat_tables(batches), files[stream])
    query = {"where" if name == "text" else name: value for name, value in operator.query.items()}
    queries = tmp_path / "queries.csv"
    with queries.open("w") as file:
        csv.writer(file).writerows([["id", *query], ["q", *query.values()]])
    sides = [part for stream in operator.streams for part in (f"--{stream}", files[stream])]
    arguments = {
        "border": lambda: ["border", files[""], "--queries", queries],
        "window join": lambda: ["join", *sides, "--queries", queries],
        "band join": lambda: ["join", *sides, "--bands", queries],
        "moving join": lambda: ["moving", "--a", files[""], "--b", queries, "--static", "b"],
    }[case.operator]()
    for name, value in case.all_options.items():
        arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [value])]
    code, _, err = run(*arguments, "-o", tmp_path / "out.parquet")
    if code:
        return err
    assert (f"{case.n_late} late row dropped" in err) == (case.n_late > 0)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    if case.operator == "band join":  # the pairs at the end of both files
        rows = [row | {"sign": 0 if row["query"] is None else 1} for row in rows]
    return operator.to_lines(rows)


PLACES = {
    "python": run_in_python,
    "spark": run_on_spark,
    "file": run_from_a_file,
    "cli": run_on_the_command_line,
}


def pairs_at_the_end(lines):
    """The lines of sign 0, and the pairs that were added and not retracted."""
    sums = Counter()
    for sign, *pair in lines:
        sums[tuple(pair)] += sign
    return [(1, *pair) for pair, n in sums.items() if n] + [line for line in lines if line[0] == 0]


# Of each operator, one case with options is run from a file; the others are in the matrix.
FROM_A_FILE = (
    "border {'late': 'apply'}",
    "window join {'late': 'apply'}",
    "band join {'known_id': 'replace', 'unknown_id': 'error'}",
    "moving join {'late': 'drop'}",
)


def tier_of(case, place):
    return pytest.mark.matrix if place == "file" and str(case) not in FROM_A_FILE else pytest.mark.full


@pytest.mark.parametrize(
    ("case", "place"),
    [pytest.param(case, place, marks=tier_of(case, place), id=f"{case}-{place}") for case in CASES for place in PLACES],
)
def test_an_operator_behaves_the_same_everywhere(request, run_with_summary, tmp_path, monkeypatch, case, place):
    monkeypatch.setattr("vedette.files.rows._BATCH_ROWS", 2)
    spark = request.getfixturevalue("spark") if place in ("spark", "file") else None

    found = PLACES[place](case, tmp_path, spark, run_with_summary)

    if isinstance(case.expected, str):
        assert isinstance(found, str), found
        assert case.expected in found
        return
    assert isinstance(found, list), found
    if isinstance(case.expected, dict):
        for time, ids in case.expected.items():
            assert fleets.pairs_at(found, time) == {(name, "q") for name in ids.split()}, time
        return
    expected = pairs_at_the_end(case.expected) if (case.operator, place) == ("band join", "cli") else case.expected
    assert sorted(found, key=str) == sorted(expected, key=str)
