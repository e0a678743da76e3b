"""Variables in a pipeline's file: `${NAME}` stands for one of the environment, so that secrets stay out of the file.

`${NAME:-text}` has a text for where there is none, `${HERE}` is the folder of the file, and `$${` is `${` itself. What
came from the environment is hidden again in all that is printed.

In the address of a registry, a variable that is the user, the password or the value of an option is percent-encoded as
it is put in, so that a password may have any letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from vedette.errors import nearest

_VARIABLE = re.compile(r"\$\$\{|\$\{(\w+)(?::-([^}]*))?\}|\$\{")
_SHORTEST = 3  # letters of a value worth hiding; a shorter one is no secret, and stands everywhere
_ADDRESSES = ("registry.url",)  # keys
_USER = re.compile(r"[^:/?#]*://([^/?#]*)@")  # with the password
_OPTION = re.compile(r"[?&][^=&]*=([^&]*)")


@dataclass
class Variables:
    """The environment as a file sees it, and which of it the file has used."""

    environment: Mapping[str, str]
    here: Path
    used: dict[str, str] = field(default_factory=dict)
    mistakes: list[tuple[str, str]] = field(default_factory=list)  # key and what is wrong there

    def put_in(self, value: Any, key: str = "") -> Any:
        """A value of the file with its variables replaced, however deep they stand."""
        if isinstance(value, dict):
            return {name: self.put_in(part, f"{key}.{name}" if key else name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.put_in(part, f"{key} {number}") for number, part in enumerate(value, start=1)]
        if not isinstance(value, str):
            return value
        encoded = _encoded_places(value) if key in _ADDRESSES else []

        def replace(found: re.Match[str]) -> str:
            is_encoded = any(place.start <= found.start() < place.stop for place in encoded)
            text = self._replace(found, key)
            return quote(text, safe="") if is_encoded else text

        return _VARIABLE.sub(replace, value)

    def hide(self, text: str) -> str:
        """A text in which what came from the environment is a variable again."""
        forms = [(form, name) for name, value in self.used.items() if len(value) >= _SHORTEST for form in _forms(value)]
        for form, name in sorted(forms, key=lambda each: -len(each[0])):
            text = text.replace(form, f"${{{name}}}")
        return text

    def _replace(self, found: re.Match[str], key: str) -> str:
        if found[0] == "$${":
            return "${"
        name, default = found[1], found[2]
        if name == "HERE":
            return str(self.here)
        if name is None:
            self.mistakes.append((key, "a variable is written ${NAME}; where ${ stands for itself, write $${"))
        elif name in self.environment:
            self.used[name] = self.environment[name]
            return self.environment[name]
        elif default is None:
            hint = nearest(name, self.environment) or f"; set it, or write ${{{name}:-...}} with what to take instead"
            self.mistakes.append((key, f"the environment has no variable {name!r}{hint}"))
        return default or ""


def _encoded_places(address: str) -> list[range]:
    """Where in an address, as the file has it, its reader decodes. The letters of variables do not count."""
    masked = _VARIABLE.sub(lambda found: "x" * len(found[0]), address)
    user, options = _USER.match(masked), masked.partition("?")[0]
    return [range(*found.span(1)) for found in ([user] if user else []) + [*_OPTION.finditer(masked, len(options))]]


def _forms(value: str) -> set[str]:
    """A value as it is, in an address by our hand or SQLAlchemy's, and in the quotes of Python and JSON."""
    quoted = repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    return {value, quote(value, safe=""), quote(value, safe=" +"), quote_plus(value), *quoted}
