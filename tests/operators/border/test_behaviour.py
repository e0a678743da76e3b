"""Options of each query (dwell, margin, cooldown, once): events equal those of a plain model, for any batches."""

from __future__ import annotations

import re
from datetime import datetime
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.border import test_border
from operators.border.border_model import Model, by_key, from_table, in_time
from operators.border.test_border import MARGIN, Pair, cut_at, form, query, script, small_sets  # noqa: F401  a fixture

import vedette as vd

own_options = st.fixed_dictionaries(
    {},
    optional={
        "dwell": st.integers(1, 5),
        "margin": st.sampled_from([0.0, 1.0, 2.0]),
        "expire_after": st.integers(1, 9),
        "cooldown": st.integers(1, 9),
        "once": st.sampled_from([True, False, "query"]),
    },
)
options = st.fixed_dictionaries(
    {},
    optional={
        "expire_after": st.integers(1, 6),
        "dwell": st.integers(1, 5),
        "margin": st.just(MARGIN),
        "cooldown": st.integers(1, 9),
        "once": st.sampled_from([True, False, False, "query"]),
    },
)


class ByQuery(Model):
    """The model, with options by query. Events have a sixth value: how many were held back."""

    def __init__(self, options, own):
        super().__init__("drop", options.get("expire_after"), options.get("dwell"))
        self.defaults, self.own = options, own
        self.last, self.is_held, self.n_held = {}, set(), {}

    def of(self, query, name):
        return self.own.get(query, {}).get(name, self.defaults.get(name))

    def choose(self, events):
        """The events of a step. Of a query with once="query", only the first enter; the query is then removed."""
        mine = [event for event in events if self.of(event[2], "once") == "query"]
        firsts = {}
        for event in mine:
            if event[3] == "enter" and (event[1], event[0]) < firsts.get(event[2], (inf,)):
                firsts[event[2]] = event[1], event[0], event
        for which in firsts:
            self.forms.pop(which, None)
        return [event for event in events if event not in mine] + [first[2] for first in firsts.values()]

    def step(self, rows, **options):
        return self.choose(super().step(rows, **options))

    def _report(self, name, time, raw, pending):
        events = self._due(name, time, pending)
        for kind, which, reason in raw:
            if kind == "enter" and self.of(which, "dwell") is not None:
                pending[which] = time, reason
            elif kind == "exit" and which in pending:
                del pending[which]
            else:
                events += self._told(name, time, which, kind, reason)
        return events

    def _due(self, name, now, pending):
        due = [(since + self.of(which, "dwell"), which, reason) for which, (since, reason) in in_time(pending)]
        events = []
        for time, which, reason in sorted(due):
            if time <= now:
                events += self._told(name, time, which, "enter", reason)
                del pending[which]
        return events

    def advance(self, now):
        events = self._expire(now)
        for name, (_, _, _, pending) in self.keys.items():
            events += self._due(name, now, pending)
        return self.choose(events)

    def _told(self, name, time, query, kind, reason):
        pair, cooldown, once = (name, query), self.of(query, "cooldown"), self.of(query, "once")
        if once == "query" or (cooldown is None and not once):
            return [(name, time, query, kind, reason, 0)]
        if kind == "enter":
            held = pair in self.last and (once or time < self.last[pair] + cooldown)
            (self.is_held.add if held else self.is_held.discard)(pair)
            if not held:
                self.last[pair] = time
        else:
            held = pair in self.is_held or (once and pair in self.last)
            self.is_held.discard(pair)
        if held:
            self.n_held[pair] = self.n_held.get(pair, 0) + 1
            return []
        return [(name, time, query, kind, reason, self.n_held.pop(pair, 0))]

    def _forget(self, name, query):
        self.last.pop((name, query), None)
        self.is_held.discard((name, query))
        self.n_held.pop((name, query), None)


