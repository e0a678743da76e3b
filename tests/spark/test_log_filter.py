"""What Spark says on every start is kept from the terminal; all else passes."""

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


HEARD = r"""
import subprocess, sys, time
from vedette.spark.log_filter import heard_by, quiet_start

child = "import sys; sys.stderr.write('\\nfirst\\nvedette: warning: a snapshot is damaged\\nrest')"
heard = []
with heard_by(lambda *line: heard.append(line)), quiet_start():
    subprocess.run([sys.executable, "-c", child], check=True)
    print("own", file=sys.stderr)
    while len(heard) < 3:
        time.sleep(0.01)
print(heard)
"""


def test_who_listens_hears_lines_and_which_are_warnings_of_workers():
    done = subprocess.run([sys.executable, "-c", HEARD], capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[('first', False), ('a snapshot is damaged', True), ('restown', False)]\n"


STARTS = "Starting Streaming TransformWithStateInPandas Python worker."


@pytest.mark.parametrize(
    "said", [f"{STARTS}\\n\\none", f"{STARTS}\\n{STARTS}\\n\\n\\none", f"{STARTS}\\n{STARTS}\\n\\none\\n"]
)
def test_what_workers_of_streams_always_say_is_dropped_also_where_two_speak_at_once(said):
    script = SCRIPT.replace("first\\\\n", f"{said}\\n\\ntwo\\n".replace("\\n", "\\\\n"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stderr == "one\n\ntwo\nERROR second third\n"
