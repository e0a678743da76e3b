"""SQL functions, reads, writes and counts in one session, which test_sql_modes.py runs in a separate process.

Called as sql_pipeline.py SETTINGS DIRECTORY. Writes what it found to the file `found.json` in DIRECTORY.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import vedette as vd
from vedette import spark as vs


def main() -> None:
    directory = Path(sys.argv[2])
    spark = vs.session("sql", **json.loads(sys.argv[1]))
    registry = vd.Registry(f"sqlite:///{directory / 'alerts.db'}")
    registry.create("alerts", schema="n bigint")
    registry.add_many("alerts", ["low", "failing", "never"], ["n < 3", "10 / n > 1", "n < 0"])
    found = {"functions": vs.register(spark, registry)}
    rows = spark.range(10).selectExpr("id AS n").repartition(3)
    rows.createOrReplaceTempView("numbers")
    select = "SELECT n, query, version FROM vedette_match_alerts(TABLE(numbers)) ORDER BY n, query"
    found["pairs"] = [list(row) for row in spark.sql(select).collect()]
    lists = spark.sql("SELECT n, sort_array(vedette_queries('alerts', struct(*))) FROM numbers ORDER BY n")
    found["lists"] = [[row[0], list(row[1])] for row in lists.collect()]
    new = spark.range(3).selectExpr("concat('q', id) AS id", "concat('n = ', id) AS `where`")
    new.write.format("vedette").option("set", "alerts").mode("append").save()
    queries = spark.read.format("vedette").option("set", "alerts").load()
    found["queries"] = sorted((row["id"], row["where"], row["added"]) for row in queries.collect())
    found["later"] = [list(row) for row in spark.sql(select).collect()]
    rows.write.parquet(str(directory / "rows"))
    stream = spark.readStream.schema("n bigint").parquet(str(directory / "rows"))
    stream.createOrReplaceTempView("streamed")
    found["streamed"] = run(
        spark, directory / "sql", spark.sql(select.replace("numbers", "streamed").split(" ORDER")[0])
    )
    bands = vd.BandQuerySet()
    bands.add("near", -1.0, 1.0)
    values = stream.selectExpr("n AS id", "CAST(n AS double) AS value", "IF(n < 2, 'delete', 'insert') AS op")
    changes = vs.band_join(values, values.where("false"), bands, left_op="op", shards=4, observe="bands")
    run(spark, directory / "bands", changes, found, "bands")
    hits = stream.transform(vs.match(registry.follow("alerts"), observe="match"))
    run(spark, directory / "match", hits, found, "match")
    (directory / "found.json").write_text(json.dumps(found))
    registry.close()
    spark.stop()


def run(spark, directory, answers, found=None, name=""):
    """The rows that a stream writes; `found` gets what it observes under a name."""
    from vedette.run.progress import _as_dict, _read_metrics

    writer = answers.writeStream.format("parquet").option("path", str(directory / "answers"))
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    if found is not None:
        observed = [each["observedMetrics"][name] for each in query.recentProgress if each["observedMetrics"]]
        found[name] = dict(_read_metrics(_as_dict(observed[0])))
    return sorted(list(row) for row in spark.read.parquet(str(directory / "answers")).collect())


if __name__ == "__main__":
    main()
