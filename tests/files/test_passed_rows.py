"""Rows pass through `vedette match` unchanged, for any queries and types."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.profiles import examples
from vedette.cli.jobs.match import match_files
from vedette.errors import FileError
from vedette.files.queries import QueriesFile

QUIET = examples(0.6, suppress_health_check=[HealthCheck.function_scoped_fixture])
# What readers of CSV like to take for something else, or to write in another way.
FIELDS = [
    "", '""', "0", "00", "01234", "+1", "-0", "1.0", "1", "1.50", "1e3", "1E-2", ".5", "NULL", "null", "NA", "N/A",
    "nan", "NaN", "inf", "-Infinity", "True", "TRUE", "false", "t", "2026-03-02", "2026-03-02 14:00:00",
    "2026-03-02T14:00:00Z",
    "2026-03-02T14:00:00.123456789+01:00", "14:00", "14:00:00", "9223372036854775807", "9223372036854775808",
    "12345678901234567890123", "-98765432109876543210987654321098765432109", " 1", "1 ", " x ", '"a,b"', '"say ""hi"""',
    '"two\nlines"', '"two\r\nlines"', "Zürich", "日本", "\u2028", "\u00a0", '"1"', '"01"', "'1'", "0x10",
    "1_000", "5\" pipe",
]  # fmt: skip
# Queries that compare each column with a number, with a text, and with nothing.
SETS = [
    [],
    ["{0} > 1"],
    ["{0} = '01234'"],
    ["{0} IS NULL"],
    ["{0} = 1 OR {0} = '1'", "{0} < 'x'"],
    ["{0} BETWEEN 0 AND 5"],
]


def write_queries(path, names, chosen):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "where"])
        writer.writerow(["all", "true"])
        for number, text in enumerate(chosen):
            for name in names:
                writer.writerow([f"q{number}-{name}", text.format(f"`{name}`")])


def match(folder, kind, content, chosen, names, out_kind=None, schema=None):
    """What the rows with the query `all` are written as, in order."""
    rows, queries, out = folder / f"r.{kind}", folder / "q.csv", folder / f"o.{out_kind or kind}"
    if isinstance(content, bytes):
        rows.write_bytes(content)
    else:
        pq.write_table(content, rows)
    write_queries(queries, names, chosen)
    match_files(rows, QueriesFile(queries, skip_bad=True), out, schema=schema)
    return out


def records_of(folder, *arguments, **options):
    """The records of CSV that are written for the query `all`, as bytes, and the header."""
    header, _, body = match(folder, "csv", *arguments, **options).read_bytes().partition(b',"query"\n')
    pieces = re.split(rb',"(all|q\d-\w+)"\n', body)
    assert pieces[-1] == b""
    return header, [record for record, query in zip(pieces[::2], pieces[1::2], strict=False) if query == b"all"]


columns = st.lists(st.lists(st.sampled_from(FIELDS), min_size=3, max_size=3), min_size=1, max_size=4)


