"""A batch has one version, for every process and for every repetition."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import postgres
import pytest
from sqlalchemy import delete, func, select

import vedette as vd
from vedette.registry.snapshots.lease import Lease
from vedette.registry.store.tables import pins, versions
from vedette.registry.write.locked_set import LockedSet


@pytest.fixture
def alerts(registry: vd.Registry) -> vd.Registry:
    registry.create("alerts", schema="price double")
    registry.add("alerts", 1, "price < 1")
    return registry


def count_pins(registry: vd.Registry) -> int:
    return int(
        registry.database.read(lambda connection: connection.scalar(select(func.count()).select_from(pins))) or 0
    )


def test_the_first_call_decides_the_version_of_a_batch(
    alerts: vd.Registry, open_registry: Callable[..., vd.Registry]
) -> None:
    other = open_registry()

    first = alerts.pin("job", 0, "alerts")
    alerts.add("alerts", 2, "price < 2")

    assert first == 1
    assert other.pin("job", 0, "alerts") == alerts.pin("job", 0, "alerts") == 1
    assert other.pin("job", 1, "alerts") == 2
    assert other.pin("other job", 0, "alerts") == 2


def test_concurrent_calls_return_the_same_version(
    alerts: vd.Registry, open_registry: Callable[..., vd.Registry]
) -> None:
    workers = [open_registry() for _ in range(4)]
    answers: dict[int, set[int]] = {batch: set() for batch in range(12)}
    errors: list[BaseException] = []
    gate = threading.Barrier(5)

    def work(worker: vd.Registry) -> None:
        try:
            for batch in answers:
                gate.wait(60)
                answers[batch].add(worker.pin("job", batch, "alerts"))
        except BaseException as error:
            errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for batch in answers:
        gate.wait(60)
        alerts.add("alerts", 100 + batch, "price < 5")
    for thread in threads:
        thread.join()

    assert errors == []
    assert [len(versions) for versions in answers.values()] == [1] * len(answers)
    pinned = [min(versions) for versions in answers.values()]
    assert pinned == sorted(pinned)
    # A change that was committed before the batch began is visible in it.
    assert all(version >= 1 + batch for batch, version in enumerate(pinned))


def test_pins_of_old_batches_are_deleted(alerts: vd.Registry, clock: Any) -> None:
    for batch in range(20):
        alerts.pin("job", batch, "alerts")
    alerts.pin("silent", 7, "alerts")
    alerts.pin("silent", 8, "alerts")
    assert count_pins(alerts) == 22

    alerts.pin("job", 1000, "alerts")
    assert count_pins(alerts) == 22  # all but batch 0

    clock.advance(8 * 86_400)
    alerts.pin("job", 1050, "alerts")

    assert count_pins(alerts) == 2  # this one, and the newest of the silent pipeline
    alerts.add("alerts", 2, "price < 2")
    assert alerts.pin("silent", 8, "alerts") == 1


def test_pins_do_not_wait_for_a_long_change_and_see_what_was_committed_before(
    cluster: postgres.Cluster,
) -> None:
    url = cluster.new_database()
    registry, writer = vd.Registry(url, retry_seconds=1), vd.Registry(url)
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


def test_a_pin_of_a_dropped_set_with_the_same_row_is_not_used(alerts: vd.Registry) -> None:
    info = alerts.set("alerts")
    alerts.drop("alerts")
    alerts.create("alerts", schema="price double")
    alerts.pin("job", 1, "alerts")

    with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped by another process"):
        alerts.pin("job", 1, info)


def test_a_pin_needs_a_name_and_a_number(alerts: vd.Registry) -> None:
    for pipeline, batch in [("", 1), (None, 1), ("job", "1"), ("job", True)]:
        with pytest.raises(vd.RegistryError, match="a pin needs the name of a pipeline and the number of a batch"):
            alerts.pin(pipeline, batch, "alerts")  # type: ignore[arg-type]


def test_a_pin_of_a_set_that_was_dropped_is_refused(alerts: vd.Registry) -> None:
    info = alerts.set("alerts")
    alerts.drop("alerts")
    alerts.create("alerts", schema="price double")

    with pytest.raises(vd.RegistryError, match="set 'alerts' was dropped by another process"):
        alerts.pin("job", 1, info)


def test_a_new_run_repeats_the_newest_batch_with_its_version(alerts: vd.Registry) -> None:
    assert [alerts.pin("job", batch, "alerts", run="a") for batch in (0, 1)] == [1, 1]
    alerts.add("alerts", 2, "price < 2")

    assert alerts.pin("job", 1, "alerts", run="b") == 1  # it was not committed
    assert alerts.pin("job", 2, "alerts", run="b") == 2
    assert alerts.pin("job", 1, "alerts", run="b") == 1  # a late task
    assert alerts.pin("job", 0, "alerts", run="a") == 1
    assert alerts.pin("job", 2, "alerts", run="c") == 2


def test_a_copied_or_restored_checkpoint_is_an_error_with_a_remedy(alerts: vd.Registry) -> None:
    for batch in range(4):
        alerts.pin("job", batch, "alerts", run="a")
    alerts.add("alerts", 2, "price < 2")

    with pytest.raises(vd.RegistryError, match="was copied, or restored to an older state") as caught:
        alerts.pin("job", 2, "alerts", run="b")
    assert "`vedette registry unpin job --from-batch 2`" in str(caught.value)

    assert alerts.unpin("job", from_batch=2) == 2
    assert [alerts.pin("job", batch, "alerts", run="b") for batch in (2, 3, 4)] == [2, 2, 2]
    assert alerts.pin("job", 1, "alerts", run="a") == 1


def test_pins_of_unknown_runs_are_used(alerts: vd.Registry) -> None:
    for batch in range(3):
        alerts.pin("job", batch, "alerts")  # without a run
    assert alerts.pin("job", 1, "alerts", run="b") == 1
    assert alerts.pin("job", 1, "alerts") == 1


def test_the_last_pinned_version_of_a_silent_stream_is_not_forgotten(alerts: vd.Registry, clock: Any) -> None:
    alerts.pin("silent", 7, "alerts")
    for number in range(2, 6):
        alerts.add("alerts", number, "price < 2")
    alerts.pin("job", 0, "alerts")
    clock.advance(365 * 86_400)

    assert alerts.forget("alerts", before=5) == 1
    assert alerts.follow("alerts").open(alerts.pin("silent", 7, "alerts")).version == 1

    assert alerts.unpin("silent") == 1
    assert alerts.forget("alerts", before=5) == 5


def test_a_forgotten_pinned_version_is_an_error_with_a_remedy(alerts: vd.Registry) -> None:
    alerts.pin("job", 3, "alerts", run="a")
    alerts.add("alerts", 2, "price < 2")
    alerts.add("alerts", 3, "price < 3")
    alerts.database.write(lambda connection: connection.execute(delete(versions).where(versions.c.version == 1)))

    for ask in (alerts.follow("alerts").pin, lambda stream, batch: alerts.pin(stream, batch, "alerts", run="b")):
        with pytest.raises(
            vd.RegistryError, match="is pinned to version 1 of set 'alerts', which is forgotten"
        ) as caught:
            ask("job", 3)
        assert "`vedette registry unpin job --from-batch 3`" in str(caught.value)
    alerts.unpin("job", from_batch=3)
    assert alerts.follow("alerts").pin("job", 3) == 3


def test_streams_are_listed_with_their_pins(alerts: vd.Registry, clock: Any) -> None:
    alerts.create("other", schema="price double")
    alerts.pin("old", 5, "alerts")
    clock.advance(60)
    for batch in (3, 4):
        alerts.pin("new", batch, "alerts")
    alerts.pin("new", 4, "other")

    found = [(each.set_name, each.stream, each.first_batch, each.last_batch, each.version) for each in alerts.pins()]

    assert found == [("alerts", "new", 3, 4, 1), ("alerts", "old", 5, 5, 1), ("other", "new", 4, 4, 0)]
    assert [each.stream for each in alerts.pins("other")] == ["new"]
    assert (alerts.pins()[0].pinned_at - alerts.pins()[1].pinned_at).total_seconds() == 60


def test_only_the_named_pins_are_deleted(alerts: vd.Registry) -> None:
    alerts.create("other", schema="price double")
    for name in ("alerts", "other"):
        for batch in range(3):
            alerts.pin("job", batch, name)

    assert alerts.unpin("job", from_batch=1, name="other", dry_run=True) == 2
    assert alerts.unpin("job", from_batch=1, name="other") == 2
    assert [(each.set_name, each.last_batch) for each in alerts.pins()] == [("alerts", 2), ("other", 0)]
    with pytest.raises(vd.RegistryError, match="stream 'jb' has no pins; streams with pins are: job; did you"):
        alerts.unpin("jb", name="alerts")
    with pytest.raises(vd.RegistryError, match="from_batch must be the number of a batch; got 'x'"):
        alerts.unpin("job", from_batch="x")  # type: ignore[arg-type]
