"""Streams of files in a directory: write them, read them file by file, and run until all are processed."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write_rows(rows, directory, n_files, first=0):
    """Write files that a stream reads one after another."""
    cuts = np.linspace(0, rows.num_rows, n_files + 1).astype(int)
    parts = [rows.slice(start, end - start) for start, end in itertools.pairwise(cuts)]
    write_batches(parts, directory, first)


def write_batches(batches, directory, first=0):
    """Write one file per batch."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches):
        path = directory / f"{first + number:04}.parquet"
        pq.write_table(batch, path, compression="none", use_dictionary=False)
        os.utime(path, (1_700_000_000 + first + number,) * 2)


def read_stream(spark, directory, watermark=None, n_files=1):
    """A stream with a number of files per micro-batch."""
    rows = spark.read.parquet(str(directory))
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", n_files).parquet(str(directory))
    return stream.withWatermark("ts", watermark) if watermark else stream


def start_stream(answers, directory):
    """Start a stream that processes all available files, and ends."""
    writer = answers.writeStream.format("parquet").option("path", str(directory / "answers"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    return writer.start()


def run_stream(spark, answers, directory):
    """Process all available files; returns all rows that were ever written."""
    start_stream(answers, directory).awaitTermination()
    return spark.read.parquet(str(directory / "answers"))


def run_streams(answers, directory):
    """Process all available files of several streams, each in the folder of its name; those behind start first.

    A stream starts when the previous one has finished a batch.
    """
    started = []
    for name in sorted(answers, key=lambda name: len(_logs(directory / name / "checkpoint" / "commits"))):
        started.append(_begin_stream(answers[name], directory / name))
    for stream in started:
        stream.awaitTermination()


def _begin_stream(answers, directory):
    """Start a stream; returns after it has finished a batch or failed.

    Spark waits ten seconds for the Python process with which it plans an operator that keeps state; where the machine
    is so busy that it takes longer, the stream is started again.
    """
    while True:
        stream = start_stream(answers, directory)
        while stream.isActive and not stream.recentProgress:
            time.sleep(0.02)
        if stream.isActive or "failed to connect back" not in str(stream.exception()):
            return stream


def read_answers(directory):
    """The answers by number of micro-batch: a table per task that wrote rows.

    It is what the log of the sink lists, which has a batch once; there must be fewer than ten batches.
    """
    answers = {}
    for log in _logs(directory / "answers" / "_spark_metadata"):
        paths = [unquote(urlsplit(json.loads(line)["path"]).path) for line in log.read_text().splitlines()[1:]]
        tables = [pq.ParquetFile(path).read() for path in paths]
        answers[int(log.name)] = [table for table in tables if table.num_rows]
    return answers


def to_tuples(table):
    """Rows with times in seconds."""
    columns = list(table.columns)
    for place, column in enumerate(columns):
        if pa.types.is_timestamp(column.type):
            columns[place] = column.cast(pa.timestamp("s", column.type.tz)).cast(pa.int64())
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def read_cuts(checkpoint):
    """The numbers of the files in each micro-batch, per source, from the checkpoint.

    A stream that was killed may take more than one file into the micro-batch after.
    """
    _, *batches = zip(
        *((path, *path.read_text().splitlines()[2:]) for path in _logs(checkpoint / "offsets")), strict=True
    )
    return [_cut(checkpoint / "sources" / str(source), offsets) for source, offsets in enumerate(batches)]


def _logs(directory):
    return sorted(directory.glob("[0-9]*"), key=lambda path: int(path.stem))


def _cut(log, offsets):
    lines = [json.loads(line) for path in _logs(log) for line in path.read_text().splitlines()[1:]]
    places = {int(Path(line["path"]).stem): line["batchId"] for line in lines}
    ends = [-1 if offset == "-" else json.loads(offset)["logOffset"] for offset in offsets]
    return [
        sorted(number for number, place in places.items() if start < place <= end)
        for start, end in itertools.pairwise([-1, *ends])
    ]
