"""Moving joins of two streams, run by test_moving_join_modes.py in a process of its own: moving_join_pipeline.py
SESSION DIRECTORY.

Reads DIRECTORY/a and DIRECTORY/b file by file and writes DIRECTORY/answers under the checkpoint DIRECTORY/checkpoint.
It may be killed at any time and started again. When it is through it prints as JSON the changes of the stream and of a
batch, and the pairs of some moments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vedette import spark as vs


def main() -> None:
    import fleets  # beside this file, which is run as a program
    import streams

    settings = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    spark = vs.session("moving join", **settings)

    def join(sets, **options):
        return vs.moving_join(*sets, max_update_interval=fleets.INTERVAL, **options)

    changes = join([streams.read_stream(spark, directory / name) for name in "ab"], shards=6)
    streamed = streams.run_stream(spark, changes, directory)
    batch = join([spark.read.parquet(str(directory / name)) for name in "ab"])
    answer = {
        "streamed": fleets.as_lines(row.asDict() for row in streamed.collect()),
        "batch": fleets.as_lines(row.asDict() for row in batch.collect()),
        "pairs": [
            [time, sorted(tuple(row) for row in vs.moving_pairs(streamed, at=time).collect())]
            for time in fleets.MOMENTS
        ],
        "is_connect": "connect" in type(spark).__module__,
    }
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main()
