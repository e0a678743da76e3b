"""A standalone Spark cluster of the installed PySpark: a master, and two workers with two slots each."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.java_options import JAVA
from tests.ports import free_port

SPARK_HOME = Path(pyspark.__file__).parent
N_WORKERS, N_SLOTS = 2, 2
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.cores": str(N_SLOTS),
    "spark.executor.memory": "512m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(N_WORKERS * N_SLOTS),
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.ui.enabled": "false",
}


class Cluster:
    """Its processes end with the context. Everything that they write is below the folder."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self._processes = []

    @property
    def url(self):
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self):
        try:
            self._start("master", "master.Master", "--port", self.port)
            self._wait("master", "I have been elected leader")
            for number in range(N_WORKERS):
                name = f"worker-{number}"
                work = ["--cores", N_SLOTS, "--memory", "1g", "--work-dir", self.folder / name]
                self._start(name, "worker.Worker", *work, self.url)
            for number in range(N_WORKERS):
                self._wait(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self._processes):
            _end(process)

    def submit(self, program, *arguments, options=(), cwd=None, **variables):
        """Run a program in client mode with spark-submit; what it prints."""
        command = [*self.submit_command(*options), program, *arguments]
        scratch = self._scratch()
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd or scratch,
            env=environment(scratch) | variables,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-8000:]
        return done.stdout

    @contextmanager
    def connect_server(self, *options):
        """A Spark Connect server, which is an application of this cluster; its address."""
        port, name = free_port(), "connect"
        binding = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": port}
        kind = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        self._run(name, [*self.submit_command(*options, **binding), *kind])
        try:
            self._wait(name, "Spark Connect server started at")
            yield f"sc://127.0.0.1:{port}"
        finally:
            _end(self._processes.pop())

    def submit_command(self, *options, **settings):
        """The command spark-submit, for this cluster."""
        confs = [part for name, value in (SETTINGS | settings).items() for part in ("--conf", f"{name}={value}")]
        return [SPARK_HOME / "bin" / "spark-submit", "--master", self.url, *confs, *options]

    def _start(self, name, kind, *arguments):
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        self._run(name, [*command, "--webui-port", 0, *arguments])

    def _run(self, name, command):
        scratch = self._scratch()
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                cwd=scratch,
                env=environment(scratch),
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that what it starts ends with it
            )
        self._processes.append(process)

    def _wait(self, name, words):
        """Wait until a process has logged these words."""
        log, process = self.folder / f"{name}.log", self._processes[-1]
        end = time.monotonic() + 120
        while not re.search(words, text := log.read_text(errors="replace")):
            is_starting = process.poll() is None and time.monotonic() < end
            assert is_starting, f"{name} does not start: {text[-4000:]}"
            time.sleep(0.1)

    def _scratch(self):
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return scratch


def environment(scratch):
    """The environment of Spark's processes, with their own temporary directory."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    java = f"{JAVA} -Djava.io.tmpdir={scratch}"
    return own | {
        "JAVA_TOOL_OPTIONS": java,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(scratch),
    }


def _end(process):
    """End a process and all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
