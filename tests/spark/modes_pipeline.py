"""Every operator over a batch and a stream, in one session, which test_modes.py runs in a separate process.

Called as modes_pipeline.py SESSION DIRECTORY. Reads the files of each operator's folder in DIRECTORY, writes what
batches answer to the folder `batch-` and the kind of session, then runs all streams at once. It may be killed at any
time and started again. Through Spark Connect, Spark 4.0 has no stateful streams; then only matching runs as a stream.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vedette import spark as vs


def make_operators():
    """The operators by name, over the frames that a function reads."""
    import bands  # next to this file, which is run as a program
    import fleets
    import quotes
    import ticks

    alerts, pairs, differences = ticks.make_queries(), quotes.make_joins(quotes.EQUATED), bands.make_bands()
    # So long that nothing expires, but timers run.
    border = vs.border(alerts, key="symbol", time="ts", expire_after="1 day", shards=3)
    times = {"left_time": "ts", "right_time": "ts"}
    return {
        "match": lambda read: read("rows").transform(vs.match(alerts)),
        "border": lambda read: read("rows").transform(border),
        "window join": lambda read: vs.window_join(read("left"), read("right"), pairs, shards=3, **times),
        "band join": lambda read: vs.band_join(read("left"), read("right"), differences, op="op", shards=6),
        "moving join": lambda read: vs.moving_join(read("a"), read("b"), max_update_interval=fleets.INTERVAL, shards=6),
    }


def main() -> None:
    import fleets
    import streams

    directory = Path(sys.argv[2])
    spark = vs.session("modes", **json.loads(sys.argv[1]))
    kind = "connect" if "connect" in type(spark).__module__ else "classic"
    operators = make_operators()
    for name, ask in operators.items():

        def read(source, name=name):
            rows = spark.read.parquet(str(directory / name / source))
            return rows.orderBy("at") if "at" in rows.columns else rows

        ask(read).write.mode("overwrite").parquet(str(directory / name / f"batch-{kind}"))
    is_stateful = hasattr(spark.range(1).groupBy("id"), "transformWithStateInPandas")
    answers = {}
    for name, ask in operators.items():
        if not is_stateful and name != "match":
            continue
        watermark = "1 second" if name in ("border", "window join") else None

        def read_stream(source, name=name, watermark=watermark):
            return streams.read_stream(spark, directory / name / source, watermark)

        answers[name] = ask(read_stream)
    streams.run_streams(answers, directory)
    if not is_stateful:
        spark.stop()
        return
    changes = spark.read.parquet(str(directory / "moving join" / "answers"))
    pairs = {time: sorted(tuple(row) for row in vs.moving_pairs(changes, at=time).collect()) for time in fleets.MOMENTS}
    (directory / "pairs").write_text(json.dumps(list(pairs.items())))
    spark.stop()


if __name__ == "__main__":
    main()
