"""The descendants of a process that a test has started, from /proc."""

from __future__ import annotations

from pathlib import Path


def find_below(pid):
    """The parent and the command of each descendant, by process id."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):  # it has ended
            continue
    return {each: (parents[each], commands.get(each, "")) for each in parents if pid in _above(each, parents)}


def _above(pid, parents):
    while pid in parents:
        pid = parents[pid]
        yield pid
