"""Border monitoring on a cluster, killed again and again, and through Spark Connect; each in a process of its own."""

from __future__ import annotations

from spark import ticks
from spark.pipelines import CLUSTER
from spark.streams import write_rows

PIPELINE = "border_pipeline.py"
N_FILES = 8


def as_lists(events):
    return [list(event) for event in events]


def test_stream_and_batch_give_the_right_events_on_a_cluster(pipeline, tmp_path):
    rows = ticks.make_rows(400)
    write_rows(rows, tmp_path / "rows", 2)

    pipeline.start(**CLUSTER)
    answer = pipeline.finish()

    assert answer["streamed"] == as_lists(ticks.expected_events(rows))
    assert answer["batch"] == answer["streamed"]


def test_a_stream_killed_again_and_again_goes_on_through_connect_and_no_event_is_lost_or_doubled(pipeline, tmp_path):
    rows = ticks.make_rows(50 * N_FILES)
    write_rows(rows, tmp_path / "rows", N_FILES)

    pipeline.kill_again_and_again(N_FILES)
    pipeline.start(remote="local[2]")
    answer = pipeline.finish()

    assert answer["is_connect"]
    assert answer["streamed"] == as_lists(ticks.expected_events(rows))
    assert answer["batch"] == answer["streamed"]
