"""Processes of this account and of another one, for tests of files that accounts share."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import vedette

OTHER = 65534 if os.geteuid() != 65534 else 65533  # an account without any rights, such as nobody
# A script calls `become` after its imports: the other account may not be able to read Python itself.
BECOME = """
import os
def become():
    if "BECOME" in os.environ:
        os.setgroups([])
        os.setgid(int(os.environ["BECOME"]))
        os.setuid(int(os.environ["BECOME"]))
"""


def others():
    """The accounts that this one can start processes as: itself (None), and another one if it is root."""
    return [None, OTHER] if os.geteuid() == 0 else [None]


def open_to_all(directory):
    """Open a temporary directory of pytest to all accounts, as /tmp is."""
    directory.chmod(0o1777)
    for parent in directory.parents:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | 0o055)


def start(script, *arguments, temporary, uid=None, **variables):
    """A Python process with its own temporary directory that may read from its standard input."""
    sources = str(Path(vedette.__file__).parents[1])
    places = {"PYTHONPATH": sources, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(temporary)}
    return subprocess.Popen(
        [sys.executable, "-c", BECOME + script, *map(str, arguments)],
        cwd=temporary,
        env=os.environ | places | variables | ({} if uid is None else {"BECOME": str(uid)}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_line(process):
    """The next line that a process prints."""
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return line.strip()


def end(process):
    """Let a process finish; it must succeed. Returns the words that it printed."""
    output, errors = process.communicate("\n", timeout=300)
    assert process.returncode == 0, errors
    return output.split()
