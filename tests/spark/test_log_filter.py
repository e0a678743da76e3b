"""Messages that Spark prints on every start are dropped; all others are forwarded."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from vedette.spark.log_filter import quiet_start

SCRIPT = r"""
import subprocess, sys, threading
from vedette.spark.log_filter import quiet_start

child = "import sys; sys.stderr.write('first\\nWARNING: Using incubator modules: jdk.incubator.vector\\nERROR second')"
with quiet_start():
    subprocess.run([sys.executable, "-c", child], check=True)
for thread in threading.enumerate():
    if thread.name == "vedette-stderr":
        thread.join(10)
print(" third", file=sys.stderr)
"""


def test_only_the_known_line_is_dropped():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)

    assert done.stderr == "first\nERROR second third\n"


def test_only_the_known_warning_is_dropped():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with quiet_start():
            warnings.warn("Failed to set spark.driver.host: [CANNOT_MODIFY_CONFIG]", UserWarning, stacklevel=1)
            warnings.warn("Failed to set spark.connect.a: [CANNOT_MODIFY_STATIC_CONFIG]", UserWarning, stacklevel=1)
            warnings.warn("something else", UserWarning, stacklevel=1)

    assert [str(warning.message) for warning in caught] == ["something else"]


LISTENER = r"""
import subprocess, sys, time
from vedette.spark.log_filter import listened_by, quiet_start

child = "import sys; sys.stderr.write('\\nfirst\\nvedette: warning: a snapshot is damaged\\nrest')"
lines = []
with listened_by(lambda *line: lines.append(line)), quiet_start():
    subprocess.run([sys.executable, "-c", child], check=True)
    print("own", file=sys.stderr)
    while len(lines) < 3:
        time.sleep(0.01)
print(lines)
"""


def test_a_listener_gets_lines_and_which_are_warnings_of_workers():
    done = subprocess.run([sys.executable, "-c", LISTENER], capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[('first', False), ('a snapshot is damaged', True), ('restown', False)]\n"


STARTS = "Starting Streaming TransformWithStateInPandas Python worker."


@pytest.mark.parametrize(
    "message", [f"{STARTS}\\n\\none", f"{STARTS}\\n{STARTS}\\n\\n\\none", f"{STARTS}\\n{STARTS}\\n\\none\\n"]
)
def test_standard_messages_of_workers_are_dropped_even_if_two_are_mixed(message):
    script = SCRIPT.replace("first\\\\n", f"{message}\\n\\ntwo\\n".replace("\\n", "\\\\n"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stderr == "one\n\ntwo\nERROR second third\n"
