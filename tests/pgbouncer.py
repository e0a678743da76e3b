"""A PgBouncer in transaction mode in front of the tests' PostgreSQL: few sessions, shared by all connections."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import postgres
import psycopg

from tests.ports import free_port
from tests.services import REPORTED

SESSIONS = 2  # of PostgreSQL, for each database
_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
server_round_robin = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


class PgBouncer:
    """A running PgBouncer."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            reason = "there is no PgBouncer here: on Debian, apt-get install pgbouncer"
            REPORTED.add(f"PgBouncer: skipped, because {reason}")
            raise postgres.UnavailableError(reason)
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="vedette-pgbouncer-")), free_port()
        settings = _SETTINGS.format(server=cluster.port, port=self.port, folder=self.folder, sessions=SESSIONS)
        (self.folder / "settings.ini").write_text(settings)
        (self.folder / "users").write_text(f'"{postgres.USER}" "{postgres.PASSWORD}"\n')
        account = cluster._account()
        if account:
            user = pwd.getpwnam(account["user"])
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, user.pw_uid, user.pw_gid)
        command = [program, str(self.folder / "settings.ini")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **account)
        try:
            self._wait()
        except BaseException:
            self.delete()
            raise
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        REPORTED.add(f"PgBouncer: ran with {said.splitlines()[0]}")

    def _wait(self) -> None:
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
            time.sleep(0.05)

    def url(self, database: str) -> str:
        return f"postgresql://{postgres.USER}:{postgres.PASSWORD}@127.0.0.1:{self.port}/{database}"

    def delete(self) -> None:
        self._process.kill()
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
