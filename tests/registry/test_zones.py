"""Sets of kind moving join: their queries are zones, with versions, expiry and compiled snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vedette as vd

SIDES = ("x_low", "x_high", "y_low", "y_high")
UNIT = {"x_low": 0, "x_high": 1, "y_low": 0, "y_high": 1}


def box(low: float) -> dict[str, float]:
    return dict(zip(SIDES, (low, low + 1, low, low + 2), strict=True))


def opened(registry: vd.Registry, version: int, name: str = "zones") -> dict[Any, list[float]]:
    """The zones of the compiled set at a version."""
    active = registry.follow(name).open(version).read_active()
    ids, sides = active.ids, active.sides
    return dict(zip(ids.tolist(), sides.tolist(), strict=True))


def test_zones_are_added_replaced_and_removed(registry: vd.Registry) -> None:
    info = registry.create("zones", kind="moving join")
    assert (info.kind, info.schema, info.dimensions) == ("moving join", {}, 2)

    registry.add("zones", "a", **UNIT, metadata={"owner": "ann"})
    registry.add_many("zones", ["b", "c"], x_low=[0, 1], x_high=5, y_low=np.array([0.5, 1.5]), y_high=[7, 8])
    registry.replace("zones", "a", **box(3))
    registry.replace("zones", "b", metadata={"owner": "bob"})
    registry.remove("zones", "c")

    found = {each.id: (each.sides, each.metadata) for each in registry.list("zones")}
    assert found == {
        "a": (box(3), {"owner": "ann"}),
        "b": ({"x_low": 0.0, "x_high": 5.0, "y_low": 0.5, "y_high": 7.0}, {"owner": "bob"}),
    }
    assert [each.state for each in registry.history("zones", "a")] == ["replaced", "active"]
    assert registry.get("zones", "a").text is None
    changes = registry.changes("zones", since=1, until=2)
    assert changes.sides is not None
    assert {name: values.tolist() for name, values in changes.sides.items()} == {
        "x_low": [0.0, 1.0],
        "x_high": [5.0, 5.0],
        "y_low": [0.5, 1.5],
        "y_high": [7.0, 8.0],
    }
    assert (changes.texts, changes.lows) == (None, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x_low": 0, "x_high": 1}, "a zone needs all its sides: x_low, x_high, y_low, y_high; got no y_low"),
        (UNIT | {"x_low": 2}, "x_low 2 of zone 'q' is above its x_high 1"),
        (UNIT | {"x_low": float("inf")}, "x_low of zone 'q' is inf; sides are finite numbers"),
        (UNIT | {"z_low": 2, "z_high": 3}, "the zones of this set have two dimensions; set dimensions to 3"),
        (UNIT | {"text": "x < 1"}, "of kind moving join; its queries have no 'text'"),
        (UNIT | {"low": 1}, "of kind moving join; its queries have no 'low'"),
    ],
)
def test_an_invalid_zone_is_refused_and_changes_nothing(
    registry: vd.Registry, given: dict[str, Any], message: str
) -> None:
    registry.create("zones", kind="moving join")

    with pytest.raises(vd.QueryError, match=message):
        registry.add("zones", "q", **given)

    assert registry.set("zones").version == 0


def test_an_unknown_argument_is_a_type_error(registry: vd.Registry) -> None:
    registry.create("zones", kind="moving join")

    with pytest.raises(TypeError, match=r"unexpected argument 'x_lo'; .*did you mean 'x_low'"):
        registry.add("zones", "q", x_lo=1)
    with pytest.raises(TypeError, match="unexpected argument 'low'"):
        registry.add_many("zones", ["q"], low=1)


def test_other_kinds_have_no_sides_and_no_dimensions(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")

    with pytest.raises(vd.QueryError, match="of kind match; its queries have no 'x_low'"):
        registry.add("alerts", "q", "price < 1", x_low=1)
    with pytest.raises(vd.RegistryError, match="a set of kind match has no dimensions"):
        registry.create("others", schema="price double", dimensions=2)
    with pytest.raises(vd.RegistryError, match="dimensions must be 2 or 3; got 4"):
        registry.create("zones", kind="moving join", dimensions=4)
    with pytest.raises(vd.SchemaError, match="a moving join has no schema; create the set without one"):
        registry.create("zones", kind="moving join", schema="x double")
    registry.create("zones", kind="moving join")
    with pytest.raises(vd.SchemaError, match="a moving join has no schema; create the set without one"):
        registry.alter("zones", "x double")
    with pytest.raises(vd.RegistryError, match="is of kind moving join, which has no schema to alter"):
        registry.alter("zones", time_zone="UTC")


def test_zones_of_three_dimensions_have_a_z(registry: vd.Registry) -> None:
    registry.create("zones", kind="moving join", dimensions=3)
    registry.add("zones", 1, **UNIT, z_low=5, z_high=6)

    with pytest.raises(vd.QueryError, match="got no z_low"):
        registry.add("zones", 2, **UNIT)

    assert opened(registry, 1) == {1: [0.0, 1.0, 0.0, 1.0, 5.0, 6.0]}


def test_zones_expire(registry: vd.Registry, clock: Any) -> None:
    registry.create("zones", kind="moving join")
    registry.add("zones", "a", **UNIT, ttl="5 minutes")
    registry.add("zones", "b", **UNIT)

    clock.advance(301)

    assert [each.id for each in registry.list("zones")] == ["b"]
    assert [each.id for each in registry.list("zones", state="expired")] == ["a"]


def test_the_compiled_set_has_the_zones_of_each_version(
    registry: vd.Registry, open_registry: Callable[..., vd.Registry]
) -> None:
    """For a set that is built, mapped from a snapshot, or moved forward."""
    registry.create("zones", kind="moving join")
    random, now = np.random.default_rng(5), dict[str, list[float]]()
    states, kept = [dict(now)], registry.follow("zones").open(0)
    for step in range(40):
        name, low = f"z{random.integers(0, 6)}", float(random.integers(0, 9))
        if name in now and low < 3:
            registry.remove("zones", name)
            del now[name]
        else:
            (registry.replace if name in now else registry.add)("zones", name, **box(low))
            now[name] = list(box(low).values())
        states.append(dict(now))
        if step == 20:
            registry.compact("zones")
    reader = open_registry()

    for version in (0, 7, 21, 22, 40):
        assert opened(reader, version) == states[version]
    registry.follow("zones").advance(kept, 40)
    active = kept.read_active()
    ids, sides = active.ids, active.sides
    assert dict(zip(ids.tolist(), sides.tolist(), strict=True)) == states[40]
    assert registry.verify("zones") == []


def test_a_large_set_of_zones_opens_from_its_snapshot(registry: vd.Registry) -> None:
    registry.create("zones", kind="moving join", ids="integer")
    lows = np.arange(3000.0)
    registry.add_many("zones", np.arange(3000), x_low=lows, x_high=lows + 1, y_low=0, y_high=1)

    found = registry.follow("zones").open(1)

    assert len(found) == 3000
    assert registry.stats().sets[0].last_snapshot == 1
