"""`vs.webhook` on a session: what is sent, what is counted, what becomes a dead letter, what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from standardwebhooks.webhooks import Webhook

from tests.delivery.receiver import answer, serve
from vedette import spark as vs
from vedette.delivery.dead_letters import open_letters
from vedette.delivery.signing import Secret
from vedette.errors import PipelineError, QueryError
from vedette.spark.failures import reason_of

LOOPBACK = {"allow_addresses": ["127.0.0.1"]}
SECRET = "a secret of enough length"


@pytest.fixture
def rows(spark):
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    values = [(f"e{i}", f"owner {i % 2}", at, float("nan") if i else 1.5, None, {"deep": i}) for i in range(5)]
    schema = "event_id string, owner string, at timestamp, x double, none string, s struct<deep int>"
    return spark.createDataFrame(values, schema)


@pytest.mark.fast
def test_a_stream_sends_its_rows_as_signed_json_by_group(spark, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", SECRET)
    rows.write.parquet(f"{tmp_path}/rows")
    stream = spark.readStream.schema(rows.schema).parquet(f"{tmp_path}/rows")
    with serve() as receiver:
        hook = vs.webhook(receiver.url, group_by="substring(owner, 7)", secret_env="HOOK", **LOOPBACK)
        writer = stream.writeStream.foreachBatch(hook).option("checkpointLocation", f"{tmp_path}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()

    key = Secret(SECRET.encode()).text()
    bodies = sorted((Webhook(key).verify(got.body, got.headers) for got in receiver.accepted), key=lambda b: b["group"])
    assert [(body["group"], sorted(event["event_id"] for event in body["events"])) for body in bodies] == [
        ("0", ["e0", "e2", "e4"]),
        ("1", ["e1", "e3"]),
    ]
    (first,) = (event for event in bodies[0]["events"] if event["event_id"] == "e0")
    assert first == {
        "event_id": "e0",
        "owner": "owner 0",
        "at": "2026-03-01T12:00:00.000Z",
        "x": 1.5,
        "none": None,
        "s": {"deep": 0},
    }
    assert {event["x"] for event in bodies[1]["events"]} == {"NaN"}
    assert SECRET not in "".join(
        path.read_text(errors="replace") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()
    )


def test_undelivered_events_are_dead_letters_and_counted_in_the_progress(spark, rows, tmp_path):
    rows.write.parquet(f"{tmp_path}/rows")
    stream = spark.readStream.schema(rows.schema).parquet(f"{tmp_path}/rows")
    with serve() as good, serve(lambda n: answer(410, b"gone")) as bad:
        url = f"if(owner = 'owner 0', '{good.url}', '{bad.url}')"
        hook = vs.webhook(
            url_column=url,
            group_by="owner",
            dead_letters=tmp_path / "letters",
            name="n",
            observe="sent",
            tasks=2,
            **LOOPBACK,
        )
        writer = (
            stream.transform(hook).writeStream.format("noop").option("checkpointLocation", f"{tmp_path}/checkpoint")
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    counts = query.lastProgress["observedMetrics"]["sent"].asDict()
    assert {name: counts[name] for name in ("delivered", "dead_letters", "requests", "retries")} == {
        "delivered": 3, "dead_letters": 2, "requests": 2, "retries": 0,
    }  # fmt: skip
    letters = sorted(open_letters(tmp_path / "letters").read(), key=lambda letter: letter.id)
    assert [(each.id, each.source, each.group, each.status, each.batch) for each in letters] == [
        ("e1", "n", "owner 1", 410, 0),
        ("e3", "n", "owner 1", 410, 0),
    ]
    assert json.loads(letters[0].body)["event_id"] == "e1"
    assert letters[0].stream == query.id


def test_without_dead_letters_the_stream_fails_and_says_why(rows):
    with serve(lambda n: answer(410)) as receiver, pytest.raises(PySparkException) as caught:
        rows.transform(vs.webhook(receiver.url, **LOOPBACK)).count()

    assert reason_of(caught.value).startswith("5 events could not be delivered: 127.0.0.1:")
    assert "To continue without them, set dead_letters" in reason_of(caught.value)


def test_rows_without_an_id_are_identified_by_their_content(rows):
    with serve() as receiver:
        sent = rows.selectExpr("owner", "at").transform(vs.webhook(receiver.url, **LOOPBACK)).collect()
        rows.selectExpr("owner", "at").transform(vs.webhook(receiver.url, **LOOPBACK)).collect()
        rows.selectExpr("if(owner > 'owner 0', event_id, null) AS event_id", "owner").transform(
            vs.webhook(receiver.url, **LOOPBACK)
        ).collect()

    first, again, partly = (got.ids for got in receiver.accepted)
    assert [(row.events, row.outcome, row.status) for row in sent] == [(5, "delivered", 200)]
    assert sorted(first) == sorted(again)
    assert (len(set(first)), {len(each) for each in first}) == (2, {64})  # equal rows are the same event
    assert sorted(each for each in partly if len(each) < 64) == ["e1", "e3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_by": "ownr"}, r"group_by is 'ownr', which is not a column .*; did you mean 'owner'\?"),
        (
            {"id_column": "id"},
            "id_column is 'id', which is not a column or an expression over the columns; columns are: ",
        ),
        ({"group_by": "owner +"}, r"group_by is 'owner \+', which is not a column or an expression"),
    ],
)
def test_an_unknown_column_is_refused_before_anything_runs(rows, options, message):
    with pytest.raises(PipelineError, match=message):
        rows.transform(vs.webhook("https://example.com/", **options))


@pytest.mark.fast
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, PipelineError, "one of url and url_column is required"),
        ({"url": "https://a/", "url_column": "b"}, PipelineError, "one of url and url_column is required"),
        ({"url": "hooks"}, PipelineError, "url is invalid: 'hooks' has the scheme ''"),
        ({"url": 5}, PipelineError, "url is invalid: 5 is not a text"),
        ({"url": "https://a/", "tasks": 0}, PipelineError, "tasks must be a number from 1 to 10,000; got 0"),
        ({"url": "https://a/", "timeout": 5}, QueryError, "timeout must be a duration such as '5 minutes'; got 5"),
        ({"url": "https://a/", "group_by": " "}, PipelineError, "group_by must be a column or an expression; got ' '"),
        ({"url": "https://a/", "dead_letters": 3}, PipelineError, "dead_letters must be a folder"),
        ({"url": "https://a/", "observe": 3}, PipelineError, "observe must be a name or an Observation"),
    ],
)
def test_an_invalid_option_is_refused_with_its_name(options, error, message):
    with pytest.raises(error, match=message):
        vs.webhook(**options)