class OwnPair(Pair):
    """As `Pair`, with options of each query."""

    def __init__(self, options, own):
        super().__init__(options)
        self.own = own
        self.silences = {}
        self.model = ByQuery(options, own)
        self.model.forms["always on"] = (lambda row: row["x"] is not None,) * 2

    def apply(self, kind, name, drawn):
        if kind == "remove" and name not in self.queries:
            return
        if kind != "put":
            super().apply(kind, name, drawn)
            return
        own = dict(self.own[name])
        if re.search(r"\bn (<|=|>=|BETWEEN|IN)", drawn[0]):  # a number widens n, too, and the forms widen x only
            own |= {"margin": 0.0} if "margin" in own else {}
        margin = own.get("margin", 1.0 if "margin" in self.options else 0.0)
        text, what = form(*drawn, margin=margin)
        if name not in self.queries:
            self.silences[name] = None
        if drawn[1] < 3 and "expire_after" in own:  # each revision has its own; without, a replaced one stays
            self.silences[name] = own["expire_after"] = own["expire_after"] + 2 * (drawn[1] % 3)
        else:
            own.pop("expire_after", None)
        (self.queries.replace if name in self.queries else self.queries.add)(name, text, **own)
        wide = what[1] if margin else lambda row: False
        self.model.forms[name] = what[0], wide, self.silences[name]

    def read(self, table):
        held = table["held_back"].to_pylist() if "held_back" in table.column_names else [0] * table.num_rows
        return [(*event, n) for event, n in zip(from_table(table), held, strict=True)]


@pytest.fixture(autouse=True)
def reads_held(monkeypatch):
    monkeypatch.setattr(test_border, "from_table", lambda table: OwnPair.read(None, table))


@given(script, options, st.fixed_dictionaries(dict.fromkeys("pqrs", own_options)), st.booleans())
def test_events_equal_those_of_the_model(batches, options, own, advance):
    pair = OwnPair(options, own)
    for changes, batch in test_border.in_time(batches, shuffled=False):
        for each in changes:
            pair.apply(*each)
        got, wanted = pair.step(batch, advance)
        assert by_key(got) == by_key(wanted)
    if pair.monitor.clock is not None:
        now = int(pair.monitor.clock) + 3
        assert by_key(pair.read(pair.monitor.advance(now))) == by_key(pair.model.advance(now))


@given(script, options, st.fixed_dictionaries(dict.fromkeys("pqrs", own_options)), st.data())
def test_other_batches_give_the_same_events(batches, options, own, data):
    for each in (options, *own.values()):  # once="query" is about the first of a batch
        each["once"] = each.get("once") is True
    rows = [row for _, batch in test_border.in_time(batches, shuffled=False) for row in batch]
    texts = {name: data.draw(query) for name in "pqrs"}
    answers = []
    for _ in range(2):
        pair = OwnPair(options, own)
        for name, drawn in texts.items():
            pair.apply("put", name, drawn)
        cut = cut_at(rows, lambda: data.draw(st.integers(1, 6)))
        answers.append(by_key([event for batch in cut for event in pair.step(batch)[0]]))
    assert answers[0] == answers[1]


def make(**own):
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add("low", "x < 1", **own)
    return queries


def rows_of(*rows):
    return {name: [row[place] for row in rows] for place, name in enumerate("kxt")}


def test_a_query_is_reported_once_for_all_keys_then_leaves_the_set():
    queries = make(once="query")
    queries.add("wide", "x < 2")
    monitor = queries.border(key="k", time="t")
    rows = rows_of(("b", 0.0, 1), ("a", 0.0, 1), ("a", 5.0, 2), ("c", 0.0, 0), ("c", 5.0, 3))
    events = [event for event in from_table(monitor.step(rows)) if event[2] == "low"]
    assert (events, monitor.done) == ([("c", 0, "low", "enter", "first")], ["low"])
    assert "low" not in queries
    assert "wide" in queries
    later = from_table(monitor.step(rows_of(("b", 5.0, 4), ("d", 0.0, 5))))
    assert [event[2:4] for event in later] == [("wide", "exit"), ("wide", "enter")]
    assert monitor.done == []
    assert monitor.n_held_back == 5  # enters of a and b, exits of a and c, and that of b because the query is gone


@pytest.mark.parametrize("max_bytes", [1, 40, 10_000])
def test_the_first_report_of_a_batch_is_found_in_pieces_of_any_size(max_bytes):
    queries = make(once="query")
    monitor = queries.border(key="k", time="t", columns=["note"])
    names = [f"k{number:02}" for number in range(40)]
    rows = {"k": names[::-1], "x": [0.0] * 40, "t": [5, *[3] * 39], "note": list(range(40))}
    tables = list(monitor.step_batches(rows, max_bytes=max_bytes))
    events = [event for table in tables for event in table.to_pylist()]
    assert [(event["key"], event["time"], event["note"]) for event in events] == [("k00", 3, 39)]
    assert "low" not in queries


