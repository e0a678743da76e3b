"""Variables in a pipeline file: `${NAME}` is replaced from the environment, so that the file contains no secrets.

`${NAME:-text}` has a default, `${HERE}` is the folder of the file, and `$${` is a literal `${`. Values from the
environment are replaced by their variables again in everything that is printed.

In the address of a registry, variables for the user, the password and values of options are percent-encoded, so that a
password may contain any characters.
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
_SHORTEST = 3  # characters of a value to hide; a shorter one is not a secret, and occurs everywhere
_ADDRESSES = ("registry.url",)  # keys
_USER = re.compile(r"[^:/?#]*://([^/?#]*)@")  # user and password
_OPTION = re.compile(r"[?&][^=&]*=([^&]*)")


@dataclass
class Variables:
    """The environment of a file, and the variables that the file has used."""

    environment: Mapping[str, str]
    here: Path
    used: dict[str, str] = field(default_factory=dict)
    mistakes: list[tuple[str, str]] = field(default_factory=list)  # key and message

    def substitute(self, value: Any, key: str = "") -> Any:
        """A value of the file with all its variables replaced, also in nested tables and lists."""
        if isinstance(value, dict):
            return {name: self.substitute(part, f"{key}.{name}" if key else name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.substitute(part, f"{key} {number}") for number, part in enumerate(value, start=1)]
        if not isinstance(value, str):
            return value
        encoded = _encoded_places(value) if key in _ADDRESSES else []

        def replace(found: re.Match[str]) -> str:
            is_encoded = any(place.start <= found.start() < place.stop for place in encoded)
            text = self._replace(found, key)
            return quote(text, safe="") if is_encoded else text

        return _VARIABLE.sub(replace, value)

    def hide(self, text: str) -> str:
        """A text with values from the environment replaced by their variables."""
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
            self.mistakes.append((key, "a variable is written ${NAME}; for a literal ${, write $${"))
        elif name in self.environment:
            self.used[name] = self.environment[name]
            return self.environment[name]
        elif default is None:
            hint = nearest(name, self.environment) or f"; set it, or write a default: ${{{name}:-...}}"
            self.mistakes.append((key, f"the environment has no variable {name!r}{hint}"))
        return default or ""


def _encoded_places(address: str) -> list[range]:
    """The places in an address that its reader decodes, with variables not yet replaced."""
    masked = _VARIABLE.sub(lambda found: "x" * len(found[0]), address)
    user, options = _USER.match(masked), masked.partition("?")[0]
    return [range(*found.span(1)) for found in ([user] if user else []) + [*_OPTION.finditer(masked, len(options))]]


def _forms(value: str) -> set[str]:
    """The forms in which a value may be printed: as it is, percent-encoded, or quoted by Python or JSON."""
    quoted = repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    return {value, quote(value, safe=""), quote(value, safe=" +"), quote_plus(value), *quoted}
