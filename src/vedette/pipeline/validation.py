"""Translates pydantic's errors about a pipeline file into one sentence per mistake, with its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from vedette.errors import nearest
from vedette.pipeline.section import Section

Mistake = tuple[str, str]  # key and sentence

_WANTED = {
    "string": "a string in quotes",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "list": "a list in brackets",
    "dict": "a table",
    "model": "a table",
}


def find_mistakes(error: ValidationError, root: type[Section], data: dict[str, Any]) -> list[Mistake]:
    """The mistakes that pydantic found. `data` is the content of the file, before variables are replaced."""
    mistakes: dict[str, Mistake] = {}
    for found in error.errors(include_url=False):
        loc = found["loc"]
        parts, steps = _walk(root, loc[:-1] if found["type"] in ("extra_forbidden", "missing") else loc)
        key = _key_of([*steps, loc[-1]] if found["type"] in ("extra_forbidden", "missing") else steps)
        mistakes.setdefault(key, (key, _sentence(dict(found), parts, _value_at(data, steps))))
    return list(mistakes.values())


def _sentence(found: dict[str, Any], parts: Sequence[type[Section]], value: Any) -> str:
    kind, name = str(found["type"]), str(found["loc"][-1]) if found["loc"] else ""
    context = found.get("ctx", {})
    if kind == "extra_forbidden":
        names = [field.alias or known for part in parts for known, field in part.model_fields.items()]
        return f"unknown key; keys are: {', '.join(dict.fromkeys(names))}{nearest(name, names)}"
    if kind == "missing":
        meant = [field.description for part in parts for known, field in part.model_fields.items() if known == name]
        return f"it is missing; {meant[0] if meant and meant[0] else 'it is required'}"
    if kind == "union_tag_not_found":
        return f"kind is missing; it must be one of: {context.get('expected_tags') or _kinds(parts)}"
    if kind in ("union_tag_invalid", "literal_error"):
        is_kind, tag = "tag" in context, context.get("tag", value)
        expected = str(context["expected_tags"] if is_kind else context["expected"]).replace(" or ", ", ")
        choices = [choice.strip("'") for choice in expected.split(", ")]
        offered = f"it must be one of: {', '.join(map(repr, choices))}{nearest(str(tag), choices)}"
        return f"{'kind' if is_kind else 'it'} is {tag!r}; {offered}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "greater_than":
        return f"it is {value!r}; it must be greater than {context['gt']}"
    if kind == "less_than_equal":
        return f"it is {value!r}; it must be at most {context['le']:,}"
    if kind == "string_pattern_mismatch":
        return f"it is {value!r}; it may contain only letters, digits, and the characters _ . -"
    wanted = _WANTED.get(kind.split("_")[0])
    return f"it is {value!r}; it must be {wanted}" if wanted else f"it is {value!r}: {found['msg']}"


def _walk(root: type[Section], loc: Sequence[int | str]) -> tuple[list[type[Section]], list[int | str]]:
    """The sections that a place may be in, and the steps to it without those that only pydantic uses."""
    parts, steps = [root], []
    for step in loc:
        reached = [
            below
            for part in parts
            for name, field in part.model_fields.items()
            if step in (name, field.alias)
            for below in _parts_in(field.annotation)
        ]
        of_kind = [part for part in parts if "kind" in part.model_fields and step in _kinds_of(part)]
        is_field = any(step in (name, field.alias) for part in parts for name, field in part.model_fields.items())
        if of_kind:
            parts = of_kind
        elif is_field:
            parts = reached
            steps.append(step)
        elif isinstance(step, int) or not _is_of_pydantic(step):
            steps.append(step)
    return parts, steps


def _parts_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts_in(argument)


def _kinds_of(part: type[Section]) -> tuple[str, ...]:
    return get_args(part.model_fields["kind"].annotation)


def _kinds(parts: Sequence[type[Section]]) -> str:
    return ", ".join(repr(kind) for part in parts if "kind" in part.model_fields for kind in _kinds_of(part))


def _is_of_pydantic(step: str) -> bool:
    """Whether a step names a member of a union and not a key: `str`, `dict[str,str]`, `function-after[...]`."""
    return step in ("str", "bool", "int", "float") or "[" in step


def _key_of(steps: Sequence[int | str]) -> str:
    """A place as messages show it: `sink 2.format`. Tables of a list are counted from one."""
    key = ""
    for step in steps:
        key += f" {step + 1}" if isinstance(step, int) else f"{'.' if key else ''}{step}"
    return key


def _value_at(data: Any, steps: Sequence[int | str]) -> Any:
    for step in steps:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data
