"""Streams that follow a registry and whose tasks wait during each batch; test_following_retries.py runs them.

Called as retries_pipeline.py SESSION DIRECTORY. A task that has answers notes its process in DIRECTORY/held, under the
stream, the batch, its partition and the number of this try, and waits until DIRECTORY/go has a file of the stream and
the batch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import vedette as vd
from vedette import spark as vs


def hold(directory, stream):
    """A function for tasks that wait."""

    def work(batches):
        import os
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        batch = context.getLocalProperty("streaming.sql.batchId")
        note = Path(directory, "held", f"{stream}-{batch}-{context.partitionId()}-{context.taskAttemptId()}")
        for rows in batches:
            if rows.num_rows:
                note.with_suffix(".part").write_text(str(os.getpid()))
                note.with_suffix(".part").rename(note)
                while not Path(directory, "go", f"{stream}-{batch}").exists():
                    time.sleep(0.02)
            yield rows

    return work


def main() -> None:
    import following_pipeline  # next to this file, which is run as a program
    import streams

    directory = Path(sys.argv[2])
    spark = vs.session("retries", **following_pipeline.SETTINGS, **json.loads(sys.argv[1]))
    follow = vd.Registry((directory / "url").read_text(), create=False).follow
    rows = streams.read_stream(spark, directory / "rows", n_files=5)
    border = vs.border(follow("border"), key="symbol", time="ts", shards=4)
    for name, transform in {"match": vs.match(follow("match")), "border": border}.items():
        answers = rows.transform(transform)
        waiting = answers.mapInArrow(hold(str(directory), name), answers.schema)
        streams.start_stream(waiting, directory / name).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
