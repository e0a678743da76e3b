"""Opens a followed set in a worker through the leader of its host, so that the database sees hosts, not workers.

Without a leader (it does not answer, or the host has no private directory), a worker asks the database itself: the
answers are the same.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette import errors
from vedette.errors import FileError, RegistryError, VedetteError
from vedette.host_files.account_directory import account_directory
from vedette.host_files.leader import Leader
from vedette.registry.host.line import Base, Step
from vedette.registry.host.set_on_host import Ask, SetOnHost, Told
from vedette.registry.read import reader
from vedette.registry.read.followed import Followed
from vedette.registry.snapshots.bases import OpenSet, Snapshot
from vedette.registry.snapshots.change_files import read_changes_file
from vedette.registry.store import failures

if TYPE_CHECKING:
    from collections.abc import Callable

    from vedette.registry.read.set_info import SetInfo

_KEPT_SETS = 16
_log = logging.getLogger(__name__)
_leaders: dict[tuple[str, int], HostReader] = {}


class HostReader:
    """Asks the leader of this host about the sets of one driver's registry, or is the leader."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._leader = Leader(directory, name, self._work)
        self._sets: OrderedDict[tuple[str, int], SetOnHost] = OrderedDict()  # of the leader, by id and schema
        self._lock = threading.Lock()

    @classmethod
    def of(cls, followed: Followed) -> HostReader:
        """The reader of this process. Raises OSError if the account has no directory on this host."""
        job = f"{followed.url} {followed.snapshots} {followed.driver} {_boot()}"
        name = hashlib.blake2b(job.encode(), digest_size=12).hexdigest()
        key = (name, os.getpid())
        directory = account_directory("following")  # made again if it was deleted
        if key not in _leaders:
            _leaders[key] = cls(directory, name)
        return _leaders[key]

    @property
    def leads(self) -> bool:
        return self._leader.leads

    def ask(self, followed: Followed, ask: Ask) -> Told:
        """The leader's answer. Raises StalledError, OSError, or what the database raised."""
        answer = self._leader.ask({"followed": followed.to_plain(), "ask": asdict(ask)})
        if "error" in answer:
            raise _to_error(answer["error"])
        return Told(**answer["told"])

    def open(self, followed: Followed, told: Told) -> OpenSet:
        """The set of an answer with a base. Raises VedetteError if a file cannot be read."""
        assert told.base is not None
        base = Base(**told.base)
        if base.checksum:
            snapshot = Snapshot(base.version, base.file, base.checksum, base.n_bytes)
            opened = followed.bases.load_base(snapshot, base.mark)
        else:
            opened = followed.bases.load_file(self._directory / base.file, base.version, base.mark)
        self.move(opened, told, followed.info)
        return opened

    def move(self, opened: OpenSet, told: Told, info: SetInfo) -> None:
        """Update a set by the changes of an answer. Raises VedetteError if they cannot be read."""
        if told.changes is not None:
            step = Step(**told.changes)
            changes = read_changes_file(self._directory / step.file, step.since, step.until, info)
            opened.queries.apply(changes)
            opened.n_changes += changes.n_added + changes.n_removed

    def _work(self, request: dict[str, Any]) -> dict[str, Any]:
        """The leader's answer to a request."""
        try:
            followed = Followed.from_plain(request["followed"])
            return {"told": asdict(self._set(followed).answer(Ask(**request["ask"])))}
        except VedetteError as error:
            return {"error": _from_error(error)}
        except OSError as error:
            said = f"cannot write the changes of a set on this host: {error.strerror or error}"
            return {"error": _from_error(FileError(said))}
        except Exception as error:
            _log.exception("the leader of this host failed")
            return {"error": _from_error(RegistryError(f"the leader of this host failed: {error!r}"))}

    def _set(self, followed: Followed) -> SetOnHost:
        key = (followed.uid, followed.info.schema_version)
        with self._lock:
            if key not in self._sets:
                self._sets[key] = SetOnHost(followed, self._directory)
                while len(self._sets) > _KEPT_SETS:
                    self._sets.popitem(last=False)
            self._sets.move_to_end(key)
            return self._sets[key]


def open_on_host(followed: Followed, ask: Ask, opened: OpenSet | None) -> tuple[Told, OpenSet]:
    """The version that a worker asks for, and the set at that version: `opened`, updated, or another one.

    Raises StalledError or OSError if there is no leader.
    """
    host = HostReader.of(followed)
    told = host.ask(followed, ask)
    if told.base is None and opened is not None:
        try:
            host.move(opened, told, followed.info)
            return told, opened
        except VedetteError as error:
            _log.warning("set %r is opened again: %s", followed.name, error)
            told = host.ask(followed, _without_set(ask))
    try:
        return told, host.open(followed, told)
    except VedetteError as error:
        assert told.base is not None
        _log.warning("the base of set %r is looked up again: %s", followed.name, error)
        told = host.ask(followed, _without_set(ask, unusable=told.base["version"]))
        return told, host.open(followed, told)


def _without_set(ask: Ask, **changed: Any) -> Ask:
    return Ask(**(asdict(ask) | {"known": None, "known_mark": None} | changed))


def _boot() -> str:
    """Identifies the kernel: hosts that share a file system have their own leaders."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


_ERRORS: dict[str, Callable[..., VedetteError]] = {
    each.__name__: each
    for module in (errors, failures, reader)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, VedetteError)
}


def _from_error(error: VedetteError) -> dict[str, Any]:
    return {"kind": type(error).__name__, "said": error.reason, "is_retryable": getattr(error, "is_retryable", False)}


def _to_error(plain: dict[str, Any]) -> VedetteError:
    kind = _ERRORS.get(plain["kind"], VedetteError)
    made = kind(plain["said"])
    if isinstance(made, RegistryError):
        made.is_retryable = plain["is_retryable"]
    return made
