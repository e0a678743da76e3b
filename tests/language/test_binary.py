"""Binary fields give the values of Spark, and the same matches from every container and file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from language.spark_columns import compare

import vedette as vd
from vedette.data.schema import Schema
from vedette.files.rows import RowsFile

SCHEMA = Schema.parse("k binary, n binary, s string")
BYTES = [
    None,
    b"",
    b"a",
    b"ab",
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff\x00",
    "\u00e9".encode(),
    "\U0001f600".encode(),
    b"\xc3",
]
TEXTS = [None, "", "a", "ab", "61", "7f", "\u00e9", "FF0", "\U0001f600", "x", "B"]
ROWS: dict[str, list[Any]] = {"k": BYTES, "n": [*BYTES[3:], *BYTES[:3]], "s": TEXTS}
TEXTS_OF_EXPRESSIONS = """
    k; X'1AFF'; x'7'; X''; hex(k); length(k); octet_length(k); bit_length(k); md5(k); sha1(k); sha2(k, 256); crc32(k);
    base64(k); base64(s); encode(s, 'UTF-16BE'); encode(s, 'utf-32'); encode('\u00e9', 'ISO-8859-1');
    to_binary('6'); to_binary(hex(s), 'hex'); to_binary(s, 'UTF8'); try_to_binary(s); is_valid_utf8(s);
    validate_utf8(s);
    make_valid_utf8(s); try_validate_utf8(s); encode(3, 'utf-8');
    k = n; k < n; k <=> n; k >= X'80'; k BETWEEN X'61' AND X'7F'; k IN (X'61', X'', NULL); k = 'a'; k < '\u00e9'; k = s;
    s < k;
    CAST(s AS binary); binary(s); unhex(hex(k)); unhex('C3A9'); hex(s); coalesce(k, n); coalesce(n, s); greatest(k, n);
    least(k, n, X'61'); nullif(k, n); CASE WHEN k > n THEN k ELSE n END; if(k IS NULL, n, k); nvl2(k, n, X'00');
    decode(k, X'61', 1, X'80', 2, 3); equal_null(k, n); k IS NULL; string(CAST(s AS binary));
    CAST(CAST(s AS binary) AS string)
"""
TABLE = pa.table({"k": pa.array(BYTES, pa.binary())})
QUERIES = {
    "k = X'80'": [6],
    "k > X'7F'": [6, 7, 8, 9, 10],
    "k < X'61'": [1, 4],
    "k IN (X'', 'ab')": [1, 3],
    "k IS NULL": [0],
    "hex(k) = 'FF00'": [7],
    "CAST(k AS string) = '\u00e9'": [8],
    "length(k) = 2": [3, 7, 8],
}
CONTAINERS: dict[str, Any] = {
    "arrow": TABLE,
    "large": TABLE.cast(pa.schema([("k", pa.large_binary())])),
    "chunks": pa.concat_tables([TABLE.slice(0, 5), TABLE.slice(5)]),
    "dictionary": pa.table({"k": TABLE.column("k").dictionary_encode()}),
    "pandas": pd.DataFrame({"k": BYTES}),
    "polars": pl.DataFrame({"k": BYTES}),
    "list": {"k": BYTES},
}


def make() -> vd.QuerySet:
    queries = vd.QuerySet(SCHEMA)
    queries.add_many(list(QUERIES), list(QUERIES))
    return queries


def found(queries: vd.QuerySet, rows: Any) -> dict[str, list[int]]:
    pairs = queries.match(rows).to_arrow().to_pylist()
    return {text: sorted(pair["row"] for pair in pairs if pair["query"] == text) for text in QUERIES}


@pytest.mark.fast
def test_expressions_over_bytes_give_the_values_of_spark(spark: Any) -> None:
    texts = [text.strip() for text in TEXTS_OF_EXPRESSIONS.split(";")]
    wrong = compare(spark, [(text, text) for text in texts], SCHEMA, ROWS)

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("container", list(CONTAINERS))
def test_every_container_gives_the_same_matches(container: str) -> None:
    assert found(make(), CONTAINERS[container]) == QUERIES


def test_rows_of_files_are_read(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    lines = [{"k": None if each is None else base64.b64encode(each).decode()} for each in BYTES]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("rows.parquet", "rows.jsonl"):
        rows = RowsFile.open(tmp_path / name, SCHEMA, needs_others=False)
        assert found(make(), pa.Table.from_batches(list(rows.batches))) == QUERIES, name


def test_saved_sets_and_monitors_keep_bytes(tmp_path: Path) -> None:
    queries = make()
    queries.save(tmp_path / "set")
    loaded = vd.QuerySet.load(tmp_path / "set")

    assert found(loaded, TABLE) == QUERIES
    monitor = loaded.border(key="name", time="t")
    row = {"name": ["a"], "t": [1], "k": [b"\x80"], "s": [None]}
    entered = monitor.step(row).column("query").to_pylist()
    saved = monitor.save()
    again = loaded.border(key="name", time="t")
    again.load(saved)
    left = again.step(row | {"t": [2], "k": [b"a"]})

    assert sorted(entered) == ["k = X'80'", "k > X'7F'"]
    assert sorted(left.column("query").to_pylist()) == sorted(entered)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k = X'GG'", "'GG' is not hexadecimal"),
        ("lower(k) = 'a'", "a string is needed here, but this is field 'k' (binary); cast it to string"),
        ("k = 5", "cannot compare field 'k' (binary) with a literal of type int"),
        ("CAST(k AS int) = 5", "a cast of binary to int is not supported; from binary casts go to: binary, string"),
    ],
)
def test_what_bytes_cannot_do_is_refused(text: str, words: str) -> None:
    with pytest.raises(vd.QueryError) as raised:
        make().check(text)

    assert words in str(raised.value)
