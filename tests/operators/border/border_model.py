"""Border monitoring in plain Python: for each key the set of queries it is inside of, row by row."""

from __future__ import annotations


class Model:
    """`forms` has, by id, a predicate over a row and a widened one; a form is compared by identity.

    A third value is how long a key may be silent before it leaves the query.
    """

    def __init__(self, late="drop", expire_after=None, dwell=None):
        self.late, self.expire_after, self.dwell = late, expire_after, dwell
        self.forms = {}
        self.keys = {}  # key: (time, {id: form} that stood, {id} inside, {id: (time, reason)} not yet reported)
        self.gone = {}  # key: {id} for which it was silent for too long since its last row
        self.clock = None
        self.n_late = 0

    def step(self, rows, key="k", time="t", *, advance=True):
        """A batch means its rows in time order, one by one; a stable sort."""
        events = []
        for row in sorted(rows, key=lambda row: row[time]):
            self.clock = row[time] if self.clock is None else max(self.clock, row[time])
            events += self._move(row[key], row, row[time])
            if advance:
                events += self._expire(self.clock)
        return events

    def advance(self, now):
        events = self._expire(now)
        for name, (_, _, _, pending) in self.keys.items():
            for query, (since, reason) in in_time(pending):
                if since + self.dwell <= now:
                    events.append((name, since + self.dwell, query, "enter", reason))
                    del pending[query]
        return events

    def _move(self, name, row, time):
        events = []
        if name in self.keys:
            if time < self.keys[name][0] and self.late == "drop":
                self.n_late += 1
                return []
            events += self._judge(name, time)
        is_first, gone = name not in self.keys, self.gone.get(name, set())
        _, stood, inside, pending = (None, {}, set(), {}) if is_first else self.keys[name]
        matched = {query for query, (holds, *_) in self.forms.items() if holds(row)}
        for query in inside - matched:
            if query in self.forms and stood[query] is self.forms[query] and self.forms[query][1](row):
                matched.add(query)  # within the margin
        raw = []
        for query in inside - matched:
            changed = "removed" if query not in self.forms else "replaced"
            raw.append(("exit", query, "moved" if self.forms.get(query) is stood[query] else changed))
        for query in matched - inside:
            changed = "added" if query not in stood else "replaced"
            is_same = stood.get(query) is self.forms[query]
            raw.append(("enter", query, "first" if is_first or query in gone else "moved" if is_same else changed))
        events += self._report(name, time, raw, pending)
        last = time if is_first else max(time, self.keys[name][0])
        self.keys[name] = last, dict(self.forms), matched, pending
        self.gone[name] = set()
        return events

    def _report(self, name, time, raw, pending):
        if self.dwell is None:
            return [(name, time, query, kind, reason) for kind, query, reason in raw]
        events = []
        for query, (since, reason) in in_time(pending):
            if since + self.dwell <= time:
                events.append((name, since + self.dwell, query, "enter", reason))
                del pending[query]
        for kind, query, reason in raw:
            if kind == "enter":
                pending[query] = time, reason
            elif query in pending:
                del pending[query]
            else:
                events.append((name, time, query, "exit", reason))
        return events

    def _judge(self, name, now):
        """A key leaves the queries for which it was silent for too long, one after the other."""
        last, stood, inside, pending = self.keys[name]
        silence, longest = now - last, self._longest()
        is_forgotten = longest is not None and silence > longest
        over, ends = set(), {}
        for query in {**stood, **self.forms}:
            own = self._silence(stood.get(query) or self.forms[query])
            if is_forgotten or (own is not None and silence > own):
                over.add(query)
                if query in inside:
                    end = own if longest is None or not is_forgotten else longest if own is None else min(own, longest)
                    ends.setdefault(last + end, []).append(query)
        events = []
        for end in sorted(ends):
            raw = [
                ("exit", query, "expired" if self.forms.get(query) is stood[query] else self._why(query))
                for query in ends[end]
            ]
            inside -= set(ends[end])
            events += self._report(name, end, raw, pending)
        for query in over - self.gone[name]:
            self._forget(name, query)
        self.gone[name] |= over
        if is_forgotten:
            del self.keys[name], self.gone[name]
        return events

    def _forget(self, name, query):
        """The key starts anew with regard to the query."""

    def _silence(self, form):
        return form[2] if len(form) > 2 and form[2] is not None else self.expire_after

    def _longest(self):
        silences = [self._silence(form) for form in self.forms.values()] or [self.expire_after]
        return None if None in silences else max(silences)

    def _why(self, query):
        return "replaced" if query in self.forms else "removed"

    def _expire(self, now):
        return [] if now is None else [event for name in list(self.keys) for event in self._judge(name, now)]


def in_time(pending):
    """The enters that are not yet reported, by their time; late rows may have entered later for an earlier one."""
    return sorted(pending.items(), key=lambda each: each[1][0])


def by_key(events):
    """The events of each key in order; those of one time and kind that follow upon each other in the order of ids."""
    listed = {}
    for name, *event in events:
        listed.setdefault(name, []).append(tuple(event))
    for name, its in listed.items():
        runs, start = [], 0
        for end in range(1, len(its) + 1):
            if end == len(its) or (its[end][0], its[end][2]) != (its[start][0], its[start][2]):
                runs += sorted(its[start:end])
                start = end
        listed[name] = runs
    return listed


def from_table(table):
    return [(e["key"], e["time"], e["query"], e["event"], e["reason"]) for e in table.to_pylist()]
