"""Fresh virtual environments with the built package, as users install it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.docs_pages import ROOT

CONSTRAINTS = ROOT / "constraints.txt"


class UnavailableError(Exception):
    """Packages cannot be downloaded here."""


class Environments:
    """A folder with the wheel, the source archive, and environments by name; made once, by whoever asks first."""

    def __init__(self, folder):
        self.folder = folder

    def wheel(self):
        return self._built("*.whl")

    def source(self):
        return self._built("*.tar.gz")

    def make(self, name, *packages, python=sys.executable, constraints=CONSTRAINTS):
        """The interpreter of an environment with these packages and no others."""
        home = self.folder / name
        with self._locked(name):
            if not (home / "ready").exists():
                subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
                install(home / "bin" / "python", *packages, constraints=constraints)
                (home / "ready").touch()
        return home / "bin" / "python"

    def _built(self, pattern):
        folder = self.folder / "dist"
        with self._locked("dist"):
            if not folder.exists():
                build(folder)
        (found,) = folder.glob(pattern)
        return found

    @contextmanager
    def _locked(self, name):
        """Only one process at a time makes what has this name."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def build(folder):
    """Build wheel and source archive, as `make dist` does."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def install(python, *packages, constraints=CONSTRAINTS):
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-compile",
        "--no-warn-script-location",
    ]
    if constraints is not None:
        pip += ["-c", constraints, "--build-constraint", constraints]
    done = subprocess.run([*pip, *packages], cwd=ROOT, capture_output=True, text=True)
    if "NewConnectionError" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        raise UnavailableError(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


def run(python, script, *arguments, cwd, **variables):
    """What a program, or a text, prints in an environment. It sees no other packages, and writes below `cwd`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    scratch = Path(cwd) / "scratch"
    scratch.mkdir(exist_ok=True)
    program = script
    if not isinstance(script, Path):  # a file, because pyspark-client takes `python -c` for a run of its own tests
        program = Path(cwd) / "program.py"
        program.write_text(script)
    done = subprocess.run(
        [python, program, *map(str, arguments)],
        cwd=cwd,
        env=own | {"TMPDIR": str(scratch), "HOME": str(scratch)} | variables,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
