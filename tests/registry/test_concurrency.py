"""Several processes use one registry: all changes are applied, and no reader sees a part of one."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from registry import writers

import vedette as vd

# A fork server, so that each process need not import everything again.
OTHERS = multiprocessing.get_context("forkserver")
OTHERS.set_forkserver_preload(["registry.writers", "vedette.registry.registry", "psycopg"])


def seen_ids(registry: vd.Registry) -> set[str]:
    return {str(each.id) for each in registry.list("alerts", limit=None)}


def check_pairs(ids: set[str]) -> None:
    lefts = {each.removesuffix("-left") for each in ids if each.endswith("-left")}
    rights = {each.removesuffix("-right") for each in ids if each.endswith("-right")}
    assert lefts == rights


def test_concurrent_writers_all_succeed_and_readers_see_whole_changes_only(url: str, registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    with ProcessPoolExecutor(3, mp_context=OTHERS) as pool:
        done = [pool.submit(writers.add_pairs, url, writer, 15) for writer in range(3)]
        followed: set[str] = set()
        version = 0
        while not all(each.done() for each in done):
            check_pairs(seen_ids(registry))
            for each in registry.changes("alerts", since=version).by_version():
                followed = (followed - set(each.removed_ids)) | set(each.added_ids)  # type: ignore[assignment]
                check_pairs(followed)
                assert each.n_added + each.n_removed == 2
                version = int(each.versions[0])
        made = [version for each in done for version in each.result()]

    assert sorted(made) == list(range(1, 3 * 20 + 1))
    assert registry.set("alerts").version == 60
    assert registry.set("alerts").n_active == len(seen_ids(registry)) == 3 * (30 - 10)
    assert registry.verify() == []


def test_if_two_writers_expect_one_version_one_is_refused_and_retries(url: str, registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    registry.add("alerts", "counter", "price < 0")

    gate = OTHERS.Barrier(2)
    with ProcessPoolExecutor(2, mp_context=OTHERS, initializer=writers.meet_at, initargs=(gate,)) as pool:
        n_late = sum(each.result() for each in [pool.submit(writers.count_up, url, 15) for _ in range(2)])

    assert registry.get("alerts", "counter").text == "price < 30"
    assert registry.set("alerts").version == 31
    assert n_late > 0


def test_a_killed_writer_leaves_only_whole_changes(url: str, registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    chance = random.Random(0)
    for _ in range(2):
        version = registry.set("alerts").version
        writer = OTHERS.Process(target=writers.add_for_ever, args=(url, 2000))
        writer.start()
        while registry.set("alerts").version < version + 2:
            time.sleep(0.01)
            assert writer.is_alive()
        time.sleep(chance.uniform(0, 0.1))
        writer.kill()
        writer.join()

        info = registry.set("alerts")
        assert info.n_active == 2000 * info.version
        assert registry.verify() == []
        registry.remove_many("alerts", [each.id for each in registry.list("alerts", limit=None)])
        registry.drop("alerts")
        registry.create("alerts", schema="price double")


def test_threads_share_one_registry(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for i in range(10):
                registry.add("alerts", f"{thread}-{i}", "price < 1")
                registry.list("alerts")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert (registry.set("alerts").version, registry.set("alerts").n_active) == (60, 60)


def test_processes_that_open_a_new_registry_concurrently_create_it_once(url: str) -> None:
    with ProcessPoolExecutor(4, mp_context=OTHERS) as pool:
        pool.submit(time.time).result()
        done = [pool.submit(writers.open_at, url, time.time() + 1) for _ in range(4)]
        assert [each.result() for each in done] == [[]] * 4

    registry = vd.Registry(url, create=False)
    registry.create("alerts", schema="price double")
    registry.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other tests may have left threads
def test_a_forked_process_opens_its_own_connections(registry: vd.Registry) -> None:
    registry.create("alerts", schema="price double")
    registry.add("alerts", "a", "price < 1")
    fork = multiprocessing.get_context("fork")

    child = fork.Process(target=registry.add, args=("alerts", "b", "price < 2"))
    child.start()
    child.join(300)

    assert child.exitcode == 0
    assert seen_ids(registry) == {"a", "b"}
    registry.add("alerts", "c", "price < 3")


@pytest.mark.parametrize("seed", range(2))
def test_a_batch_that_is_read_during_writes_sees_one_version(url: str, registry: vd.Registry, seed: int) -> None:
    registry.create("alerts", schema="price double")
    chance = random.Random(seed)
    with ProcessPoolExecutor(1, mp_context=OTHERS) as pool:
        done = pool.submit(writers.add_pairs, url, seed, 20)
        batch = 0
        while not done.done():
            version = registry.pin("job", batch, "alerts")
            since = chance.randrange(version + 1)
            before = {each for piece in registry.active("alerts", at=since) for each in piece.added_ids}
            changes = registry.changes("alerts", since=since, until=version)
            for each in changes.by_version():
                before = (before - set(each.removed_ids)) | set(each.added_ids)
            after = {each for piece in registry.active("alerts", at=version, each=7) for each in piece.added_ids}
            assert before == after
            check_pairs(after)  # type: ignore[arg-type]
            batch += 1
        done.result()
