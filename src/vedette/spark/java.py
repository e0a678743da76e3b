"""Checks that a Java for Spark is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from vedette.errors import PipelineError

OLDEST_VERSION = 17


def check_java() -> None:
    """Raise PipelineError with what to install, unless Spark will find Java 17 or later."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    version = None if java is None else _version(java)
    if version is not None and version >= OLDEST_VERSION:
        return
    if home:
        found = f"JAVA_HOME is {home}, which has " + ("no Java" if version is None else f"Java {version}")
        raise PipelineError(
            f"Spark needs Java {OLDEST_VERSION} or later, but {found}; set JAVA_HOME to such a Java, or unset it"
        )
    found = "java is not on the PATH and JAVA_HOME is not set" if version is None else f"{java} is Java {version}"
    raise PipelineError(f"Spark needs Java {OLDEST_VERSION} or later, but {found}; install it: {_how_to_install()}")


def _version(java: str) -> int | None:
    """The major version that `java -version` prints; None if the program does not exist."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else None


def _how_to_install() -> str:
    if sys.platform == "darwin":
        return "brew install openjdk@21, and set JAVA_HOME to what `brew --prefix openjdk@21` prints"
    if shutil.which("apt-get"):
        return "sudo apt-get install openjdk-17-jre-headless"
    if shutil.which("dnf"):
        return "sudo dnf install java-21-openjdk-headless"
    return "a Java 17 or 21 runtime of your system, or one from https://adoptium.net"
