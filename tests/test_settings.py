"""Settings: file, environment, and what is refused."""

from __future__ import annotations

import pytest

from vedette.errors import FileError
from vedette.settings import Settings


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
