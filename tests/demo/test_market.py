"""The synthetic market: seeded, in time order, prices as random walks, texts that agree with the columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vedette.demo.market import SHAPES, Market


def test_the_same_seed_makes_the_same_market():
    first, second = Market.open(3), Market.open(3)

    assert list(first.ticks(1000)) == list(second.ticks(1000))
    assert first.alerts(100) == second.alerts(100)
    assert first.alerts(100) != Market.open(4).alerts(100)


def test_ticks_are_in_time_order_for_any_number_of_batches():
    whole, cut = Market.open(1).ticks(5000), Market.open(1).ticks(5000, 7)
    table, parts = pa.Table.from_batches(whole), pa.Table.from_batches(cut)

    assert table.equals(parts.combine_chunks()) or table == parts
    times = table["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all()
    assert table["tick"].to_pylist() == list(range(5000))


def test_each_symbol_walks_from_its_opening_price_in_small_steps():
    market = Market.open(1, n_symbols=3)
    table = pa.Table.from_batches(market.ticks(3000)).to_pandas()

    for symbol, opening in zip(market.symbols, market.openings, strict=True):
        prices = table.price[table.symbol == symbol].to_numpy()
        assert abs(prices[0] / opening - 1) < 0.02
        assert np.abs(np.diff(np.log(prices))).max() < 0.02


def test_alerts_have_all_shapes_and_distinct_ids():
    alerts = Market.open(1).alerts(2000)

    assert set(alerts["shape"].to_pylist()) == set(SHAPES)
    assert len(set(alerts["id"].to_pylist())) == 2000
