"""Bodies that lie about what they are. The service answers 4xx, and goes on."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from serve.conftest import ARROW, LINES
from serve.test_rows import MATCH, ROWS, row

from vedette.serve.arrow_streams import write_stream

JSON = {"content-type": "application/json"}
TABLE = pa.table({"symbol": ["IBM"], "price": [35.0], "ts": pa.array([10**15], pa.timestamp("us", "UTC"))})


def compressed(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


TEXTS = {
    "nothing": b"",
    "null": b"null",
    "number": b"5",
    "text": b'"IBM"',
    "nan": b'{"price": NaN}',
    "infinity": b'{"price": Infinity}',
    "huge float": b'{"price": 1e999}',
    "huge integer": b'{"price": ' + b"9" * 5000 + b"}",
    "half a surrogate": b'{"symbol": "\\ud800"}',
    "invalid UTF-8": b'{"symbol": "\xff\xfe"}',
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "closed deep list": b"[" * 50_000 + b"]" * 50_000,
    "list of lists": b"[[1], [2]]",
    "mixed list": b'[{"price": 1}, 5]',
    "wrong type": b'{"price": "cheap"}',
    "boolean price": b'{"price": true}',
    "number as symbol": b'{"symbol": 5}',
    "far time": b'{"ts": "99999-01-01T00:00:00Z"}',
    "object as time": b'{"ts": {}}',
    "field twice": b'{"symbol": "a", "Symbol": "b"}',
    "torn": b'{"symbol": "a"',
    "two rows": b'{"symbol": "a"} {"symbol": "b"}',
    "UTF-16": '{"symbol": "a"}'.encode("utf-16"),
    "Arrow": write_stream(TABLE),
}
STREAMS = {
    "nothing": b"",
    "JSON": b'{"symbol": "a"}',
    "torn": write_stream(TABLE)[:-40],
    "half": write_stream(TABLE)[:300],
    "compressed": compressed(TABLE),
    "huge length": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 100,
    "other types": write_stream(pa.table({"symbol": [1], "price": ["x"], "ts": [True]})),
    "lists": write_stream(pa.table({"symbol": [["a"]], "price": [[1.0]], "ts": [[1]]})),
    "twice": write_stream(pa.Table.from_arrays([pa.array(["a"])] * 3, names=["symbol", "symbol", "price"])),
    "bad UTF-8": write_stream(
        TABLE.set_column(0, "symbol", pa.array([b"\xff"], pa.binary()).view(pa.string()))
    ),
    "many nulls": write_stream(pa.table({"price": pa.nulls(2_000_000)})),
}  # fmt: skip


def is_refused(answer):
    error = answer.json()["error"]
    assert 400 <= answer.status_code < 500, answer.text
    assert error["code"] != "internal"
    assert len(error["message"]) < 3000
    return True


@pytest.mark.parametrize("path", [ROWS, MATCH])
def test_hostile_json_is_refused(alerts, path):
    for minute, (name, body) in enumerate(TEXTS.items()):
        for headers in (JSON, LINES):
            is_valid = (headers, body) == (LINES, b"")  # no rows
            is_unused = path == MATCH and name == "object as time"  # only the fields that queries use are read
            if not is_valid and not is_unused:
                assert is_refused(alerts.post(path, content=body, headers=headers)), name
        assert alerts.post(ROWS, json=row(name, 35, minute)).json()["events"], name


@pytest.mark.parametrize("path", [ROWS, MATCH])
def test_hostile_arrow_is_refused(alerts, path):
    for minute, (name, body) in enumerate(STREAMS.items()):
        assert is_refused(alerts.post(path, content=body, headers=ARROW)), name
        assert alerts.post(ROWS, json=row(name, 35, minute)).json()["events"], name


def test_damaged_arrow_never_stops_the_service(alerts):
    some = random.Random(1)
    stream = write_stream(TABLE)
    for _ in range(300):
        damaged = bytearray(stream)
        for _ in range(some.choice([1, 2, 8])):
            damaged[some.randrange(len(damaged))] = some.randrange(256)
        answer = alerts.post(MATCH, content=bytes(damaged), headers=ARROW)
        assert answer.status_code in (200, 400, 413), answer.text


def test_other_content_types_are_refused(alerts):
    for content_type in ("text/plain", "", "application/xml", "multipart/form-data; boundary=x"):
        for path in (ROWS, MATCH, "/v1/sets/alerts/queries/bulk", "/v1/sets/alerts/backtest?time=ts"):
            answer = alerts.post(path, content=b"{}", headers={"content-type": content_type})
            assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


def test_hostile_bodies_of_other_routes_are_refused(alerts):
    paths = ("/v1/sets", "/v1/sets/alerts/queries", "/v1/sets/alerts/check", "/v1/sets/alerts/why", "/v1/tokens")
    for name, body in TEXTS.items():
        for path in paths:
            assert is_refused(alerts.post(path, content=body, headers=JSON)), name
        report = alerts.post("/v1/sets/alerts/queries/bulk?skip_invalid=true", content=body, headers=LINES)
        assert report.status_code in (200, 400), name
    assert alerts.get("/v1/sets/alerts").json()["version"] == 2


def test_numbers_that_are_none_are_refused_as_options(alerts):
    alerts.delete("/v1/sets/alerts/monitor")
    for name in ("dwell", "expire_after", "cooldown", "margin"):
        body = b'{"key": "symbol", "time": "ts", "%s": NaN}' % name.encode()
        assert is_refused(alerts.put("/v1/sets/alerts/monitor", content=body, headers=JSON)), name
        body = b'{"id": "x", "where": "price > 1", "%s": NaN}' % name.encode()
        assert is_refused(alerts.post("/v1/sets/alerts/queries", content=body, headers=JSON)), name
    body = b'{"id": "x", "where": "price > 1", "metadata": {"a": NaN}}'
    assert is_refused(alerts.post("/v1/sets/alerts/queries", content=body, headers=JSON))


def test_hostile_texts_are_answered(alerts):
    many = "price IN (" + "1," * 5000 + "1)"
    for where in ("", "(" * 5000, "1 = 1; DROP TABLE x", "price > " + "9" * 5000, "\0", "\ud800", many):
        answer = alerts.post("/v1/sets/alerts/check", content=json.dumps({"where": where}).encode(), headers=JSON)
        assert answer.status_code in (200, 422)
