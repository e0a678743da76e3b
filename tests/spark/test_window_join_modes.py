"""Window joins on a cluster, killed again and again, and through Spark Connect; each in a process of its own."""

from __future__ import annotations

from spark import quotes
from spark.pipelines import CLUSTER
from spark.streams import write_batches, write_rows

PIPELINE = "window_join_pipeline.py"
N_FILES = 8


def write_sides(directory, n_files, n_rows):
    sides = [quotes.make_rows(n_rows, seed) for seed in (21, 22)]
    write_rows(sides[0], directory / "left", n_files)
    write_batches(quotes.cut(sides[1], n_files, seed=23), directory / "right")
    return sides


def check(answer, sides):
    expected = [list(pair) for pair in quotes.expected_pairs(*sides, quotes.EQUATED)]
    assert len(expected) > 100
    assert answer["streamed"] == expected
    assert answer["on_grid"] == expected
    assert answer["batch"] == expected


def test_stream_and_batch_give_the_right_pairs_on_a_cluster(pipeline, tmp_path):
    sides = write_sides(tmp_path, 2, 100)

    pipeline.start(**CLUSTER)

    check(pipeline.finish(), sides)


def test_a_stream_killed_again_and_again_goes_on_through_connect_and_no_pair_is_lost_or_doubled(pipeline, tmp_path):
    sides = write_sides(tmp_path, N_FILES, 160)

    pipeline.kill_again_and_again(N_FILES)
    pipeline.start(remote="local[2]")
    answer = pipeline.finish()

    assert answer["is_connect"]
    check(answer, sides)
