"""No event is lost on the way to a receiver that fails at random, while the streams are killed and started again.

They start through Connect, are killed during a micro-batch, and continue on a cluster of two workers.
"""

from __future__ import annotations

import random
import time

import pyarrow as pa
import pyarrow.parquet as pq
from spark.pipelines import CLUSTER, CONNECT, Pipeline

from tests.delivery.receiver import answer, reset, serve, stall
from vedette.delivery.dead_letters import open_letters
from vedette.delivery.options import WebhookOptions
from vedette.delivery.redelivery import redeliver

N_FILES, N_ROWS = 6, 40


def expected_ids(values):
    """The ids of the events that must arrive, by plain Python."""
    small = {f"{i} small" for i, x in enumerate(values) if x < 50}
    return small | {f"{i} even" for i, x in enumerate(values) if x % 2 == 0}


def test_every_event_arrives_at_a_receiver_that_fails_while_the_streams_are_killed(tmp_path):
    chance = random.Random(11)
    values = [chance.randrange(100) for _ in range(N_FILES * N_ROWS)]
    (tmp_path / "rows").mkdir()
    for i in range(N_FILES):
        rows = range(i * N_ROWS, (i + 1) * N_ROWS)
        table = pa.table({"id": pa.array(rows, pa.int64()), "x": pa.array([values[row] for row in rows], pa.int64())})
        pq.write_table(table, tmp_path / "rows" / f"{i:03}.parquet")

    def behave(number):
        failures = [answer(500), answer(429, Retry_After="0"), reset, stall(2.5)]
        return chance.choice([*[None] * 12, *failures])

    with serve(behave) as receiver, Pipeline("webhook_pipeline.py", tmp_path) as pipeline:
        (tmp_path / "url").write_text(receiver.url.removesuffix("/hook"))
        pipeline.start(**CONNECT)
        pipeline.wait_until(lambda: min(map(pipeline.count_commits, ("foreach", "transform"))) > 1)
        time.sleep(chance.uniform(0, 0.5))
        pipeline.kill()
        n_before = len(receiver.accepted)
        assert pipeline.count_commits("foreach") < N_FILES
        pipeline.start(**CLUSTER)
        pipeline.finish()

        assert len(receiver.accepted) > n_before
        for name in ("foreach", "transform"):
            got = {each for request in receiver.accepted if request.path == f"/{name}" for each in request.ids}
            letters = open_letters(tmp_path / name / "letters")
            dead = {letter.id for letter in letters.read()}  # of a machine that was too busy for the time limit
            assert got | dead == expected_ids(values)
            redeliver(letters, list(letters.read()), WebhookOptions.read(None, allow_addresses=["127.0.0.1"]))
            assert dead <= {each for request in receiver.accepted for each in request.ids}
            assert list(letters.read()) == []
