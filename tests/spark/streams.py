"""Streams of files in a directory: written, read file by file, and run until all is taken."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def write_rows(rows, directory, n_files, first=0):
    """Files that a stream takes one after another."""
    cuts = np.linspace(0, rows.num_rows, n_files + 1).astype(int)
    parts = [rows.slice(start, end - start) for start, end in itertools.pairwise(cuts)]
    write_batches(parts, directory, first)


def write_batches(batches, directory, first=0):
    """One file for each."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches):
        path = directory / f"{first + number:04}.parquet"
        pq.write_table(batch, path, compression="none", use_dictionary=False)
        os.utime(path, (1_700_000_000 + first + number,) * 2)


def read_stream(spark, directory, watermark=None, time="ts"):
    """One file a micro-batch."""
    rows = spark.read.parquet(str(directory))
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(directory))
    return stream.withWatermark(time, watermark) if watermark else stream


def run_stream(spark, answers, directory):
    """Let the stream take all files that are there; then all that was ever written."""
    writer = answers.writeStream.format("parquet").option("path", str(directory / "answers"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    return spark.read.parquet(str(directory / "answers"))


def read_cuts(checkpoint):
    """For each source, the numbers of the files in each micro-batch, as the checkpoint has them.

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
