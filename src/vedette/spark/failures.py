"""Translates errors of Spark, Java and workers into one sentence, with the key of the file and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyspark
from pyspark.errors import PySparkException

from vedette.errors import FileError, PipelineError, VedetteError
from vedette.pipeline.operators import at_key
from vedette.spark.java_errors import Py4JError

_JAVA_ENDED = "JAVA_GATEWAY_EXITED"  # Java ended during its start
_NO_FORMAT = ("Failed to find", "DATA_SOURCE_NOT_FOUND", "NOT_LOADED")  # a connector is missing
_MAKES_CHECKPOINT = "resolveCheckpointLocation"  # the method of Spark that creates a sink's checkpoint folder
# A method or class of Spark that Java cannot find.
_OF_OTHER_SPARK = re.compile(r"'\S+ org\.apache\.spark\.[^']+\)'|\borg/apache/spark/[\w/$]+")
# Messages about failures that may be temporary: of disks, networks and machines.
_TEMPORARY = re.compile(
    r"No space left on device|Disk quota exceeded|disk is full|Input/output error|Stale file handle"
    r"|Connection (?:refused|reset|timed out)|connect timed out|Read timed out|SocketTimeout|UnknownHost"
    r"|No route to host|Network is unreachable|Temporary failure in name resolution|Too many open files"
    r"|Cannot allocate memory|ExecutorLost|executor lost|Lost executor|Master removed our application"
    r"|SlowDown|503 Service Unavailable|TimeoutException|\bUNAVAILABLE\b",
    re.IGNORECASE,
)
# Messages about a file that Spark cannot read.
_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "is not a Parquet file", "MALFORMED_ORC")
_CONNECTORS = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "avro": f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}",
    "delta": f"io.delta:delta-spark_{pyspark.__version__.rpartition('.')[0]}_2.13:VERSION",  # Delta's own version
}


@contextmanager
def at_option(key: str, connector: str = "", packages: Sequence[str] = ()) -> Iterator[None]:
    """Raise errors of the block again with the key of the pipeline file that they are about.

    `connector` is a format that may need a package. `packages` are those that Java downloads in the block.
    """
    try:
        yield
    except PySparkException as error:
        if packages and _JAVA_ENDED in str(error):
            raise PipelineError(
                f"{key}: Spark's Java process ended during its start; see its output above, and check that these "
                f"packages can be downloaded: {', '.join(packages)}"
            ) from None
        reason = f"{key}: Spark failed: {first_line(error)}{_hint(error, connector)}"
        raise PipelineError(reason, is_retryable=is_retryable(error)) from None
    except (Py4JError, ConnectionError) as error:  # Spark has no error class for these
        key = "checkpoint" if _MAKES_CHECKPOINT in str(error) else key
        reason = f"{key}: {_reason_of_java(error)}{_hint(error, connector)}"
        raise PipelineError(reason, is_retryable=is_retryable(error)) from None
    except FileError:
        raise
    except VedetteError as error:
        raise at_key(error, key) from None


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Spark's errors as PipelineError with one sentence; also if Spark has ended."""
    try:
        yield
    except PySparkException as error:
        raise PipelineError(f"Spark failed: {first_line(error)}") from None
    except (Py4JError, ConnectionError) as error:
        raise PipelineError(_reason_of_java(error)) from None


def reason_of(error: Exception) -> str:
    """Why a Spark query has failed: the last error of a worker, else the first line of Spark's error."""
    of_worker = re.findall(r"^\s*(?:vedette(?:\.\w+)+|RuntimeError): (.+)$", str(error), flags=re.MULTILINE)
    if of_worker:
        return str(of_worker[-1]).strip()
    return first_line(error) + _other_spark_hint(error) + _bad_file_hint(error) + _killed_start_hint(error)


def is_retryable(error: Exception) -> bool:
    """Whether the error is about a full disk, a lost network or a lost machine, so that a retry may succeed."""
    return _TEMPORARY.search(str(error)) is not None


def _bad_file_hint(error: Exception) -> str:
    """What to do about a file that Spark cannot read, with its name."""
    text = str(error)
    if not any(words in text for words in _UNREADABLE):
        return ""
    found = re.search(r"\b(?:file|hdfs|s3a?|gs|abfss?):/[^\s,;)\]]+", text)
    which = found[0].rstrip(".") if found else "a file of the source"
    return (
        f"; {which} is damaged, has another format, or contains a malformed record: move it away or write it again, "
        f'then start the pipeline again. To continue without it, set under the source: malformed = "drop" for records '
        f'of JSON, CSV or XML, or options = {{ "ignoreCorruptFiles" = true }} for whole files'
    )


def _killed_start_hint(error: Exception) -> str:
    """What to do about a checkpoint whose stream was killed in its first micro-batch."""
    if "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY" not in str(error):
        return ""
    return (
        "; the stream was killed in its first micro-batch, before it emitted anything: delete the folder of this sink "
        "in the checkpoint, and start the pipeline again"
    )


def first_line(error: Exception) -> str:
    """The first line of Spark's message, without the plan below it; for a failed remote call, its details."""
    called = re.search(r'^\s*details = "(.+)"$', str(error), flags=re.MULTILINE)
    if called:
        return called[1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("[STREAM_FAILED] ") if lines else type(error).__name__


def _reason_of_java(error: Exception) -> str:
    """The message of Java's first cause, without the stack; or that the Java process has ended."""
    if not hasattr(error, "java_exception"):
        return "Spark's Java process has ended; it was killed, or ran out of memory"
    causes = re.findall(r"^(?:Caused by)?: (.+)$", str(error), flags=re.MULTILINE)
    return f"Spark failed: {causes[-1].strip() if causes else first_line(error)}"


def is_unknown_format(error: Exception) -> bool:
    """Whether Spark does not know the format."""
    return any(words in str(error) for words in _NO_FORMAT)


def _hint(error: Exception, connector: str) -> str:
    """What to write into the file if the connector of a format is missing or does not fit."""
    if not connector or not is_unknown_format(error):
        return _other_spark_hint(error)
    package = _CONNECTORS.get(connector)
    if package is None:
        coordinates = 'packages = ["group:artifact:version"]'
        return f"; if {connector!r} is right, add its package: {coordinates} under [spark]"
    either = "" if "VERSION" in package else ", or the newest available version before it"
    return f'; add its connector: packages = ["{package}"] under [spark]{either}'


def _other_spark_hint(error: Exception) -> str:
    """A clause for a connector that was built for another version of Spark."""
    if _OF_OTHER_SPARK.search(str(error)) is None:
        return ""
    return f"; a connector under [spark] was built for another version of Spark than {pyspark.__version__}"
