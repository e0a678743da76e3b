"""Band joins of two streams, run by test_band_join_modes.py in a process of its own.

Called as band_join_pipeline.py SESSION DIRECTORY. Reads DIRECTORY/left and DIRECTORY/right file by file and writes
DIRECTORY/answers under the checkpoint DIRECTORY/checkpoint. It may be killed at any time and started again. When it is
through it prints as JSON the changes of
the stream and the pairs of a batch, and how often each query was affected by a second stream.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from vedette import spark as vs


def main() -> None:
    import bands  # beside this file, which is run as a program
    import streams

    settings = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    spark = vs.session("band join", **settings)
    queries = bands.make_bands()
    names = ("left", "right")

    def join(report):
        sides = [streams.read_stream(spark, directory / name) for name in names]
        return vs.band_join(*sides, queries, report=report, op="op", shards=6)

    streamed = bands.as_tuples(streams.run_stream(spark, join("pairs"), directory))
    affected = streams.run_stream(spark, join("queries"), directory / "affected").collect()
    frames = [spark.read.parquet(str(directory / name)).orderBy("at") for name in names]
    answer = {
        "streamed": streamed,
        "affected": Counter(row["query"] for row in affected),
        "batch": bands.as_tuples(vs.band_join(*frames, queries, op="op")),
        "is_connect": "connect" in type(spark).__module__,
    }
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main()
