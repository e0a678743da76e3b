"""Late rows, unknown ids, expiry and order: the same in Python, on Spark and in a plain model."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from spark import fleets
from spark.streams import read_stream, run_stream, write_batches

import vedette as vd
from vedette import spark as vs

N_BATCHES, N_ROWS, LAST = 5, 12, 30.0


def make_batches(seed):
    """Micro-batches of rows of both sets: many are late, unordered, or removals of unknown ids."""
    random = np.random.default_rng(seed)
    batches = []
    for number in range(N_BATCHES):
        sets = []
        for rows in (fleets.make_rows(1, N_ROWS, seed=[seed, number, side], n_ids=6) for side in range(2)):
            times = np.round(random.uniform(5.0 * number - 9.0, 5.0 * number + 4.0, N_ROWS)) + 9.0
            sets.append([(id_, float(time), sides) for (id_, _, sides), time in zip(rows, times, strict=True)])
        batches.append(sets)
    return batches


def run_in_python(batches, tmp_path, spark, **options):
    return fleets.tell_batches(batches, **options)


def run_on_spark(batches, tmp_path, spark, **options):
    for side, name in enumerate("ab"):
        write_batches([fleets.to_table(sets[side]) for sets in batches], tmp_path / name)
    streams = [read_stream(spark, tmp_path / name) for name in "ab"]
    out = vs.moving_join(*streams, max_update_interval=fleets.INTERVAL, shards=3, **options)
    return fleets.as_lines(row.asDict() for row in run_stream(spark, out, tmp_path).collect())


RUNS = {"python": run_in_python, "spark": run_on_spark}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"late": "drop"},
        {"expire_overdue": True},
        {"static": "b"},
        {"static": "b", "expire_overdue": True, "late": "drop"},
    ],
    ids=str,
)
def test_late_rows_unknown_ids_expiry_and_order_match_the_model(spark, tmp_path, run, options):
    batches = make_batches(seed=7)

    lines = RUNS[run](batches, tmp_path, spark, **options)

    world, clock = fleets.make_world(*batches, **options)
    n_pairs = 0
    for time in np.arange(0.0, clock + 0.25, 0.25).tolist():
        pairs = world.pairs(time)
        assert fleets.pairs_at(lines, time) == pairs, time
        n_pairs += len(pairs)
    assert n_pairs > 50
    if run != "python":
        assert lines == fleets.tell_batches(batches, **options)


@pytest.mark.parametrize("run", RUNS)
def test_a_late_row_may_be_an_error(spark, tmp_path, run):
    with pytest.raises((vd.RowError, StreamingQueryException), match=r"late is 'error', and .* came late: .*; use"):
        RUNS[run](make_batches(seed=7), tmp_path, spark, late="error")
