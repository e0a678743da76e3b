"""Window joins in plain Python: every row with every row, one after the other."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import product


@dataclass
class Query:
    id: str
    text: str
    test: object  # rows by stream -> True, False or None
    within: dict  # by stream: a number, or None
    rows: dict


class Model:
    """All rows so far, and the pairs that join as each row arrives."""

    def __init__(self, streams):
        self.streams = streams
        self.seen = {stream: [] for stream in streams}

    def arrive(self, stream, row, queries):
        """The (query, ids by stream) that the row makes with rows that came before it."""
        found = []
        for query in queries:
            others = [self.window(query, other, row) for other in self.streams if other != stream]
            for tuple_ in product(*others):
                rows = dict(zip([other for other in self.streams if other != stream], tuple_, strict=True))
                rows[stream] = row
                if in_time(query, rows) and query.test(rows) is True:
                    found.append((query.id, *(rows[each]["id"] for each in self.streams)))
        self.seen[stream].append(row)
        return found

    def window(self, query, stream, row):
        rows = self.seen[stream]
        if query.rows.get(stream) is not None:
            return rows[-query.rows[stream] :]
        return rows


def in_time(query, rows):
    latest = max(row["at"] for row in rows.values())
    return all(
        query.within.get(stream) is None or latest - row["at"] <= query.within[stream] for stream, row in rows.items()
    )


# Values in Spark's order, and logic with three values.


def key(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value)


def compare(op, a, b):
    if a is None or b is None:
        return None
    a, b = key(a), key(b)
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def both(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def either(a, b):
    return True if a is True or b is True else None if a is None or b is None else False


def minus(a, b):
    if a is None or b is None:
        return None
    if isinstance(a, float):
        return a - b
    difference = a - b
    return difference if -(2**63) <= difference < 2**63 else None  # as what failed counts


def size(a):
    if a is None:
        return None
    return abs(a) if isinstance(a, float) or a > -(2**63) else None


OPS = ["=", "<>", "<", "<=", ">", ">="]


class Predicates:
    """Random predicates over streams with the fields s (string), x and y (double), n (bigint)."""

    def __init__(self, random_: random.Random, streams):
        self.random = random_
        self.streams = streams

    def make(self, depth=2):
        choice = self.random.random()
        if depth and choice < 0.55:
            parts = [self.make(depth - 1) for _ in range(self.random.choice([2, 2, 3]))]
            joins = self.random.random() < 0.75
            word, fold = (" AND ", both) if joins else (" OR ", either)
            text = word.join(f"({part[0]})" for part in parts)
            return text, lambda rows, parts=parts, fold=fold: _fold(fold, [test(rows) for _, test in parts])
        if depth and choice < 0.6:
            text, test = self.make(depth - 1)
            return f"NOT ({text})", lambda rows: _negate(test(rows))
        if choice < 0.75:
            return self.selection()
        return self.link()

    def selection(self):
        stream, op = self.random.choice(self.streams), self.random.choice(OPS)
        field = self.random.choice("xyns")
        if field == "s":
            value = self.random.choice("abc")
            return f"{stream}.s {op} '{value}'", lambda rows: compare(op, rows[stream]["s"], value)
        value = self.random.choice([0, 1, 2, 3])
        as_type = int if field == "n" else float
        return f"{stream}.{field} {op} {value}", lambda rows: compare(op, rows[stream][field], as_type(value))

    def link(self):
        first, second = self.random.sample(self.streams, 2)
        kind = self.random.choice(["order", "order", "equal", "difference", "distance", "residual"])
        if kind == "equal":
            field = self.random.choice("sxn")
            return f"{first}.{field} = {second}.{field}", lambda rows: compare(
                "=", rows[first][field], rows[second][field]
            )
        field, other = self.random.choice([("x", "x"), ("x", "y"), ("n", "n")])
        if kind == "order":
            op = self.random.choice(OPS)
            return (
                f"{first}.{field} {op} {second}.{other}",
                lambda rows: compare(op, rows[first][field], rows[second][other]),
            )
        low = self.random.choice([-1, 0, 1, 2])
        high = low + self.random.choice([0, 1, 2])
        if field == "x":
            low, high = low / 2, high / 2
        shown = f"{first}.{field} - {second}.{other}"
        if kind == "residual":
            return (
                f"{first}.{field} < {second}.{other} + {high}",
                lambda rows: compare("<", rows[first][field], _plus(rows[second][other], high)),
            )
        if kind == "distance":
            shown = f"abs({shown})"

        def value(rows):
            difference = minus(rows[first][field], rows[second][other])
            return size(difference) if kind == "distance" else difference

        form = self.random.choice(["between", "above", "below", "in"])
        low, high = (float(low), float(high)) if field == "x" else (low, high)
        if form == "between":
            return (
                f"{shown} BETWEEN {low} AND {high}",
                lambda rows: both(compare(">=", value(rows), low), compare("<=", value(rows), high)),
            )
        if form == "in":
            return (
                f"{shown} IN ({low}, {high})",
                lambda rows: either(compare("=", value(rows), low), compare("=", value(rows), high)),
            )
        op = self.random.choice([">", ">="] if form == "above" else ["<", "<="])
        return f"{shown} {op} {low}", lambda rows: compare(op, value(rows), low)


def _plus(value, more):
    if value is None:
        return None
    total = value + more
    return total if isinstance(value, float) or -(2**63) <= total < 2**63 else None


def _fold(fold, truths):
    result = truths[0]
    for truth in truths[1:]:
        result = fold(result, truth)
    return result


def _negate(truth):
    return None if truth is None else not truth


def make_rows(random_, n, stream, start=0):
    """Rows in time order, with few distinct values, nulls, and odd numbers now and then."""
    rows, at = [], start
    for number in range(n):
        at += random_.choice([0, 0, 1, 1, 2, 5])
        doubles = [0.0, 0.5, 1.0, 1.5, 2.0, None]
        if random_.random() < 0.2:
            doubles = [float("nan"), float("inf"), float("-inf"), -0.0, 1e308]
        integers = [0, 1, 2, 3, None] if random_.random() < 0.9 else [2**63 - 1, -(2**63), 2**62]
        rows.append(
            {
                "id": f"{stream}{number}",
                "at": at,
                "s": random_.choice(["a", "b", "c", None]),
                "x": random_.choice(doubles),
                "y": random_.choice(doubles),
                "n": random_.choice(integers),
            }
        )
    return rows
