"""Pipelines that run in a process of their own, where a test may kill them at any time and start them again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

CLUSTER = {"master": "local-cluster[2,1,1024]", "spark.executor.memory": "512m"}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner
COMMITS_BEFORE_KILLS = (0, 2)  # how many batches a run may finish; each is killed in the middle of the next


class Pipeline:
    """A program that takes SETTINGS DIRECTORY; all that it leaves behind when killed is inside the directory."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self.process = None

    def start(self, **settings):
        settings = json.dumps(settings | {"spark.local.dir": str(self.scratch)})
        java = f"{JAVA} -Djava.io.tmpdir={self.scratch}"
        self.process = subprocess.Popen(
            [sys.executable, str(self.program), settings, str(self.directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=os.environ | {"TMPDIR": str(self.scratch), "JAVA_TOOL_OPTIONS": java},
            start_new_session=True,  # so that its Java process is killed with it
        )

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()

    def finish(self):
        """What the program printed last."""
        out, errors = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])

    def count(self, log):
        return len(list((self.directory / "checkpoint" / log).glob("[0-9]*")))

    def kill_again_and_again(self, n_batches):
        """Start it and kill it in the middle of a batch, several times."""
        choice = random.Random(5)
        for n_commits in COMMITS_BEFORE_KILLS:
            self.start(master="local[2]")
            n_before = self.count("commits")
            while self.count("commits") < n_before + n_commits or self.count("offsets") <= self.count("commits"):
                assert self.process.poll() is None, self.process.communicate()[1] or "through before it was killed"
                time.sleep(0.01)
            time.sleep(choice.uniform(0, 0.8))
            self.kill()
        assert self.count("commits") < n_batches
