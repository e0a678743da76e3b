"""The tables in the docs that are generated from tables of the code are current."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "write-tables"


def test_the_generated_tables_of_the_docs_are_current() -> None:
    ran = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.returncode) == ("", 0), ran.stdout + ran.stderr
