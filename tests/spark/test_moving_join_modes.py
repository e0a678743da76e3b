"""Moving joins on a cluster, killed again and again, and through Spark Connect; each in a process of its own."""

from __future__ import annotations

from spark import fleets
from spark.moving_shards import make_shard, step
from spark.pipelines import CLUSTER
from spark.streams import read_cuts, write_batches

PIPELINE = "moving_join_pipeline.py"
N_FILES = 8


def write_sets(directory, n_files):
    """Two times a file, of each object one row a time: files of one micro-batch may be read in any order."""
    sets = []
    for seed, name in enumerate("ab"):
        rows = list({row[:2]: row for row in fleets.make_rows(2 * n_files, 20, 30 + seed, n_ids=40)}.values())
        write_batches([fleets.to_table(part) for part in fleets.cut(rows, n_files)], directory / name)
        sets.append(rows)
    return sets


def check(answer, sets, directory):
    """The stream told every line once, and a batch what one join tells."""
    cuts = read_cuts(directory / "checkpoint")
    files = [fleets.cut(rows, len(list((directory / name).iterdir()))) for rows, name in zip(sets, "ab", strict=True)]
    assert [[file for batch in side for file in batch] for side in cuts] == [list(range(len(each))) for each in files]
    # A stream that was killed may take two files of one set at once, and the other set's rows are late then.
    batches = [
        [[row for number in numbers for row in each[number]] for each, numbers in zip(files, taken, strict=True)]
        for taken in zip(*cuts, strict=True)
    ]
    shard = make_shard()
    assert answer["streamed"] == sorted(list(line) for batch in batches for line in step(shard, *batch))
    world, _ = fleets.make_world(*batches)
    for time, pairs in answer["pairs"]:
        assert pairs == sorted(map(list, world.pairs(time)))
        assert pairs
    assert answer["batch"] == list(map(list, fleets.tell(*sets)))
    assert len(answer["batch"]) > 100


def test_stream_and_batch_tell_what_one_join_tells_on_a_cluster(pipeline, tmp_path):
    sets = write_sets(tmp_path, 2)

    pipeline.start(**CLUSTER)

    check(pipeline.finish(), sets, tmp_path)


def test_a_stream_killed_again_and_again_goes_on_through_connect_and_no_change_is_lost_or_doubled(pipeline, tmp_path):
    sets = write_sets(tmp_path, N_FILES)

    pipeline.kill_again_and_again(N_FILES)
    pipeline.start(remote="local[2]")
    answer = pipeline.finish()

    assert answer["is_connect"]
    check(answer, sets, tmp_path)