@QUIET
@given(columns, st.sampled_from(SETS), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_fields_of_csv_leave_byte_for_byte(tmp_path, columns, chosen, end, has_bom, ends):
    names = [f"c{number}" for number in range(len(columns))]
    rows = [",".join(fields) for fields in zip(*columns, strict=True)]
    rows = [row for row in rows if row] if len(columns) == 1 else rows
    text = end.join([",".join(names), *rows]) + (end if ends else "")
    content = b"\xef\xbb\xbf" * has_bom + text.encode()

    assert records_of(tmp_path, content, chosen, names) == (",".join(names).encode(), [row.encode() for row in rows])


@QUIET
@given(st.text('ab01+.,"\n\r \u00fc', max_size=60))
def test_any_text_that_arrow_reads_as_csv_leaves_as_arrow_read_it(tmp_path, text):
    content = b"x,y\n" + text.encode()
    read = {"parse_options": pa_csv.ParseOptions(newlines_in_values=True)}
    as_text = pa_csv.ConvertOptions(
        column_types={"x": pa.string(), "y": pa.string(), "query": pa.string()},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    try:
        wanted = pa_csv.read_csv(io.BytesIO(content), convert_options=as_text, **read)
        out = match(tmp_path, "csv", content, [], [])
    except (FileError, pa.ArrowInvalid):
        return
    got = pa_csv.read_csv(out, convert_options=as_text, **read)
    assert got.drop_columns("query").to_pylist() == wanted.to_pylist()


def test_a_quote_that_is_not_closed_is_reported(tmp_path):
    with pytest.raises(FileError, match="after row 1: a quote is not closed"):
        match(tmp_path, "csv", b'x,y\n1,2\n3,"4\n5,6\n', [], [])


def test_columns_of_one_name_leave_both(tmp_path):
    content = b"a,b,a,A,\n1,2,03,+4,x\n"

    assert records_of(tmp_path, content, ["{0} > 1"], ["b"]) == (b"a,b,a,A,", [b"1,2,03,+4,x"])
    with pytest.raises(FileError, match=r"column 'a' is in .* twice, which only CSV allows; use -o with .csv"):
        match(tmp_path, "csv", content, [], [], "parquet")


def test_a_record_may_span_blocks_and_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 16)
    records = [f'{number},"line\r\n""{number}""\n",x'.encode() for number in range(50)] + [b"50,,"]

    assert records_of(tmp_path, b"n,s,t\r\n" + b"\r\n\r\n".join(records), ["{0} > 1"], ["n"])[1] == records


def test_a_record_may_be_long(tmp_path):
    records = [b"1," + b"x" * 3_000_000, b"2,y", b'3,"' + b"\n" * 2_000_000 + b'"']

    assert records_of(tmp_path, b"n,s\n" + b"\n".join(records), ["{0} > 1"], ["n"])[1] == records


@pytest.mark.parametrize("key", ["007", "+7", " 7", "7.0", "9223372036854775808"])
def test_keys_with_unusual_notation_stay_texts_or_are_refused(run, tmp_path, monkeypatch, key):
    (tmp_path / "q.csv").write_text("id,where\nq,x > 0\n")
    rows, given = tmp_path / "r.csv", ("--queries", tmp_path / "q.csv", "--key", "k", "--time", "t")
    rows.write_text(f"k,t,x\n{key},1,1\n7,2,1\n")

    code, out, err = run("border", rows, *given)
    if key not in ("007", "+7"):
        assert (code, "column 'k'" in err or "key 'k'" in err) == (2, True)
    else:
        assert [line.split(",")[0].strip('"') for line in out.splitlines()[1:]] == [key, "7"]

    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 8)
    rows.write_text(f"k,t,x\n7,1,1\n7,1,1\n7,1,1\n{key},2,1\n")
    code, _, err = run("border", rows, *given)
    assert code == 2
    assert (
        f"column 'k' has integers, and {key!r} is not an integer in its usual notation" in err
        or "9223372036854775808" in err
    )
    assert run("border", rows, *given, "--schema", "k string, x double")[1].splitlines()[2].startswith(f'"{key}"')


@pytest.mark.parametrize("chosen", [["zip = '01234'"], ["zip = 1234"], ["price > 0"], []])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_types_of_an_answer_do_not_depend_on_the_queries(tmp_path, chosen, kind):
    content = b"zip,price,day\n01234,1.50,2026-03-02\n"
    given = {"zip": "01234", "price": "1.50", "day": "2026-03-02", "query": "all"}

    out = match(tmp_path, "csv", content, chosen, ["zip"], kind)
    rows = pq.read_table(out).to_pylist() if kind == "parquet" else map(json.loads, out.read_text().splitlines())
    assert next(row for row in rows if row["query"] == "all") == given

    declared = match(tmp_path, "csv", content, chosen, ["zip"], "parquet", "zip string, price decimal(10,3)")
    rows = pq.read_table(declared).to_pylist()
    assert next(row for row in rows if row["query"] == "all") == given | {"price": Decimal("1.500")}


def test_types_for_matching_are_those_that_the_file_shows(run, tmp_path):
    (tmp_path / "r.csv").write_text("zip,n,big,name\n01234,5,12345678901234567890123,a\n")
    for text, is_found in (
        ('zip = "01234"', True),
        ("zip = '1234'", False),  # a text, by its leading zero
        ("big = 12345678901234567890123", True),
        ("big = 12345678901234567890124", False),  # which is the same double
        ("n = '5'", True),
    ):
        (tmp_path / "q.csv").write_text("id,where\n" + f'q,"{text.replace(chr(34), chr(34) * 2)}"\n')
        code, out, err = run("match", tmp_path / "r.csv", "--queries", tmp_path / "q.csv")
        assert (code, err, len(out.splitlines()) == 2) == (0, "", is_found), text


