"""Two streams of matches that are sent to webhooks, in one session, which a test runs in a separate process.

Called as webhook_pipeline.py SESSION DIRECTORY. Reads DIRECTORY/rows, and sends to the receiver that DIRECTORY/url
names: one stream by `foreachBatch`, one by a transform. It may be killed at any time and started again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import vedette as vd
from vedette import spark as vs


def main() -> None:
    import streams  # next to this file, which is run as a program

    directory = Path(sys.argv[2])
    spark = vs.session("webhooks", **{"spark.sql.shuffle.partitions": 2}, **json.loads(sys.argv[1]))
    url = (directory / "url").read_text()
    queries = vd.QuerySet("id bigint, x bigint")
    queries.add_many(["small", "even"], ["x < 50", "x % 2 = 0"])
    options = {
        "id_column": "concat(id, ' ', query)",
        "group_by": "query",
        "allow_addresses": ["127.0.0.1"],
        "timeout": "2 seconds",
        "attempts": 50,
        "max_events": 7,
    }
    started = []
    for name in ("foreach", "transform"):
        hits = streams.read_stream(spark, directory / "rows", n_files=1).transform(vs.match(queries))
        hook = vs.webhook(f"{url}/{name}", **options, dead_letters=directory / name / "letters")
        writer = hits.writeStream.foreachBatch(hook) if name == "foreach" else None
        writer = writer or hits.transform(hook).writeStream.format("noop")
        checkpoint = str(directory / name / "checkpoint")
        started.append(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
    for query in started:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
