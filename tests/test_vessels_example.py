"""The example of vessels and storms does what it says."""

from __future__ import annotations

import re
import runpy
import sys
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[1] / "examples" / "vessels-and-storms"
SIDES = ("x_low", "x_high", "y_low", "y_high")
SPEEDS = ("vx_low", "vx_high", "vy_low", "vy_high")


@pytest.fixture
def example(monkeypatch):
    """What watch.py defines; the modules beside it are found as when it is run."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "watch.py"))
    for name in ("picture", "sea"):
        sys.modules.pop(name)


@pytest.fixture
def bay(example):
    """Two hours of eight vessels and twelve cells: the reports of vessels and radar."""
    sea = example["Sea"].build(seed=4, n_vessels=8, n_storms=12, minutes=120)
    return sea.reports(), sea.pictures()


def boxes_at(table, time):
    """By id the sides at a time of those that are there, by the last row until then."""
    last = {row["id"]: row for row in table.to_pylist() if row["time"] <= time}
    return {
        name: [row[side] + row[speed] * (time - row["time"]) for side, speed in zip(SIDES, SPEEDS, strict=True)]
        for name, row in last.items()
        if not row.get("removed")
    }


def overlap(one, other, by=0.0):
    """Whether two boxes, neither of which has shrunk to nothing, share anything, or more than so much."""
    pairs = [(low, high) for low in (one, other) for high in (one, other)]
    return all(low[k] + by <= high[k + 1] for low, high in pairs for k in (0, 2))


def pairs_at(vessels, storms, time, by=0.0):
    a, b = boxes_at(vessels, time), boxes_at(storms, time)
    return {(i, j) for i, j in product(a, b) if overlap(a[i], b[j], by)}


def test_zones_met_the_cells_that_they_overlapped(example, bay):
    seen, frames = example["watch"](*bay, [10.0, 40.0, 90.0, 120.0])
    meetings = seen.meetings(120.0)

    assert sum(map(len, meetings.values())) > 3
    for time in [0.3 + 1.7 * k for k in range(70)]:
        met = {pair for pair, spans in meetings.items() if any(start <= time <= end for start, end in spans)}
        assert pairs_at(*bay, time, by=1e-9) <= met <= pairs_at(*bay, time, by=-1e-9)
    for frame in frames:
        assert set(frame.met) == pairs_at(*bay, frame.time)


def test_predictions_assume_that_no_object_changes_course(example, bay):
    _, frames = example["watch"](*bay, [10.0, 40.0, 90.0])
    n_coming = 0
    for frame in frames:
        told = [table.filter([time <= frame.time for time in table["time"].to_pylist()]) for table in bay]
        now = pairs_at(*told, frame.time)
        for pair, start in frame.coming.items():
            if pair not in now:
                n_coming += 1
                early, late = (pairs_at(*told, start + by) for by in (-4.0, 4.0))  # less than that is no news
                assert pair not in pairs_at(*told, frame.time)
                assert pair in late or pair in early or pair in pairs_at(*told, start)
    assert n_coming


def test_it_prints_news_and_writes_pictures(example, tmp_path, capsys):
    sizes = ["--vessels", "8", "--storms", "12", "--hours", "2", "--every", "40"]
    example["main"]([*sizes, "--output-dir", str(tmp_path)])

    said = capsys.readouterr().out
    assert "8 vessels, 12 storm cells, 2 hours: " in said
    assert " will meet cell " in said
    assert " MEETS cell " in said
    assert " of them predicted, " in said
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bay.gif",
        "bay.png",
        "storms.parquet",
        "vessels.parquet",
    ]
    with Image.open(tmp_path / "bay.gif") as animation:
        assert animation.n_frames == 4
    with Image.open(tmp_path / "bay.png") as picture:
        assert picture.size[0] > 800


def test_its_files_work_with_the_command_line(example, bay, tmp_path, monkeypatch, capfd):
    from vedette.cli import main

    for name, table in zip(("vessels", "storms"), bay, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    files = ["--a", str(tmp_path / "vessels.parquet"), "--b", str(tmp_path / "storms.parquet")]
    monkeypatch.setattr(sys, "argv", ["vedette", "moving", *files, "--max-update-interval", "60", "--at", "90"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code

    header, *lines = capfd.readouterr().out.replace('"', "").splitlines()
    assert header == "a,b"
    assert {(name, int(cell)) for name, cell in (line.split(",") for line in lines)} == pairs_at(*bay, 90.0)


def test_each_command_of_its_readme_answers(example, tmp_path, monkeypatch, capfd):
    from vedette.cli import main

    sea = example["Sea"].build(seed=4, n_vessels=14, n_storms=12, minutes=360)  # as watch.py has them by default
    for name, table in {"vessels": sea.reports(), "storms": sea.pictures()}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    commands = re.findall(r"^vedette (moving .*)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 3
    monkeypatch.chdir(tmp_path)
    answers = []
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["vedette", *command.split(), "--quiet"])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, command
        answers.append(capfd.readouterr().out or (tmp_path / "changes.csv").read_text())

    assert all(len(answer.splitlines()) > 1 for answer in answers)
    assert answers[-1].splitlines()[1:] == ['"a","Brio",,177']
