"""Band joins on a cluster, killed again and again, and through Spark Connect; each in a process of its own."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from spark import bands
from spark.pipelines import CLUSTER
from spark.streams import read_cuts, write_batches

PIPELINE = "band_join_pipeline.py"
N_FILES = 8


def write_sides(directory, n_files):
    """Files that become smaller, because Spark puts those of one micro-batch into the order of their sizes."""
    sides = []
    for seed, name in enumerate(("left", "right")):
        batches = bands.make_batches(n_files, 20 * n_files, seed=20 + seed, shrink=20)
        n_rows, tables = 0, []
        for rows in batches:
            tables.append(bands.to_table(rows).append_column("at", pa.array(range(n_rows, n_rows + len(rows)))))
            n_rows += len(rows)
        write_batches(tables, directory / name)
        sizes = [path.stat().st_size for path in sorted((directory / name).iterdir())]
        assert sizes == sorted(sizes, reverse=True)
        sides.append(batches)
    return sides


def check(answer, sides, directory):
    """The stream told every change once, and a batch has what stands in the end."""
    cuts = read_cuts(directory / "checkpoint")
    assert [[file for files in side for file in files] for side in cuts] == [list(range(len(side))) for side in sides]
    taken = [
        [[row for file in files for row in side[file]] for files in cut] for side, cut in zip(sides, cuts, strict=True)
    ]
    changes = [change for changes in bands.expected_changes(*taken) for change in changes]
    assert answer["streamed"] == sorted(map(list, changes))
    affected = Counter(query for told in bands.expected_changes(*sides) for query in {change[1] for change in told})
    assert answer["affected"] == affected
    standing = Counter()
    for sign, *pair in changes:
        standing[tuple(pair)] += sign
    assert answer["batch"] == sorted([1, *pair] for pair, n in standing.items() if n)
    assert set(standing.values()) <= {0, 1}


def test_stream_and_batch_give_the_right_changes_on_a_cluster(pipeline, tmp_path):
    sides = write_sides(tmp_path, 2)

    pipeline.start(**CLUSTER)

    check(pipeline.finish(), sides, tmp_path)


def test_a_stream_killed_again_and_again_goes_on_through_connect_and_no_change_is_lost_or_doubled(pipeline, tmp_path):
    sides = write_sides(tmp_path, N_FILES)

    pipeline.kill_again_and_again(N_FILES)
    pipeline.start(remote="local[2]")
    answer = pipeline.finish()

    assert answer["is_connect"]
    check(answer, sides, tmp_path)
