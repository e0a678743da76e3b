"""Writes the dead letters of one task, in pieces of limited size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vedette.delivery.dead_letters import DeadLetters, Letter, Part, open_letters

_PIECE = 10_000  # letters


class LetterWriter:
    """The letters of a part. `close` writes the rest; without letters, it removes those of an earlier attempt."""

    def __init__(self, place: str, part: Part) -> None:
        self._place, self._part = place, part
        self._letters: DeadLetters | None = None
        self._waiting: list[Letter] = []
        self._n_pieces = 0

    def add(self, letters: Iterable[Letter]) -> None:
        for letter in letters:
            self._waiting.append(letter)
            if len(self._waiting) >= _PIECE:
                self._write()

    def close(self) -> None:
        if self._waiting or not self._n_pieces:
            self._write()

    def _write(self) -> None:
        self._letters = self._letters or open_letters(self._place)
        self._letters.write(replace(self._part, task=f"{self._part.task} {self._n_pieces}"), self._waiting)
        self._waiting = []
        self._n_pieces += 1
