"""Settings: file, environment, and what is refused."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from vedette.errors import FileError, QueryError
from vedette.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "operations.md"
LIMITS = [each for each in fields(Settings) if each.name.startswith("max_")]


def test_the_environment_goes_before_the_file(tmp_path):
    file = tmp_path / "vedette.toml"
    file.write_text('snapshot_dir = "/shared"\ninline_bytes = 10\n')

    read = Settings.read({"VEDETTE_INLINE_BYTES": "20"}, file)

    assert (read.snapshot_dir, read.inline_bytes) == ("/shared", 20)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("snapshot_dri = '/x'", "unknown setting 'snapshot_dri'.*did you mean 'snapshot_dir'"),
        ("inline_bytes = 'many'", "setting 'inline_bytes' is 'many'; it takes a whole number above 0"),
        ("inline_bytes =", "is no TOML"),
        ("file_mode = 640", "setting 'file_mode' is 640; it takes permissions as chmod does, such as \"0640\""),
        ("file_mode = '0440'", "setting 'file_mode' is '0440'; .* the owner must be able to read and write"),
        ("directory_mode = 'open'", "setting 'directory_mode' is 'open'; it takes permissions .* such as \"0750\""),
        ("max_terms = 0", "setting 'max_terms' is 0; it takes a whole number above 0"),
        ("max_nesting = 1000", "setting 'max_nesting' is 1000; it takes at most 100"),
    ],
)
def test_a_wrong_file_is_told(tmp_path, content, message):
    file = tmp_path / "vedette.toml"
    file.write_text(content)

    with pytest.raises(FileError, match=message):
        Settings.read({}, file)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(FileError, match="cannot read the settings file"):
        Settings.read({}, tmp_path / "none.toml")


def test_the_docs_list_every_limit_with_its_default():
    rows = re.findall(r"^\| `(max_\w+)` \| ([0-9,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(each.name, f"{each.default:,}") for each in LIMITS]


@pytest.mark.parametrize("name", [each.name for each in LIMITS if "counts" in each.metadata])
def test_a_limit_that_is_exceeded_says_what_it_got_and_which_setting_it_is(name):
    limited = Settings(**{name: 5})
    limited.check(name, 5)

    with pytest.raises(QueryError, match=rf"\b1,234,567 .*; the limit is 5 \(setting {name}\)"):
        limited.check(name, 1_234_567)


def test_modes_are_read_as_chmod_reads_them(tmp_path):
    file = tmp_path / "vedette.toml"
    file.write_text('file_mode = 0o640\ndirectory_mode = "2770"\n')

    assert (Settings.read({}, file).file_mode, Settings.read({}, file).directory_mode) == (0o640, 0o2770)
    assert Settings.read({"VEDETTE_FILE_MODE": "0644"}, file).file_mode == 0o644
    assert (Settings().file_mode, Settings().directory_mode) == (0o600, 0o700)
