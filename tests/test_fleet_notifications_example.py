"""The example of notifications does what it says."""

from __future__ import annotations

import runpy
import sys
from math import cos, hypot, radians
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "fleet-notifications"


@pytest.fixture
def example(monkeypatch):
    """What notify.py defines; the modules beside it are found as when it is run."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "notify.py"))
    for name in ("picture", "receiver", "region"):
        sys.modules.pop(name)


def stays(zones, rows):
    """Van, zone and time of each stay of two minutes or more, and of its end, by plane geometry: near enough."""
    inside, found = {}, set()
    for row in rows:
        for zone in zones:
            east = (row["lon"] - zone.lon) * 111_320 * cos(radians(row["lat"]))
            is_in = hypot(east, (row["lat"] - zone.lat) * 111_250) <= zone.radius
            pair, now = (row["van"], zone.id), row["ts"]
            since = inside.setdefault(pair, now) if is_in else inside.pop(pair, None)
            if since is not None and (now - since).total_seconds() >= 120:
                found |= {(*pair, "enter")} if is_in else {(*pair, "enter"), (*pair, "exit")}
    return found


def test_every_owner_is_told_who_stayed_and_left(example, tmp_path, monkeypatch, capfd):
    inboxes = []
    receive = example["receive"]

    def remember(*arguments):
        inboxes.append(receive(*arguments, is_loud=False))
        return inboxes[-1]

    example["main"].__globals__["receive"] = remember
    told = {}
    example["main"].__globals__["show"] = lambda inbox, zones: told.update(inbox=inbox, zones=zones)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    example["main"](["--vans", "4", "--minutes", "40", "--output-dir", str(tmp_path / "out")])

    inbox, zones = told["inbox"], told["zones"]
    rows = example["drive"](zones, 4, 40, 4)
    events = inbox.events.values()
    assert {(event["van"], event["query"], event["event"]) for event in events} == stays(zones, rows)
    assert {event["group"] for event in events} == {event["owner"] for event in events}
    out = capfd.readouterr().out
    assert "the key, column 'van', is null" in out
    assert "the record cannot be decoded" in out
    assert (tmp_path / "out" / "notifications.png").read_bytes().startswith(b"\x89PNG")
