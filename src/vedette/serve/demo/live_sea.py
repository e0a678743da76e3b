"""Vessels that cross a bay for ever, and the areas that they may enter. The same seed gives the same bay.

A vessel reports its motion when it changes its course, and every twenty seconds: in between, everybody knows where it
is. They sail much faster than real ones. Places are in kilometres, and speeds in kilometres per second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

OWNERS = ("ann", "bob", "cleo", "dan")
KINDS = ("storm", "reef", "port", "lane", "fishing ground", "wind farm")
NAMES = (
    *("Ada", "Borea", "Cyra", "Dione", "Elba", "Freya", "Gaia", "Hera", "Iona", "Juno", "Kara", "Luna", "Mira"),
    *("Nerys", "Orla", "Petra", "Rhea", "Selma", "Thea", "Una", "Vega", "Wanda", "Xenia", "Ylva", "Zora"),
)  # fmt: skip
WIDTH, HEIGHT = 120.0, 70.0  # of the bay
REPORT_SECONDS = 20.0
_SPEED = (0.15, 0.5)
_SIZE = 0.8  # of a vessel with the distance that others keep from it
_TURN = 0.02  # the chance of another course, each second


class LiveSea:
    """Vessels, and where each of them sails."""

    def __init__(self, seed: int, n_vessels: int) -> None:
        self._random = random = np.random.default_rng([seed, 5])
        self.names = [f"{NAMES[k % len(NAMES)]} {k // len(NAMES) + 1}" for k in range(n_vessels)]
        self._at = random.uniform((0, 0), (WIDTH, HEIGHT), (n_vessels, 2))
        self._speeds = np.array([self._course(place) for place in self._at])
        self._waits = random.uniform(0, REPORT_SECONDS, n_vessels)  # seconds until it reports again
        self._has_turned = np.ones(n_vessels, np.bool_)

    def areas(self, n: int) -> list[dict[str, Any]]:
        """Areas as `POST /queries` takes them."""
        return [self._area(number) for number in range(n)]

    def _area(self, number: int) -> dict[str, Any]:
        random, kind = self._random, KINDS[number % len(KINDS)]
        x, y = random.uniform((0, 0), (WIDTH, HEIGHT)).tolist()
        wide, high = (random.uniform(5, 11, 2) if kind == "storm" else random.uniform(2, 6, 2)).tolist()
        sides = {"x_low": x - wide / 2, "x_high": x + wide / 2, "y_low": y - high / 2, "y_high": y + high / 2}
        metadata = {"owner": OWNERS[number % len(OWNERS)], "kind": kind}
        return {
            "id": f"{kind} {number // len(KINDS) + 1}",
            **{name: round(side, 2) for name, side in sides.items()},
            "metadata": metadata,
        }

    def sail(self, seconds: float) -> None:
        """Move all vessels. Those that leave the bay turn to a place in it, and some others take another course."""
        self._at += self._speeds * seconds
        self._waits -= seconds
        is_out = ((self._at < 0) & (self._speeds < 0)) | ((self._at > (WIDTH, HEIGHT)) & (self._speeds > 0))
        turns = is_out.any(axis=1) | (self._random.random(len(self._at)) < _TURN * seconds)
        for vessel in np.flatnonzero(turns).tolist():
            self._speeds[vessel] = self._course(self._at[vessel])
        self._has_turned |= turns

    def reports(self, now: float) -> list[dict[str, Any]]:
        """The rows of vessels that have turned, and of those that have not reported for long. `now`: since 1970."""
        which = np.flatnonzero(self._has_turned | (self._waits <= 0))
        self._has_turned[which], self._waits[which] = False, REPORT_SECONDS
        half, rows = _SIZE / 2, []
        for vessel in which.tolist():
            (x, y), (vx, vy) = self._at[vessel].round(4).tolist(), self._speeds[vessel].round(4).tolist()
            sides = {"x_low": x - half, "x_high": x + half, "y_low": y - half, "y_high": y + half}
            rows.append({"id": self.names[vessel], "time": now, **sides, "vx": vx, "vy": vy})
        return rows

    def _course(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """A speed towards a place in the bay."""
        way = self._random.uniform((0, 0), (WIDTH, HEIGHT)) - place
        course: NDArray[np.float64] = way / np.hypot(*way) * self._random.uniform(*_SPEED)
        return course
