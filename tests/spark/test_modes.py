"""Every operator through Spark Connect and on a cluster of two workers, in separate processes, as batch and stream.

The streams start through Connect, are killed during a batch, and continue on the cluster.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from spark.modes import Run, run_and_kill
from spark.pipelines import CLUSTER, CONNECT, Pipeline

from tests.java_options import JAVA


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = Run(tmp_path_factory.mktemp("modes"))
    with Pipeline("modes_pipeline.py", made.directory) as pipeline:
        run_and_kill(pipeline, CONNECT, CLUSTER)
    return made


def test_matches_of_batch_and_stream_are_right(run):
    run.check_match()


def test_no_border_event_is_lost_or_duplicated(run):
    run.check_border()


def test_no_pair_of_a_window_join_is_lost_or_duplicated(run):
    run.check_window_join()


def test_no_change_of_a_band_join_is_lost_or_duplicated(run):
    run.check_band_join()


def test_no_change_of_a_moving_join_is_lost_or_duplicated(run):
    run.check_moving_join()


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