@pytest.mark.parametrize("command", ["match", "border", "explain"])
def test_an_error_of_a_query_shows_the_inferred_types(run, tmp_path, command):
    (tmp_path / "r.csv").write_text("name,n\na,5\n")
    (tmp_path / "q.csv").write_text("id,where\nq,n = 'abc'\n")
    more = {"match": [tmp_path / "r.csv"], "border": [tmp_path / "r.csv", "--key", "name", "--time", "n"]}

    code, _, err = run(command, *more.get(command, ["--rows", tmp_path / "r.csv"]), "--queries", tmp_path / "q.csv")

    assert code == 2
    assert "'abc' cannot be cast to bigint" in err
    assert "r.csv: name string, n bigint; use --schema to declare others" in err


numbers = st.sampled_from(["0", "-0", "1", "1.0", "1e3", "1E+2", "0.10", "123456789012345678901234567890", "-5.5e-7"])
texts = st.sampled_from(["", "01234", "null", "2026-03-02", "2026-03-02T14:00:00Z", "é", "\\u00e9", 'a\\"b', "query"])
scalars = numbers | texts.map('"{}"'.format) | st.sampled_from(["true", "false", "null"])
nested = scalars | st.just('{"b": 1.0, "a": [1, 1.50, {"z": null}]}') | st.just("[]") | st.just("{}")
objects = st.dictionaries(st.sampled_from(["z", "a", "n", "m"]), nested, max_size=4)


def spell(value):
    return json.loads(value, parse_float=str, parse_int=lambda text: f"int {text}")


@QUIET
@given(st.lists(objects, min_size=1, max_size=4), st.sampled_from([":", " : "]), st.sampled_from(["", " ", "\r"]))
def test_lines_of_json_leave_as_they_are_spelled(tmp_path, rows, colon, end):
    lines = ["{" + ",".join(f'"{name}"{colon}{value}' for name, value in row.items()) + "}" for row in rows]
    content = "".join(f"{line}{end}\n" for line in ['{"k": 1}', *lines]).encode()
    for chosen in ([], ["{0} > 0", "{0} IS NULL"]):
        try:
            out = match(tmp_path, "jsonl", content, chosen, ["k"])
        except FileError:  # which Arrow cannot bring into columns, such as a number and a text under one key
            continue
        reported = [line for line in out.read_text().splitlines() if line.endswith('"query": "all"}')]
        for line, given_line in zip(reported, ['{"k": 1}', *lines], strict=True):
            assert line.startswith(given_line.rstrip()[:-1])
            assert list(spell(line).items())[:-1] == list(spell(given_line).items())


@pytest.mark.parametrize("later", ["{}", '{"QUERY": 5}', '{"qu\\u0065ry": 5}'])
def test_a_key_named_query_is_refused_in_any_row(tmp_path, monkeypatch, later):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 8)
    content = b'{"n": 1}\n' + later.encode() + b"\n"

    if later == "{}":
        assert match(tmp_path, "jsonl", content, [], []).read_text().splitlines()[1] == '{"query": "all"}'
    else:
        with pytest.raises(FileError, match="a row has a key 'query', which is also a key of the answer; rename it"):
            match(tmp_path, "jsonl", content, [], [])


def test_numbers_of_json_are_in_csv_as_they_are_spelled(tmp_path):
    content = b'{"a": 1.0, "b": 1e3, "c": "01", "d": 12345678901234567890123, "e": true}\n{"c": "x,\\"y", "a": null}\n'

    out = match(tmp_path, "jsonl", content, ["{0} > 0"], ["a"], "csv").read_text()

    assert out.splitlines()[0] == '"a","b","c","d","e","query"'
    assert [line for line in out.splitlines() if line.endswith('"all"')] == [
        '1.0,1e3,"01",12345678901234567890123,true,"all"',
        ',,"x,""y",,,"all"',
    ]


def test_whole_numbers_of_json_stay_exact_in_parquet(tmp_path):
    large = b'{"a": 12345678901234567890123, "t": "2026-03-02T14:00:00Z"}\n{"a": 5}\n'
    table = pq.read_table(match(tmp_path, "jsonl", large, ["{0} > 0"], ["a"], "parquet")).to_pylist()
    assert table[0]["a"] == Decimal(12345678901234567890123)
    assert table[0]["t"] == "2026-03-02T14:00:00Z"

    mixed = b'{"a": 9007199254740993}\n{"a": 0.5}\n'
    with pytest.raises(
        FileError, match="9007199254740993, which is not exact as a double; declare the column as decimal with --schema"
    ):
        match(tmp_path, "jsonl", mixed, [], [], "parquet")


