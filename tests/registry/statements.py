"""The statements that a PostgreSQL database gets, from the log of the server."""

from __future__ import annotations

import re
import time
from pathlib import Path

import psycopg


class Statements:
    """Reads the log of the server from `begin` to `end`, including BEGIN and COMMIT."""

    def __init__(self, cluster, url):
        self._log, self._url = Path(cluster.folder, "log"), url
        self._name = url.rsplit("/", 1)[1]
        self._start, self._marks = 0, 0
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {self._name} SET log_statement = 'all'")
        self._cluster = cluster

    def begin(self):
        """Count from here on."""
        self._start = self._find_mark()

    def end(self):
        """The statements since `begin`: the process of the session, and the text."""
        end = self._find_mark()
        lines = self._log.read_bytes()[self._start : end].decode(errors="replace").splitlines()
        pattern = re.compile(rf"^{self._name} (\d+) LOG:  (?:statement|execute [^:]*): (.*)")
        found = [pattern.match(line) for line in lines]
        return [(each[1], each[2]) for each in found if each and "statements mark" not in each[2]]

    def _find_mark(self):
        """The place in the log after a statement that only this object sends."""
        self._marks += 1
        mark = f"statements mark {self._marks}"
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"SELECT 1 -- {mark}")
        until = time.monotonic() + 30
        while time.monotonic() < until:
            place = self._log.read_bytes().rfind(mark.encode())
            if place >= 0:
                return place + len(mark)
            time.sleep(0.01)
        raise AssertionError("the log does not contain the mark")
