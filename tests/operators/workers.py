"""Workers that take turns with one shard, as Spark's do: each keeps a monitor that is some batches behind.

A worker brings its monitor up to date by the deltas of the batches that it missed, then steps, and writes its delta.
One monitor that is never saved or loaded says what the answers must be.
"""

from __future__ import annotations

import numpy as np

from vedette.operators import state


class Workers:
    """`make` makes an empty monitor, and `kind` is the kind of its state."""

    def __init__(self, random, make, kind, n_workers=3, share_loaded=0.1):
        self.random, self.make, self.kind, self.share_loaded = random, make, kind, share_loaded
        self.straight = make()
        self.kept = [None] * n_workers  # monitors, with the number of deltas that each has
        self.base, self.deltas = None, []
        self.n_caught_up = 0

    def step(self, run):
        """Let a worker run a batch, `run(monitor)`. Its answer and its state must be those of the one monitor."""
        number = self.random.randrange(len(self.kept))
        monitor = self.open(number)
        answer, expected = run(monitor), run(self.straight)
        assert answer == expected
        if self.base is None:
            self.base = monitor.save()
        else:
            self.deltas.append(monitor.take_delta())
        self.kept[number] = monitor, len(self.deltas)
        found = contents(self.kind, monitor.save())
        assert found == contents(self.kind, self.straight.save())
        return expected

    def open(self, number):
        """The monitor of a worker, up to date."""
        monitor, n_known = self.kept[number] or (None, 0)
        if monitor is None or self.random.random() < self.share_loaded:
            monitor, n_known = self.make(), 0
            if self.base is not None:
                monitor.load(self.base)
        elif n_known < len(self.deltas):
            self.n_caught_up += 1
        for delta in self.deltas[n_known:]:
            monitor.apply_delta(delta)
        return monitor


def contents(kind, blob):
    """What a state says, whatever the order of its ids and the numbers of its rows."""
    content = state.from_bytes(kind, blob)
    parts = content.pop("parts")
    plain = {name: _plain(value) for name, value in content.items()}
    return plain, {name: READERS[kind](part) for name, part in parts.items()}


def _plain(value):
    if hasattr(value, "to_pylist"):
        return value.to_pylist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _valid_values(values, valid):
    values = _plain(values)
    return values if valid is None else [each if ok else None for each, ok in zip(values, valid.tolist(), strict=True)]


def _keys(part):
    keys = _plain(part["keys"])
    columns = {name: _valid_values(*column) for name, column in part["rows"].items()}
    found = {
        key: (
            time,
            version,
            [(name, columns[name][place]) for name in sorted(columns) if columns[name][place] is not None],
        )
        for place, (key, time, version) in enumerate(
            zip(keys, _plain(part["times"]), _plain(part["versions"]), strict=True)
        )
    }
    pairs = [
        sorted((keys[place], *rest) for place, *rest in zip(*map(_plain, part[name]), strict=True))
        for name in ("lingering", "pending")
    ]
    return repr((sorted(found.items()), pairs))  # NaN equals NaN


def _stream(part):
    """The rows in order. The number of the first one depends on when rows were numbered again."""
    ids = None if part["ids"] is None else _valid_values(*part["ids"])
    columns = {name: (type_, _valid_values(*column)) for name, (type_, *column) in part["rows"].items()}
    return repr((_plain(part["times"]), ids or [], sorted(columns.items())))


def _side(part):
    return dict(zip(_plain(part["ids"]), _plain(part["values"]), strict=True))


def _objects(part):
    objects = zip(_plain(part["ids"]), _plain(part["rows"]), _plain(part["reported"]), strict=True)
    removed = zip(_plain(part["removed"]), _plain(part["removed_reported"]), strict=True)
    return {id_: rest for id_, *rest in objects}, dict(removed)


READERS = {
    "border state": _keys,
    "window join state": _stream,
    "band join state": _side,
    "moving join state": _objects,
}
