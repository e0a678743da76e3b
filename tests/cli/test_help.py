"""Every command's --help, and its summary line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from vedette.cli.app import app


def find_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from find_commands(command, (*path, name))


EVERY = dict(find_commands(typer.main.get_command(app)))
LEAVES = {path: command for path, command in EVERY.items() if not hasattr(command, "commands")}


def help_of(path: tuple[str, ...], option: str = "--help") -> str:
    done = CliRunner().invoke(app, [*path, option], env={"COLUMNS": "4000", "TERMINAL_WIDTH": "4000"})
    assert done.exit_code == 0, done.output
    return done.output


def shown_lines(path: tuple[str, ...]) -> dict[str, str]:
    """By option, its line of the help."""
    lines = help_of(path).splitlines()
    return {name: line for line in lines for name in re.findall(r"(?<=[\s,])--[\w-]+(?=[\s,])", line[:80])}


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_h_is_short_for_help(path):
    assert help_of(path, "-h") == help_of(path)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_flags_are_shown_without_a_type(path):
    assert "bool" not in help_of(path)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_option_has_a_sentence_and_shows_its_default(path):
    lines = shown_lines(path)
    for param in LEAVES[path].params:
        if param.param_type_name == "argument":
            continue
        line = lines[max(param.opts, key=len)]
        assert param.help, param.opts
        assert param.help.split("`")[0].split("[")[0].strip() in line
        has_default = param.default not in (None, [], ()) and not param.is_flag
        assert ("[default: " in line) >= (has_default or isinstance(param.show_default, str)), param.opts
        assert "<" not in line, line  # a type: each option that takes a value names it


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_can_be_quiet(path):
    assert "--quiet" in shown_lines(path)


def test_shell_completion_can_be_installed():
    assert "--install-completion" in help_of(())
    assert "--show-completion" in help_of(())


def test_a_misspelled_option_of_the_library_is_named_as_on_the_command_line(run, tmp_path):
    rows, queries = tmp_path / "rows.csv", tmp_path / "queries.csv"
    rows.write_text("k,t,x\na,1,2\n")
    queries.write_text("id,where\nq,x > 1\n")

    code, _, err = run("border", rows, "--queries", queries, "--key", "k", "--time", "t", "--late", "never")

    assert (code, err) == (2, "vedette: --late must be one of: 'drop', 'apply'; got 'never'\n")


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_paragraph_of_help_is_one_line_where_there_is_room(path):
    text = help_of(path).split("╭")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]

    paragraphs = [" ".join(each.split()) for each in (LEAVES[path].callback.__doc__ or "").split("\n\n")]
    assert lines[1:] == [each.split("\f")[0] for each in paragraphs]


def test_an_option_of_another_command_is_named_with_that_command(run, tmp_path):
    code, _, err = run("match", tmp_path / "rows.csv", "--queries", tmp_path / "queries.csv", "--key", "k")

    assert code == 2
    assert "No such option: --key; it is an option of: border" in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        (("match", "rows.csv", "--queries"), "id,where\nq,x > 1\nr,x > 2\nq,x > 3\n", "query 'q'"),
        (("join", "--left", "rows.csv", "--right", "rows.csv", "--value", "x", "--bands"),
         "id,low,high\nq,1,2\nr,1,2\nq,2,3\n", "band 'q'"),
        (("join", "--left", "rows.csv", "--right", "rows.csv", "--time", "x", "--rows", "3", "--queries"),
         "id,where\nq,left.x > 1\nr,left.x > 2\nq,left.x > 3\n", "query 'q'"),
    ],
)  # fmt: skip
def test_an_id_twice_in_a_file_is_refused_with_both_lines(run, tmp_path, monkeypatch, arguments, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id,x\n1,2\n")
    (tmp_path / "queries.csv").write_text(content)

    code, _, err = run(*arguments, "queries.csv")

    expected = f"vedette: queries.csv, line 4: {message}: its id is also in line 2; each id must be unique in a file\n"
    assert (code, err) == (2, expected)
