"""Variables in a pipeline's file: `${NAME}` stands for one of the environment, so that secrets stay out of the file.

`${NAME:-text}` has a text for where there is none, `${HERE}` is the folder of the file, and `$${` is `${` itself. What
came from the environment is hidden again in all that is printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vedette.errors import nearest

_VARIABLE = re.compile(r"\$\$\{|\$\{(\w+)(?::-([^}]*))?\}|\$\{")
_SHORTEST = 3  # letters of a value worth hiding; a shorter one is no secret, and stands everywhere


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
        return _VARIABLE.sub(lambda found: self._replace(found, key), value) if isinstance(value, str) else value

    def hide(self, text: str) -> str:
        """A text in which what came from the environment is a variable again."""
        for name, value in sorted(self.used.items(), key=lambda item: -len(item[1])):
            if len(value) >= _SHORTEST:
                text = text.replace(value, f"${{{name}}}")
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
