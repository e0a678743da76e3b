"""Rows told in Avro, and answers written in it, read and written here byte by byte."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

import vedette as vd

SCHEMA = {
    "type": "record",
    "name": "tick",
    "fields": [{"name": "symbol", "type": "string"}, {"name": "price", "type": "double"}],
}
PIPELINE = """
checkpoint = "${HERE}/checkpoint"
trigger = "available now"
[source]
format = "parquet"
path = "${HERE}/ticks"
decode = "avro"
avro_schema = "${HERE}/tick.avsc"
[registry]
url = "sqlite:///${HERE}/alerts.db"
set = "alerts"
[operator]
kind = "match"
[[sink]]
name = "hits"
format = "parquet"
path = "${HERE}/hits"
select = ["symbol", "price"]
encode = "avro"
avro_schema = "${HERE}/tick.avsc"
key = "symbol"
[spark]
master = "local[2]"
jars = ["${KAFKA_JARS}/connector/spark-avro*.jar"]
settings = { "spark.sql.streaming.schemaInference" = true }
"""


def encode(symbol, price):
    """A record of the schema: the length in zigzag, the letters, and eight bytes."""
    return bytes([2 * len(symbol)]) + symbol.encode() + struct.pack("<d", price)


def test_avro_is_read_and_written_and_what_is_none_is_counted(jars, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", schema="symbol string, price double")
    registry.add("alerts", "cheap", "price < 40")
    (tmp_path / "ticks").mkdir()
    values = [encode("IBM", 39.5), encode("SAP", 41.0), b"\xff", encode("SAP", 1.0)]
    pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), tmp_path / "ticks" / "a.parquet")
    (tmp_path / "tick.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "pipeline.toml").write_text(PIPELINE)

    command = [sys.executable, "-c", "from vedette.cli import main; main()", "run", str(tmp_path / "pipeline.toml")]
    environment = os.environ | {"KAFKA_JARS": str(jars)}
    done = subprocess.run([*command, "--log", "json"], env=environment, capture_output=True, text=True, timeout=900)

    assert done.returncode == 0, done.stderr
    batches = [json.loads(line) for line in done.stderr.splitlines() if '"batch"' in line]
    assert [(batch["rows_in"], batch["malformed"], batch["matches_out"]) for batch in batches] == [(4, 1, 2)]
    hits = pq.read_table(tmp_path / "hits").sort_by("key").to_pylist()
    assert hits == [{"key": "IBM", "value": encode("IBM", 39.5)}, {"key": "SAP", "value": encode("SAP", 1.0)}]
