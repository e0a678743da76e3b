"""Options that several commands share, as one parameter: a dataclass, whose fields are the options.

@app.command("show")
@with_groups
def show_command(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> None: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: in place of each parameter that is a dataclass it has the fields of that."""
    own = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in own.items()
        for option in (inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [each])
    ]
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run
