"""Pipelines that run in a separate process, so that a test can kill and restart them at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.java_options import JAVA

CLUSTER = {"master": "local-cluster[2,1,1024]", "spark.executor.memory": "512m"}
CONNECT = {"remote": "local[2]"}
CONNECT_TO_CLUSTER = {"remote": CLUSTER["master"], "spark.executor.memory": "512m"}


class Pipeline:
    """A program next to this file with arguments SETTINGS DIRECTORY. It writes only into the directory."""

    def __init__(self, program, directory):
        self.program, self.directory = Path(__file__).with_name(program), directory
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self, python=sys.executable, **settings):
        settings = json.dumps(settings | {"spark.local.dir": str(self.scratch)})
        java = f"{JAVA} -Djava.io.tmpdir={self.scratch}"
        self.process = subprocess.Popen(
            [str(python), str(self.program), settings, str(self.directory)],
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
        """Wait until it ends; it must succeed."""
        _, errors = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, errors

    def wait_until(self, holds, *arguments):
        """Wait until the condition holds, while the program runs."""
        while not holds(*arguments):
            assert self.process.poll() is None, self.process.communicate()[1] or "it was through too soon"
            time.sleep(0.02)

    def count_commits(self, stream):
        """The number of finished micro-batches of the stream with this folder."""
        return self._count(stream, "commits")

    def count_begun(self, stream):
        return self._count(stream, "offsets")

    def offset_files(self, stream):
        """The names in the log of offsets, including files that are being written."""
        return [file.name for file in (self.directory / stream / "checkpoint" / "offsets").glob("*")]

    def _count(self, stream, log):
        return len(list((self.directory / stream / "checkpoint" / log).glob("[0-9]*")))
