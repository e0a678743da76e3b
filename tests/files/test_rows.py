"""Files of rows: errors of rows and columns that cannot be read."""

from __future__ import annotations

import pytest

QUERY = "id,where\nq,x > 1\n"


@pytest.fixture
def write(tmp_path):
    def write_files(rows, name="r.csv"):
        (tmp_path / name).write_text(rows)
        (tmp_path / "q.csv").write_text(QUERY)
        return [tmp_path / name, "--queries", tmp_path / "q.csv"]

    return write_files


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ([], "declare the columns' types with --schema"),
        (["--schema", "x double"], "the types are those that --schema declares; change them, or correct the row"),
    ],
)
def test_a_row_that_does_not_fit_is_named_with_what_to_do(run, write, monkeypatch, schema, hint):
    monkeypatch.setattr("vedette.files.text_records.BLOCK_BYTES", 20)  # so that the types are those of the first rows
    files = write("x,y\n" + "1.5,a\n" * 40 + "much,b\n" + "2.5,c\n")

    code, _, err = run("match", *files, *schema)

    assert code == 2
    assert "r.csv, row 41: column 'x': " in err
    assert err.endswith(f"; {hint}\n")


def test_a_first_row_that_does_not_fit_is_row_1(run, write):
    assert "r.csv, row 1: column 'x': " in run("match", *write("x\nmuch\n"), "--schema", "x double")[2]


@pytest.mark.parametrize("schema", [[], ["--schema", "x double"]])
def test_a_key_that_is_not_in_the_file_is_named(run, write, schema):
    code, _, err = run("border", *write("x\n1\n"), "--key", "k", "--time", "t", *schema)

    assert (code, "'k'" in err, "at least one field" in err) == (2, True, False)
