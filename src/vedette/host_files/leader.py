"""One leader per host for a job: processes elect it by a file lock, and ask it over a local socket.

The first process that asks locks the job's file and keeps the lock until it ends. It serves the others in a thread. If
it ends or is killed, the kernel releases the lock and closes its connections, and the next process that asks takes
over. A host is what shares a kernel and a file system: the directory must be private to the account.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vedette.host_files.file_lease import is_at, remove_unused

KEPT_DAYS = 2  # the files of a job without a leader
STALLED_SECONDS = 10.0  # without a sign of life from a leader
_BEAT_SECONDS = 1.0  # between signs of life of a leader that works on a request
_POLL_SECONDS = 0.005
_MAX_LINE = 64 << 20  # bytes of a request or an answer
_LONGEST_ADDRESS = 100  # bytes; the system's limit is 104 to 108

Message = dict[str, Any]


class StalledError(Exception):
    """The leader holds the lock but does not answer."""


class Leader:
    """Asks the leader of a job, or becomes the leader. A fork must make its own.

    `work` answers a request. It is called in the leader's process only, by several threads, and must not raise.
    Requests and answers are plain values for JSON.
    """

    def __init__(self, directory: Path, name: str, work: Callable[[Message], Message]) -> None:
        self._directory = directory
        self._name = name
        self._work = work
        self._election = threading.Lock()
        self._lock: int | None = None  # the locked file, if this process leads
        self._server: socket.socket | None = None
        _all.add(self)

    @property
    def leads(self) -> bool:
        """Whether this process is the leader."""
        return self._lock is not None

    def ask(self, request: Message) -> Message:
        """The leader's answer. Raises StalledError if there is none, OSError if the host does not allow a leader."""
        fails_since: float | None = None  # not from the start: it may have worked on the request for long
        while True:
            if self._try_to_lead():
                return self._work(request)
            try:
                return self._ask(request)
            except (ConnectionError, FileNotFoundError):  # it has ended, or does not listen yet
                fails_since = fails_since or time.monotonic()
                if time.monotonic() - fails_since > STALLED_SECONDS:
                    raise StalledError(f"the leader of {self._name} does not listen") from None
                time.sleep(_POLL_SECONDS)
            except TimeoutError:
                raise StalledError(f"the leader of {self._name} does not answer") from None

    def resign(self) -> None:
        """Give the leadership up. Requests that wait are asked again elsewhere."""
        with self._election:
            if self._server is not None:
                with suppress(OSError):
                    self._server.shutdown(socket.SHUT_RDWR)
                self._server.close()
            if self._lock is not None:
                os.close(self._lock)
            self._lock = self._server = None

    # The leader.

    def _try_to_lead(self) -> bool:
        with self._election:
            if self._lock is not None:
                return True
            path = self._directory / f"{self._name}.lock"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_at(handle, path):  # `remove_old_jobs` has deleted it
                    raise BlockingIOError
                os.utime(path)
                self._server = self._listen()
            except BlockingIOError:
                os.close(handle)
                return False
            except BaseException:
                os.close(handle)
                raise
            self._lock = handle
            threading.Thread(target=self._serve, args=(self._server,), name="vedette-leader", daemon=True).start()
            return True

    def _listen(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            (self._directory / self._socket_name).unlink(missing_ok=True)  # of the previous leader
            with self._address() as address:
                server.bind(address)
            server.listen(128)
        except BaseException:
            server.close()
            raise
        return server

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # it was closed
                return
            threading.Thread(target=self._answer, args=(connection,), name="vedette-answer", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Answer one request. While that takes, empty lines are signs of life."""
        answers: list[Message] = []
        with connection, suppress(OSError, ValueError):  # who asked may have ended
            request = json.loads(_read_line(connection, STALLED_SECONDS))
            worker = threading.Thread(target=lambda: answers.append(self._work(request)), daemon=True)
            worker.start()
            worker.join(_BEAT_SECONDS)
            while worker.is_alive():
                connection.sendall(b"\n")
                worker.join(_BEAT_SECONDS)
            for answer in answers:
                connection.sendall(json.dumps(answer).encode() + b"\n")

    # The others.

    def _ask(self, request: Message) -> Message:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(STALLED_SECONDS)
            with self._address() as address:
                connection.connect(address)
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer: Message = json.loads(_read_line(connection, STALLED_SECONDS))
            return answer

    @property
    def _socket_name(self) -> str:
        return f"{self._name}.socket"

    @contextmanager
    def _address(self) -> Iterator[str]:
        """The address of the leader's socket. A path that is too long for one goes through an open directory."""
        path = str(self._directory / self._socket_name)
        if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
            yield path
            return
        handle = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{handle}/{self._socket_name}"
        finally:
            os.close(handle)

    def _forget(self) -> None:
        """In a forked child: the leader is still the parent."""
        for handle in (self._lock, self._server.fileno() if self._server is not None else None):
            if handle is not None:
                os.close(handle)  # the parent keeps the lock
        if self._server is not None:
            self._server.detach()
        self._lock = self._server = None
        self._election = threading.Lock()


def _read_line(connection: socket.socket, seconds: float) -> bytes:
    """The next line that is not empty. Raises ConnectionError if there is none."""
    connection.settimeout(seconds)
    data = bytearray()
    while True:
        piece = connection.recv(1 << 16)
        if not piece or len(data) > _MAX_LINE:
            raise ConnectionResetError("the other process has ended")
        data += piece
        while data.startswith(b"\n"):
            del data[:1]
        if data.endswith(b"\n"):
            return bytes(data)


def remove_old_jobs(directory: Path) -> None:
    """Delete the files of jobs that have had no leader for days."""
    for lock in directory.glob("*.lock"):
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > KEPT_DAYS * 86_400:
                remove_unused(lock, lock.with_suffix(".socket"))


_all: weakref.WeakSet[Leader] = weakref.WeakSet()


def _forget_all() -> None:
    for leader in list(_all):
        leader._forget()


os.register_at_fork(after_in_child=_forget_all)
