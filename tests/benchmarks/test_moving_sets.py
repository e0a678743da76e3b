"""Synthetic moving sets: seeded, within their space and speeds, and updated with the stated frequency."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.moving_sets import DISTRIBUTIONS, MovingSets
from benchmarks.moving_streets import LEG_TIME, N_ROUTES, StreetSets, Town
from vedette.operators.moving_join.motions import Motions

every_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS)
every_fleet = pytest.mark.parametrize("fleet", N_ROUTES)
EVERY_KIND = [
    *(MovingSets(kind, 300, 200, seed=3) for kind in DISTRIBUTIONS),
    *(MovingSets(kind, 300, 200, n_dims=3, jumps=True, seed=4) for kind in DISTRIBUTIONS),
    *(StreetSets(fleet, 300, 200, seed=3) for fleet in N_ROUTES),
]
every_kind = pytest.mark.parametrize("sets", EVERY_KIND, ids=[f"{kind}"[:32] for kind in EVERY_KIND])


def columns(motions):
    return [motions.lows, motions.highs, motions.low_speeds, motions.high_speeds, motions.times]


def is_same(one, other):
    return all(np.array_equal(left, right) for left, right in zip(columns(one), columns(other), strict=True))


def replay(sets, n):
    """The first set as it is known after each timestamp: time, all motions, and which were updated."""
    known, _ = sets.start()
    yield 0.0, known, np.arange(len(known))
    for step in sets.steps(n):
        known = Motions(*(column.copy() for column in columns(known)))
        for column, new in zip(columns(known), columns(step.a_motions), strict=True):
            column[..., step.a_places] = new
        yield step.time, known, step.a_places


@every_kind
def test_the_same_seed_makes_the_same_data(sets):
    assert all(is_same(one, other) for one, other in zip(sets.start(), replace(sets).start(), strict=True))
    assert not is_same(sets.start()[0], replace(sets, seed=99).start()[0])
    for one, other in zip(sets.steps(40), replace(sets).steps(40), strict=True):
        assert one.time == other.time
        assert np.array_equal(one.a_places, other.a_places)
        assert np.array_equal(one.b_places, other.b_places)
        assert is_same(one.a_motions, other.a_motions)
        assert is_same(one.b_motions, other.b_motions)


@every_kind
def test_objects_stay_in_the_space_at_every_timestamp_and_keep_their_size_and_speed(sets):
    for time, known, _ in replay(sets, 150):
        lows, highs = known.at(time)
        slack = 1e-9 * sets.space
        is_street = isinstance(sets, StreetSets)  # whose locations are the centres of objects
        assert lows.min() >= -slack - is_street * sets.side
        assert highs.max() <= sets.space + slack + is_street * sets.side
        assert np.allclose(known.highs - known.lows, sets.side)
        assert np.array_equal(known.low_speeds, known.high_speeds)
        assert np.sqrt((known.low_speeds**2).sum(axis=0)).max() <= sets.max_speed * (1 + 1e-9)


@every_kind
@pytest.mark.parametrize("interval", [7, 60])
def test_no_object_is_without_an_update_for_longer_than_the_interval(sets, interval):
    last = np.zeros(sets.n_a)
    for time, known, places in replay(replace(sets, max_update_interval=interval), 130):
        last[places] = time
        assert (time - last).max() <= interval
        assert np.array_equal(known.times[places], np.full(len(places), time))
        assert (np.diff(places) > 0).all()


@every_kind
def test_objects_go_on_from_where_they_are_unless_they_jump(sets):
    before = None
    for time, known, places in replay(sets, 50):
        if before is not None and len(places) and not getattr(sets, "jumps", False):
            assert np.allclose(known.at(time)[0][:, places], before.at(time)[0][:, places], atol=1e-6)
        before = known


@every_distribution
def test_updates_have_the_frequency_of_their_probability_and_interval(distribution):
    """A life without an update ends with the probability at each timestamp, and at the interval."""
    sets = MovingSets(distribution, 4000, 1, update_probability=0.02, max_update_interval=30, space=1e5)
    n_updates = [len(step.a_places) for step in sets.steps(120)][40:]
    expected = 4000 * 0.02 / (1 - 0.98**30)

    assert np.mean(n_updates) == pytest.approx(expected, rel=0.05)
    assert max(n_updates) < 2 * expected  # forced ones are spread over time


def test_the_distributions_are_what_they_are_called():
    starts = {kind: MovingSets(kind, 5000, 5000).start() for kind in DISTRIBUTIONS}
    uniform, gaussian = starts["uniform"][0].lows, starts["gaussian"][0].lows
    assert np.histogram(uniform[0], 4, (0, 995))[0].min() > 1100
    assert gaussian.std(axis=1) == pytest.approx([995 / 6] * 2, rel=0.05)
    assert gaussian.mean(axis=1) == pytest.approx([497.5] * 2, rel=0.03)
    left, right = starts["battlefield"]
    assert left.highs[0].max() <= 505
    assert right.lows[0].min() >= 495
    assert (left.low_speeds[0] >= 0).all()
    assert (right.low_speeds[0] <= 0).all()
    with pytest.raises(ValueError, match="distribution must be one of uniform, gaussian, battlefield; got 'normal'"):
        MovingSets("normal")


def test_jumping_objects_keep_the_distribution_and_armies_change_sides():
    gaussian = MovingSets("gaussian", 3000, 1, jumps=True)
    *_, (time, known, _) = replay(gaussian, 120)
    assert known.at(time)[0].std(axis=1) == pytest.approx([995 / 6] * 2, rel=0.1)
    battle = MovingSets("battlefield", 500, 1, jumps=True, max_update_interval=20)
    *_, (time, known, _) = replay(battle, 80)
    assert known.at(time)[0][0].min() > 450


@every_fleet
def test_vehicles_update_at_the_locations_of_their_routes(fleet):
    sets = StreetSets(fleet, 50, 50, seed=5)
    locations = sets.routes.reshape(-1, 2)
    for step in sets.steps(LEG_TIME):
        for centre in (step.a_motions.lows + step.a_motions.highs).T / 2:
            assert np.abs(locations - centre).max(axis=1).min() < 1e-9
    assert len(sets.routes) == {"truck": 276, "bus": 145}[fleet]
    with pytest.raises(ValueError, match="fleet must be one of truck, bus; got 'tram'"):
        StreetSets("tram")


@every_fleet
def test_routes_follow_streets_and_vehicles_stop_at_times(fleet):
    sets = StreetSets(fleet, 400, 1)
    legs = np.abs(np.diff(sets.routes, axis=1)).max(axis=2)
    assert (legs == 0).mean() > 0.02
    a, _ = sets.start()
    assert (np.abs(a.low_speeds).max(axis=0) == 0).any()


def test_every_junction_of_a_town_can_be_reached():
    town = Town.lay_out(seed=2)
    n = town.places.shape[1]
    for start, target in np.random.default_rng(1).integers(0, n, (40, 2)):
        way = town.find_way(int(start), int(target))
        assert (way[0], way[-1]) == (start, target)
        assert len(set(way)) == len(way)
    assert (town.hops >= 0).all()
    assert town.places.min() > 0
    assert town.places.max() < 1000
