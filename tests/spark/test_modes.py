"""Every operator through Spark Connect and on a cluster of two workers, in separate processes, as batch and stream.

The streams start through Connect, are killed during a batch, and continue on the cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from spark import bands, fleets, quotes, ticks
from spark.pipelines import CLUSTER, CONNECT, JAVA, Pipeline
from spark.streams import read_answers, read_cuts, to_tuples, write_batches, write_rows

N_FILES = 5


class Run:
    """The rows, and the answers."""

    def __init__(self, directory):
        self.directory = directory
        self.ticks = ticks.make_rows(50 * N_FILES)
        for name in ("match", "border"):
            write_rows(self.ticks, directory / name / "rows", N_FILES)
        self.quotes = [quotes.make_rows(160, seed) for seed in (21, 22)]
        write_rows(self.quotes[0], directory / "window join" / "left", N_FILES)
        write_batches(quotes.cut(self.quotes[1], N_FILES, seed=23), directory / "window join" / "right")
        self.bands = write_bands(directory / "band join")
        self.fleets = write_fleets(directory / "moving join")

    def streamed(self, name):
        answers = [table for tables in read_answers(self.directory / name).values() for table in tables]
        return sorted(row for table in answers for row in to_tuples(table))

    def batches(self, name):
        """The answers of a batch in either session."""
        for kind in ("connect", "classic"):
            yield sorted(to_tuples(ds.dataset(self.directory / name / f"batch-{kind}").to_table()))

    def cuts(self, name):
        """The files of each micro-batch and source; each file is processed once."""
        cuts = read_cuts(self.directory / name / "checkpoint")
        assert [[file for files in side for file in files] for side in cuts] == [list(range(N_FILES))] * 2
        return cuts


def write_bands(directory):
    """Write files of decreasing size, because Spark sorts the files of one micro-batch by size."""
    sides = []
    for seed, name in enumerate(("left", "right")):
        batches = bands.make_batches(N_FILES, 20 * N_FILES, seed=20 + seed, shrink=20)
        n_rows, tables = 0, []
        for rows in batches:
            tables.append(bands.to_table(rows).append_column("at", pa.array(range(n_rows, n_rows + len(rows)))))
            n_rows += len(rows)
        write_batches(tables, directory / name)
        sizes = [path.stat().st_size for path in sorted((directory / name).iterdir())]
        assert sizes == sorted(sizes, reverse=True)
        sides.append(batches)
    return sides


def write_fleets(directory):
    """Write two times per file, with one row per object and time: files of one micro-batch are read in any order."""
    sets = []
    for seed, name in enumerate("ab"):
        rows = list({row[:2]: row for row in fleets.make_rows(2 * N_FILES, 20, 30 + seed, n_ids=40)}.values())
        write_batches([fleets.to_table(part) for part in fleets.cut(rows, N_FILES)], directory / name)
        sets.append(rows)
    return sets


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = Run(tmp_path_factory.mktemp("modes"))
    with Pipeline("modes_pipeline.py", made.directory) as pipeline:
        pipeline.start(**CONNECT)
        # The last stream starts when all others have finished a batch.
        pipeline.wait_until(lambda: pipeline.count_begun("moving join") > pipeline.count_commits("moving join") > 0)
        time.sleep(np.random.default_rng(5).uniform(0, 0.5))
        pipeline.kill()
        assert pipeline.count_commits("moving join") < N_FILES
        pipeline.start(**CLUSTER)
        pipeline.finish()
    return made


def test_matches_of_batch_and_stream_are_right(run):
    expected = sorted(
        (row["symbol"], row["price"], int(row["ts"].timestamp()), query)
        for row in run.ticks.to_pylist()
        for query in range(ticks.N_QUERIES)
        if query <= row["price"] <= query + ticks.WIDTH
    )
    assert run.streamed("match") == expected
    assert list(run.batches("match")) == [expected] * 2


def test_no_border_event_is_lost_or_duplicated(run):
    expected = ticks.expected_events(run.ticks)
    assert run.streamed("border") == expected
    assert list(run.batches("border")) == [expected] * 2


def test_no_pair_of_a_window_join_is_lost_or_duplicated(run):
    expected = quotes.expected_pairs(*run.quotes, quotes.EQUATED)
    assert len(expected) > 100
    assert run.streamed("window join") == expected
    assert list(run.batches("window join")) == [expected] * 2


def test_no_change_of_a_band_join_is_lost_or_duplicated(run):
    taken = [
        [[row for file in files for row in side[file]] for files in cut]
        for side, cut in zip(run.bands, run.cuts("band join"), strict=True)
    ]
    changes = [change for changes in bands.expected_changes(*taken) for change in changes]
    assert run.streamed("band join") == sorted(changes)
    current = Counter()
    for sign, *pair in changes:
        current[tuple(pair)] += sign
    assert set(current.values()) <= {0, 1}
    assert list(run.batches("band join")) == [sorted((1, *pair) for pair, n in current.items() if n)] * 2


def test_no_change_of_a_moving_join_is_lost_or_duplicated(run):
    files = [fleets.cut(rows, N_FILES) for rows in run.fleets]
    # A killed stream may read two files of one set at once; then the other set's rows are late.
    batches = [
        [[row for number in numbers for row in each[number]] for each, numbers in zip(files, taken, strict=True)]
        for taken in zip(*run.cuts("moving join"), strict=True)
    ]
    assert run.streamed("moving join") == fleets.tell_batches(batches)
    world, _ = fleets.make_world(*batches)
    for moment, pairs in json.loads((run.directory / "pairs").read_text()):
        assert pairs == sorted(map(list, world.pairs(moment)))
        assert pairs
    expected = fleets.tell(*run.fleets)
    assert len(expected) > 100
    assert list(run.batches("moving join")) == [expected] * 2


def test_two_connect_sessions_on_one_host_listen_on_the_loopback_interface_only(tmp_path):
    script = """if True:
        import sys
        from vedette import spark as vs

        spark = vs.session("beside", remote="local[1]")
        print(spark.range(7).count(), spark.conf.get("spark.connect.grpc.binding.address"), flush=True)
        sys.stdin.read()  # until the other has answered as well
        spark.stop()
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    fast = os.environ | {"JAVA_TOOL_OPTIONS": JAVA}
    started = [subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=fast, **pipes) for _ in range(2)]
    try:
        assert [process.stdout.readline() for process in started] == ["7 127.0.0.1\n"] * 2
        for process in started:
            process.communicate(timeout=300)
        assert [process.returncode for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
