"""Window joins of two streams, run by test_window_join_modes.py in a process of its own.

Called as window_join_pipeline.py SESSION DIRECTORY. Reads DIRECTORY/left and DIRECTORY/right file by file and writes
DIRECTORY/answers under the checkpoint DIRECTORY/checkpoint. It may be killed at any time and started again. When it is
through it prints as JSON the pairs of the
stream, of a second stream on a grid, and of a batch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vedette import spark as vs


def main() -> None:
    import quotes  # beside this file, which is run as a program
    import streams

    settings = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    spark = vs.session("window join", **settings)
    pairs = quotes.make_joins(quotes.EQUATED)
    times = {"left_time": "ts", "right_time": "ts"}
    names = ("left", "right")

    def join(**options):
        # There are timers, but they let nothing go that rows do not.
        sides = [streams.read_stream(spark, directory / name, watermark="1 second") for name in names]
        return vs.window_join(*sides, pairs, **times, **options)

    answer = {
        "streamed": quotes.as_tuples(streams.run_stream(spark, join(shards=3), directory)),
        "on_grid": quotes.as_tuples(streams.run_stream(spark, join(shards=4, layout="grid"), directory / "grid")),
        "batch": quotes.as_tuples(
            vs.window_join(*(spark.read.parquet(str(directory / name)) for name in names), pairs, **times)
        ),
        "is_connect": "connect" in type(spark).__module__,
    }
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main()
