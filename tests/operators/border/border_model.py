"""Border monitoring in plain Python: for each key the set of queries it is inside of, row by row."""

from __future__ import annotations


class Model:
    """`forms` has, by id, a predicate over a row and a widened one; a form is compared by identity."""

    def __init__(self, late="drop", expire_after=None, dwell=None):
        self.late, self.expire_after, self.dwell = late, expire_after, dwell
        self.forms = {}
        self.keys = {}  # key: (time, {id: form} that stood, {id} inside, {id: (time, reason)} not yet reported)
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
        is_first = name not in self.keys
        if not is_first:
            last = self.keys[name][0]
            if time < last and self.late == "drop":
                self.n_late += 1
                return []
            if self.expire_after is not None and time - last > self.expire_after:
                events += self._leave(name, last + self.expire_after)
                is_first = True
        _, stood, inside, pending = (None, {}, set(), {}) if is_first else self.keys[name]
        matched = {query for query, (holds, _) in self.forms.items() if holds(row)}
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
            raw.append(("enter", query, "first" if is_first else "moved" if is_same else changed))
        events += self._report(name, time, raw, pending)
        last = time if is_first else max(time, self.keys[name][0])
        self.keys[name] = last, dict(self.forms), matched, pending
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

    def _leave(self, name, time):
        _, stood, inside, pending = self.keys.pop(name)
        raw = [
            ("exit", query, "expired" if self.forms.get(query) is stood[query] else self._why(query))
            for query in inside
        ]
        return self._report(name, time, raw, pending)

    def _why(self, query):
        return "replaced" if query in self.forms else "removed"

    def _expire(self, now):
        events = []
        if self.expire_after is not None and now is not None:
            for name in [name for name, (last, *_) in self.keys.items() if now - last > self.expire_after]:
                events += self._leave(name, self.keys[name][0] + self.expire_after)
        return events


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
