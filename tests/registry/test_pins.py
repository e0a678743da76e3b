"""A batch has one version, for all who ask, for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import postgres
import pytest
from sqlalchemy import func, select

import vedette as vd
from vedette.registry.lease import Lease
from vedette.registry.locked_set import LockedSet
from vedette.registry.tables import pins


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="price double")
    registry.add("alerts", 1, "price < 1")
    return registry


def count_pins(registry: vd.Registry) -> int:
    return int(
        registry.database.read(lambda connection: connection.scalar(select(func.count()).select_from(pins))) or 0
    )


def test_the_first_who_asks_decides(alerts: vd.Registry, open_registry: Callable[..., vd.Registry]) -> None:
    other = open_registry()

    first = alerts.pin("job", 0, "alerts")
    alerts.add("alerts", 2, "price < 2")

    assert first == 1
    assert other.pin("job", 0, "alerts") == alerts.pin("job", 0, "alerts") == 1
    assert other.pin("job", 1, "alerts") == 2
    assert other.pin("other job", 0, "alerts") == 2


def test_many_who_ask_at_once_are_told_the_same(alerts: vd.Registry, open_registry: Callable[..., vd.Registry]) -> None:
    workers = [open_registry() for _ in range(4)]
    told: dict[int, set[int]] = {batch: set() for batch in range(12)}
    errors: list[BaseException] = []
    gate = threading.Barrier(5)

    def work(worker: vd.Registry) -> None:
        try:
            for batch in told:
                gate.wait(60)
                told[batch].add(worker.pin("job", batch, "alerts"))
        except BaseException as error:
            errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for batch in told:
        gate.wait(60)
        alerts.add("alerts", 100 + batch, "price < 5")
    for thread in threads:
        thread.join()

    assert errors == []
    assert [len(versions) for versions in told.values()] == [1] * len(told)
    pinned = [min(versions) for versions in told.values()]
    assert pinned == sorted(pinned)
    # What was committed before the batch began counts in it.
    assert all(version >= 1 + batch for batch, version in enumerate(pinned))


def test_pins_of_old_batches_are_cleaned(alerts: vd.Registry, clock: Any) -> None:
    for batch in range(20):
        alerts.pin("job", batch, "alerts")
    alerts.pin("silent", 7, "alerts")
    alerts.pin("silent", 8, "alerts")
    assert count_pins(alerts) == 22

    alerts.pin("job", 1000, "alerts")
    assert count_pins(alerts) == 22  # all but batch 0

    clock.advance(8 * 86_400)
    alerts.pin("job", 1050, "alerts")

    assert count_pins(alerts) == 2  # this one, and the newest of the pipeline that is silent
    alerts.add("alerts", 2, "price < 2")
    assert alerts.pin("silent", 8, "alerts") == 1


def test_pins_do_not_wait_for_a_long_change_and_see_what_was_committed_before(
    cluster: postgres.Cluster,
) -> None:
    url = cluster.new_database()
    registry, writer = vd.Registry(url, patience=1), vd.Registry(url)
    info = registry.create("alerts", schema="price double")
    registry.add("alerts", 1, "price < 1")

    def change_for_long(connection: Any) -> tuple[int, Any]:
        locked = LockedSet(writer.database, connection, info)
        locked.advance()
        locked.save()
        lease = Lease.take(registry.database, info.row, "compaction")
        return registry.pin("job", 0, "alerts"), lease

    pinned, lease = writer.database.write(change_for_long)
    with lease:
        assert pinned == registry.pin("job", 0, "alerts") == 1
        assert registry.pin("job", 1, "alerts") == 2
    registry.close()
    writer.close()
    cluster.drop_database(url)


def test_a_pin_of_another_set_in_the_same_row_is_not_taken(alerts: vd.Registry) -> None:
    info = alerts.set("alerts")
    alerts.drop("alerts")
    alerts.create("alerts", schema="price double")
    alerts.pin("job", 1, "alerts")

    with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped meanwhile"):
        alerts.pin("job", 1, info)


def test_a_pin_needs_a_name_and_a_number(alerts: vd.Registry) -> None:
    for pipeline, batch in [("", 1), (None, 1), ("job", "1"), ("job", True)]:
        with pytest.raises(vd.RegistryError, match="a pin is of a pipeline's name and a batch's number"):
            alerts.pin(pipeline, batch, "alerts")  # type: ignore[arg-type]


def test_a_pin_of_a_set_that_was_dropped_is_refused(alerts: vd.Registry) -> None:
    info = alerts.set("alerts")
    alerts.drop("alerts")
    alerts.create("alerts", schema="price double")

    with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped meanwhile"):
        alerts.pin("job", 1, info)
