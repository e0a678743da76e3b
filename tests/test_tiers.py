"""Each test is in exactly one tier, and the number of random examples follows from the profile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests import profiles
from tests.tiers import FULL_PATHS, marked_tiers

TESTS = Path(__file__).parent


def test_each_test_of_this_run_is_in_exactly_one_tier(request):
    assert [item.nodeid for item in request.session.items if len(marked_tiers(item)) != 1] == []


def collect(tmp_path, text, *options):
    """Collect a test file below the rules of this repository."""
    (tmp_path / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    fast: f\n    full: f\n    matrix: m\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.tiers", *options, str(tmp_path)]
    return subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(TESTS.parent)}, capture_output=True, text=True)


def test_a_test_with_two_tiers_is_refused(tmp_path):
    done = collect(
        tmp_path, "import pytest\npytestmark = pytest.mark.full\n@pytest.mark.matrix\ndef test_a():\n    pass\n"
    )

    assert done.returncode == 4
    assert "test_it.py::test_a is in several tiers: full, matrix; mark it with one" in done.stderr


def test_a_test_without_a_marker_is_fast_and_one_on_postgresql_is_full(tmp_path):
    text = "import pytest\n@pytest.mark.parametrize('url', ['sqlite', 'postgres'])\ndef test_a(url):\n    pass\n"

    assert "::test_a[postgres]" in collect(tmp_path, text, "-m", "full").stdout
    assert "::test_a[sqlite]" in collect(tmp_path, text, "-m", "fast").stdout
    assert "2 deselected" in collect(tmp_path, text, "-m", "matrix").stdout


def test_every_listed_path_exists():
    assert [path for path in FULL_PATHS if not (TESTS.parent / path).exists()] == []


def test_no_test_sets_its_own_number_of_examples():
    own = [
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if re.search(r"settings\(\s*max_" + "examples", path.read_text()) and path.name != "profiles.py"
    ]

    assert own == [], "use tests.profiles.examples(share)"


def test_a_share_of_the_examples_is_a_share_of_the_profiles_number(monkeypatch):
    monkeypatch.setattr(profiles, "PROFILE", "full")
    assert profiles.examples(0.6).max_examples == 60

    monkeypatch.setattr(profiles, "PROFILE", "fast")
    assert profiles.examples(0.6).max_examples == 12
    assert profiles.examples(0.01).max_examples == 2
