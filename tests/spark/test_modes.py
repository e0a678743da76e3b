"""One pipeline on a cluster of two workers and through Spark Connect, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PIPELINE = Path(__file__).with_name("pipeline.py")
MODES = {
    "cluster": {"master": "local-cluster[2,1,1024]"},
    "connect": {"remote": "local[2]"},
}


@pytest.mark.parametrize("mode", MODES)
def test_batch_and_stream_give_the_right_pairs(mode, tmp_path):
    done = subprocess.run(
        [sys.executable, str(PIPELINE), json.dumps(MODES[mode]), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])

    expected = [[price, query] for price in range(0, 1000, 7) for query in range(400) if query <= price <= query + 2.5]
    assert sorted(answer["pairs"]) == expected
    assert sorted(answer["streamed"]) == expected
    assert answer["lists"] == [1000 // 7 + 1, len(expected)]
    assert answer["is_connect"] == (mode == "connect")


def test_two_connect_sessions_of_one_host_run_at_once_and_are_heard_on_the_loopback_only(tmp_path):
    script = """if True:
        import sys
        from vedette import spark as vs

        spark = vs.session("beside", remote="local[1]")
        print(spark.range(7).count(), spark.conf.get("spark.connect.grpc.binding.address"), flush=True)
        sys.stdin.read()  # until the other has answered as well
        spark.stop()
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, **pipes) for _ in range(2)]
    try:
        assert [process.stdout.readline() for process in started] == ["7 127.0.0.1\n"] * 2
        for process in started:
            process.communicate(timeout=60)
        assert [process.returncode for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
