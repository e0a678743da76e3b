"""A temporary PostgreSQL for tests: one cluster per session, on the loopback interface, with a password.

PostgreSQL refuses to run as root. If the tests run as root, it runs as the user postgres or nobody.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.services import REPORTED

USER, PASSWORD = "vedette", "s3cret-pass"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "log_line_prefix": "%d %p ",  # database and process of the session
}


class UnavailableError(Exception):
    """PostgreSQL is not available; the message says why."""


class Cluster:
    """A running PostgreSQL."""

    def __init__(self) -> None:
        self._programs = _find_programs()
        self._as = _find_user()
        self.folder = Path(tempfile.mkdtemp(prefix="vedette-postgres-"))
        self.port = free_port()
        self._numbers = itertools.count()
        self._server: subprocess.Popen[bytes] | None = None
        try:
            self._make()
            self.start()
        except BaseException:
            self.delete()
            raise

    @property
    def version(self) -> str:
        said = subprocess.run([self._programs / "postgres", "--version"], capture_output=True, text=True)
        return said.stdout.strip()

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if self._as:
            account = pwd.getpwnam(self._as)
            for path in (self.folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        made = self._run(
            "initdb",
            "-D",
            "data",
            "-U",
            USER,
            "-E",
            "UTF8",
            "--locale=C",
            "-A",
            "scram-sha-256",
            "--pwfile=password",
            "-N",
        )
        if made.returncode:
            raise UnavailableError(f"initdb failed: {made.stderr.decode()[-300:]}")

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, timeout=120, **self._account())

    def _account(self) -> dict[str, Any]:
        return {"user": self._as, "group": pwd.getpwnam(self._as).pw_gid, "extra_groups": []} if self._as else {}

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in (_SETTINGS | {"port": str(self.port)}).items()]
        command = [str(self._programs / "postgres"), "-D", "data", f"-cunix_socket_directories={self.folder}", *options]
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self._account())
        deadline = time.monotonic() + 60
        while True:
            try:
                self._execute("SELECT 1")
                return
            except Exception:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "log").read_text()[-300:]
                    raise UnavailableError(f"PostgreSQL does not start: {said}") from None
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop immediately, like a machine failure; `start` continues from there."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(30)
        self._server = None

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        with contextlib.suppress(Exception):
            self._execute(f"DROP DATABASE {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5) as connection:
            connection.execute(statement)


@functools.cache
def cluster() -> Cluster:
    """The cluster of this session, started on first use."""
    try:
        made = Cluster()
    except UnavailableError as reason:
        REPORTED.add(f"PostgreSQL: skipped, because {reason}")
        raise
    REPORTED.add(f"PostgreSQL: ran with {made.version}")
    owner = os.getpid()
    atexit.register(lambda: made.delete() if os.getpid() == owner else None)
    return made


def _find_programs() -> Path:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UnavailableError("psycopg is not installed; pip install 'vedette[postgres]'") from None
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += [Path(path) for path in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise UnavailableError("there is no PostgreSQL here: neither initdb in PATH nor /usr/lib/postgresql/*/bin")


def _find_user() -> str | None:
    """The user that the server runs as; None for the current user."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise UnavailableError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
