"""The class of every command: its help, its summary line, its errors and its exit code.

A command returns the summary of what it did, and the class prints it on standard error unless --quiet is given.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from vedette.errors import VedetteError

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Command(TyperCommand):
    """One command. An error of the library is one message on standard error and exit code 2."""

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _name_owners(error, ctx)
            raise

    def invoke(self, ctx: Any) -> Any:
        start = time.perf_counter()
        with printing_errors(self):
            summary = super().invoke(ctx)
        if sys.stdout is not None:  # a supervisor may have closed it
            sys.stdout.flush()
        if summary and not ctx.params.get("quiet"):
            print(f"vedette: {summary}, {time.perf_counter() - start:.1f} s", file=sys.stderr)
        return None


@contextmanager
def printing_errors(command: Any) -> Iterator[None]:
    """Print an error of the library as one message, and exit with code 2."""
    try:
        yield
    except VedetteError as error:
        print(f"vedette: {_with_option(command, error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _with_option(command: Any, error: VedetteError) -> VedetteError:
    """The error with the option's name on the command line, if the command has this option."""
    for param in command.params:
        if error.option is not None and error.option in (param.name, str(param.name).rstrip("_")):
            return error.with_option(max(param.opts, key=len))
    return error


class Commands(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return hide_types_of_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("vedette: interrupted", file=sys.stderr, flush=True)
            os._exit(130)  # on a normal exit, Spark would print tracebacks
        except BrokenPipeError:  # the reader closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for output that is not flushed yet
            raise SystemExit(0) from None


def new_group(name: str, help: str, commands: dict[str, Callable[..., Any]], **options: Any) -> typer.Typer:
    """A group of these commands, by their names."""
    options = {"add_completion": False, "no_args_is_help": True, "context_settings": HELP_NAMES, **options}
    group = typer.Typer(name=name, help=help, **{"cls": Commands, **options})
    for each, command in commands.items():
        group.command(each, cls=Command, help=join_lines(command.__doc__))(command)
    return group


def join_lines(text: str | None) -> str:
    """The paragraphs of a docstring, each on one line: the terminal's width decides where lines end."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _name_owners(error: Any, ctx: Any) -> None:
    """If an option is unknown, add to the message which commands of the group have it."""
    if type(error).__name__ != "NoSuchOption" or error.possibilities:  # its module depends on Typer's version
        return
    commands = getattr(ctx.parent and ctx.parent.command, "commands", {})
    owners = [name for name, each in commands.items() if any(error.option_name in param.opts for param in each.params)]
    if owners:
        error.message += f"; it is an option of: {', '.join(owners)}"


def hide_types_of_flags(params: list[Any]) -> list[Any]:
    """The parameters. A flag takes no value, so its help shows no type."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