def test_a_step_that_is_not_read_to_its_end_removes_no_query():
    queries = make(once="query")
    monitor = queries.border(key="k", time="t")
    pieces = monitor.step_batches(rows_of(("a", 0.0, 1), ("b", 0.0, 1)), max_bytes=1)
    next(pieces)
    pieces.close()
    assert "low" in queries
    assert [event[0] for event in from_table(monitor.step(rows_of(("b", 0.0, 1))))] == ["b"]


def test_a_query_that_is_added_again_is_reported_again():
    queries = make(once="query")
    monitor = queries.border(key="k", time="t")
    assert monitor.step(rows_of(("a", 0.0, 1))).num_rows == 1
    queries.add("low", "x < 1", once="query")
    assert from_table(monitor.step(rows_of(("b", 0.0, 2), ("b", 5.0, 3)))) == [("b", 2, "low", "enter", "first")]
    assert "low" not in queries


def test_an_enter_after_its_dwell_time_is_the_one_report_of_a_query():
    queries = make(once="query", dwell=5)
    monitor = queries.border(key="k", time="t")
    assert monitor.step(rows_of(("a", 0.0, 2), ("b", 0.0, 1))).num_rows == 0
    assert from_table(monitor.advance(20)) == [("b", 6, "low", "enter", "first")]
    assert "low" not in queries


def test_a_backtest_removes_no_query_and_counts_one_notification():
    queries = vd.QuerySet("k string, x double, ts timestamp")
    queries.add("low", "x < 1", once="query")
    times = [datetime(2026, 3, 2, hour) for hour in range(4)]
    history = [{"k": [key] * 4, "x": [0.0, 5.0, 0.0, 5.0], "ts": times} for key in "ab"]
    result = vd.backtest(queries, history, time="ts", key="k")
    assert result.by_query.to_pylist() == [{"query": "low", "matches": 4, "events": 1, "keys": 1, "notifications": 1}]
    assert "low" in queries


def test_a_query_has_its_own_margin_in_metres():
    place = "ST_DWithin(ST_Point(lon, lat), ST_Point(-73.98, 40.75), 500, true)"
    queries = vd.QuerySet("k string, lon double, lat double, t bigint")
    queries.add_many(["near", "far", "default"], [place] * 3, margin=["100 m", "1 km", None])
    queries.add("number", "lat < 40.751", margin=0.1)
    assert queries.view().attributes.options_at(1) == {"margin": "1000 m"}
    monitor = vd.QuerySet.from_bytes(queries.to_bytes()).border(key="k", time="t", margin="300 m")
    metres = [0, 550, 650, 1000, 2000, 20_000]
    rows = {"k": ["a"] * 6, "lon": [-73.98] * 6, "lat": [40.75 + each / 111_050 for each in metres], "t": range(6)}
    left = {event[2]: event[1] for event in from_table(monitor.step(rows)) if event[3] == "exit"}
    assert left == {"near": 2, "default": 3, "far": 4, "number": 5}


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"cooldown": "1 hour"}, "cooldown.*'1 hour', but the time column 't' is a whole number"),
        ({"dwell": 1.5}, "dwell.*1.5, but the time column 't' is a whole number: give a whole number in its unit"),
    ],
)
def test_a_duration_that_does_not_fit_the_time_is_refused_with_the_query(own, words):
    with pytest.raises(vd.QueryError, match=words) as raised:
        make(**own).border(key="k", time="t").step({"k": ["a"], "x": [0.0], "t": [1]})
    assert raised.value.query == "low"


def test_a_number_is_refused_if_times_are_timestamps():
    queries = vd.QuerySet("k string, x double, ts timestamp")
    queries.add("low", "x < 1", cooldown=5)
    with pytest.raises(vd.QueryError, match="'ts' is a timestamp: give a duration such as '5 minutes'"):
        queries.border(key="k", time="ts")


