"""A stream of border events, run by test_border_modes.py in a process of its own: border_pipeline.py SESSION DIRECTORY.

Reads DIRECTORY/rows file by file and writes DIRECTORY/answers under the checkpoint DIRECTORY/checkpoint. It may be
killed at any time and started again. When it is through it prints the events of the stream and of a batch as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vedette import spark as vs


def main() -> None:
    import streams  # beside this file, which is run as a program
    import ticks

    settings = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    spark = vs.session("border", **settings)
    # So long that nothing expires, but there are timers.
    border = vs.border(ticks.make_queries(), key="symbol", time="ts", expire_after="1 day", shards=3)
    stream = streams.read_stream(spark, directory / "rows", watermark="1 second")
    events = streams.run_stream(spark, stream.transform(border), directory)
    answer = {
        "streamed": ticks.as_tuples(events),
        "batch": ticks.as_tuples(spark.read.parquet(str(directory / "rows")).transform(border)),
        "is_connect": "connect" in type(spark).__module__,
    }
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main()
