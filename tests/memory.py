"""Runs work in its own process and measures its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

_LEAST = """
import os, resource

def _status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(name + ":"))

class Peak:
    '''The megabytes that a block takes at its peak, beyond what there was before.'''

    def __enter__(self):
        open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here on
        self.before = _status("VmRSS")
        most = (_status("VmSize") + 6000) << 20  # so that a failure does not take the machine with it
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        return self

    def __exit__(self, *error):
        self.megabytes = _status("VmHWM") - self.before
"""


def run_alone(code: str, **environment: str) -> str:
    """Run a program that can use `Peak`, with settings as VEDETTE_... variables. Returns what it prints."""
    tests = Path(__file__).parent
    path = os.pathsep.join([str(tests.parent / "src"), str(tests)])
    done = subprocess.run(
        [sys.executable, "-c", _LEAST + textwrap.dedent(code)],
        # Compiled also where the tests run without JIT: interpreted loops over so many rows would take minutes.
        env=os.environ | {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
