"""A job for a cluster: matches rows as a batch, monitors them as a stream, and tells where workers found the package.

Called as job.py DIRECTORY [REMOTE]. Reads Parquet files in DIRECTORY/rows, writes the answers to DIRECTORY, and prints
the answers and the workers' prefix and package as JSON. With REMOTE, it is a client of that Spark Connect server.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import numpy as np

import vedette as vd
from vedette import spark as vs

N_QUERIES, WIDTH = 40, 5  # as in ticks.py
N_OTHERS = 100_000  # queries that no row matches: the set is too large to be sent inside a task


def make_queries():
    queries = vd.QuerySet("symbol string, price double, ts timestamp")
    lows = np.concatenate([np.arange(N_QUERIES), 1000.0 + np.arange(N_OTHERS)])
    queries.add_boxes(lows.astype(np.int64), {"price": (lows, lows + WIDTH)})
    return queries


def find_packages(batches):
    """In a worker: its prefix, the package, and the copies of query sets that Spark has made."""
    import os
    import sys

    import pyarrow as pa
    from pyspark import SparkFiles

    import vedette

    for _ in batches:
        pass
    copies = [name for name in os.listdir(SparkFiles.getRootDirectory()) if name.endswith(".queries")]
    yield pa.RecordBatch.from_pydict({"prefix": [sys.prefix], "package": [vedette.__file__], "copies": [len(copies)]})


def main() -> None:
    directory = Path(sys.argv[1])
    spark = vs.session("job", remote=sys.argv[2] if len(sys.argv) > 2 else None)
    socket.gethostname = lambda: "another-host"  # so that workers use their own copies of the set
    queries = make_queries()
    rows = spark.read.parquet(str(directory / "rows"))
    hits = rows.transform(vs.match(queries)).selectExpr("symbol", "price", "unix_seconds(ts)", "query")
    matched = sorted(tuple(row) for row in hits.collect())
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(directory / "rows"))
    events = stream.transform(vs.border(queries, key="symbol", time="ts"))
    writer = events.writeStream.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    writer.start(str(directory / "events"), format="parquet").awaitTermination()
    events = spark.read.parquet(str(directory / "events"))
    events = events.selectExpr("key", "unix_seconds(time)", "query", "event", "reason")
    seen = spark.range(0, 64, 1, 4).mapInArrow(find_packages, "prefix string, package string, copies bigint")
    print(
        json.dumps(
            {
                "hits": matched,
                "events": sorted(tuple(row) for row in events.collect()),
                "workers": sorted({(row.prefix, row.package) for row in seen.collect()}),
                "copies": [row.copies for row in seen.collect()],
                "driver": vd.__file__,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
