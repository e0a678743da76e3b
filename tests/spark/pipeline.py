"""A pipeline over batch and stream, run by test_modes.py in a process of its own: pipeline.py SESSION DIRECTORY."""

from __future__ import annotations

import json
import sys

import numpy as np

import vedette as vd
from vedette import spark as vs


def main() -> None:
    spark = vs.session("modes", **json.loads(sys.argv[1]), **{"spark.executor.memory": "512m"})
    directory = sys.argv[2]
    queries = vd.QuerySet("price double")
    lows = np.arange(400, dtype=np.float64)
    queries.add_boxes(np.arange(400), {"price": (lows, lows + 2.5)})

    rows = spark.range(0, 1000, 7, 4).selectExpr("cast(id as double) price", "id % 3 kind")
    rows.write.parquet(f"{directory}/rows")
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 2).parquet(f"{directory}/rows")
    writer = stream.transform(vs.match(queries)).writeStream.format("parquet").option("path", f"{directory}/hits")
    writer = writer.option("checkpointLocation", f"{directory}/state").trigger(availableNow=True)
    writer.start().awaitTermination()

    lists = rows.transform(vs.match(queries, output="list")).selectExpr("count(*)", "sum(size(queries))").collect()
    print(
        json.dumps(
            {
                "pairs": [[row["price"], row["query"]] for row in rows.transform(vs.match(queries)).collect()],
                "streamed": [[row["price"], row["query"]] for row in spark.read.parquet(f"{directory}/hits").collect()],
                "lists": list(lists[0]),
                "is_connect": "connect" in type(spark).__module__,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
