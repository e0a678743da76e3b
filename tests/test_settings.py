"""Settings: file, environment, and what is refused."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest

from vedette.errors import FileError, QueryError
from vedette.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "operations.md"
LIMITS = {name: each for name, each in Settings.model_fields.items() if name.startswith("max_")}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in os.environ:
        if name.startswith("VEDETTE_"):
            monkeypatch.delenv(name)


def test_the_environment_overrides_the_file(tmp_path, monkeypatch):
    file = tmp_path / "vedette.toml"
    file.write_text('snapshot_dir = "/shared"\ninline_bytes = 10\n')

    monkeypatch.setenv("VEDETTE_INLINE_BYTES", "20")
    read = Settings.read(file)

    assert (read.snapshot_dir, read.inline_bytes) == ("/shared", 20)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("snapshot_dri = '/x'", "unknown setting 'snapshot_dri'.*did you mean 'snapshot_dir'"),
        ("inline_bytes = 'many'", "setting 'inline_bytes' is 'many'; it must be an integer of at least 1"),
        ("inline_bytes =", "is not valid TOML"),
        ("file_mode = 640", "setting 'file_mode' is 640; it must be a mode as for chmod, such as \"0640\""),
        ("file_mode = '0440'", "setting 'file_mode' is '0440'; .* the owner must be able to read and write"),
        (
            "directory_mode = 'open'",
            "setting 'directory_mode' is 'open'; it must be a mode .* such as \"0750\"",
        ),
        ("max_terms = 0", "setting 'max_terms' is 0; it must be an integer of at least 1"),
        ("max_nesting = 1000", "setting 'max_nesting' is 1000; it must be at most 100"),
        ("max_terms = 10.5", "setting 'max_terms' is 10.5; it must be an integer of at least 1"),
        ("registry = 5", "setting 'registry' is 5; it must be a string"),
    ],
)
def test_an_invalid_file_is_refused(tmp_path, content, message):
    file = tmp_path / "vedette.toml"
    file.write_text(content)

    with pytest.raises(FileError, match=message):
        Settings.read(file)


def test_an_invalid_variable_is_refused(monkeypatch):
    monkeypatch.setenv("VEDETTE_MAX_TERMS", "many")

    with pytest.raises(FileError, match="setting 'max_terms' is 'many'; it must be an integer of at least 1"):
        Settings.read()


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileError, match="cannot read the settings file"):
        Settings.read(tmp_path / "none.toml")


def test_a_misspelt_variable_is_named_in_a_warning(monkeypatch, caplog):
    monkeypatch.setenv("VEDETTE_INLINE_BYTE", "1000")
    monkeypatch.setenv("VEDETTE_SERVICE_HOST", "10.0.0.1")  # as Kubernetes sets it
    monkeypatch.setenv("VEDETTE_PORT_8080_TCP_ADDR", "10.0.0.1")
    with caplog.at_level(logging.WARNING):
        assert Settings.read().inline_bytes == Settings().inline_bytes

    assert caplog.messages == [
        "the variable 'VEDETTE_INLINE_BYTE' is not a setting; did you mean 'VEDETTE_INLINE_BYTES'?"
    ]


def test_settings_made_in_code_do_not_depend_on_the_environment(monkeypatch):
    monkeypatch.setenv("VEDETTE_MAX_TERMS", "7")

    assert Settings(inline_bytes=5).max_terms == Settings.model_fields["max_terms"].default


def test_settings_cannot_change():
    with pytest.raises(ValueError, match="frozen"):
        Settings().max_terms = 7


def test_the_docs_list_every_limit_with_its_default():
    rows = re.findall(r"^\| `(max_\w+)` \| ([0-9,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(name, f"{each.default:,}") for name, each in LIMITS.items()]


@pytest.mark.parametrize("name", [name for name, each in LIMITS.items() if each.json_schema_extra])
def test_a_limit_that_is_exceeded_says_what_it_got_and_which_setting_it_is(name):
    limited = Settings(**{name: 5})
    limited.check(name, 5)

    with pytest.raises(QueryError, match=rf"\b1,234,567 .*; the limit is 5 \(setting {name}\)"):
        limited.check(name, 1_234_567)


def test_modes_are_read_as_chmod_reads_them(tmp_path, monkeypatch):
    file = tmp_path / "vedette.toml"
    file.write_text('file_mode = 0o640\ndirectory_mode = "2770"\n')

    assert (Settings.read(file).file_mode, Settings.read(file).directory_mode) == (0o640, 0o2770)
    monkeypatch.setenv("VEDETTE_FILE_MODE", "0644")
    assert Settings.read(file).file_mode == 0o644
    assert (Settings().file_mode, Settings().directory_mode) == (0o600, 0o700)
