"""Options that commands share: a dataclass as a parameter is, on the command line, the options that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

import vedette as vd
from vedette.cli.option_groups import with_groups


@dataclass(frozen=True)
class Place:
    town: Annotated[str, typer.Argument()]
    street: Annotated[str | None, typer.Option("--street")] = None


@dataclass(frozen=True)
class Size:
    is_large: Annotated[bool, typer.Option("--large")] = False


def test_a_command_gets_its_groups_whole_and_other_options_as_they_are():
    app, got = typer.Typer(), []

    @app.command()
    @with_groups
    def command(*, number: Annotated[int, typer.Option("--number")] = 1, place: Place, size: Size) -> None:
        """Build a house."""
        got.append((number, place, size))

    done = CliRunner().invoke(app, ["Ulm", "--large", "--street", "High", "--number", "3"])

    assert done.exit_code == 0, done.output
    assert got == [(3, Place("Ulm", "High"), Size(True))]
    assert CliRunner().invoke(app, ["Ulm"]).exit_code == 0
    assert got[1] == (1, Place("Ulm"), Size())
    assert "Build a house." in CliRunner().invoke(app, ["--help"]).output
    assert CliRunner().invoke(app, []).exit_code == 2  # a field without a default must be given


def test_two_forms_of_an_answer_are_refused_before_anything_is_changed(run, tmp_path):
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", schema="price double")

    code, out, err = run(
        "query", "add", "cheap", "price < 40", "--json", "--csv", "--registry", f"sqlite:///{tmp_path}/alerts.db"
    )

    assert (code, out) == (2, "")
    assert "--json and --csv exclude each other; give one of them" in err
    assert registry.set("alerts").n_active == 0
