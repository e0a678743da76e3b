"""The type of the ids of a set, string or integer: given at creation, or fixed by the first ids or micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import postgres
import pyarrow as pa
import pytest

import vedette as vd
from vedette.registry.write.locked_set import LockedSet

SCHEMAS: dict[str, dict[str, Any]] = {
    "match": {"schema": "x double"},
    "border": {"schema": "x double"},
    "window join": {"left": "x double", "right": "x double"},
    "band join": {},
}


def first_of(kind: str) -> dict[str, Any]:
    """The arguments of a query of this kind."""
    if kind == "band join":
        return {"low": 0.0, "high": 1.0}
    return {"text": "left.x > right.x", "within": "1 second"} if kind == "window join" else {"text": "x > 1"}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_set_has_the_type_of_ids_it_was_created_with(registry: vd.Registry, kind: str) -> None:
    made = registry.create("numbers", kind=kind, ids="integer", **SCHEMAS[kind])
    followed = registry.follow("numbers")
    empty = [followed.blank().ids.type, followed.open(0).ids.type]
    with pytest.raises(vd.QueryError, match=r"the ids of (this set|set 'numbers') are integers; got the string 'a'"):
        registry.add("numbers", "a", **first_of(kind))
    registry.add("numbers", 7, **first_of(kind))
    registry.remove("numbers", 7)

    assert made.id_kind == registry.set("numbers").id_kind == "integer"
    assert empty == [pa.int64(), pa.int64()]
    assert registry.follow("numbers").open(2).ids.type == pa.int64()  # no query is active, and none is remembered
    registry.compact("numbers")
    assert registry.follow("numbers").open(2).ids.type == pa.int64()


def test_an_unknown_type_of_ids_is_refused(registry: vd.Registry) -> None:
    with pytest.raises(vd.RegistryError, match="must be one of: string, integer; got 'integr'; did you mean 'integer'"):
        registry.create("alerts", schema="x double", ids="integr")
    assert registry.create("alerts", schema="x double", ids="string").id_kind == "string"
    assert registry.create("later", schema="x double").id_kind is None


def test_the_first_micro_batch_makes_ids_strings_if_their_type_is_open(registry: vd.Registry) -> None:
    registry.create("alerts", schema="x double")
    followed = registry.follow("alerts")
    assert followed.current_version() == 0
    assert registry.set("alerts").id_kind is None  # reading does not fix the type

    assert [followed.pin("stream", 0), followed.pin("stream", 0)] == [0, 0]

    assert registry.set("alerts").id_kind == "string"
    with pytest.raises(vd.QueryError, match="the ids of this set are strings; got the integer 7"):
        registry.add("alerts", 7, "x > 1")
    registry.add("alerts", "7", "x > 1")
    assert followed.pin("stream", 1) == 1


def test_a_change_that_began_before_the_first_micro_batch_must_use_its_type_of_ids(registry: vd.Registry) -> None:
    registry.create("alerts", schema="x double")
    change = registry.change("alerts")
    change.add(7, "x > 1")
    registry.follow("alerts").pin("stream", 0)

    with pytest.raises(vd.QueryError, match="the ids of set 'alerts' are strings; got the integer 7"):
        change.commit()
    assert registry.set("alerts").version == 0


def test_a_pipeline_that_expected_strings_must_restart_if_the_first_ids_are_integers(registry: vd.Registry) -> None:
    registry.create("alerts", schema="x double")
    followed = registry.follow("alerts")
    registry.add("alerts", 7, "x > 1")

    for _ in range(2):
        with pytest.raises(
            vd.RegistryError,
            match=r"the first ids of set 'alerts' were added after this pipeline started and are integers, but its "
            r"answers have strings; start the pipeline again; .* ids='integer'",
        ):
            followed.pin("stream", 0)
    assert registry.follow("alerts").pin("stream", 0) == 1


def test_reading_a_pin_fixes_an_open_type_of_ids(
    registry: vd.Registry, open_registry: Callable[..., vd.Registry]
) -> None:
    info = registry.create("alerts", schema="x double")
    registry.follow("alerts").pin("stream", 0)

    def unfix(connection: Any) -> None:  # as a set without a type of ids
        connection.exec_driver_sql("UPDATE vedette_sets SET id_kind = NULL")

    registry.database.write(unfix)
    assert open_registry().pin("stream", 0, info) == 0

    assert registry.set("alerts").id_kind == "string"


def test_later_pins_of_a_pipeline_that_started_without_ids_do_not_wait_for_a_change(cluster: postgres.Cluster) -> None:
    url = cluster.new_database()
    registry, writer = vd.Registry(url, retry_seconds=1), vd.Registry(url)
    info = registry.create("alerts", schema="x double")
    followed = registry.follow("alerts")
    followed.pin("stream", 0)

    def change_for_long(connection: Any) -> int:
        LockedSet(writer.database, connection, info)
        return followed.pin("stream", 1)

    assert writer.database.write(change_for_long) == 0
    for each in (registry, writer, followed.registry):
        each.close()
    cluster.drop_database(url)
