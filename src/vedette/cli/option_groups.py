"""Options that several commands share as one parameter: a dataclass whose fields are the options.

@with_groups
def show(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> str: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any


def with_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command for Typer: each parameter that is a dataclass is replaced by the fields of the dataclass."""
    own = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)}

    @functools.wraps(command)
    def run(**options: Any) -> Any:
        for name, group in groups.items():
            options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
        return command(**options)

    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in own.items()
        for option in (inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [each])
    ]
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run