TYPES = [
    pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(),
    pa.date32(), pa.time32("ms"), pa.time64("us"), pa.timestamp("ms"), pa.timestamp("us", tz="UTC"),
    pa.timestamp("ns", tz="Europe/Berlin"), pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(50, 3),
    pa.list_(pa.int64()), pa.struct([("x", pa.string()), ("y", pa.list_(pa.float64()))]),
    pa.map_(pa.string(), pa.int32()),
    pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.duration("us"),
]  # fmt: skip
VALUES = {"int8": [1, -5], "uint64": [2**64 - 1, 0], "bool": [True, False], "binary": [b"\xff", b""]}


def values_of(type_):
    if pa.types.is_null(type_):
        return [None, None]
    if pa.types.is_floating(type_):
        return [1.0, -0.0]
    if pa.types.is_decimal(type_):
        return [Decimal(1), Decimal(-25)]
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_dictionary(type_):
        return ["01", ""]
    if pa.types.is_map(type_):
        return [[("a", 1)], []]
    if pa.types.is_struct(type_):
        return [{"x": "1", "y": [1.0, None]}, {"x": None, "y": None}]
    if pa.types.is_list(type_):
        return [[1, None], []]
    return VALUES.get(str(type_), [1, 2])


@QUIET
@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=5), st.booleans(), st.sampled_from(SETS))
def test_columns_of_parquet_leave_in_their_types(tmp_path, types, has_null, chosen):
    fields = [pa.field("k", pa.int64(), nullable=False)]
    fields += [pa.field(f"c{number}", type_) for number, type_ in enumerate(types)]
    values = [[1, 2, 3]] + [[*values_of(type_), None if has_null else values_of(type_)[0]] for type_ in types]
    arrays = [pa.array(each, field.type) for each, field in zip(values, fields, strict=True)]
    table = pa.table(arrays, schema=pa.schema(fields))

    found = pq.read_table(match(tmp_path, "parquet", table, chosen, table.column_names))

    kept = found.filter(pa.array([query == "all" for query in found["query"].to_pylist()])).drop_columns("query")
    written = pq.read_table(tmp_path / "r.parquet")
    assert kept.schema.equals(written.schema)
    assert kept.equals(written)


LONG = b"9" * 5_000  # Python reads whole numbers of up to 4,300 digits


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_number_of_any_length_leaves_as_it_came(tmp_path, kind):
    out = match(tmp_path, "jsonl", b'{"a": ' + LONG + b', "s": "x\\u0041"}\n', [], ["s"], kind)

    assert LONG in out.read_bytes()


def test_a_number_that_is_too_long_for_a_column_is_reported_in_few_digits(tmp_path):
    with pytest.raises(FileError, match=r"column 'a' has 9{60}, which is not exact as a double"):
        match(tmp_path, "jsonl", b'{"a": ' + LONG + b', "s": "x\\u0041"}\n', [], ["s"], "parquet")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_a_row_that_is_nested_too_deeply_is_reported(tmp_path, kind, depth):
    deep = b"[" * depth + b"]" * depth
    with pytest.raises(FileError, match="nested more than 1,000 levels deep") as caught:
        match(tmp_path, "jsonl", b'{"s": "x\\u0041", "q": ' + deep + b"}\n", [], ["s"], kind)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("lines", [b"null\n", b" null \nnull\n", b'{"s": "x"}\nnull\n'])
def test_a_line_that_is_null_is_reported(tmp_path, lines):
    with pytest.raises(FileError, match="a line is null instead of an object"):
        match(tmp_path, "jsonl", lines, [], ["s"], "jsonl")


def test_brackets_in_a_string_do_not_count_as_nesting(tmp_path):
    row = b'{"s": "x\\"' + b"[{" * 5_000 + b'", "q": [' + b"[]," * 2_000 + b"[]]}"

    out = match(tmp_path, "jsonl", row + b"\n", [], ["s"], "jsonl")

    assert out.read_bytes().startswith(row[:-1])
