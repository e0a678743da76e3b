"""The start of a pipeline on Spark: errors are one sentence, and sinks that have started are stopped."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from vedette.errors import ConflictError, PipelineError, RegistryError
from vedette.pipeline.file import ReadFile
from vedette.run.pipeline import Pipeline
from vedette.run.progress import Running

STACK = """An error occurred while calling o56.start.
: java.io.IOException: mkdir of file:/proc/nowhere/cp/hits failed
\tat org.apache.hadoop.fs.FileSystem.primitiveMkdir(FileSystem.java:1414)
"""
OF_CHECKPOINT = (
    "\tat org.apache.spark.ResolveWriteToStream$.resolveCheckpointLocation(ResolveWriteToStream.scala:152)\n"
)
CAUSED = "Caused by: java.net.UnknownHostException: no-such-host\n\tat java.base/java.net.X\n\t... 20 more\n"
CALL = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect; Connection refused"
>"""
FILE = """
checkpoint = "/proc/nowhere/cp"
[source]
format = "rate"
[registry]
url = "sqlite:///alerts.db"
set = "alerts"
[operator]
kind = "match"
[[sink]]
name = "first"
format = "console"
[[sink]]
name = "hits"
format = "console"
"""


class JavaError(Py4JJavaError):
    """An error of Java with a given stack."""

    def __init__(self, stack):
        Exception.__init__(self, stack)
        self.java_exception, self.stack = object(), stack

    def __str__(self):
        return self.stack


@dataclass
class Query:
    """A fake Spark query."""

    is_stopped: bool = False

    def stop(self):
        self.is_stopped = True
        raise ConnectionError("a stop that fails as well")


@dataclass
class Writer:
    """A fake writer of a sink: starts a query, or raises."""

    begins: Query | BaseException

    def start(self):
        if isinstance(self.begins, BaseException):
            raise self.begins
        return self.begins


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a pipeline with two sinks, whose writers return these queries or raise these errors."""
    path = tmp_path / "ticks.toml"
    path.write_text(FILE)
    plan = ReadFile.read(path, {}).plan

    def start_pipeline(*begun):
        writers = dict(zip(["first", "hits"], map(Writer, begun), strict=True))
        monkeypatch.setattr(Pipeline, "rows", lambda self: {})
        monkeypatch.setattr(Pipeline, "answers", lambda self, rows, sink: None)
        monkeypatch.setattr(Pipeline, "written", lambda self, answers, sink: None)
        monkeypatch.setattr(Pipeline, "_writer", lambda self, frame, sink: writers[sink.name])
        return Pipeline(plan, None, None).start()

    return start_pipeline


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            JavaError(STACK),
            "sink 'hits': Spark failed: java.io.IOException: mkdir of file:/proc/nowhere/cp/hits failed",
        ),
        (
            JavaError(STACK + OF_CHECKPOINT),
            "checkpoint: Spark failed: java.io.IOException: mkdir of file:/proc/nowhere/cp/hits failed",
        ),
        (JavaError(STACK + CAUSED), "sink 'hits': Spark failed: java.net.UnknownHostException: no-such-host"),
        (JavaError("no stack"), "sink 'hits': Spark failed: no stack"),
        (
            Py4JNetworkError("Answer from Java side is empty"),
            "sink 'hits': Spark's Java process has ended; it was killed",
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            "sink 'hits': Spark's Java process has ended; it was killed",
        ),
    ],
)
def test_an_error_of_java_at_the_start_is_one_sentence_with_its_key(start, error, sentence):
    with pytest.raises(PipelineError) as caught:
        start(Query(), error)

    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [JavaError(STACK), KeyboardInterrupt(), ValueError("a mistake of our own")])
def test_any_error_at_the_start_of_a_sink_stops_the_others(start, error):
    first = Query()

    with pytest.raises((PipelineError, KeyboardInterrupt, ValueError)):
        start(first, error)

    assert first.is_stopped


@pytest.mark.parametrize("kind", [RegistryError, ConflictError])
@pytest.mark.parametrize("is_retryable", [True, False])
def test_an_unreachable_registry_stays_retryable_with_its_key(start, kind, is_retryable):
    with pytest.raises(kind, match=r"^sink 'hits': the database is locked$") as caught:
        start(Query(), kind("the database is locked", [("cheap", None)], is_retryable=is_retryable))

    assert caught.value.is_retryable == is_retryable
    assert caught.value.broken == [("cheap", None)]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (JavaError(STACK), r"^Spark failed: java.io.IOException: mkdir of .* failed$"),
        (PySparkException("the server is gone\n== stack =="), "^Spark failed: the server is gone$"),
        (PySparkException(CALL), "^Spark failed: failed to connect; Connection refused$"),
    ],
)
def test_an_error_of_spark_during_the_run_is_one_sentence(error, sentence):
    class Failing:
        @property
        def recentProgress(self):  # noqa: N802
            raise error

    with pytest.raises(PipelineError, match=sentence):
        Running({"hits": Failing()}).new_batches()


def test_packages_that_cannot_be_downloaded_are_named(tmp_path, monkeypatch):
    def end(*arguments, **settings):
        raise PySparkException("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")

    path = tmp_path / "ticks.toml"
    path.write_text(FILE + '[spark]\npackages = ["org.apache.spark:spark-avro_2.13:9.9.9"]\n')
    monkeypatch.setattr("vedette.run.pipeline.session", end)

    with pytest.raises(PipelineError) as caught:
        Pipeline.open(ReadFile.read(path, {}).plan, SimpleNamespace(time_zone="UTC"))

    assert str(caught.value) == (
        "spark: Spark's Java process ended during its start; see its output above, and check that these packages can "
        "be downloaded: org.apache.spark:spark-avro_2.13:9.9.9"
    )


def test_a_checkpoint_of_a_stream_that_was_killed_in_its_first_batch_is_explained():
    from vedette.spark.failures import reason_of

    message = reason_of(Exception("[STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] The checkpoint location is not empty"))

    assert "killed in its first micro-batch, before it emitted anything: delete the folder of this sink" in message
