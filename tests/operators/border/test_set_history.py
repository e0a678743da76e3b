"""Any interleaving of changes, matches, saves and loads leaves the answers that a plain model gives."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import vedette as vd
from tests.profiles import examples
from vedette.queries import parts, query_set
from vedette.queries.planner import compilation

SYMBOLS = ["A", "B", "C", None]
number = st.integers(-3, 3).map(float)
ROWS = [
    {"symbol": symbol, "x": x, "n": n}
    for symbol in SYMBOLS
    for x in (-3.0, -0.5, 0.0, 2.0, math.nan, None)
    for n in (-2, 0, 1, None)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ("symbol", "x", "n")}


def above(value, low):
    return value is not None and (math.isnan(value) or value > low)


# A text, and the plain Python that says the same.
PREDICATES = {
    "x > {a}": lambda row, a, b: above(row["x"], a),
    "x <= {a} AND n >= {b}": lambda row, a, b: (
        row["x"] is not None and row["x"] <= a and row["n"] is not None and row["n"] >= b
    ),
    "symbol = 'A' AND x > {a}": lambda row, a, b: row["symbol"] == "A" and above(row["x"], a),
    "symbol IN ('B', 'C') OR n = {b}": lambda row, a, b: row["symbol"] in ("B", "C") or row["n"] == b,
    "n IS NULL OR n < {b}": lambda row, a, b: row["n"] is None or row["n"] < b,
    "x > {a} OR x > {b}": lambda row, a, b: above(row["x"], a) or above(row["x"], b),
    "n + {b} > 0": lambda row, a, b: row["n"] is not None and row["n"] + b > 0,
    "symbol <> 'A' AND n * 2 <> {b}": lambda row, a, b: (
        row["symbol"] not in (None, "A") and row["n"] is not None and row["n"] * 2 != b
    ),
}


class Changes(RuleBasedStateMachine):
    @initialize(small=st.sampled_from([0, 2048]), groups=st.sampled_from([0, 256]), removed=st.sampled_from([0, 1024]))
    def start(self, small, groups, removed):
        # Small sets would never grow a second part or an index other than a scan, nor be compacted.
        self.kept = parts.SMALL_PART, compilation.SMALL_GROUP, query_set.FEW_REMOVED
        parts.SMALL_PART, compilation.SMALL_GROUP, query_set.FEW_REMOVED = small, groups, removed
        self.queries = vd.QuerySet("symbol string, x double, n bigint")
        self.model = {}
        self.version = 0

    def teardown(self):
        if hasattr(self, "kept"):
            parts.SMALL_PART, compilation.SMALL_GROUP, query_set.FEW_REMOVED = self.kept

    @rule(shape=st.sampled_from(sorted(PREDICATES)), a=number, b=st.integers(-3, 3), key=st.integers(0, 30))
    def add_or_replace(self, shape, a, b, key):
        text = shape.format(a=a, b=b)
        (self.queries.replace if key in self.model else self.queries.add)(key, text)
        self.model[key] = lambda row: PREDICATES[shape](row, a, b)
        self.version += 1

    @rule(
        lows=st.lists(number | st.just(-math.inf), min_size=1, max_size=5),
        width=st.integers(0, 3),
        first=st.integers(100, 400),
    )
    def add_boxes(self, lows, width, first):
        keys = [key for key in range(first, first + len(lows)) if key not in self.model]
        if keys:
            low = np.array(lows[: len(keys)])
            self.queries.add_boxes(keys, {"x": (low, np.where(np.isinf(low), 1.0, low + width))})
            for key, bound in zip(keys, low, strict=True):
                high = 1.0 if math.isinf(bound) else bound + width
                self.model[key] = lambda row, bound=bound, high=high: row["x"] is not None and bound <= row["x"] <= high
            self.version += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, unique=True))
        self.queries.remove_many(keys)
        for key in keys:
            del self.model[key]
        self.version += 1

    @rule()
    def save_and_load(self):
        self.queries = vd.QuerySet.from_bytes(self.queries.to_bytes())

    @rule()
    def compact(self):
        self.queries.compact()
        assert sorted(self.queries.ids.to_pylist()) == sorted(self.model)

    @rule()
    def match(self):
        hits = self.queries.match(COLUMNS)
        ids = hits.ids.to_pylist()
        found = [sorted(ids[hits.starts[i] : hits.starts[i + 1]]) for i in range(len(ROWS))]
        assert found == [sorted(key for key, holds in self.model.items() if holds(row)) for row in ROWS]

    @rule(row=st.sampled_from(ROWS))
    def match_one(self, row):
        assert sorted(self.queries.match_one(row)) == sorted(key for key, holds in self.model.items() if holds(row))

    @invariant()
    def counts_and_versions_are_kept(self):
        assert (len(self.queries), self.queries.version) == (len(self.model), self.version)
        assert all(key in self.queries for key in self.model)


Changes.TestCase.settings = examples(0.6, stateful_step_count=20)
TestChanges = Changes.TestCase
