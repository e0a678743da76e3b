"""Functions of SQL in workers, without Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Row

import vedette as vd
from vedette.spark.shipping.query_source import QuerySource
from vedette.spark.workers import sql

SCHEMA = "symbol string, price double, volume bigint, total decimal(12,2), ts timestamp"
QUERIES = {"cheap": "price < 10", "block": "volume > 9007199254740992", "old": "ts < TIMESTAMP '1850-01-01 00:00:00'"}


@pytest.fixture(params=[1, 16], ids=["one byte", "16 bytes"])
def batch_bytes(request):
    """Of the largest piece of an answer: with one byte, each row is a piece."""
    return request.param


@pytest.fixture
def facts(tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    registry.create("alerts", schema=SCHEMA)
    registry.add_many("alerts", list(QUERIES), list(QUERIES.values()))
    registry.create("numbers", schema="price double")
    registry.add_many("numbers", [7, 8], ["price < 10", "price > 0"])
    yield {
        name: QuerySource.read(registry.follow(name, version=1), "test", "match").pack_followed(is_live=True)
        for name in ("alerts", "numbers")
    }
    registry.close()


def rows():
    times = pa.array([datetime.datetime(1800, 1, 1, tzinfo=datetime.UTC), None, None], pa.timestamp("us", "UTC"))
    return pa.record_batch(
        {
            "more": pa.array([[1], None, []], pa.list_(pa.int32())),
            "TS": times,
            "volume": pa.array([None, 2**53 + 1, 3], pa.int64()),
            "price": pa.array([9.5, 20.0, None], pa.float32()),
            "total": pa.array([Decimal("1.5")] * 3, pa.decimal128(5, 1)),
            "symbol": pa.array(["a", "b", None], pa.large_string()),
        }
    )


def test_a_table_is_read_by_the_names_of_its_columns(facts, batch_bytes):
    pairs = [pair for part in sql.match_table(facts["alerts"], batch_bytes, rows()) for pair in part.to_pylist()]

    assert [(pair["symbol"], pair["query"], pair["version"]) for pair in pairs] == [
        ("a", "cheap", 1),
        ("a", "old", 1),
        ("b", "block", 1),
    ]
    assert list(pairs[0]) == ["symbol", "price", "volume", "total", "ts", "query", "version"]
    assert pairs[0]["total"] == Decimal("1.50")


def struct_of(batch, mask=None):
    return pa.StructArray.from_arrays(batch.columns, names=batch.schema.names, mask=mask)


def test_each_row_is_matched_with_the_set_that_its_first_argument_names(facts, batch_bytes):
    names = pa.array(["numbers", "alerts", "numbers"])

    assert sql.find_queries(facts, batch_bytes, names, struct_of(rows())).to_pylist() == [["7", "8"], ["block"], []]
    every = sql.find_queries(facts, batch_bytes, pa.array(["alerts"] * 3), struct_of(rows()))
    assert [sorted(each) for each in every.to_pylist()] == [["cheap", "old"], ["block"], []]
    assert every.type == pa.list_(pa.string())


def test_a_struct_that_is_null_has_only_null_fields(facts, batch_bytes):
    mask = pa.array([True, False, False])

    found = sql.find_queries(facts, batch_bytes, pa.array(["alerts"] * 3), struct_of(rows(), mask))

    assert found.to_pylist() == [[], ["block"], []]


def test_no_rows_give_no_arrays(facts):
    none = struct_of(rows().slice(0, 0))

    assert sql.find_queries(facts, 1 << 20, pa.array([], pa.string()), none).to_pylist() == []
    assert sql.find_queries(facts, 1 << 20, pa.array(["alerts"])[:0], none).type == pa.list_(pa.string())


def test_an_answer_that_arrow_cannot_hold_is_refused(facts, monkeypatch):
    monkeypatch.setattr(sql, "_LONGEST_ARRAY", 10)

    with pytest.raises(vd.AnswerError, match=r"3 rows match take more than 2 GB.*use vedette_match_"):
        sql.find_queries(facts, 1 << 20, pa.array(["alerts"] * 3), struct_of(rows()))


def test_a_single_row_is_matched_like_a_batch(facts):
    """As in Spark 4.0, which passes rows, with times in the zone of the worker's system."""
    when = datetime.datetime(1800, 1, 1, tzinfo=datetime.UTC).astimezone().replace(tzinfo=None)
    row = Row(TS=when, volume=2**53 + 1, Price=9.5, total=Decimal("1.5"), symbol="a", more=[1])

    assert sorted(sql.find_queries_of_row(facts, "alerts", row)) == ["block", "cheap", "old"]
    assert sql.find_queries_of_row(facts, "numbers", row) == ["7", "8"]
    assert sql.find_queries_of_row(facts, "alerts", None) == []


NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def fresh(tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path / 'fresh.db'}")
    registry.create("fresh", schema="ts timestamp")
    registry.add("fresh", "q", "ts > now() - INTERVAL 5 MINUTES")
    yield QuerySource.read(registry.follow("fresh", version=1), "test", "match").pack_followed(is_live=True)
    registry.close()


def test_now_is_a_column_of_the_rows(fresh):
    times = [NOON - datetime.timedelta(minutes=each) for each in (4, 5)]
    plain = pa.record_batch({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    rows = plain.append_column("now()", pa.array([NOON] * 2, pa.timestamp("us", "UTC")))

    pairs = [pair for part in sql.match_table(fresh, 1 << 20, rows) for pair in part.to_pylist()]
    assert pairs == [{"ts": times[0], "query": "q", "version": 1}]
    names = pa.array(["fresh"] * 2)
    assert sql.find_queries({"fresh": fresh}, 1 << 20, names, struct_of(rows)).to_pylist() == [["q"], []]
    local = [time.astimezone().replace(tzinfo=None) for time in (*times, NOON)]
    rows_of = [Row("ts", "now()")(time, local[2]) for time in local[:2]]
    assert [sql.find_queries_of_row({"fresh": fresh}, "fresh", row) for row in rows_of] == [["q"], []]
    with pytest.raises(
        vd.PipelineError, match=r"uses now\(\), .* no moment; add the column `now\(\)`, as in SELECT \*, curr"
    ):
        list(sql.match_table(fresh, 1 << 20, plain))
    with pytest.raises(vd.PipelineError, match=r"the struct has no moment; add current_timestamp\(\) AS `now\(\)`"):
        sql.find_queries_of_row({"fresh": fresh}, "fresh", Row(ts=local[0]))
    with pytest.raises(
        vd.RowError, match=r"must be one moment for all rows: .*timestamp\[us, tz=UTC\], 2 of them distinct"
    ):
        list(sql.match_table(fresh, 1 << 20, plain.append_column("now()", plain.column(0))))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Row(price=1.0), "the struct has no field 'symbol', but later queries"),
        (Row(price=1.0, Price=2.0, symbol="a", volume=1, total=None, ts=None), "the struct has 2 fields 'price'"),
        (3.0, "must be a struct, such as struct"),
        (Row(price="low", symbol="a", volume=1, total=None, ts=None), "price"),
    ],
)
def test_a_single_row_that_does_not_fit_is_refused(facts, row, message):
    with pytest.raises(vd.RowError, match=message):
        sql.find_queries_of_row(facts, "alerts", row)


def test_unknown_sets_are_refused(facts):
    with pytest.raises(vd.PipelineError, match=r"unknown set 'number'; vs\.register knew: alerts, numbers; did you"):
        sql.find_queries_of_row(facts, "number", Row(price=1.0))
    with pytest.raises(vd.PipelineError, match="unknown set None"):
        sql.find_queries(facts, 1 << 20, pa.array([None, "alerts", "alerts"]), struct_of(rows()))
