"""A restored or copied checkpoint does not repeat the versions of the original."""

from __future__ import annotations

import json
import shutil
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from spark.streams import read_stream, start_stream, write_batches

import vedette as vd
from vedette import spark as vs

N_BATCHES = 3


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    made.create("alerts", schema="price double")
    made.add("alerts", "old", "price < 100")
    yield made
    made.close()


def restore(checkpoint, n_batches):
    """Restore the logs of a checkpoint to their state after a number of batches."""
    for log in ("commits", "offsets"):
        for path in (checkpoint / log).iterdir():
            number = path.name.removeprefix(".").partition(".")[0]
            if number.isdigit() and int(number) >= n_batches:
                path.unlink()


def test_old_batches_are_repeated_only_after_they_are_unpinned(spark, registry, tmp_path):
    batches = [pa.table({"price": [float(number)]}) for number in range(N_BATCHES)]
    write_batches(batches, tmp_path / "rows")

    def run(folder):
        """Process all available rows; returns the id of the stream."""
        answers = read_stream(spark, tmp_path / "rows").transform(vs.match(registry.follow("alerts")))
        stream = start_stream(answers, folder)
        stream.awaitTermination()
        return stream.id

    stream = run(tmp_path / "first")
    copies = [tmp_path / name for name in ("put back", "copied")]
    for copy in copies:
        shutil.copytree(tmp_path / "first" / "checkpoint", copy / "checkpoint")
        restore(copy / "checkpoint", 1)
    registry.add("alerts", "new", "price < 100")

    with pytest.raises(StreamingQueryException, match=f"registry unpin {stream} --from-batch 1"):
        run(copies[0])
    registry.unpin(stream, from_batch=1)
    run(copies[0])
    own = str(uuid.uuid4())
    (copies[1] / "checkpoint" / "metadata").write_text(json.dumps({"id": own}))
    (copies[1] / "checkpoint" / ".metadata.crc").unlink()

    assert run(copies[1]) == own
    assert {each.stream: each.version for each in registry.pins()} == {own: 2, stream: 2}
    for copy in copies:
        found = [pq.read_table(path, columns=["version"]) for path in (copy / "answers").glob("*.parquet")]
        assert set(pa.concat_tables(found)["version"].to_pylist()) == {2}
