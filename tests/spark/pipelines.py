"""Pipelines that run in a process of their own, where a test may kill them at any time and start them again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CLUSTER = {"master": "local-cluster[2,1,1024]", "spark.executor.memory": "512m"}
CONNECT = {"remote": "local[2]"}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner


class Pipeline:
    """A program beside this file that takes SETTINGS DIRECTORY; all that it leaves behind is inside the directory."""

    def __init__(self, program, directory):
        self.program, self.directory = Path(__file__).with_name(program), directory
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

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
        """Until it is through, which it must be without an error."""
        _, errors = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, errors

    def wait_until(self, holds, *arguments):
        """Until that holds, while the program runs."""
        while not holds(*arguments):
            assert self.process.poll() is None, self.process.communicate()[1] or "it was through too soon"
            time.sleep(0.02)

    def count_commits(self, stream):
        """How many micro-batches are done of the stream that has that folder."""
        return self._count(stream, "commits")

    def count_begun(self, stream):
        return self._count(stream, "offsets")

    def offset_files(self, stream):
        """The names in the log of offsets, those of files that are being written included."""
        return [file.name for file in (self.directory / stream / "checkpoint" / "offsets").glob("*")]

    def _count(self, stream, log):
        return len(list((self.directory / stream / "checkpoint" / log).glob("[0-9]*")))
