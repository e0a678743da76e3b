"""Streams of all operators that follow a registry, in one session, which tests run in a separate process.

Called as following_pipeline.py SESSION DIRECTORY. Reads DIRECTORY/rows, DIRECTORY/left, DIRECTORY/right and
DIRECTORY/objects, follows the sets of the registry that DIRECTORY/url names, and writes the answers of each stream into
its own folder. It may be killed at any time and started again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import vedette as vd
from vedette import spark as vs

SETTINGS = {
    "spark.sql.shuffle.partitions": 4,
    "spark.sql.files.maxPartitionBytes": 65536,  # so that each file is a separate task
}


def main() -> None:
    import streams  # next to this file, which is run as a program

    directory = Path(sys.argv[2])
    spark = vs.session("following", **SETTINGS, **json.loads(sys.argv[1]))
    follow = vd.Registry((directory / "url").read_text(), create=False).follow

    def read(name, n_files):
        return streams.read_stream(spark, directory / name, n_files=n_files)

    sides = read("left", 2), read("right", 2)
    times = {"left_time": "ts", "right_time": "ts"}
    interval = {"max_update_interval": 1e6}  # longer than the stream
    answers = {  # the slowest first
        "moving join": vs.moving_join(read("objects", 2), follow("moving join"), shards=4, **interval),
        "band join": vs.band_join(*sides, follow("band join"), shards=4),
        "window join": vs.window_join(*sides, follow("window join"), shards=4, **times),
        "border": read("rows", 5).transform(vs.border(follow("border"), key="symbol", time="ts", shards=4)),
        "match": read("rows", 4).transform(vs.match(follow("match"))),
    }
    streams.run_streams(answers, directory)
    spark.stop()


if __name__ == "__main__":
    main()