def test_events_say_how_many_were_held_back_only_if_some_can_be():
    rows = {"k": ["a"], "x": [0.0], "t": [1]}
    assert "held_back" not in make(dwell=3).border(key="k", time="t").step(rows).column_names
    assert make(cooldown=3).border(key="k", time="t").step(rows)["held_back"].to_pylist() == [0]
    assert "held_back" in make().border(key="k", time="t", once=True).step(rows).column_names
    assert "held_back" in make().border(key="k", time="t", held_back=True).step(rows).column_names


def test_pairs_whose_cooldown_is_over_are_forgotten():
    queries = make(cooldown=3)
    monitor = queries.border(key="k", time="t")
    for step in range(100):
        monitor.step({"k": [f"k{step}", "a"], "x": [0.0, step % 2 * 2.0], "t": [10 * step, 10 * step]})
        monitor.step({"k": [f"k{step}"], "x": [5.0], "t": [10 * step + 9]})
    assert len(monitor.cooling) < 3


@pytest.mark.parametrize("kind", [int, str])
def test_cooldowns_of_keys_in_many_queries_hold_for_any_part_of_the_keys_and_while_the_set_changes(kind):
    source, cooldowns = np.random.default_rng(5), {kind(number): number % 7 + 1 for number in range(40)}
    queries = vd.QuerySet("k bigint, x double, t bigint")
    queries.add_many(list(cooldowns), [f"x < {name}" for name in cooldowns], cooldown=list(cooldowns.values()))
    monitor, model = queries.border(key="k", time="t"), ByQuery({}, {q: {"cooldown": c} for q, c in cooldowns.items()})
    inside: dict[int, set] = {}
    for time in range(60):
        if time % 10 == 9:
            queries.replace(kind(time % 40), f"x < {time % 40}", cooldown=cooldowns[kind(time % 40)])
        if time == 30:
            state, monitor = monitor.save(), queries.border(key="k", time="t")
            monitor.load(state)
        keys = np.flatnonzero(source.random(6) < 0.5)
        values = source.integers(0, 40, len(keys)).astype(float)
        wanted = []
        for key, x in zip(keys.tolist(), values, strict=True):
            now = {each for each in cooldowns if x < int(each)}
            before, inside[key] = inside.get(key, set()), now
            for event, some in (("exit", before - now), ("enter", now - before)):
                wanted += [told for each in some for told in model._told(key, time, each, event, "")]
        table = monitor.step({"k": keys, "x": values, "t": np.full(len(keys), time)})
        events = table.select(["key", "time", "query", "event", "held_back"]).to_pylist()
        assert {tuple(event.values()) for event in events} == {(*each[:4], each[5]) for each in wanted}


def test_a_query_without_a_margin_of_its_own_has_that_of_the_monitor():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add_many(["own", "default"], ["x < 10", "x < 10"], margin=[0.5, None])
    monitor = queries.border(key="k", time="t", margin=2)
    rows = {"k": ["a"] * 3, "x": [9.0, 11.0, 13.0], "t": [1, 2, 3]}
    exits = [event[1:3] for event in from_table(monitor.step(rows)) if event[3] == "exit"]
    assert exits == [(2, "own"), (3, "default")]


def test_a_small_margin_in_metres_survives_a_replacement():
    queries = vd.QuerySet("k string, x double, t bigint")
    queries.add("near", "x < 10", margin="0.00001 m")
    queries.replace("near", "x < 11")
    assert "near" in queries


@pytest.mark.parametrize("once", [np.array([True, False]), [], 1, "Query"])
def test_a_value_of_once_that_is_none_is_refused(once):
    with pytest.raises(vd.QueryError, match="once must be True, False or 'query'; got"):
        make().border(key="k", time="t", once=once)


def test_a_margin_of_zero_leaves_an_exclusive_bound_as_it_is():
    queries = vd.QuerySet("k string, x double, y double, t bigint")
    queries.add("none", "x > 1", margin=0)
    queries.add("other field", "y > 1")
    monitor = queries.border(key="k", time="t", margin={"x": 1.0})
    events = from_table(monitor.step({"k": ["a", "a"], "x": [2.0, 1.0], "y": [2.0, 1.0], "t": [1, 2]}))
    assert [event[1:4] for event in events if event[1] == 2] == [(2, "none", "exit"), (2, "other field", "exit")]
