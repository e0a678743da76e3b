"""Spark's progress reports as batches of a pipeline, and how a pipeline is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Row

from vedette.run.progress import Batch, Running
from vedette.spark.failures import reason_of

KAFKA = {
    "id": "5a5f",
    "batchId": 3,
    "numInputRows": 10,
    "durationMs": {"triggerExecution": 1250, "addBatch": 1000},
    "eventTime": {"max": "2026-03-02T14:00:30.000Z", "watermark": "2026-03-02T14:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 4, "memoryUsedBytes": 1000}, {"numRowsTotal": 2, "memoryUsedBytes": 24}],
    "sources": [
        {"endOffset": '{"ticks":{"0":10,"1":5}}', "latestOffset": '{"ticks":{"0":12,"1":9,"2":1}}'},
        {"endOffset": 7, "latestOffset": None},
    ],
    "observedMetrics": {"vedette_answered": {"n_answers": 7}, "vedette_decoded source": {"n_malformed": 2}},
}
NOON = 1772460000.0  # 2026-03-02T14:00:00Z


def test_a_batch_is_read_from_the_progress_of_spark():
    batch = Batch.read("events", KAFKA, NOON + 40)

    assert (batch.number, batch.query_id, batch.n_rows, batch.n_answers, batch.n_malformed) == (3, "5a5f", 10, 7, 2)
    assert (batch.seconds, batch.lag_rows, batch.lag_seconds) == (1.25, 7, 10.0)
    assert (batch.state_rows, batch.state_bytes) == (6, 1024)


def test_counts_and_warnings_of_workers_are_read():
    counted = {"events": 7, "late": 3, "null_keys": 0, "failed": None, "version": 4, "warnings": "one\ntwo"}
    schema = {"type": "struct", "fields": [{"name": name, "type": "long"} for name in counted]}

    for metrics in (counted, Row(values=list(counted.values()), schema=schema)):
        batch = Batch.read("events", KAFKA | {"observedMetrics": {"vedette_counted": metrics}}, NOON)

        assert batch.counts == {"late": 3, "null_keys": 0}
        assert batch.warnings == ("one", "two")
    assert (Batch.read("events", KAFKA, NOON).counts, Batch.read("events", KAFKA, NOON).warnings) == ({}, ())


def test_values_that_a_source_does_not_report_are_unknown():
    batch = Batch.read("events", {"id": "x", "batchId": 0, "sources": [{"endOffset": 3}]}, NOON)

    assert (batch.lag_rows, batch.lag_seconds, batch.n_answers) == (None, None, 0)


def test_progress_through_connect_is_read_in_the_same_way():
    schema = {"type": "struct", "fields": [{"name": "n_answers", "type": "long"}]}
    progress = {
        **KAFKA,
        "numInputRows": None,
        "sources": [{"numInputRows": 4}, {"numInputRows": 6}],
        "observedMetrics": {"vedette_answered": Row(values=[7], schema=schema)},
    }

    batch = Batch.read("events", progress, NOON)

    assert (batch.n_rows, batch.n_answers, batch.n_malformed) == (10, 7, 0)


@dataclass
class ScriptedQuery:
    """A fake Spark query: busy or not, with a number of finished micro-batches after each look."""

    is_busy: bool = False
    done_after: int = 10**9
    isActive: bool = True  # noqa: N815
    looks: int = 0
    progress: list = field(default_factory=list)

    @property
    def status(self):
        return {"isTriggerActive": self.is_busy}

    @property
    def lastProgress(self):  # noqa: N802
        self.looks += 1
        return KAFKA if self.looks > self.done_after else None

    @property
    def recentProgress(self):  # noqa: N802
        return self.progress

    def exception(self):
        return None

    def stop(self):
        self.isActive = False


def test_each_batch_is_reported_once_and_idle_time_never():
    query = ScriptedQuery(progress=[KAFKA, {**KAFKA, "batchId": 4, "durationMs": {"latestOffset": 3}}])
    running = Running({"events": query})

    first = running.new_batches()
    query.progress.append({**KAFKA, "batchId": 4})

    assert [batch.number for batch in first] == [3]
    assert [batch.number for batch in running.new_batches()] == [4]
    assert running.new_batches() == []


def test_a_stop_waits_for_the_current_batch():
    idle, busy = ScriptedQuery(), ScriptedQuery(is_busy=True, done_after=3)

    assert Running({"idle": idle, "busy": busy}).stop(30)

    assert not idle.isActive
    assert not busy.isActive
    assert busy.looks >= 3


def test_an_urgent_or_overdue_stop_interrupts_the_batch():
    for seconds, hurry in ((30, lambda: True), (0, lambda: False)):
        busy = ScriptedQuery(is_busy=True)

        assert not Running({"busy": busy}).stop(seconds, hurry)
        assert not busy.isActive


def test_the_reason_of_a_failure_is_the_message_of_the_worker():
    message = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n  File x\nvedette.errors.RowError: no"
    )

    assert reason_of(Exception(message)) == "no"
    assert reason_of(Exception("[STREAM_FAILED] Query failed\n== plan ==")) == "Query failed"
    kinds = ("vedette.registry.store.failures.ReadOnlyError", "RuntimeError", "vedette.errors.RegistryError")
    assert {reason_of(Exception(f"Job aborted\n{kind}: read-only\n")) for kind in kinds} == {"read-only"}


def test_a_connector_for_another_spark_is_reported_as_such():
    lacking = "'void org.apache.spark.sql.execution.LogicalRDD.<init>(scala.collection.immutable.Seq, boolean)'"

    for message in (lacking, "org/apache/spark/sql/catalyst/plans/logical/IgnoreCachedData"):
        assert reason_of(Exception(message)).startswith(
            f"{message}; a connector under [spark] was built for another version of Spark than "
        )
    assert reason_of(Exception("no such column 'org.apache.spark'")) == "no such column 'org.apache.spark'"
