"""The pairs-trading example does what it says."""

from __future__ import annotations

import csv
import re
import runpy
import sys
from datetime import timedelta
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "pairs-trading"
LENGTHS = {"500 ms": 0.5, "1 second": 1.0, "2 seconds": 2.0}


@pytest.fixture
def example(monkeypatch):
    """What trading.py defines; the modules beside it are found as when it is run."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "trading.py"))
    for name in ("chart", "market"):
        sys.modules.pop(name)


@pytest.fixture
def market(example):
    return example["Market"].build(seed=3, n_symbols=6, minutes=6)


def pairs_by_looking(alerts, left, right):
    """For every alert, every quote here with every quote there that is two seconds away at most."""
    near = {}
    others = right.to_pylist()
    for quote in left.to_pylist():
        for other in others:
            if quote["symbol"] == other["symbol"] and abs(quote["ts"] - other["ts"]) <= timedelta(seconds=2):
                near.setdefault(quote["symbol"], []).append((quote, other))
    pairs = []
    for alert, symbol, low, high, size, within in zip(
        alerts.ids, alerts.symbols, alerts.lows, alerts.highs, alerts.sizes, alerts.within, strict=True
    ):
        for quote, other in near[symbol]:
            if (
                low <= quote["price"] - other["price"] <= high
                and min(quote["size"], other["size"]) >= size
                and abs(quote["ts"] - other["ts"]) <= timedelta(seconds=LENGTHS[within])
            ):
                pairs.append((alert, quote["id"], other["id"]))
    return sorted(pairs)


def test_alerts_find_the_pairs_of_brute_force(example, market):
    left, right, alerts = market.quotes(0), market.quotes(1), market.alerts(300)

    found = example["watch_spreads"](example["load_alerts"](alerts), example["cut"](left), example["cut"](right))

    expected = pairs_by_looking(alerts, left, right)
    assert sorted(tuple(pair.values()) for pair in found.to_pylist()) == expected
    assert len({alert for alert, *_ in expected}) > 50


def test_the_changes_of_bands_add_up_to_the_pairs_in_them(example, market):
    ids, lows, highs = market.bands(400)
    performances = market.performances(10)

    history = example["watch_performances"](example["load_bands"](ids, lows, highs), performances)

    for now, standing in zip(performances, history, strict=True):
        expected = {
            (band, bank, mine)
            for band, low, high in zip(ids, lows, highs, strict=True)
            for bank in now
            for mine in now
            if bank.startswith("bank") and mine.startswith("mine") and low <= now[bank] - now[mine] <= high
        }
        assert set(standing) == expected
        assert set(standing.values()) <= {1}
    assert sum(map(len, history)) > 100


def test_it_prints_tables_and_writes_a_picture_and_files_for_the_command_line(example, tmp_path, capsys):
    size = ["--symbols", "4", "--minutes", "2", "--alerts", "200", "--bands", "100", "--output-dir", str(tmp_path)]

    example["main"](size)

    said = capsys.readouterr().out
    assert re.search(r"^4 symbols for 2 minutes: \d+ and \d+ quotes$", said, re.MULTILINE)
    assert re.search(r"^Spreads: [\d,]+ pairs, for \d+ of 200 alerts$", said, re.MULTILINE)
    assert re.search(r"^Performances: in the end \d+ pairs are in \d+ of 100 bands$", said, re.MULTILINE)
    assert (tmp_path / "pairs-trading.png").read_bytes().startswith(b"\x89PNG")
    files = ["alerts.csv", "bands.csv", "banks.csv", "here.parquet", "mines.csv", "pairs-trading.png", "there.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    with (tmp_path / "alerts.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 200


def test_a_market_without_alerts_has_a_picture_too(example, tmp_path, capsys):
    size = ["--symbols", "2", "--minutes", "1", "--alerts", "1", "--bands", "1", "--output-dir", str(tmp_path)]

    example["main"](size)

    assert "0 of 1 alerts" in capsys.readouterr().out
    assert (tmp_path / "pairs-trading.png").exists()


def test_streams_in_spark_give_the_same_pairs(spark, example, market, tmp_path):
    left, right = example["cut"](market.quotes(0)), example["cut"](market.quotes(1))
    pairs = example["load_alerts"](market.alerts(300))
    bands, performances = example["load_bands"](*market.bands(400)), market.performances(30)

    found = example["watch_spreads_in_spark"](spark, pairs, left, right, tmp_path / "spreads")
    standing = example["watch_performances_in_spark"](spark, bands, performances, tmp_path / "performances")

    assert found.num_rows > 100
    assert found == example["watch_spreads"](pairs, left, right)
    assert standing == example["watch_performances"](bands, performances)[-1]
