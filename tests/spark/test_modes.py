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
        timeout=240,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])

    expected = [[price, query] for price in range(0, 1000, 7) for query in range(400) if query <= price <= query + 2.5]
    assert sorted(answer["pairs"]) == expected
    assert sorted(answer["streamed"]) == expected
    assert answer["lists"] == [1000 // 7 + 1, len(expected)]
    assert answer["is_connect"] == (mode == "connect")
