"""Border monitoring with now() in plain Python: all queries at every moment at which anything could change."""

from __future__ import annotations

MINUTE = 60_000_000


class NowModel:
    """`forms` has by id a predicate over a row and a moment. Times of rows, and bounds, are multiples of a grain.

    So truth can change at its multiples, and one microsecond later.
    """

    def __init__(self, late="drop", expire_after=None, dwell=None, grain=MINUTE):
        self.late, self.expire_after, self.dwell, self.grain = late, expire_after, dwell, grain
        self.forms = {}
        self.keys = {}
        self.reached = -MINUTE  # by advance; rows are later
        self.clock = None

    def step(self, rows, *, advance=True):
        events = []
        for row in sorted(rows, key=lambda row: row["t"]):
            self.clock = row["t"] if self.clock is None else max(self.clock, row["t"])
            events += self._take(row)
            if advance:
                events += self._expire(self.clock)
        return events

    def advance(self, time):
        events = self._expire(time)
        for key in list(self.keys):
            events += self._pass(key, time)
            events += self._settle(key, time, [])
        self.reached = max(self.reached, time)
        return events

    def _take(self, row):
        key, time = row["k"], row["t"]
        state, events = self.keys.get(key), []
        if state is not None and time < state["last"] and self.late == "drop":
            return []
        if state is not None and self.expire_after is not None and time - state["last"] > self.expire_after:
            events += self._leave(key)
            state = None
        if state is None:
            moment = max(time, self.reached)
            state = self.keys[key] = {"inside": set(), "stood": None, "pending": {}, "last": time}
        else:
            moment = max(time, self.reached, state["last"], state["moment"])
            events += self._pass(key, moment)
        state |= {"row": row, "last": max(time, state["last"]), "moment": moment}
        return events + self._compare(key, time)

    def _pass(self, key, until):
        """Time passes for a key that stays at its row."""
        state, events = self.keys[key], []
        first = state["moment"] // self.grain * self.grain
        for each in range(first, until + self.grain, self.grain):
            for moment in (each, each + 1):
                if state["moment"] < moment <= until:
                    events += self._settle(key, moment, self._changes(state, moment))
                    state["moment"] = moment
        return events

    def _changes(self, state, moment):
        """The changes of queries that the key has seen at its last row, and that still stand."""
        changes = []
        for query, form in state["stood"].items():
            holds = form(state["row"], moment)
            if self.forms.get(query) is form and holds != (query in state["inside"]):
                changes.append(("enter" if holds else "exit", query, "time"))
                state["inside"] ^= {query}
        return sorted(changes, reverse=True)  # exits first

    def _compare(self, key, time):
        state = self.keys[key]
        stood, inside = state["stood"], state["inside"]
        matched = {query for query, form in self.forms.items() if form(state["row"], state["moment"])}
        raw = []
        for query in inside - matched:
            changed = "removed" if query not in self.forms else "replaced"
            raw.append(("exit", query, "moved" if self.forms.get(query) is stood[query] else changed))
        for query in matched - inside:
            is_same = stood is not None and stood.get(query) is self.forms[query]
            changed = "first" if stood is None else "added" if query not in stood else "replaced"
            raw.append(("enter", query, "moved" if is_same else changed))
        state |= {"stood": dict(self.forms), "inside": matched}
        return self._settle(key, time, raw)

    def _settle(self, key, time, raw):
        if self.dwell is None:
            return [(key, time, query, kind, reason) for kind, query, reason in raw]
        events, pending = [], self.keys[key]["pending"]
        for query, (since, reason) in sorted(pending.items(), key=lambda each: each[1][0]):
            if since + self.dwell <= time:
                events.append((key, since + self.dwell, query, "enter", reason))
                del pending[query]
        for kind, query, reason in raw:
            if kind == "enter":
                pending[query] = time, reason
            elif query in pending:
                del pending[query]
            else:
                events.append((key, time, query, "exit", reason))
        return events

    def _expire(self, now):
        events = []
        if self.expire_after is not None:
            for key in [key for key, state in self.keys.items() if now - state["last"] > self.expire_after]:
                events += self._leave(key)
        return events

    def _leave(self, key):
        state = self.keys[key]
        end = state["last"] + self.expire_after
        events = self._pass(key, end)
        raw = []
        for query in state["inside"]:
            is_same = self.forms.get(query) is state["stood"][query]
            gone = "replaced" if query in self.forms else "removed"
            raw.append(("exit", query, "expired" if is_same else gone))
        events += self._settle(key, end, raw)
        del self.keys[key]
        return events
