"""What Spark, its Java or its workers refuse, as one sentence: with the key of the file, and what would help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from vedette.errors import FileError, PipelineError, VedetteError
from vedette.pipeline.operators import at_key

_ENDED = "JAVA_GATEWAY_EXITED"  # in what Spark says where Java ended as it started
_LACKING = ("Failed to find", "DATA_SOURCE_NOT_FOUND", "NOT_LOADED")  # in what Spark says without a connector
_MAKES_CHECKPOINT = "resolveCheckpointLocation"  # where in Spark a sink's folder of the checkpoint is made
# How Java names a method or a class of Spark that it lacks.
_OF_OTHER_SPARK = re.compile(r"'\S+ org\.apache\.spark\.[^']+\)'|\borg/apache/spark/[\w/$]+")
# In what Spark and Java say of failures that a later start may not meet: of disks, networks and machines.
_PASSING = re.compile(
    r"No space left on device|Disk quota exceeded|disk is full|Input/output error|Stale file handle"
    r"|Connection (?:refused|reset|timed out)|connect timed out|Read timed out|SocketTimeout|UnknownHost"
    r"|No route to host|Network is unreachable|Temporary failure in name resolution|Too many open files"
    r"|Cannot allocate memory|ExecutorLost|executor lost|Lost executor|Master removed our application"
    r"|SlowDown|503 Service Unavailable|TimeoutException|\bUNAVAILABLE\b",
    re.IGNORECASE,
)
# In what Spark says of a file that it cannot read.
_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "is not a Parquet file", "MALFORMED_ORC")
_CONNECTORS = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "avro": f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}",
    "delta": f"io.delta:delta-spark_{pyspark.__version__.rpartition('.')[0]}_2.13:VERSION",  # which is Delta's own
}


@contextmanager
def at_option(key: str, connector: str = "", packages: Sequence[str] = ()) -> Iterator[None]:
    """What is refused in the body is told with the key of the file that it is about.

    `connector` is a format that may need one, `packages` those that Java fetches in the body.
    """
    try:
        yield
    except PySparkException as error:
        if packages and _ENDED in str(error):
            raise PipelineError(
                f"{key}: Spark's Java process ended as it started, and says above why; can its packages be had: "
                f"{', '.join(packages)}?"
            ) from None
        reason = f"{key}: Spark refuses it: {first_line(error)}{_hint(error, connector)}"
        raise PipelineError(reason, is_retryable=is_retryable(error)) from None
    except (Py4JError, ConnectionError) as error:  # which Spark has no class of its own for
        key = "checkpoint" if _MAKES_CHECKPOINT in str(error) else key
        reason = f"{key}: {_reason_of_java(error)}{_hint(error, connector)}"
        raise PipelineError(reason, is_retryable=is_retryable(error)) from None
    except FileError:
        raise
    except VedetteError as error:
        raise at_key(error, key) from None


@contextmanager
def in_reach() -> Iterator[None]:
    """Say in a sentence what Spark refuses while it runs; or that it has ended, where it does not answer for that."""
    try:
        yield
    except PySparkException as error:
        raise PipelineError(f"Spark refuses it: {first_line(error)}") from None
    except (Py4JError, ConnectionError) as error:
        raise PipelineError(_reason_of_java(error)) from None


def reason_of(error: Exception) -> str:
    """Why a query has failed: a worker's own last line, or else Spark's first."""
    told = re.findall(r"^\s*(?:vedette(?:\.\w+)+|RuntimeError): (.+)$", str(error), flags=re.MULTILINE)
    if told:
        return str(told[-1]).strip()
    return first_line(error) + _misfit_of(error) + _bad_file_of(error) + _half_begun(error)


def is_retryable(error: Exception) -> bool:
    """Whether Spark or Java tell of a full disk, a lost network or machine, so that a later start may do."""
    return _PASSING.search(str(error)) is not None


def _bad_file_of(error: Exception) -> str:
    """What to do about a file that Spark cannot read, with its name."""
    text = str(error)
    if not any(words in text for words in _UNREADABLE):
        return ""
    found = re.search(r"\b(?:file|hdfs|s3a?|gs|abfss?):/[^\s,;)\]]+", text)
    which = found[0].rstrip(".") if found else "a file of the source"
    return (
        f"; {which} is damaged, of another format, or holds a malformed record: move it away or write it again, then "
        f'start the pipeline again. To go on without it: malformed = "drop" for records of JSON, CSV or XML, or '
        f'options = {{ "ignoreCorruptFiles" = true }} for whole files, both under the source'
    )


def _half_begun(error: Exception) -> str:
    """What to do about a checkpoint whose stream was killed in its first micro-batch."""
    if "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY" not in str(error):
        return ""
    return (
        "; the stream was killed in its first micro-batch, before it emitted anything: delete the folder of this sink "
        "in the checkpoint, and start the pipeline again"
    )


def first_line(error: Exception) -> str:
    """What Spark says, without the plan that it prints below; of a call over the network that failed, why it did."""
    called = re.search(r'^\s*details = "(.+)"$', str(error), flags=re.MULTILINE)
    if called:
        return called[1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("[STREAM_FAILED] ") if lines else type(error).__name__


def _reason_of_java(error: Exception) -> str:
    """What Java says in its first cause, without the stack; or that it is gone, where it says nothing."""
    if not hasattr(error, "java_exception"):
        return "Spark's Java process is gone; it was killed, or ran out of memory"
    causes = re.findall(r"^(?:Caused by)?: (.+)$", str(error), flags=re.MULTILINE)
    return f"Spark refuses it: {causes[-1].strip() if causes else first_line(error)}"


def is_lacking(error: Exception) -> bool:
    """Whether Spark says that it has no such format."""
    return any(words in str(error) for words in _LACKING)


def _hint(error: Exception, connector: str) -> str:
    """What to put into the file where Spark lacks the connector of a format, or has a wrong one."""
    if not connector or not is_lacking(error):
        return _misfit_of(error)
    package = _CONNECTORS.get(connector)
    if package is None:
        coordinates = 'packages = ["group:artifact:version"]'
        return f"; if {connector!r} is right, it comes with a package of its own: {coordinates} under [spark]"
    either = "" if "VERSION" in package else ", or the newest before that version that is out"
    return f'; it comes with a connector: packages = ["{package}"] under [spark]{either}'


def _misfit_of(error: Exception) -> str:
    """A half sentence where Java lacks a part of Spark, which a connector then is not made for."""
    is_misfit = _OF_OTHER_SPARK.search(str(error)) is not None
    return f"; a connector under [spark] is made for another Spark than {pyspark.__version__}" if is_misfit else ""
