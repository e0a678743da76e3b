"""A claim, the results it is judged by, and the finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
NAMED = 3  # up to this number, exceptions are named one by one
HOLDS = {True: "holds", None: "holds in part", False: "does not hold"}
WEIGHTS = {True: 1.0, None: 0.5, False: 0.0}
# Words before the second and later parts of a finding, by verdict. Parts that support the verdict come first.
INTRODUCED = {True: "for it: ", None: "in part: ", False: "against it: "}


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds (`None`: in part), and what was measured, in words."""

    holds: bool | None
    words: str
    parts: tuple[Finding, ...] = ()  # of a claim with several statements

    def __str__(self) -> str:
        return f"{HOLDS[self.holds]}: {self.words}"

    def __and__(self, other: Finding) -> Finding:
        return all_of([self, other])


@dataclass(frozen=True)
class Figure:
    """The results of one figure."""

    rows: list[Row]

    def seconds(self, contestant: str, under: str = "") -> dict[str, float]:
        """Seconds by case, for cases with this prefix."""
        return {
            row["case"]: row["seconds"]
            for row in self.rows
            if row["kind"] == "time" and row["contestant"] == contestant and row["case"].startswith(under)
        }

    def contestants(self) -> list[str]:
        return list(dict.fromkeys(row["contestant"] for row in self.rows if row["kind"] == "time"))

    def microseconds(self, contestant: str, under: str = "") -> dict[str, float]:
        """Microseconds per row by case, because cases differ in their number of rows."""
        return {
            row["case"]: 1e6 * row["seconds"] / row["n_rows"]
            for row in self.rows
            if row["kind"] == "time" and row["contestant"] == contestant and row["case"].startswith(under)
        }

    def values(self, measure: str, under: str = "") -> dict[str, float]:
        """Values by case, of the measure with exactly this name."""
        return {
            row["case"]: row["value"]
            for row in self.rows
            if row["kind"] != "time" and row["measure"] == measure and row["case"].startswith(under)
        }

    def line(self, contestant: str, y_name: str, x_name: str | None = None) -> dict[Any, float]:
        """Values of one line of a panel by x, ordered by x."""
        points = {
            row["x"]: row["value"]
            for row in self.rows
            if row.get("y_name") == y_name
            and row.get("contestant") == contestant
            and "value" in row
            and "x" in row
            and x_name in (None, row["x_name"])
        }
        return dict(sorted(points.items())) if all(isinstance(x, int | float) for x in points) else points

    def drawn(self) -> Figure:
        """The cases that are points of the plot: the paper's settings."""
        drawn = self._drawn_cases()
        return Figure([row for row in self.rows if row["case"] in drawn])

    def today(self) -> Figure:
        """The cases that are not points of the plot: today's larger setting."""
        drawn = self._drawn_cases()
        return Figure([row for row in self.rows if row["case"] not in drawn])

    def _drawn_cases(self) -> set[str]:
        return {row["case"] for row in self.rows if "x" in row}


@dataclass(frozen=True)
class Claim:
    """A claim of a paper about one of its figures, in our words, and the function that compares results with it."""

    target: str
    figure: str  # its name in the paper
    says: str
    judge: Callable[[Figure], Finding]


def all_of(findings: Iterable[Finding]) -> Finding:
    """A claim with one or more parts. It does not hold if more than half of them fail."""
    parts = tuple(part for each in findings for part in each.parts or (each,))
    if len(parts) == 1:
        return parts[0]
    share = sum(WEIGHTS[part.holds] for part in parts) / len(parts)
    holds = True if share == 1 else None if share >= 0.5 else False
    lines: list[str] = []
    for kind in (False, None, True) if holds is False else (True, None, False):
        words = "; ".join(part.words for part in parts if part.holds is kind)
        if words:
            lines.append(f"{INTRODUCED[kind] if lines else ''}{words}")
    return Finding(holds, "; ".join(lines), parts)


def with_today(found: Finding, values: Mapping[str, Mapping[Any, float]]) -> Finding:
    """The same, and the values with a million queries, which are not part of the paper's claim."""
    words = ", ".join(words.format(span(measured.values())) for words, measured in values.items() if measured)
    return Finding(found.holds, f"{found.words}; with a million queries {words}" if words else found.words)


def ratios(over: Mapping[Any, float], under: Mapping[Any, float]) -> dict[Any, float]:
    """One divided by the other, for cases in which both were measured."""
    return {key: value / under[key] for key, value in over.items() if under.get(key)}


def at_least(measured: Mapping[Any, float], bound: float, words: str) -> Finding:
    """All values reach the bound. In `words`, `{}` stands for their range."""
    return _judge(measured, {key: value for key, value in measured.items() if value < bound}, min, words)


def at_most(measured: Mapping[Any, float], bound: float, words: str) -> Finding:
    """No value is above the bound."""
    return _judge(measured, {key: value for key, value in measured.items() if value > bound}, max, words)


def above(measured: Mapping[Any, float], bound: float, words: str) -> Finding:
    """All values are strictly above the bound."""
    return _judge(measured, {key: value for key, value in measured.items() if value <= bound}, min, words)


def _judge(
    measured: Mapping[Any, float], missed: Mapping[Any, float], worst: Callable[..., Any], words: str
) -> Finding:
    """A bound does not hold if most values miss it, and holds in part if some miss it."""
    if not measured:
        return Finding(None, f"not measured: {words.format('how many')}")
    measured_words = words.format(span(measured.values()))
    if not missed:
        return Finding(True, measured_words)
    if 2 * len(missed) > len(measured):
        most = "" if len(missed) == len(measured) else f", missed at {len(missed)} of {len(measured)}"
        return Finding(False, measured_words + most)
    if len(missed) > NAMED:
        return Finding(
            None,
            f"{measured_words}, but not at {len(missed)} of {len(measured)}, {_describe(missed, worst)} the furthest",
        )
    where = ", ".join(_describe({key: value}, worst) for key, value in missed.items())
    return Finding(None, f"{measured_words}, but not at {where}")


def _describe(missed: Mapping[Any, float], worst: Callable[..., Any]) -> str:
    key = worst(missed, key=missed.__getitem__)
    return f"{_name(key)} ({number(missed[key])})"


def span(values: Iterable[float]) -> str:
    """The smallest and the largest value, in words."""
    low, high = number(min(values := list(values))), number(max(values))
    return low if low == high else f"{low} to {high}"


def first_and_last(line: Mapping[Any, float]) -> tuple[float, float]:
    values = list(line.values())
    return values[0], values[-1]


def number(value: float) -> str:
    """A number with two digits, or with all digits before the decimal point."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{float(f'{value:.2g}'):g}"


def _name(key: Any) -> str:
    return re.sub(r"^(.*): (.*)$", r"\2", key) if isinstance(key, str) else f"{key:,}"
